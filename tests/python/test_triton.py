"""serving/triton under the real server, tritonserver of the package nvidia-pytriton: four models that say themselves what they are,
and eight clients at once. DLC_TRITON_REQUESTS is how many requests they make together."""

import http.client
import importlib.util
import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h

import dlc

ROOT = pathlib.Path(__file__).resolve().parents[2]
BACKENDS = pathlib.Path(os.environ["DLC_LIBRARY_DIR"]) / "triton"
SERVER = pathlib.Path(importlib.util.find_spec("pytriton").origin).parent / "tritonserver/bin/tritonserver"
REQUESTS = int(os.environ.get("DLC_TRITON_REQUESTS", 1600))
CLIENTS = 8
TYPES = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64", np.dtype(np.int32): "INT32", np.dtype(bool): "BOOL",
         np.dtype(np.float64): "FP64"}


# requests of different lengths come together, and the shorter ones are filled up
RAGGED = '''backend: "dlc"
max_batch_size: 64
input { name: "ids" data_type: TYPE_INT64 dims: [-1] allow_ragged_batch: true }
input { name: "weights" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true }
dynamic_batching { max_queue_delay_microseconds: 100000 }
parameters { key: "pads" value { string_value: "true" } }'''


def model(nodes, inputs, outputs, constants=()):
    values = [[h.make_tensor_value_info(name, dtype, dims) for name, dtype, dims in rows] for rows in (inputs, outputs)]
    graph = h.make_graph(nodes, "m", *values, [onnx.numpy_helper.from_array(array, name) for name, array in constants])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)


def tokens():
    """Means of embeddings, weighted: two inputs of one length, and indices that may be out of range."""
    rng = np.random.default_rng(3)
    return model([h.make_node("Gather", ["table", "ids"], ["e"]), h.make_node("Unsqueeze", ["weights", "two"], ["w"]),
                  h.make_node("Mul", ["e", "w"], ["p"]), h.make_node("ReduceSum", ["p", "one"], ["sum"], keepdims=0)],
                 [("ids", T.INT64, ["batch", "length"]), ("weights", T.FLOAT, ["batch", "length"])], [("sum", T.FLOAT, ["batch", 6])],
                 [("table", rng.standard_normal((50, 6)).astype(np.float32)), ("one", np.array([1])), ("two", np.array([2]))])


def whole():
    """No batch, a scalar, several types, and an output whose size only the run finds out."""
    return model([h.make_node("Add", ["x", "s"], ["y"]), h.make_node("Greater", ["y", "zero"], ["is_more"]),
                  h.make_node("NonZero", ["is_more"], ["where"]), h.make_node("Cast", ["k"], ["wide"], to=T.DOUBLE), h.make_node("ReduceMin", ["y"], ["least"], keepdims=0)],
                 [("x", T.FLOAT, [4]), ("s", T.FLOAT, []), ("k", T.INT32, [2, "n"])],
                 [("is_more", T.BOOL, [4]), ("where", T.INT64, [1, "found"]), ("least", T.FLOAT, []), ("wide", T.DOUBLE, [2, "n"])],
                 [("zero", np.float32(0))])


def deep():
    """Some milliseconds of matrices, so that requests meet."""
    rng = np.random.default_rng(4)
    names = [f"w{i}" for i in range(8)]
    nodes = [h.make_node("MatMul", ["x" if i == 0 else f"h{i}", name], [f"m{i}"]) for i, name in enumerate(names)]
    nodes += [h.make_node("Tanh", [f"m{i}"], ["y" if i == 7 else f"h{i + 1}"]) for i in range(8)]
    nodes.sort(key=lambda node: (int(node.input[0][1:] or 0), node.op_type == "Tanh"))
    return model(nodes, [("x", T.FLOAT, ["batch", 1024])], [("y", T.FLOAT, ["batch", 1024])],
                 [(name, (rng.standard_normal((1024, 1024)) / 32).astype(np.float32)) for name in names])


def free_port():
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


class Triton(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        repository = pathlib.Path(cls.folder.name)
        cls.sessions = {}
        # a folder called NAME.dlc needs no configuration at all; the others say what cannot be known
        for name, source, config in (("digits.dlc", str(ROOT / "models/digits.onnx"), None),
                                     ("tokens", tokens(), 'backend: "dlc"\nparameters { key: "threads" value { string_value: "1" } }'),
                                     ("ragged", tokens(), RAGGED), ("whole", whole(), 'backend: "dlc"'), ("deep", deep(), 'backend: "dlc"\ndynamic_batching { max_queue_delay_microseconds: 50000 }')):
            (repository / name / "1").mkdir(parents=True)
            file = repository / name / "1/model.dlc"
            dlc.compile(source, file)
            cls.sessions[name] = dlc.InferenceSession(file, threads=1)
            if config:
                (repository / name / "config.pbtxt").write_text(config)
        cls.port, cls.log = free_port(), open(repository / "log", "w+")
        cls.server = subprocess.Popen([SERVER, "--model-repository", repository, "--backend-directory", BACKENDS, "--http-port", str(cls.port),
                                       "--allow-grpc", "false", "--allow-metrics", "false"], stdout=cls.log, stderr=cls.log)
        end = time.monotonic() + 60
        while not cls.is_ready():
            if cls.server.poll() is not None or time.monotonic() > end:
                cls.log.seek(0)
                raise RuntimeError(cls.log.read())
            time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        status = cls.server.wait(60)
        cls.log.seek(0)
        log = cls.log.read()
        cls.log.close()
        cls.folder.cleanup()
        assert status == 0, log

    @classmethod
    def is_ready(cls):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/v2/health/ready") as answer:
                return answer.status == 200
        except OSError:
            return False

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v2/models/{path}") as answer:
            return json.load(answer)

    def infer(self, client, name, feed, outputs=None):
        """The outputs, or the sentence of a refusal with status 400."""
        rows = [{"name": key, "shape": list(array.shape) or [1], "datatype": TYPES[array.dtype], "data": array.ravel().tolist()}
                for key, array in feed.items()]
        asked = {"inputs": rows} | ({"outputs": [{"name": key} for key in outputs]} if outputs else {})
        client.request("POST", f"/v2/models/{name}/infer", json.dumps(asked))
        answer = client.getresponse()
        said = json.loads(answer.read())
        if answer.status == 400:
            return said["error"]
        self.assertEqual(answer.status, 200, said)
        return {row["name"]: (row["datatype"], row["shape"], row["data"]) for row in said["outputs"]}

    def client(self):
        return http.client.HTTPConnection("127.0.0.1", self.port)

    def check(self, client, name, feed):
        """What the server says is what a session says."""
        found, session = self.infer(client, name, feed), self.sessions[name]
        self.assertIsInstance(found, dict, found)
        for row, expected in zip(session.get_outputs(), session.run(None, feed)):
            dtype, shape, data = found[row.name]
            self.assertEqual((dtype, tuple(shape)), (TYPES[expected.dtype], expected.shape or (1,)), (name, row.name))
            np.testing.assert_allclose(np.array(data), expected.ravel(), rtol=1e-5, atol=1e-5)

    def refused(self, client, name, feed, sentence):
        self.assertIn(sentence, self.infer(client, name, feed))

    def test_configurations(self):
        config = self.ask("digits.dlc/config")
        self.assertEqual((config["max_batch_size"], "dynamic_batching" in config), (64, True))
        self.assertEqual([(row["name"], row["data_type"], row["dims"]) for row in config["input"] + config["output"]],
                         [("image", "TYPE_FP32", [1, 8, 8]), ("logits", "TYPE_FP32", [10])])
        config = self.ask("whole/config")
        self.assertEqual((config["max_batch_size"], "dynamic_batching" in config), (0, False))
        self.assertEqual([(row["name"], row["data_type"], row["dims"]) for row in config["input"] + config["output"]],
                         [("x", "TYPE_FP32", [4]), ("s", "TYPE_FP32", [1]), ("k", "TYPE_INT32", [2, -1]),
                          ("is_more", "TYPE_BOOL", [4]), ("where", "TYPE_INT64", [1, -1]), ("least", "TYPE_FP32", [1]), ("wide", "TYPE_FP64", [2, -1])])

    def test_some_outputs_are_wanted(self):
        feed = {"x": np.arange(4, dtype=np.float32), "s": np.array(-1, np.float32), "k": np.ones((2, 3), np.int32)}
        client = self.client()
        self.check(client, "whole", feed)
        self.assertEqual(self.infer(client, "whole", feed, ["where"]), {"where": ("INT64", [1, 2], [2, 3])})
        client.close()

    def test_bad_requests_get_a_sentence(self):
        client = self.client()
        ids, weights = np.array([[1, 2, 50]]), np.ones((1, 3), np.float32)
        self.refused(client, "tokens", {"ids": ids, "weights": weights}, "index out of range")
        self.refused(client, "tokens", {"ids": ids[:, :2], "weights": weights}, "length")
        self.refused(client, "digits.dlc", {"image": np.zeros((1, 1, 8, 9), np.float32)}, "shape")
        self.refused(client, "digits.dlc", {"picture": np.zeros((1, 1, 8, 8), np.float32)}, "picture")
        self.refused(client, "tokens", {"ids": ids.astype(np.int32), "weights": weights}, "INT64")
        client.close()

    def test_sentences_without_words(self):
        client = self.client()
        feed = {"ids": np.zeros((1, 0), np.int64), "weights": np.zeros((1, 0), np.float32)}
        self.assertEqual(self.infer(client, "tokens", feed), {"sum": ("FP32", [1, 6], [0] * 6)})
        client.close()

    def test_what_cannot_be_served_is_not_loaded(self):
        strings = model([h.make_node("Identity", ["x"], ["y"])], [("x", T.STRING, ["n"])], [("y", T.STRING, ["n"])])
        with tempfile.TemporaryDirectory() as folder:
            for name, source, config in (("whole", whole(), "max_batch_size: 8"), ("strings", strings, "")):
                (pathlib.Path(folder) / name / "1").mkdir(parents=True)
                (pathlib.Path(folder) / name / "config.pbtxt").write_text(f'backend: "dlc"\n{config}')
                dlc.compile(source, pathlib.Path(folder) / name / "1/model.dlc")
            said = subprocess.run([SERVER, "--model-repository", folder, "--backend-directory", BACKENDS, "--http-port", str(free_port()),
                                   "--allow-grpc", "false", "--allow-metrics", "false"], capture_output=True, text=True, timeout=60)
        self.assertNotEqual(said.returncode, 0)
        self.assertIn("max_batch_size is set, and there is no batch dimension", said.stdout + said.stderr)
        self.assertIn("the server has no type for str[n]", said.stdout + said.stderr)

    def load(self, k, wrong):
        rng, client = np.random.default_rng(k), self.client()
        images = np.load(ROOT / "models/digits_test.npz")["image"]
        for i in range(REQUESTS // CLIENTS):
            try:
                batch, kind = int(rng.integers(1, 4)), i % 8
                ids, weights = rng.integers(0, 50, (batch, 5)), rng.random((batch, 5), np.float32)
                if kind < 3:
                    self.check(client, "digits.dlc", {"image": images[rng.integers(0, len(images), batch)]})
                elif kind < 5:
                    self.check(client, "tokens", {"ids": ids, "weights": weights})
                elif kind == 5:
                    ids[0, 2] = 77
                    self.refused(client, "tokens", {"ids": ids, "weights": weights}, "index out of range")
                elif kind == 6:
                    self.check(client, "whole", {"x": rng.standard_normal(4).astype(np.float32), "s": np.array(0.5, np.float32),
                                                 "k": rng.integers(0, 9, (2, batch)).astype(np.int32)})
                else:
                    self.check(client, "deep", {"x": rng.standard_normal((1, 1024)).astype(np.float32)})
            except Exception as error:
                wrong.append((k, i, error))
        client.close()

    def test_eight_clients(self):
        wrong = []
        self.at_once(self.load, wrong)
        self.assertEqual(wrong, [])

    def test_requests_are_merged(self):
        before, wrong = self.ask("deep/stats")["model_stats"][0], []

        def ask(k, wrong):
            client, rng = self.client(), np.random.default_rng(k)
            for _ in range(20):
                try:
                    self.check(client, "deep", {"x": rng.standard_normal((1, 1024)).astype(np.float32)})
                except Exception as error:
                    wrong.append(error)
            client.close()

        self.at_once(ask, wrong)
        self.assertEqual(wrong, [])
        after = self.ask("deep/stats")["model_stats"][0]
        requests, runs = (after[key] - before[key] for key in ("inference_count", "execution_count"))
        print(f"{requests} requests in {runs} runs")
        self.assertEqual(requests, CLIENTS * 20)
        self.assertGreater(requests / runs, 2)

    def test_lengths_are_filled_up(self):
        wrong = []

        def ask(k, wrong):
            client, rng = self.client(), np.random.default_rng(k)
            for _ in range(5):
                try:
                    self.check(client, "ragged", {"ids": rng.integers(0, 50, (1, k + 1)), "weights": rng.random((1, k + 1), np.float32)})
                except Exception as error:
                    wrong.append(error)
            client.close()

        self.at_once(ask, wrong)
        self.assertEqual(wrong, [])
        stats = self.ask("ragged/stats")["model_stats"][0]
        self.assertEqual(stats["inference_count"], CLIENTS * 5)
        self.assertLess(stats["execution_count"], CLIENTS * 5)

    def at_once(self, call, wrong):
        threads = [threading.Thread(target=call, args=(k, wrong)) for k in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    unittest.main()
