"""The experts implementation tessera_dense is what transformers' own are, and a mixture of experts trains with it."""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "end_to_end"))
from harness import TORCH_PYTHON, ToolTest, torch_has, with_package  # noqa: E402

CASES = os.path.join(HERE, "experts_cases.py")


@unittest.skipUnless(torch_has("torch", "transformers.integrations.moe"),
                     "no Python with torch and transformers 5 (TESSERA_TORCH_PYTHON)")
class Experts(ToolTest):
    def python(self, *arguments):
        done = subprocess.run([TORCH_PYTHON, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env=with_package())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_same_as_a_loop(self):
        self.python(CASES)

    def test_a_training(self):
        said = self.python("-m", "tessera", "verify", CASES + ":mixtral", "--", "--mesh", "shard=2", "--strategy", "zero3")
        self.assertRegex(said.splitlines()[-1], r"^same: loss .* 21 gradients within")


if __name__ == "__main__":
    unittest.main()
