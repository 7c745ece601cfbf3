"""torch.compile(backend="dlc") and torch's tensors as inputs and outputs."""

import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import unittest

import numpy as np
import torch

import dlc
import dlc.torch

ROOT = pathlib.Path(__file__).resolve().parents[2]


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend=dlc.torch.backend, **options)


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.convolution = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.convolution(x)))
        return self.linear(x.mean((2, 3))), x.amax(1)


class Compiled(unittest.TestCase):
    def equal(self, model, fast, *inputs):
        with torch.no_grad():
            expected, found = model(*inputs), fast(*inputs)
        for e, f in zip(expected, found) if isinstance(expected, tuple) else [(expected, found)]:
            torch.testing.assert_close(f, e, rtol=1e-4, atol=1e-5)

    def test_models_at_several_shapes(self):
        model = Network().eval()
        fast = compiled(model)
        for shape in ((1, 3, 8, 8), (4, 3, 8, 8), (2, 3, 12, 10), (1, 3, 8, 8)):
            self.equal(model, fast, torch.randn(shape))

    def test_changed_weights_are_seen(self):
        model = Network().eval()
        fast = compiled(model)
        x = torch.randn(2, 3, 8, 8)
        self.equal(model, fast, x)
        with torch.no_grad():
            model.linear.weight.mul_(2)
        self.equal(model, fast, x)

    def test_an_encoder(self):
        torch.manual_seed(6)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        model = torch.nn.Sequential(torch.nn.Embedding(50, 16), layer, torch.nn.LayerNorm(16)).eval()
        self.equal(model, compiled(model), torch.randint(0, 50, (2, 7)))

    def test_encoders_without_gradients(self):
        torch.manual_seed(7)
        x, padding = torch.randn(3, 7, 16), torch.arange(7) >= torch.tensor([[7], [4], [6]])
        causal = torch.ones(7, 7, dtype=torch.bool).triu(1)
        for choice in ({}, {"norm_first": True, "activation": "gelu"}):
            layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, **choice).eval()
            fast = compiled(layer)
            for masks in ({}, {"src_key_padding_mask": padding}, {"src_mask": causal},
                          {"src_key_padding_mask": padding, "src_mask": causal}):
                with torch.no_grad():
                    torch.testing.assert_close(fast(x, **masks), layer(x, **masks), rtol=1e-4, atol=1e-5)

    def test_attention_without_gradients(self):
        torch.manual_seed(8)
        model = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval()
        x, y = torch.randn(2, 5, 16), torch.randn(2, 6, 16)
        for choice in ({}, {"need_weights": False}, {"average_attn_weights": False}):
            fast = compiled(lambda a, b: model(a, b, b, **choice))
            with torch.no_grad():
                for found, expected in zip(fast(x, x) + fast(x, y), model(x, x, x, **choice) + model(x, y, y, **choice)):
                    if expected is None:
                        self.assertIsNone(found)
                    else:
                        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

    def test_what_torch_cannot_export_is_named(self):
        with torch.no_grad(), self.assertRaisesRegex(dlc.UnsupportedError, "qr"):
            compiled(lambda x: torch.linalg.qr(x)[0])(torch.ones(3, 3))

    def test_the_name_is_found(self):
        project = tomllib.loads((ROOT / "python/pyproject.toml").read_text())
        rows = project["project"]["entry-points"]["torch_dynamo_backends"]
        with tempfile.TemporaryDirectory() as folder:
            info = pathlib.Path(folder) / "dlc-0.1.0.dist-info"
            info.mkdir()
            (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dlc\nVersion: 0.1.0\n")
            (info / "entry_points.txt").write_text("[torch_dynamo_backends]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()))
            script = "import torch; print(torch.compile(lambda x: x * 3, backend='dlc')(torch.ones(2)).tolist())"
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            found = subprocess.run([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
        self.assertEqual(found.stdout, "[3.0, 3.0]\n", found.stderr)

    def test_functions_and_strides(self):
        def function(x, y, scale):
            return torch.softmax(x @ y.transpose(0, 1), -1) * scale, (x > 0).to(torch.int64).sum(1)
        fast = compiled(function)
        self.equal(function, fast, torch.randn(4, 6), torch.randn(5, 6), 3)
        self.equal(function, fast, torch.randn(6, 4).t(), torch.randn(5, 6), 0.5)

    def test_results_of_earlier_calls_stay(self):
        fast = compiled(lambda x: x * 2)
        first = fast(torch.ones(3))
        fast(torch.zeros(3))
        self.assertEqual(first.tolist(), [2, 2, 2])

    def test_gradients_are_refused(self):
        with self.assertRaisesRegex(dlc.UsageError, "torch.no_grad"):
            compiled(Network().eval())(torch.randn(1, 3, 8, 8))


class Memory(unittest.TestCase):
    def test_tensors_go_in_and_out_without_a_copy(self):
        session = dlc.InferenceSession(ROOT / "models/digits.onnx", cache=False)
        data = np.load(ROOT / "models/digits_test.npz")
        image, logits = torch.from_numpy(data["image"][:3]), torch.empty(3, 10)
        pointer = logits.data_ptr()
        found, = session.run(None, {"image": image}, out=[logits])
        self.assertIs(found, logits)
        self.assertEqual(logits.data_ptr(), pointer)
        np.testing.assert_allclose(logits.numpy(), data["logits"][:3], rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
