"""The networks of nets.py and the kernels of gpu_cases.py in PyTorch: what gpu_steps.py measures dlc beside."""
import torch
import torch.nn.functional as F

import nets


class TorchOps:
    """Runs a network at once; weights are made on first use and kept, so that a second run only computes."""

    def __init__(self, device="cuda", dtype=torch.float32):
        self.device, self.dtype, self.kept = device, dtype, {}

    def keep(self, name, make):
        if name not in self.kept:
            self.kept[name] = make().to(self.device, self.dtype)
        return self.kept[name]

    def param(self, name, shape, fan_in, gain=1.0):
        return self.keep(name, lambda: torch.from_numpy(nets.weight(name, shape, fan_in, gain)))

    def conv(self, x, name, ic, oc, k, stride, pad, groups=1, gain=1.0):
        fan_in = ic // groups * k * k
        return F.conv2d(x, self.param(name + ".w", (oc, ic // groups, k, k), fan_in, gain), self.param(name + ".b", (oc,), 100),
                        stride, pad, 1, groups)

    def linear(self, x, name, m, n):
        return x @ self.param(name + ".w", (m, n), m) + self.param(name + ".b", (n,), 100)

    def relu(self, x):
        return F.relu(x)

    def relu6(self, x):
        return F.relu6(x)

    def gelu(self, x):
        return F.gelu(x)

    def add(self, x, y):
        return x + y

    def concat(self, parts, axis):
        return torch.cat(parts, axis)

    def max_pool(self, x, k, stride, pad):
        return F.max_pool2d(x, k, stride, pad)

    def global_average(self, x):
        return x.mean((2, 3))

    def layer_norm(self, x, name, n):
        return F.layer_norm(x, (n,), self.keep(name + ".w", lambda: torch.ones(n)), self.param(name + ".b", (n,), 100), 1e-6)

    def embed(self, ids, name, n, width):
        return F.embedding(ids, self.param(name, (n, width), 4))

    def tokens(self, x, name, n, width):
        first = self.param(name + ".class", (1, 1, width), 4).expand(x.shape[0], 1, width)
        return torch.cat([first, x.reshape(x.shape[0], width, n).transpose(1, 2)], 1) + self.param(name + ".places", (1, 1 + n, width), 4)

    def first_token(self, x):
        return x[:, 0]

    def attention(self, x, name, width, heads):
        def part(which):
            return self.linear(x, name + which, width, width).reshape(x.shape[0], -1, heads, width // heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(part("q"), part("k"), part("v"))
        return self.linear(y.transpose(1, 2).reshape(x.shape[0], -1, width), name + "o", width, width)


def network(name, dtype=torch.float32):
    """A function of one input. Its weights exist after the first call."""
    ops, net = TorchOps(dtype=dtype), nets.NETS[name][0]
    return lambda x: net(ops, x)


def kernel(kind, at):
    """The function of a row of gpu_cases.KERNELS."""
    return {
        "matmul": lambda a, b: a @ b,
        "linear": lambda a, b, c: torch.addmm(c, a, b),
        "linear_gelu": lambda a, b, c: F.gelu(torch.addmm(c, a, b)),
        "conv_relu": lambda x, w, b: F.relu(F.conv2d(x, w, b, at["stride"], at["pad"], 1, at["groups"])),
        "softmax": lambda x: torch.softmax(x, -1),
        "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
        "add_gelu": lambda a, b: F.gelu(a + b),
        "transpose": lambda x: x.t().contiguous(),
        "sum_rows": lambda x: x.sum(1),
        "sum_columns": lambda x: x.sum(0),
        "max_pool": lambda x: F.max_pool2d(x, 2, 2),
        "attention": lambda q, k, v: torch.softmax(q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5, -1) @ v,
    }[kind]


def other_peers(kind):
    """Functions of the same besides, by name."""
    return {"SDPA": F.scaled_dot_product_attention} if kind == "attention" else {}
