"""examples/serve/ray_actors.py: two actors with one executable between them answer all of the digits, in order."""

import os
import pathlib
import sys
import tempfile
import unittest

os.environ.update(RAY_AUTH_MODE="disabled", RAY_USAGE_STATS_ENABLED="0", RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0")
import numpy as np  # noqa: E402
import ray  # noqa: E402

import dlc  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/serve"))
import ray_actors  # noqa: E402

ray.cloudpickle.register_pickle_by_value(ray_actors)  # workers do not have the folder


class Actors(unittest.TestCase):
    def test_two_actors(self):
        data = np.load(ROOT / "models/digits_test.npz")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        with tempfile.TemporaryDirectory() as folder:
            file = str(pathlib.Path(folder) / "digits.so")
            dlc.compile(ROOT / "models/digits.onnx", file)
            found = ray_actors.run(file, {"image": data["image"]}, 2, 7)
        ray.shutdown()
        np.testing.assert_allclose(found["logits"], data["logits"], rtol=1e-4, atol=1e-4)
        self.assertGreater((found["logits"].argmax(1) == data["labels"]).mean(), 0.95)


if __name__ == "__main__":
    unittest.main()
