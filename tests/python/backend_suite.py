"""onnx.backend.test through dlc.backend: no number may be wrong; what is not supported is refused as such, and few are."""

import collections
import unittest
import warnings

import onnx.backend.test

import dlc
import dlc.backend

LEAST = 1930  # cases that pass; it only grows
# Their data hold numpy's rounding to f32 where the sum is 0, and 1e-7 is allowed; this list may only shrink.
KNOWN = {"test_dft_inverse_cpu", "test_dft_inverse_opset19_cpu"}


class Backend(dlc.backend.DlcBackend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return super().prepare(model, device, cache=False, threads=1)


class Result(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.counts = collections.Counter()
        self.wrong = []

    def addSuccess(self, test):
        self.counts["passed"] += 1

    def addFailure(self, test, error):
        if str(test).split()[0] in KNOWN:
            self.counts["known"] += 1
        else:
            self.wrong.append((test, error[1]))

    def addError(self, test, error):
        if issubclass(error[0], dlc.Error):
            self.counts[error[0].__name__] += 1
        else:
            self.wrong.append((test, f"{error[0].__name__}: {error[1]}"))


def main():
    warnings.simplefilter("ignore")
    dlc.preload_dlls()
    suite = onnx.backend.test.BackendTest(Backend, __name__)
    suite.exclude("_cuda")
    suite.exclude("^test_(bvlc|densenet|inception|resnet|shufflenet|squeezenet|vgg|zfnet)")  # what has to be downloaded
    suite.exclude("^test_(bernoulli|training_dropout(_default)?(_mask)?_cpu)")  # drawn: which numbers, no standard says
    result = Result()
    suite.test_suite.run(result)
    print(dict(result.counts))
    for test, error in result.wrong:
        print(str(test).split()[0], " ".join(str(error).split())[:200])
    raise SystemExit(bool(result.wrong) or result.counts["passed"] < LEAST)


if __name__ == "__main__":
    main()
