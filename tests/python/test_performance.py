"""scripts/performance: a table of digits beside a peer, which here is dlc itself under another name."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Performance(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copyfile(ROOT / "models/digits.onnx", self.dir / "digits.onnx")
        np.savez(self.dir / "digits.in.npz", image=np.load(ROOT / "models/digits_test.npz")["image"][:2])

    def measure(self, *arguments):
        command = [sys.executable, ROOT / "scripts/performance", self.dir, "--rounds", "1", "--seconds", "0.01", "--quiet", "9", *arguments]
        environment = dict(os.environ, PYTHONPATH=f"{self.dir}:{os.environ['PYTHONPATH']}")
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    def test_table(self):
        (self.dir / "peer.py").write_text("from dlc import *\n")
        (self.dir / "peer-2.5.dist-info").mkdir()
        (self.dir / "peer-2.5.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: peer\nVersion: 2.5\n")
        known = self.dir / "figures.json"
        done = self.measure("--engines", "peer", "--json", known)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| model | threads | peer | dlc | best / dlc | dlc again / dlc |", done.stdout)
        rows = [line for line in done.stdout.splitlines() if line.startswith("| digits |")]
        self.assertEqual([row.split(" | ")[1] for row in rows], ["1", "2"])
        self.assertIn("peer 2.5", done.stdout)
        # any ratio: a run of some microseconds by two threads on a busy machine may take ten times another's
        self.assertRegex(done.stdout, r"- 2 threads: geometric mean of best / dlc \d+\.\d\d over 1 models")
        figures = json.loads(known.read_text())["digits"]["2"][0]
        self.assertEqual(set(figures), {"dlc", "peer", "dlc again"})
        kept = json.loads(known.read_text())
        del kept["digits"]["2"]
        known.write_text(json.dumps(kept))  # what is missing is measured, and that alone
        again = self.measure("--engines", "peer", "--json", known)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual([row.split(" | ")[1] for row in again.stdout.splitlines() if row.startswith("| digits |")], ["1", "2"])
        self.assertEqual(json.loads(known.read_text())["digits"]["1"], kept["digits"]["1"])

    def test_precision(self):
        done = self.measure("--engines", "", "--precision", "bf16", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("# Performance in bf16", done.stdout)
        self.assertIn("--precision bf16", done.stdout)
        refused = self.measure("--precision", "bf16")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("onnxruntime has no bf16", refused.stderr)

    def test_peer_that_is_not_there(self):
        done = self.measure("--engines", "nobody")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nobody does not run", done.stderr)


if __name__ == "__main__":
    unittest.main()
