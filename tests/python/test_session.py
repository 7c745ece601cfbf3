"""The Python package against the models in the tree."""

import concurrent.futures
import gc
import os
import pathlib
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np
import onnx
from onnx import TensorProto, helper

import dlc
from dlc import _library, _options, _session, _starts

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = ROOT / "models/digits.onnx"
DATA = dict(np.load(ROOT / "models/digits_test.npz"))


def model_of(nodes, inputs, outputs, initializers=()):
    """inputs, outputs: (name, TensorProto type, shape)."""
    rows = [[helper.make_tensor_value_info(*row) for row in side] for side in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *rows, initializer=list(initializers))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])


def identity(dtype, shape=("n",)):
    return model_of([helper.make_node("Identity", ["x"], ["y"])], [("x", dtype, shape)], [("y", dtype, shape)])


def pointer(array):
    return array.__array_interface__["data"][0]


class Memory:
    """An array that shows itself through DLPack alone, as a foreign library's tensor does."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Sessions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = dlc.InferenceSession(DIGITS, cache=False)

    def test_what_is_not_there_names_the_way_out(self):
        for where, name, way in ((dlc, "SparseTensor", "dense"), (dlc, "quantization", "dlc quantize"), (dlc, "nonsense", "help.dlc"),
                                 (self.session, "get_tuning_results", "--tune"), (self.session, "nonsense", "help.dlc")):
            with self.assertRaisesRegex(AttributeError, way):
                getattr(where, name)
        for line, way in (("from dlc import SparseTensor", "tensors are dense"), ("import dlc.quantization", "dlc quantize"),
                          ("from dlc.transformers import optimizer", "fuses attention"), ("from dlc import nonsense", "nonsense")):
            with self.assertRaisesRegex(ImportError, way):
                exec(line)
        self.assertFalse(hasattr(dlc, "SparseTensor"))
        options = dlc.SessionOptions()
        options.optimized_model_filepath = "optimised.onnx"
        with self.assertRaisesRegex(dlc.UsageError, "dlc.compile"):
            dlc.InferenceSession(str(DIGITS), options)
        with self.assertRaisesRegex(dlc.UnsupportedError, "add-an-operator"):
            options.register_custom_ops_library("operators.so")
        with self.assertRaisesRegex(dlc.UsageError, "providers"):
            self.session.set_providers(["CPUExecutionProvider"])

    def test_describes_inputs_and_outputs(self):
        image, = self.session.get_inputs()
        logits, = self.session.get_outputs()
        self.assertEqual((image.name, image.type, image.shape), ("image", "tensor(float)", ["batch", 1, 8, 8]))
        self.assertEqual((logits.name, logits.shape), ("logits", ["batch", 10]))
        self.assertEqual(self.session.get_modelmeta().graph_name, "digits")
        self.assertEqual(self.session.get_providers(), ["CPUExecutionProvider"])
        self.assertIn("logits", self.session.plan())

    def test_numbers_are_right_for_every_batch(self):
        for n in (1, 7, 360, 0, 7):
            logits, = self.session.run(None, {"image": DATA["image"][:n]})
            np.testing.assert_allclose(logits, DATA["logits"][:n], rtol=1e-3, atol=1e-4)

    def test_strides_are_copied_and_the_caller_stays_as_he_was(self):
        image = np.asfortranarray(DATA["image"][:5])
        before = image.copy()
        logits, = self.session.run(None, {"image": image})
        np.testing.assert_allclose(logits, DATA["logits"][:5], rtol=1e-3, atol=1e-4)
        logits, = self.session.run(None, {"image": DATA["image"][:10:2]})
        np.testing.assert_allclose(logits, DATA["logits"][:10:2], rtol=1e-3, atol=1e-4)
        self.assertTrue((image == before).all())
        frozen = DATA["image"][:1].copy()
        frozen.flags.writeable = False
        self.session.run(None, {"image": frozen})

    def test_outputs_are_the_callers_memory(self):
        out = np.full((3, 10), np.nan, np.float32)
        result, = self.session.run(None, {"image": DATA["image"][:3]}, out=[out])
        self.assertIs(result, out)
        np.testing.assert_allclose(out, DATA["logits"][:3], rtol=1e-3, atol=1e-4)
        other = np.zeros((3, 10), np.float32)
        self.session.run(None, {"image": Memory(DATA["image"][:3])}, out=[Memory(other)])
        self.assertTrue((other == out).all())
        self.assertEqual(pointer(np.from_dlpack(result)), pointer(out))
        frozen = out.copy()
        frozen.flags.writeable = False
        for bad, error in ((out[:, ::2], dlc.UsageError), (out[:2], dlc.InvalidError), (frozen, dlc.UsageError)):
            with self.assertRaises(error):
                self.session.run(None, {"image": DATA["image"][:3]}, out=[bad])

    def test_results_of_earlier_runs_stay(self):
        first, = self.session.run(None, {"image": DATA["image"][:1]})
        copy = first.copy()
        self.session.run(None, {"image": DATA["image"][1:2]})
        self.assertTrue((first == copy).all())

    def test_large_results_begin_in_the_middle_of_a_page(self):
        relu = model_of([helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["n"])], [("y", TensorProto.FLOAT, ["n"])])
        session = dlc.InferenceSession(relu.SerializeToString(), cache=False)
        x = np.arange(-50000, 50000, dtype=np.float32)
        result, = session.run(None, {"x": x})
        np.testing.assert_array_equal(result, np.maximum(x, 0))
        made = dlc.OrtValue.ortvalue_from_shape_and_type(x.shape, np.float32)
        for array in (result, made.numpy()):
            self.assertEqual((pointer(array) % 4096, array.dtype, array.shape), (2048, x.dtype, x.shape))

    def test_bound_runs(self):
        binding = self.session.io_binding()
        image, out = DATA["image"][:4], np.zeros((4, 10), np.float32)
        binding.bind_cpu_input("image", image)
        binding.bind_output("logits")
        self.session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], DATA["logits"][:4], rtol=1e-3, atol=1e-4)
        binding.bind_input("image", "cpu", 0, np.float32, image.shape, pointer(image))
        binding.bind_output("logits", "cpu", 0, np.float32, out.shape, pointer(out))
        self.session.run_with_iobinding(binding)
        np.testing.assert_allclose(out, DATA["logits"][:4], rtol=1e-3, atol=1e-4)
        value = dlc.OrtValue.ortvalue_from_numpy(image)
        binding.bind_ortvalue_input("image", value)
        binding.bind_ortvalue_output("logits", dlc.OrtValue.ortvalue_from_shape_and_type([4, 10], np.float32))
        self.session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), out)


    def test_what_stays_bound(self):
        """Runs of what is bound to memory are calls alone, until something else is bound."""
        session, images = self.session, [np.ascontiguousarray(DATA["image"][i:i + 4]) for i in (0, 4)]
        wanted = [session.run(None, {"image": image})[0] for image in images]
        image, out = images[0].copy(), np.zeros((4, 10), np.float32)
        for _ in range(20):  # a binding that ends gives its context back
            binding = session.io_binding()
            binding.bind_cpu_input("image", image)
            binding.bind_ortvalue_output("logits", dlc.OrtValue.ortvalue_from_numpy(out))
            for i in (0, 1, 0, 1):
                image[...] = images[i]
                session.run_with_iobinding(binding)
                np.testing.assert_array_equal(out, wanted[i])
        self.assertLess(len(session._made), 10)
        np.testing.assert_array_equal(session.run(None, {"image": images[0]})[0], wanted[0])  # by another context
        np.testing.assert_array_equal(out, wanted[1])
        other = np.zeros((2, 10), np.float32)
        binding.bind_cpu_input("image", images[0][:2])
        self.assertRaises(dlc.InvalidError, session.run_with_iobinding, binding)  # four rows are bound, and there are two
        binding.bind_ortvalue_output("logits", dlc.OrtValue.ortvalue_from_numpy(other))
        for _ in range(2):
            other[...] = 0
            session.run_with_iobinding(binding)
            np.testing.assert_allclose(other, wanted[0][:2], rtol=1e-5, atol=1e-5)
        binding.clear_binding_outputs()
        binding.bind_output("logits")
        session.run_with_iobinding(binding)
        first = binding.copy_outputs_to_cpu()[0]
        session.run_with_iobinding(binding)
        self.assertIsNot(binding.copy_outputs_to_cpu()[0], first)
        binding.bind_cpu_input("image", image)
        binding.bind_ortvalue_output("logits", dlc.OrtValue.ortvalue_from_numpy(out))
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: session.run_with_iobinding(binding), range(100)))
        np.testing.assert_array_equal(out, wanted[1])

    def test_wrong_calls_are_named(self):
        image = DATA["image"][:1]
        for feed, error, words in (
                ({}, dlc.InvalidError, "input 'image' is missing"), ({"imgae": image}, dlc.InvalidError, "there is no input 'imgae'"),
                ({"image": image, "more": image}, dlc.InvalidError, "there is no input 'more'"),
                ({"image": image.astype(np.float64)}, dlc.InvalidError, "f64"), ({"image": image[0]}, dlc.InvalidError, "image"),
                ({"image": image[:, :, :, :7]}, dlc.InvalidError, "7"), ({"image": image.astype("U1")}, dlc.InvalidError, "numpy's type"),
                ({"image": np.zeros((1,) * 9, np.float32)}, dlc.InvalidError, "9 dimensions")):
            with self.assertRaisesRegex(error, words):
                self.session.run(None, feed)
        with self.assertRaisesRegex(ValueError, "there is no output 'probs'"):
            self.session.run(["probs"], {"image": image})
        with self.assertRaisesRegex(TypeError, "2 arrays for 1 outputs"):
            self.session.run(None, {"image": image}, out=[None, None])
        logits, = self.session.run(None, {"image": image})  # and all is well again
        np.testing.assert_allclose(logits, DATA["logits"][:1], rtol=1e-3, atol=1e-4)

    def test_slips_are_told(self):
        """What people write who come from onnxruntime, one way or the other wrong."""
        image, session, options = DATA["image"][:2], self.session, dlc.SessionOptions()
        binding = session.io_binding()
        right = np.zeros((2, 10), np.float32)

        def with_threads(threads):
            made = dlc.SessionOptions()
            made.intra_op_num_threads = threads
            return dlc.InferenceSession(DIGITS, made, cache=False)

        for call, error, words in (
                (lambda: dlc.InferenceSession(DIGITS, providers="CPUExecutionProvider"), dlc.UsageError, "where a list is wanted"),
                (lambda: dlc.InferenceSession(DIGITS, {"threads": 1}), dlc.UsageError, "sess_options is of dict"),
                (lambda: with_threads("two"), dlc.UsageError, "threads are 'two'"),
                (lambda: with_threads(-1), dlc.UsageError, "threads are -1"),
                (lambda: dlc.InferenceSession(DIGITS, shapes={"image": "1x1x8x8"}), dlc.UsageError, "list of numbers"),
                (lambda: dlc.compile(DIGITS, typical={"image": "8x1x8x8"}), dlc.UsageError, r"typical\['image'\] is '8x1x8x8'"),
                (lambda: dlc.compile(DIGITS, typical={"picture": [8, 1, 8, 8]}), dlc.UsageError, "'picture', which is no input"),
                (lambda: dlc.compile(DIGITS, typical={"image": [8, 2, 8, 8]}), dlc.UsageError, "is always 1; 2 was given as typical"),
                (lambda: setattr(options, "intra_op_threads", 2), AttributeError, "intra_op_num_threads is near it"),
                (lambda: options.intra_op_threads, AttributeError, "intra_op_num_threads is near it"),
                (lambda: options.get_session_config_entry("nope"), dlc.UsageError, "'nope'"),
                (lambda: session.run(None, [image]), dlc.UsageError, "by name: {'image': …}"),
                (lambda: session.run(None, None), dlc.UsageError, "input_feed is of NoneType"),
                (lambda: session.run("logits", {"image": image}), dlc.UsageError, r"where a list is wanted: \['logits'\]"),
                (lambda: session.run(None, {"image": image}, {"terminate": True}), dlc.UsageError, "run_options is of dict"),
                (lambda: session.run(None, {"image": None}), dlc.InvalidError, r"is None, where f32\[batch,1,8,8\]"),
                (lambda: session.run(None, {"image": [[1, 2], [3]]}), dlc.InvalidError, "makes no array of it"),
                (lambda: session.run(None, {"image": "photo.png"}), dlc.InvalidError, "numpy's type <U9, where f32"),
                (lambda: session.run(None, {"image": image}, out=[right.astype(np.float64)]), dlc.InvalidError, "float64.*where float32"),
                (lambda: session.run(None, {"image": image}, out=[right.reshape(-1)]), dlc.InvalidError, r"\[20\], where float32\[2, 10\]"),
                (lambda: session.run(None, {"image": image}, out=[Memory(right.astype(np.int32))]), dlc.InvalidError, "int32.*where float32"),
                (lambda: binding.bind_cpu_input("img", image), dlc.InvalidError, "no input 'img'"),
                (lambda: binding.bind_output("logit"), dlc.InvalidError, "no output 'logit'"),
                (lambda: binding.bind_output("logits", "cpu", 0, np.float32, None, pointer(right)), dlc.UsageError, "its shape"),
                (lambda: binding.bind_input("image", "cpu", 0, np.complex64, image.shape, pointer(image)), dlc.UnsupportedError, "complex64"),
                (lambda: dlc.OrtValue.ortvalue_from_numpy(np.zeros(2, np.complex64)).data_type(), dlc.UnsupportedError, "complex64"),
                (lambda: pickle.dumps(session), dlc.UsageError, "of one process")):
            with self.assertRaisesRegex(error, words):
                call()
        binding.bind_input("image", "cpu", 0, TensorProto.FLOAT, image.shape, pointer(image))  # a number of ONNX's is a type, too
        binding.bind_output("logits", "cpu", 0, np.float32, right.shape, pointer(right))
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(right, DATA["logits"][:2], rtol=1e-3, atol=1e-4)
        self.assertEqual(dlc.OrtValue.ortvalue_from_shape_and_type([2], TensorProto.INT64).element_type(), np.int64)

    def test_an_endless_loop_is_cancelled(self):
        info, node = helper.make_tensor_value_info, helper.make_node
        body = helper.make_graph([node("Identity", ["c"], ["d"]), node("Cos", ["s"], ["t"])], "body",
                                 [info("i", TensorProto.INT64, []), info("c", TensorProto.BOOL, []), info("s", TensorProto.FLOAT, [4])],
                                 [info("d", TensorProto.BOOL, []), info("t", TensorProto.FLOAT, [4])])
        model = model_of([node("Loop", ["n", "", "x"], ["y"], body=body)],
                         [("n", TensorProto.INT64, []), ("x", TensorProto.FLOAT, [4])], [("y", TensorProto.FLOAT, [4])])
        session = dlc.InferenceSession(model.SerializeToString())
        feed = {"n": np.array(2 ** 40), "x": np.zeros(4, np.float32)}
        timer = threading.Timer(0.2, session.cancel)
        timer.start()
        with self.assertRaises(dlc.CancelledError):
            session.run(None, feed)
        timer.join()
        session.cancel(False)
        feed["n"] = np.array(100)
        np.testing.assert_allclose(session.run(None, feed)[0], np.full(4, 0.739085), atol=1e-5)

    def feed_that(self, does, n=1):
        """An input that does something once its run has begun."""
        class Acting(Memory):
            def __dlpack__(self, **options):
                does()
                return super().__dlpack__(**options)
        return {"image": Acting(DATA["image"][:n])}

    def test_a_run_ends_for_its_options_or_its_session(self):
        session, options = dlc.InferenceSession(DIGITS, cache=False), dlc.RunOptions()

        def both(first, second):
            def work():
                first()
                second()
            return self.feed_that(work)

        def terminate(value):
            options.terminate = value

        for feed in (both(session.cancel, lambda: terminate(False)), both(lambda: terminate(True), lambda: session.cancel(False))):
            with self.assertRaises(dlc.CancelledError):
                session.run(None, feed, options)
            session.cancel(False)
            options.terminate = False
            session.run(None, self.feed_that(lambda: None), options)
        session.run(None, both(session.cancel, lambda: session.cancel(False)), options)
        session.run(None, both(lambda: terminate(True), lambda: terminate(False)), options)

    def test_ending_a_run_leaves_the_next_one_alone(self):
        """The setter of `terminate` is held up between finding a run and ending it; meanwhile that run's context goes to another."""
        session, options = dlc.InferenceSession(DIGITS, cache=False), dlc.RunOptions()
        begun, problems = threading.Event(), []

        class Slow:
            def __getattr__(self, name):
                return getattr(_session.runtime, name)

            def dlcrt_context_cancel(self, context, value):
                if value and not begun.is_set():
                    begun.set()
                    time.sleep(0.2)
                _session.runtime.dlcrt_context_cancel(context, value)

        def ends():
            setting.start()
            begun.wait(10)

        setting = threading.Thread(target=setattr, args=(options, "terminate", True))
        with mock.patch.object(_options, "runtime", Slow()):
            try:
                session.run(None, self.feed_that(ends), options)
            except dlc.CancelledError:
                pass  # it may be in time
            try:
                session.run(None, self.feed_that(setting.join))
            except dlc.CancelledError as error:
                problems.append(error)
        self.assertEqual(problems, [])

    def test_others_run_on_while_runs_are_ended(self):
        session, stop, wrong, cancelled = dlc.InferenceSession(DIGITS, cache=False, threads=1), threading.Event(), [], []

        def other():
            while not stop.is_set():
                try:
                    session.run(None, {"image": DATA["image"][:3]})
                except dlc.CancelledError as error:
                    wrong.append(error)

        def mine(options):
            while not stop.is_set():
                try:
                    session.run(None, {"image": DATA["image"][:3]}, options)
                except dlc.CancelledError as error:
                    cancelled.append(error)

        options = [dlc.RunOptions(), dlc.RunOptions()]
        threads = [threading.Thread(target=other) for _ in range(3)] + [threading.Thread(target=mine, args=(row,)) for row in options]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 2
        while time.monotonic() < end:
            for row in options:
                row.terminate = not row.terminate
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertTrue(cancelled)
        self.assertEqual([row._running for row in options], [[], []])

    def test_threads_share_a_session(self):
        problems = []

        def work(seed):
            order = np.random.default_rng(seed)
            for _ in range(60):
                at, n = int(order.integers(0, 300)), int(order.integers(1, 40))
                logits, = self.session.run(None, {"image": DATA["image"][at:at + n]})
                if not np.allclose(logits, DATA["logits"][at:at + n], rtol=1e-3, atol=1e-4):
                    problems.append((at, n))

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.assertLessEqual(len(self.session._slots), 8)

    def test_many_runs_need_no_more_memory(self):
        feed = {"image": DATA["image"][:1]}
        for _ in range(2000):
            self.session.run(None, feed)
        gc.collect()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(30000):
            self.session.run(None, feed)
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 1000)


class Models(unittest.TestCase):
    def test_paths_bytes_protos_and_executables(self):
        feed = {"image": DATA["image"][:2]}
        expected, = dlc.InferenceSession(DIGITS, cache=False).run(None, feed)
        proto = onnx.load(DIGITS)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "digits.so"
            executable = dlc.compile(str(DIGITS), path)
            sources = [proto, proto.SerializeToString(), bytearray(DIGITS.read_bytes()), executable, executable.tobytes(), path, str(path)]
            self.assertEqual(path.read_bytes(), executable.tobytes())
            for source in sources:
                found, = dlc.InferenceSession(source, cache=False).run(None, feed)
                self.assertTrue((found == expected).all(), type(source))
            self.assertEqual(os.listdir(folder), ["digits.so"])

    def test_counters_of_many_sessions(self):
        sessions = [dlc.InferenceSession(helper.make_model(identity(TensorProto.FLOAT, (i + 1,)).graph,
                                                           opset_imports=[helper.make_opsetid("", 20)])) for i in range(24)]
        for i, session in enumerate(sessions):
            session.run(None, {"x": np.zeros(i + 1, np.float32)})
        lines = [line for line in dlc.counters(*sessions * 20).splitlines() if line.startswith("dlc_runs_total")]
        self.assertEqual([line.rsplit(" ", 1)[1] for line in lines], ["20"] * 24)
        self.assertEqual(len({line.rsplit(" ", 1)[0] for line in lines}), 24)

        class Growing:
            """Behind the first call each session has one more kind of line."""
            runtime, is_first = _session.runtime, True

            def dlcrt_counters_print(self, *given):
                size = self.runtime.dlcrt_counters_print(*given)
                for i, session in enumerate(sessions if self.is_first else ()):
                    session.cancel()
                    with unittest.TestCase().assertRaises(dlc.CancelledError):
                        session.run(None, {"x": np.zeros(i + 1, np.float32)})
                self.is_first = False
                return size

            def __getattr__(self, name):
                return getattr(self.runtime, name)

        with mock.patch.object(_session, "runtime", Growing()):
            text = dlc.counters(*sessions)
        self.assertEqual(text.count('status="cancelled"'), 24)
        self.assertTrue(text.endswith("\n"))

    def test_element_types_keep_their_memory(self):
        for dtype in (TensorProto.BOOL, TensorProto.INT8, TensorProto.INT64, TensorProto.UINT16, TensorProto.FLOAT16, TensorProto.DOUBLE):
            numpy = helper.tensor_dtype_to_np_dtype(dtype)
            x = np.arange(12).astype(numpy)
            y, = dlc.InferenceSession(identity(dtype)).run(None, {"x": x})
            self.assertEqual(y.dtype, x.dtype)
            self.assertTrue((x == y).all())

    def test_lists_of_integers_keep_their_values(self):
        for dtype in (TensorProto.INT8, TensorProto.INT32, TensorProto.INT64, TensorProto.UINT8, TensorProto.UINT32, TensorProto.UINT64):
            limits = np.iinfo(helper.tensor_dtype_to_np_dtype(dtype))
            session = dlc.InferenceSession(identity(dtype))
            for given in ([1, 2], [int(limits.min)], [int(limits.max)]):
                y, = session.run(None, {"x": given})
                self.assertEqual(y.tolist(), given)
            for given in ([int(limits.max) + 1], [0, int(limits.min) - 1]):
                with self.assertRaises(dlc.InvalidError):
                    session.run(None, {"x": given})
            with self.assertRaises(dlc.InvalidError):
                session.run(None, {"x": [1.5]})

    def test_types_of_ml_dtypes(self):
        import ml_dtypes
        for dtype, name in ((TensorProto.BFLOAT16, "bfloat16"), (TensorProto.FLOAT8E4M3FN, "float8_e4m3fn"), (TensorProto.FLOAT8E5M2, "float8_e5m2"),
                            (TensorProto.INT4, "int4"), (TensorProto.UINT4, "uint4")):
            numpy = np.dtype(getattr(ml_dtypes, name))
            session = dlc.InferenceSession(identity(dtype))
            self.assertEqual(session.get_inputs()[0].type, f"tensor({name.replace('_', '')})")
            x = np.array([0, 1, 2, 3, 0, 1]).astype(numpy)
            for _ in range(2):
                y, = session.run(None, {"x": x})
                self.assertEqual(y.dtype, numpy)
                self.assertTrue((x == y).all())
            with self.assertRaisesRegex(dlc.InvalidError, "f32"):
                session.run(None, {"x": x.astype(np.float32)})

    def test_bf16_is_rounded_exactly(self):
        import ml_dtypes
        twice = model_of([helper.make_node("Add", ["x", "x"], ["t"]), helper.make_node("Cast", ["t"], ["y"], to=TensorProto.BFLOAT16)],
                         [("x", TensorProto.FLOAT, [4096])], [("y", TensorProto.BFLOAT16, [4096])])
        session = dlc.InferenceSession(twice, cache=False)
        bits = np.random.default_rng(7).integers(0, 1 << 32, (4, 4096), dtype=np.uint64).astype(np.uint32)
        bits[1] &= 0x807fffff  # subnormals
        bits[2] = bits[2] & 0xffff0000 | 0x8000  # halves
        bits[3] &= 0x7fffffff
        bits[3, ::9] &= 0x003fffff  # a subnormal here and there
        for x in bits.view(np.float32):
            y, = session.run(None, {"x": x})
            with np.errstate(all="ignore"):
                expected = (x + x).astype(ml_dtypes.bfloat16)
            number = ~np.isnan(x)
            np.testing.assert_array_equal(y.view(np.uint16)[number], expected.view(np.uint16)[number])
            self.assertTrue(np.isnan(y[~number].astype(np.float32)).all())

    def test_memory_is_seen_as_a_type_of_onnx(self):
        import ml_dtypes
        of = dlc.OrtValue.ortvalue_from_numpy_with_onnx_type
        half = np.arange(4, dtype=np.float16)
        bits = half.view(np.uint16)
        for array, number, dtype in ((bits, 16, ml_dtypes.bfloat16), (bits, 10, np.float16), (half, 10, np.float16), (half, 5, np.int16),
                                     (bits.view(np.uint8), 17, ml_dtypes.float8_e4m3fn), (bits.view(np.uint8), 9, bool),
                                     (np.zeros(3, np.uint32), 1, np.float32), (np.array(["a"]), 8, "<U1")):
            value = of(array, number)
            self.assertEqual(value.element_type(), np.dtype(dtype))
            self.assertEqual(value.data_ptr(), pointer(array))
        for array, number, words in ((half, 1, "float16, of 2 bytes an element, cannot be seen as float32"), (half, 99, "99 is no element type"),
                                     (half, 14, "14 is no element type"), (half, 8, "strings"), (np.array(["a"]), 1, "float32"),
                                     (half.astype(">f2"), 10, "cannot be seen"), (half, 0, "0 is no element type")):
            with self.assertRaisesRegex(dlc.UnsupportedError, words):
                of(array, number)

    def test_typical_sizes_are_no_limits(self):
        typical = dlc.InferenceSession(DIGITS, typical={"image": [8, None, None, None]})
        plain = dlc.InferenceSession(dlc.compile(DIGITS))
        for n in (1, 8, 20):
            image = np.random.default_rng(n).standard_normal((n, 1, 8, 8)).astype(np.float32)
            np.testing.assert_allclose(typical.run(None, {"image": image})[0], plain.run(None, {"image": image})[0], rtol=1e-5, atol=1e-5)

    def test_values_are_updated_in_place(self):
        value = dlc.OrtValue.ortvalue_from_shape_and_type([2], np.float32)
        at = value.data_ptr()
        for given, wanted in ((np.float64([1, 2.5]), [1, 2.5]), ([3, 4], [3, 4]), (np.float16([5, 6]), [5, 6]), ([True, False], [1, 0])):
            value.update_inplace(given)
            self.assertEqual(value.numpy().tolist(), wanted)
        self.assertEqual(value.data_ptr(), at)
        numbers = dlc.OrtValue.ortvalue_from_numpy(np.int64([7, 8]))
        for tensor, given, words in ((numbers, np.float32([1.5, 2]), "float32.*int64"), (value, np.complex64([1, 2j]), "complex64"),
                                     (value, np.zeros(3, np.float32), r"\(3,\)"), (value, np.array(["1", "2"]), "<U1")):
            with self.assertRaisesRegex(dlc.InvalidError, words):
                tensor.update_inplace(given)
        self.assertEqual((numbers.numpy().tolist(), value.numpy().tolist()), ([7, 8], [1, 0]))

    def test_shapes_that_data_decide(self):
        model = model_of([helper.make_node("NonZero", ["x"], ["at"]), helper.make_node("Neg", ["x"], ["minus"])],
                         [("x", TensorProto.FLOAT, ("n",))], [("at", TensorProto.INT64, (1, "count")), ("minus", TensorProto.FLOAT, ("n",))])
        session = dlc.InferenceSession(model)
        for x in ([1, 0, 3], [0, 0, 0], [1, 2, 0, 4], [5]):
            x = np.array(x, np.float32)
            at, minus = session.run(None, {"x": x})
            np.testing.assert_array_equal(at, np.array(np.nonzero(x)))
            np.testing.assert_array_equal(minus, -x)
            minus, = session.run(["minus"], {"x": x})
            np.testing.assert_array_equal(minus, -x)
            both = session.run(["minus", "at"], {"x": x})
            np.testing.assert_array_equal(both[1], at)

    def test_options(self):
        session = dlc.InferenceSession(DIGITS, shapes={"image": (4, None, 8, 8)}, fusion="none", target="x86-64-v2" if os.uname().machine == "x86_64" else None,
                                       cache=False, threads=1)
        self.assertEqual(session.get_inputs()[0].shape, [4, 1, 8, 8])
        options = dlc.SessionOptions()
        options.intra_op_num_threads = 2
        options.graph_optimization_level = dlc.GraphOptimizationLevel.ORT_ENABLE_ALL
        dlc.InferenceSession(str(DIGITS), options, providers=["CUDAExecutionProvider", "CPUExecutionProvider"], cache=False)
        seen = []
        dlc.compile(DIGITS, progress=lambda name, seconds: seen.append(name))
        self.assertIn("fuse", seen)
        self.assertIn("greedy", dlc.strategies())
        self.assertIn("native", dlc.targets())
        self.assertIn("dce", dlc.passes())

    def test_strategies_may_be_functions(self):
        seen = []

        def activations(edges):
            seen.extend(edges)
            return [edge for edge in edges if edge.consumer_operator in ("add", "relu")]

        def kernels(fusion):
            return dlc.InferenceSession(dlc.compile(DIGITS, fusion=fusion)).get_modelmeta().kernels

        self.assertLess(kernels(activations), kernels("none"))
        self.assertIn(("relu1", "pool1", "relu", "max_pool"), [edge[:4] for edge in seen])
        self.assertEqual(kernels(lambda edges: []), kernels("none"))
        for fusion in (activations, lambda edges: edges):  # all edges: whatever is legal of it
            session = dlc.InferenceSession(DIGITS, fusion=fusion)
            np.testing.assert_allclose(session.run(None, {"image": DATA["image"]})[0], DATA["logits"], rtol=1e-3, atol=1e-4)

    def test_precision(self):
        plain, narrow = (dlc.compile(DIGITS, precision=precision) for precision in (None, "bf16"))
        self.assertLess(len(narrow.tobytes()), len(plain.tobytes()))
        for model in (narrow, DIGITS):
            given = {"precision": "bf16"} if model is DIGITS else {}
            logits = dlc.InferenceSession(model, cache=False, **given).run(None, {"image": DATA["image"]})[0]
            error = np.abs(logits - DATA["logits"]).max() / np.abs(DATA["logits"]).max()
            self.assertLess(error, 2 ** -5)
            self.assertGreater(error, 2 ** -14)  # of bf16, not of f32

    def test_failures_are_exceptions(self):
        unknown = model_of([helper.make_node("Foo", ["x"], ["y"], "my_foo", domain="mine")], [("x", TensorProto.FLOAT, (1,))],
                           [("y", TensorProto.FLOAT, (1,))])
        unknown.opset_import.append(helper.make_opsetid("mine", 1))
        for call, error, words in (
                (lambda: dlc.compile("nowhere.onnx"), OSError, "nowhere.onnx"),
                (lambda: dlc.InferenceSession("nowhere.onnx"), dlc.FileError, "nowhere.onnx"),
                (lambda: dlc.InferenceSession("nowhere.so", cache=False), OSError, "nowhere.so"),
                (lambda: dlc.compile(b"no model at all"), dlc.InvalidError, "model"),
                (lambda: dlc.compile(unknown), NotImplementedError, "Foo"),
                (lambda: dlc.compile(DIGITS, target="pdp11"), dlc.UsageError, "pdp11"),
                (lambda: dlc.compile(DIGITS, fusion="gredy"), dlc.UsageError, "gredy"),
                (lambda: dlc.compile(DIGITS, precision="f8"), dlc.UsageError, "precision 'f8' is none of f32 and bf16"),
                (lambda: dlc.compile(DIGITS, kind="exe"), dlc.UsageError, "exe"),
                (lambda: dlc.compile(DIGITS, shapes={"nope": (1,)}), dlc.UsageError, "nope"),
                (lambda: dlc.compile(DIGITS, "/nonexistent/folder/x.so"), dlc.FileError, "^/nonexistent/folder/x.so: there is no such folder"),
                (lambda: dlc.compile(DIGITS, os.path.relpath(DIGITS)), dlc.UsageError, "another file is wanted"),
                (lambda: dlc.compile(DIGITS, "/tmp"), dlc.FileError, "is a folder"),
                (lambda: dlc.compile(DIGITS).save("/nonexistent/x.so"), dlc.FileError, "^/nonexistent/x.so: cannot be written: No such"),
                (lambda: dlc.compile(DIGITS, shapes=[1, 1, 8, 8]), dlc.UsageError, "shapes is of list"),
                (lambda: dlc.compile(DIGITS, values=3), dlc.UsageError, "values is of int"),
                (lambda: dlc.compile(DIGITS, jobs=-1), dlc.UsageError, "jobs are -1"),
                (lambda: dlc.compile(DIGITS, fusion=lambda edges: None), dlc.UsageError, "returned None"),
                (lambda: dlc.InferenceSession(DIGITS, cache=0), TypeError, "int"),
                (lambda: dlc.compile(3), TypeError, "int"),
                (lambda: dlc.InferenceSession(b"\x7fELF and no more"), dlc.InvalidError, "cut off"),
                (lambda: dlc.InferenceSession(DIGITS, sessopts=1), TypeError, "sessopts"),
                (lambda: dlc.InferenceSession(DIGITS, providers=["TensorrtExecutionProvider"]), TypeError, "Tensorrt"),
                (lambda: dlc.InferenceSession(DIGITS, device="cuda:99", target="x86-64-v2", cache=False), dlc.DeviceError, "")):
            with self.assertRaisesRegex(error, words):
                call()

    def test_a_model_is_written_over_by_nothing(self):
        model = onnx.ModelProto.FromString((ROOT / "tests/cli/models/external_missing.onnx").read_bytes())
        with tempfile.TemporaryDirectory() as folder:
            path, data, link = (pathlib.Path(folder) / name for name in ("m.onnx", "weights.bin", "link"))
            path.write_bytes(model.SerializeToString())
            data.write_bytes(bytes(48))
            link.symlink_to(data)
            asked = []
            for output, words in ((data, "weights.bin' of the model '.*m.onnx' .tensor 'w'"), (link, "link: is the external data 'weights.bin'"),
                                  (path, "is the model itself")):
                for fusion in (None, lambda edges: asked.append(edges) or edges):
                    with self.assertRaisesRegex(dlc.UsageError, words + ".*; another file is wanted"):
                        dlc.compile(path, output, fusion=fusion)
            before = os.getcwd()
            os.chdir(folder)
            try:
                executable = dlc.compile("m.onnx")
                os.chdir(before)
                for output in (data, link, path):
                    with self.assertRaisesRegex(dlc.UsageError, "another file is wanted"):
                        executable.save(output)
            finally:
                os.chdir(before)
            self.assertEqual(asked, [])
            self.assertEqual((data.read_bytes(), path.read_bytes()), (bytes(48), model.SerializeToString()))
            dlc.compile(path, pathlib.Path(folder) / "m.so")

    def test_cache(self):
        with tempfile.TemporaryDirectory() as folder:
            feed = {"image": DATA["image"][:1]}
            first, = dlc.InferenceSession(DIGITS, cache=folder).run(None, feed)
            files = sorted(os.listdir(folder))
            self.assertEqual([name.split(".")[1] for name in files].count("so"), 1)
            stamp = os.stat(pathlib.Path(folder) / files[0]).st_mtime_ns
            self.assertTrue(_starts.look(str(DIGITS), None, folder, True)[1])
            second, = dlc.InferenceSession(DIGITS, cache=folder).run(None, feed)
            self.assertTrue((first == second).all())
            self.assertEqual(sorted(os.listdir(folder)), files)
            self.assertEqual(os.stat(pathlib.Path(folder) / files[0]).st_mtime_ns, stamp)


    def test_a_second_start_loads_no_compiler(self):
        with tempfile.TemporaryDirectory() as folder:
            model = pathlib.Path(folder) / "model.onnx"
            start = (f"import dlc, sys; dlc.InferenceSession({str(model)!r}, cache={folder!r}); "
                     "sys.exit(any(name in open('/proc/self/maps').read() for name in ('libdlc.so', 'libLLVM')))")

            def loads_compiler():
                return subprocess.run([sys.executable, "-c", start], check=False).returncode

            model.write_bytes(DIGITS.read_bytes())
            self.assertEqual([loads_compiler() for _ in range(2)], [1, 0])
            changed = onnx.load(model)
            changed.graph.output[0].name, changed.graph.node[-1].output[0] = "others", "others"
            onnx.save(changed, model)
            self.assertEqual([loads_compiler() for _ in range(2)], [1, 0])
            self.assertEqual(dlc.InferenceSession(model, cache=folder).get_outputs()[0].name, "others")

    def test_opening_reads_little(self):
        """Code and tables, whatever the system would read ahead; of 32 MB of weights nothing."""
        weights = np.random.default_rng(1).standard_normal((2048, 4096)).astype(np.float32)
        model = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [1, 2048])],
                         [("y", TensorProto.FLOAT, [1, 4096])], [onnx.numpy_helper.from_array(weights, "w")])
        with tempfile.TemporaryDirectory(dir=pathlib.Path(_library.folder())) as folder:
            path = pathlib.Path(folder) / "model.so"
            dlc.compile(model, path)
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

            def read_bytes():
                return int(re.search(r"^read_bytes: (\d+)", pathlib.Path("/proc/self/io").read_text(), re.MULTILINE)[1])

            before = read_bytes()
            session = dlc.InferenceSession(path)
            self.assertLess(read_bytes() - before, 1 << 20)
            session.run(None, {"x": np.ones((1, 2048), np.float32)})

    def test_a_second_start_reads_one_entry(self):
        """The library that finds executables in a cache is not loaded, where nothing changed; and nothing that changed is missed."""
        with tempfile.TemporaryDirectory() as folder:
            model, data = pathlib.Path(folder) / "model.onnx", DIGITS.read_bytes()
            model.write_bytes(data)
            at = data.rindex(b"logits")
            feed = {"image": DATA["image"][:1]}

            def found(path=model, target=None):
                return _starts.look(str(path), target, folder, True)[1]

            def output():
                session = dlc.InferenceSession(model, cache=folder)
                session.run(None, feed)
                return session.get_outputs()[0].name

            self.assertIsNone(found())
            self.assertEqual(output(), "logits")
            known = found()
            self.assertTrue(os.path.exists(known))
            self.assertEqual((found(target="x86-64-v2"), found(target="../x"), found(target=1)), (None, None, None))
            start = (f"import dlc, sys; dlc.InferenceSession({str(model)!r}, cache={folder!r}); "
                     "sys.exit('libdlccache' in open('/proc/self/maps').read())")
            self.assertEqual(subprocess.run([sys.executable, "-c", start], check=False).returncode, 0)

            # other bytes in the same file, as many, at a time that was set back
            before = os.stat(model)
            changed = data.replace(b"logits", b"others")
            self.assertEqual(len(changed), len(data))
            with open(model, "r+b") as file:
                file.write(changed)
            os.utime(model, ns=(before.st_atime_ns, before.st_mtime_ns))
            self.assertIsNone(found())
            self.assertEqual((output(), found() == known), ("others", False))

            # another name of the file is another path, whose weights may lie beside it
            other = pathlib.Path(folder) / "deep" / "model.onnx"
            other.parent.mkdir()
            os.link(model, other)
            self.assertIsNone(found(other))
            other.unlink()
            output()

            # a link to it is the same path
            other.symlink_to(model)
            self.assertEqual(found(other), found())

            # what lies there and is no executable is not the end
            pathlib.Path(found()).write_bytes(b"damaged")
            with self.assertRaises(dlc.Error):
                dlc.InferenceSession(found())
            os.unlink(found())
            self.assertEqual(output(), "others")

            # an entry that is not whole, of another machine, for executables of another format, or that tells of other files
            entry, = pathlib.Path(folder).glob("*-native.files")
            text = entry.read_text()
            self.assertTrue(found())
            for wrong in (text[1:], text[:-1], text.replace("x86_64", "aarch65").replace("aarch64", "x86_63"),
                          re.sub(r"/\d+ ", "/0 ", text, count=1), "", "\n" * 6,
                          text + f"- {model}\n", text + "1 2 3 4 /nowhere\n", "\x80"):
                entry.write_text(wrong, encoding="latin-1")
                self.assertIsNone(found())
            self.assertEqual(output(), "others")

    def test_the_caches_folder_is_that_of_the_library(self):
        rows = [{}, {"HOME": "/h"}, {"HOME": "h"}, {"HOME": ""}, {"XDG_CACHE_HOME": "/x", "HOME": "/h"}, {"XDG_CACHE_HOME": "x"},
                {"XDG_CACHE_HOME": "x", "HOME": "/h"}, {"DLC_CACHE_DIR": "d/e", "HOME": "/h"},
                {"DLC_CACHE_DIR": "", "XDG_CACHE_HOME": "/x"}]
        with mock.patch.dict(os.environ):
            for row in rows:
                for name in ("DLC_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
                    os.environ.pop(name, None)
                os.environ.update(row)
                self.assertEqual(_starts.cache_folder(), _library.text(_library.cache().dlc_cache_folder()) or None, row)


class Backend(unittest.TestCase):
    def test_prepare_and_run(self):
        import dlc.backend
        model = onnx.load(DIGITS)
        rep = dlc.backend.prepare(model, "CPU")
        np.testing.assert_allclose(rep.run(DATA["image"][:3])[0], DATA["logits"][:3], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(rep.run({"image": DATA["image"][:3]})[0], DATA["logits"][:3], rtol=1e-3, atol=1e-4)
        self.assertTrue(dlc.backend.supports_device("CPU"))
        y, = dlc.backend.run_node(helper.make_node("Add", ["a", "b"], ["y"]), [np.ones(3, np.float32), np.ones(3, np.float32)])
        np.testing.assert_array_equal(y, [2, 2, 2])


class Shapes(unittest.TestCase):
    def test_a_given_shape_holds_whatever_is_declared(self):
        session = dlc.InferenceSession(identity(TensorProto.FLOAT, (3, 4)), shapes={"x": [2]}, cache=False)
        self.assertEqual([row.shape for row in session.get_inputs() + session.get_outputs()], [[2], [2]])
        np.testing.assert_array_equal(session.run(None, {"x": np.float32([1, 2])})[0], [1, 2])
        notes = dlc.compile(identity(TensorProto.FLOAT, (3, 4)), shapes={"x": [2]}).notes
        self.assertTrue(any("declares with rank 2; the given one holds" in note for note in notes), notes)

    def test_a_size_of_nothing_is_told(self):
        notes = dlc.compile(identity(TensorProto.FLOAT, (0, 4))).notes
        self.assertTrue(any("has dimension 0 of size 0, so it takes no elements; --shape gives it another size" in note for note in notes), notes)
        self.assertFalse(dlc.compile(identity(TensorProto.FLOAT, (0, 4)), shapes={"x": [2, 4]}).notes)


class Strings(unittest.TestCase):
    def test_strings_go_in_and_out(self):
        session = dlc.InferenceSession(identity(TensorProto.STRING, ("n", 2)), cache=False)
        self.assertEqual(session.get_inputs()[0].type, "tensor(string)")
        for given in (np.array([["a", "été"], ["", "☃"]]), np.array([["a", "été"], ["", "☃"]], object), [["a", "b"]],
                      np.array([[b"x", b"y"]]), np.array([["a", "b"], ["c", "d"]]).T, np.empty((0, 2), object)):
            found, = session.run(None, {"x": given})
            given = np.asarray(given)
            wanted = [v.decode() if isinstance(v, bytes) else v for v in given.reshape(-1).tolist()]
            self.assertEqual((found.dtype, found.shape, found.reshape(-1).tolist()), (np.dtype(object), given.shape, wanted))
        with self.assertRaisesRegex(dlc.InvalidError, "has 3, where strings are wanted"):
            session.run(None, {"x": np.array([["a", 3]], object)})
        with self.assertRaisesRegex(dlc.InvalidError, "none may hold a zero"):
            session.run(None, {"x": np.array([["a\0b", "c"]], object)})
        with self.assertRaisesRegex(dlc.InvalidError, "dtype f32, wanted str"):
            session.run(None, {"x": np.zeros((1, 2), np.float32)})

    def test_words_become_labels(self):
        nodes = [helper.make_node("StringNormalizer", ["x"], ["w"], case_change_action="LOWER", stopwords=["the"]),
                 helper.make_node("StringSplit", ["w"], ["parts", "n"], delimiter="-"),
                 helper.make_node("StringConcat", ["parts", "mark"], ["y"])]
        model = model_of(nodes, [("x", TensorProto.STRING, ["k"])], [("y", TensorProto.STRING, ["m", "p"]), ("n", TensorProto.INT64, ["m"])],
                         [helper.make_tensor("mark", TensorProto.STRING, [], ["!"])])
        session = dlc.InferenceSession(model, cache=False)
        y, n = session.run(None, {"x": np.array(["The", "Big-Cat", "ran"])})
        self.assertEqual(y.tolist(), [["big!", "cat!"], ["ran!", "!"]])
        self.assertEqual(n.tolist(), [2, 1])
        y, n = session.run(None, {"x": np.array(["a-b-c"])})
        self.assertEqual(y.tolist(), [["a!", "b!", "c!"]])


if __name__ == "__main__":
    unittest.main()
