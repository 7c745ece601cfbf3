"""Scripts written for ONNX Runtime run when it is dlc that they import: each file of scripts/, as it stands."""

import os
import pathlib
import runpy
import shutil
import sys
import tempfile
import unittest

import dlc

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "models"


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name in ("digits.onnx", "digits_test.npz"):
            shutil.copy(MODELS / name, folder.name)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        sys.modules["onnxruntime"] = dlc
        self.addCleanup(sys.modules.pop, "onnxruntime")


def case(path):
    return lambda self: runpy.run_path(str(path), run_name="__main__")


for script in sorted((HERE / "scripts").glob("*.py")):
    setattr(Scripts, f"test_{script.stem}", case(script))

if __name__ == "__main__":
    unittest.main()
