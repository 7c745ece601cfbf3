"""Small modules and scripts of torch: recurrences, spectra, graphs, super-resolution, loops and branches that data decides, searches.

ROWS   name, maker of the module, arguments by size (0 to 2), dynamic axes of each argument, exporter (s: TorchScript, d: dynamo), opset
"""

import pathlib
import tempfile

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

import case


class Call(nn.Module):
    """A function of tensors, with modules that it may use as `self.m`."""

    def __init__(self, function, *modules):
        super().__init__()
        self.m, self.function = nn.ModuleList(modules), function

    def forward(self, *x):
        return self.function(self.m, *x)


def draw(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def ids(high, *shape, seed=0):
    return torch.randint(0, high, shape, generator=torch.Generator().manual_seed(seed))


def recurrent(kind, **options):
    return lambda: Call(lambda m, x: m[0](x)[0], getattr(nn, kind)(8, 16, batch_first=True, **options))


def with_state(kind):
    return lambda: Call(lambda m, x, *s: m[0](x, s if len(s) > 1 else s[0]), getattr(nn, kind)(8, 16))


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.LSTM(8, 16, bidirectional=True, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=True)
        return nn.utils.rnn.pad_packed_sequence(self.net(packed)[0], batch_first=True)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.net, self.head = (
            nn.Embedding(50, 8),
            nn.GRU(8, 16, num_layers=2, bidirectional=True, batch_first=True),
            nn.Linear(32, 5),
        )

    def forward(self, x):
        return self.head(self.net(self.table(x))[0]).log_softmax(-1)


class Crnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d((2, 1)),
        )
        self.rnn, self.head = nn.LSTM(16 * 8, 32, bidirectional=True, batch_first=True), nn.Linear(64, 20)

    def forward(self, x):
        x = self.net(x)
        return self.head(self.rnn(x.permute(0, 3, 1, 2).flatten(2))[0])


class Unet(nn.Module):
    def __init__(self, mode="bilinear"):
        super().__init__()

        def block(i, o):
            return nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.ReLU()
            )

        self.down, self.middle, self.up, self.head, self.mode = (
            block(3, 8),
            block(8, 16),
            block(24, 8),
            nn.Conv2d(8, 2, 1),
            mode,
        )

    def forward(self, x):
        a = self.down(x)
        b = self.middle(F.max_pool2d(a, 2))
        b = F.interpolate(b, size=a.shape[2:], mode=self.mode, **({} if self.mode == "nearest" else {"align_corners": False}))
        return self.head(self.up(torch.cat([a, b], 1)))


class Attend(nn.Module):
    def __init__(self):
        super().__init__()
        torch.backends.mha.set_fastpath_enabled(False)
        self.net = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2, enable_nested_tensor=False)

    def forward(self, x, mask):
        return self.net(x, src_key_padding_mask=mask)


class Separate(nn.Module):
    """Encoder, masks, decoder of waveforms."""

    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, 16, 16, stride=8), nn.ConvTranspose1d(16, 1, 16, stride=8)
        self.mask = nn.Sequential(
            nn.GroupNorm(1, 16), nn.Conv1d(16, 16, 3, padding=2, dilation=2, groups=16), nn.PReLU(), nn.Conv1d(16, 32, 1)
        )

    def forward(self, x):
        y = F.relu(self.encode(x))
        masks = torch.sigmoid(self.mask(y)).view(x.shape[0], 2, 16, -1)
        return torch.cat([self.decode(masks[:, i] * y) for i in range(2)], 1)


class Mel(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bank", torch.rand(8, 33, generator=torch.Generator().manual_seed(0)))

    def forward(self, x):
        spectrum = torch.stft(x, 64, 16, window=self.window, return_complex=False)
        return torch.log(self.bank @ (spectrum**2).sum(-1) + 1e-3)


class Graph(nn.Module):
    """Messages along edges, summed at their ends."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x, edges):
        m = self.a(torch.cat([x[edges[0]], x[edges[1]]], -1)).relu()
        s = torch.zeros_like(x).index_add(0, edges[1], m)
        return self.b(torch.cat([x, s], -1))


class Script(nn.Module):
    """How often a loop turns and which branch runs, data says."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x, n: int):
        total = torch.zeros_like(x)
        for i in range(n):
            total = total + torch.tanh(self.net(x + i))
        if bool(total.sum() > 0):
            total = total * 2
        else:
            total = total - 1
        return total


class Until(nn.Module):
    def forward(self, x):
        steps = torch.zeros(1, dtype=torch.int64)
        while bool(x.abs().max() > 1):
            x = x / 2
            steps = steps + 1
        return x, steps


class Grow(nn.Module):
    """A state that grows: greedy decoding."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)

    def forward(self, tokens, steps: int):
        for _ in range(steps):
            following = self.head(self.table(tokens).mean(1)).argmax(-1, keepdim=True)
            tokens = torch.cat([tokens, following], 1)
        return tokens


class Collect(nn.Module):
    """A list that a loop fills."""

    def forward(self, x):
        rows = []
        for i in range(x.size(0)):
            rows.append(torch.relu(x[i]) * i)
        return torch.stack(rows)


class Either(nn.Module):
    """Branches of different shapes."""

    def forward(self, x):
        if x.size(0) > 2:
            y = x[:2].sum(0, keepdim=True)
        else:
            y = torch.cat([x, x], 0)
        return y


def boxes(n, seed):
    corners = torch.rand(n, 2, generator=torch.Generator().manual_seed(seed)) * 50
    return torch.cat([corners, corners + 5 + 20 * torch.rand(n, 2, generator=torch.Generator().manual_seed(seed + 9))], 1)


def beam(m, x):
    values, best = x.flatten(1).topk(4, 1)
    rows = torch.div(best, x.shape[2], rounding_mode="floor")
    return values, x.gather(1, rows.unsqueeze(-1).expand(-1, -1, x.shape[2])), best % x.shape[2]


def quant(m, x):
    return torch.fake_quantize_per_tensor_affine(m[0](x), 0.05, 128, 0, 255)


BN, BTF = {0: "batch"}, {0: "batch", 1: "time"}
B, T = (2, 1, 3), (7, 12, 5)
HW = {0: "batch", 2: "height", 3: "width"}
SIDE = (16, 24, 18)
ROWS = [
    ("lstm", recurrent("LSTM"), lambda i: (draw(B[i], T[i], 8),), [BTF], "s", 11),
    ("gru", recurrent("GRU"), lambda i: (draw(B[i], T[i], 8),), [BTF], "s", 14),
    ("rnn", recurrent("RNN"), lambda i: (draw(B[i], T[i], 8),), [BTF], "s", 17),
    ("lstm-both-2", recurrent("LSTM", num_layers=2, bidirectional=True), lambda i: (draw(B[i], T[i], 8),), [BTF], "s", 13),
    ("gru-both", recurrent("GRU", bidirectional=True), lambda i: (draw(B[i], T[i], 8),), [BTF], "s", 12),
    ("lstm-dynamo", recurrent("LSTM"), lambda i: (draw(2, 7, 8),), None, "d", 18),
    (
        "lstm-state",
        with_state("LSTM"),
        lambda i: (draw(T[i], B[i], 8), draw(1, B[i], 16), draw(1, B[i], 16)),
        [{0: "time", 1: "batch"}, {1: "batch"}, {1: "batch"}],
        "s",
        17,
    ),
    (
        "gru-state",
        with_state("GRU"),
        lambda i: (draw(T[i], B[i], 8), draw(1, B[i], 16)),
        [{0: "time", 1: "batch"}, {1: "batch"}],
        "s",
        20,
    ),
    ("lstm-projected", recurrent("LSTM"), lambda i: (draw(1, T[i], 8),), [{1: "time"}], "s", 16),
    ("packed", Packed, lambda i: (draw(B[i], T[i], 8), torch.tensor([T[i], 3, 2][: B[i]])), [BTF, BN], "s", 14),
    ("tagger", Tagger, lambda i: (ids(50, B[i], T[i]),), [BTF], "s", 17),
    ("crnn", Crnn, lambda i: (draw(B[i], 1, 32, 4 * T[i]),), [{0: "batch", 3: "width"}], "s", 13),
    ("unet", Unet, lambda i: (draw(B[i], 3, SIDE[i], SIDE[i]),), [HW], "s", 11),
    ("unet-nearest", lambda: Unet("nearest"), lambda i: (draw(B[i], 3, SIDE[i], 20),), [HW], "s", 18),
    ("unet-dynamo", Unet, lambda i: (draw(B[0] + i, 3, 16, 16),), [BN], "d", 18),
    ("encoder", Attend, lambda i: (draw(B[i], T[i], 16), torch.zeros(B[i], T[i], dtype=torch.bool)), [BTF, BTF], "s", 17),
    (
        "attention",
        lambda: Call(lambda m, q, k: m[0](q, k, k), nn.MultiheadAttention(16, 4, batch_first=True)),
        lambda i: (draw(B[i], T[i], 16), draw(B[i], 4, 16)),
        [BTF, BN],
        "s",
        14,
    ),
    (
        "sdpa",
        lambda: Call(lambda m, q: F.scaled_dot_product_attention(q, q, q, is_causal=True)),
        lambda i: (draw(B[i], 2, T[i], 8),),
        [{0: "batch", 2: "time"}],
        "s",
        17,
    ),
    (
        "sdpa-dynamo",
        lambda: Call(lambda m, q: F.scaled_dot_product_attention(q, q, q)),
        lambda i: (draw(2 + i, 2, T[i], 8),),
        [{0: "batch", 2: "time"}],
        "d",
        18,
    ),
    ("separate", Separate, lambda i: (draw(B[i], 1, 80 * T[i]),), [{0: "batch", 2: "samples"}], "s", 12),
    ("mel", Mel, lambda i: (draw(B[i], 100 * T[i]),), [{0: "batch", 1: "samples"}], "s", 17),
    ("mel-dynamo", Mel, lambda i: (draw(2, 700),), None, "d", 18),
    ("graph", Graph, lambda i: (draw(T[i], 8), ids(5, 2, 3 * T[i])), [{0: "nodes"}, {1: "edges"}], "s", 16),
    ("graph-dynamo", Graph, lambda i: (draw(T[i], 8), ids(5, 2, 3 * T[i])), [{0: "nodes"}, {1: "edges"}], "d", 18),
    ("script-loop", lambda: torch.jit.script(Script()), lambda i: (draw(2, 8), torch.tensor(3 + i)), [BN, {}], "s", 14),
    ("script-until", lambda: torch.jit.script(Until()), lambda i: (draw(3, 4) * 10 ** (i + 1),), [{}], "s", 13),
    ("script-grow", lambda: torch.jit.script(Grow()), lambda i: (ids(20, B[i], T[i]), torch.tensor(2 + i)), [BTF, {}], "s", 14),
    ("script-list", lambda: torch.jit.script(Collect()), lambda i: (draw(T[i], 4),), [{0: "rows"}], "s", 14),
    ("script-either", lambda: torch.jit.script(Either()), lambda i: (draw(B[i], 4),), [{0: "rows"}], "s", 14),
    (
        "super-resolution",
        lambda: nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 9, 3, padding=1), nn.PixelShuffle(3)),
        lambda i: (draw(B[i], 1, SIDE[i], SIDE[i]),),
        [HW],
        "s",
        11,
    ),
    (
        "generator",
        lambda: nn.Sequential(
            nn.ConvTranspose2d(16, 16, 4), nn.BatchNorm2d(16), nn.ReLU(), nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh()
        ),
        lambda i: (draw(B[i], 16, 1, 1),),
        [BN],
        "s",
        13,
    ),
    (
        "style",
        lambda: nn.Sequential(
            nn.ReflectionPad2d(2),
            nn.Conv2d(3, 8, 5),
            nn.InstanceNorm2d(8, affine=True),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2),
            nn.Conv2d(8, 3, 3),
        ),
        lambda i: (draw(B[i], 3, SIDE[i], SIDE[i]),),
        [HW],
        "s",
        15,
    ),
    (
        "nms",
        lambda: Call(lambda m, b, s: b[torchvision.ops.nms(b, s, 0.5)]),
        lambda i: (boxes(10 * T[i], i), torch.rand(10 * T[i], generator=torch.Generator().manual_seed(i))),
        [{0: "boxes"}] * 2,
        "s",
        12,
    ),
    (
        "nms-classes",
        lambda: Call(lambda m, b, s, c: torchvision.ops.batched_nms(b, s, c, 0.4)),
        lambda i: (boxes(10 * T[i], i), torch.rand(10 * T[i], generator=torch.Generator().manual_seed(i)), ids(3, 10 * T[i])),
        [{0: "boxes"}] * 3,
        "s",
        17,
    ),
    (
        "roi-align",
        lambda: Call(lambda m, x, r: torchvision.ops.roi_align(x, r, 4, 0.25, 2, True)),
        lambda i: (draw(1, 4, 16, 16), torch.cat([torch.zeros(T[i], 1), boxes(T[i], i)], 1)),
        [{}, {0: "boxes"}],
        "s",
        16,
    ),
    (
        "deform",
        lambda: Call(lambda m, x, o: torchvision.ops.deform_conv2d(x, o, m[0].weight, padding=1), nn.Conv2d(4, 6, 3)),
        lambda i: (draw(2, 4, 8, 8), draw(2, 18, 8, 8)),
        None,
        "d",
        19,
    ),
    (
        "grid-sample",
        lambda: Call(lambda m, x, g: F.grid_sample(x, g.tanh(), align_corners=False)),
        lambda i: (draw(B[i], 3, 8, 8), draw(B[i], 5, T[i], 2)),
        [BN, {0: "batch", 2: "time"}],
        "s",
        16,
    ),
    (
        "fold",
        lambda: Call(lambda m, x: F.fold(F.unfold(x, 3, padding=1), (8, 8), 3, padding=1)),
        lambda i: (draw(B[i], 2, 8, 8),),
        [BN],
        "s",
        18,
    ),
    ("beam", lambda: Call(beam), lambda i: (draw(B[i], 5, 9),), [BN], "s", 14),
    (
        "unique",
        lambda: Call(lambda m, x: torch.unique(x, return_inverse=True, return_counts=True)),
        lambda i: (ids(6, 3 * T[i]),),
        [{0: "n"}],
        "s",
        13,
    ),
    ("nonzero", lambda: Call(lambda m, x: (x[x > 0], (x > 0).nonzero())), lambda i: (draw(B[i], T[i]),), [BTF], "s", 13),
    (
        "masked-fill",
        lambda: Call(lambda m, x: x.masked_fill(x < 0, -1).cumsum(1).flip(1)),
        lambda i: (draw(B[i], T[i]),),
        [BTF],
        "s",
        14,
    ),
    (
        "index-put",
        lambda: Call(lambda m, x, i: x.index_put((i,), torch.ones(1))),
        lambda i: (draw(T[i] + 3, 4), ids(5, 3)),
        [{0: "n"}, {}],
        "s",
        13,
    ),
    (
        "scatter",
        lambda: Call(lambda m, x, i: torch.zeros(5, 4).scatter_add(0, i, x)),
        lambda i: (draw(T[i], 4), ids(5, T[i], 4)),
        [{0: "n"}] * 2,
        "s",
        16,
    ),
    (
        "einsum",
        lambda: Call(lambda m, a, b: torch.einsum("bik,bjk->bij", a, b)),
        lambda i: (draw(B[i], T[i], 4), draw(B[i], 6, 4)),
        [BTF, BN],
        "s",
        12,
    ),
    ("bag", lambda: nn.EmbeddingBag(20, 4, mode="mean"), lambda i: (ids(20, B[i], 5),), [BN], "s", 17),
    ("fft", lambda: Call(lambda m, x: torch.fft.rfft(x).abs()), lambda i: (draw(2, 32),), None, "d", 18),
    ("sort", lambda: Call(lambda m, x: x.sort(1, descending=True)), lambda i: (draw(B[i], T[i]),), [BTF], "s", 13),
    (
        "tril",
        lambda: Call(lambda m, x: torch.tril(x) @ torch.triu(x)),
        lambda i: (draw(B[i], T[i], T[i]),),
        [BTF | {2: "time"}],
        "s",
        14,
    ),
    ("fake-quantised", lambda: Call(quant, nn.Conv2d(3, 4, 3)), lambda i: (draw(B[i], 3, 8, 8),), [BN], "s", 13),
    (
        "norms",
        lambda: nn.Sequential(nn.GroupNorm(2, 4), nn.LocalResponseNorm(3), nn.Softplus(), nn.Hardswish(), nn.Mish()),
        lambda i: (draw(B[i], 4, 6, 6),),
        [BN],
        "s",
        18,
    ),
    ("adaptive", lambda: nn.AdaptiveAvgPool2d((3, 2)), lambda i: (draw(B[i], 3, 9, 8),), [BN], "s", 14),
    (
        "positions",
        lambda: Call(lambda m, x: x + torch.sin(torch.arange(x.size(1)).float())[None, :, None]),
        lambda i: (draw(B[i], T[i], 4),),
        [BTF],
        "s",
        14,
    ),
    ("pad", lambda: Call(lambda m, x: F.pad(x, (0, 16 - x.size(1) % 8))), lambda i: (draw(B[i], T[i]),), [BTF], "s", 14),
    (
        "chunks",
        lambda: Call(lambda m, x: torch.cat([c.sum(1, keepdim=True) for c in x.chunk(3, 1)], 1)),
        lambda i: (draw(B[i], 9),),
        [BN],
        "s",
        13,
    ),
    (
        "nerf",
        lambda: Call(
            lambda m, x: m[0](torch.cat([f(x * 2**k) for k in range(4) for f in (torch.sin, torch.cos)], -1)),
            nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 4)),
        ),
        lambda i: (draw(30 * T[i], 3),),
        [BN],
        "d",
        20,
    ),
]


def collect(out, wanted, _cache):
    for name, maker, arguments, axes, exporter, opset in ROWS:
        if wanted(name):
            try:
                make(out, name, maker, arguments, axes, exporter, opset)
            except Exception as error:
                print(
                    "%-44s cannot be exported: %s: %s" % (name, type(error).__name__, str(error).replace("\n", " ")[:200]),
                    flush=True,
                )


def make(out, name, maker, arguments, axes, exporter, opset):
    torch.manual_seed(0)
    module, args = maker().eval(), arguments(0)
    names = ["x%d" % i for i in range(len(args))]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        case.exported(module, args, path, exporter == "d", opset, names, axes=dict(zip(names, axes)) if axes else None)
        case.write(
            out,
            "torch-%s-%s%d" % (name, exporter, opset),
            path,
            [case.feed_of(names, arguments(i)) for i in range(3 if axes else 1)],
        )
