"""Values that are the same for each sample of a batch that is too large for them to be evaluated (tests/pt2/programs/positions.pt2)."""

import os

import numpy as np
from harness import ROOT, ToolTest

PROGRAM = os.path.join(ROOT, "tests", "pt2", "programs", "positions.pt2")
POSITIONS = 1024


class RepeatedRows(ToolTest):
    def loss(self, batch, *flags):
        x = np.random.default_rng(0).random((batch, POSITIONS), np.float32)
        np.savez(self.path("x.npz"), x=x)
        self.succeed("tessera-compile", PROGRAM, "--batch", batch, "--loss", "output:output", "--init", ".*=constant:1", *flags, "-o", "net.tessera")
        self.succeed("tessera-run", "net.tessera", "--data", "x.npz", "--order", "sequential", "--steps", 1, "--out", f"run-{batch}-{len(flags)}",
                     "--no-export")
        place = np.arange(POSITIONS)
        documents = place // 512
        factor = documents * 4096 + place[::-1]
        return self.metrics(f"run-{batch}-{len(flags)}")[0]["loss"], (x.astype(np.float64) * factor).mean()

    def test_rows_of_a_large_batch(self):
        """4 Mi elements are evaluated: 16 samples below, 4200 above."""
        for batch, flags in ((16, ()), (4200, ()), (4200, ("--mesh", "shard=2", "--strategy", "zero3"))):
            with self.subTest(batch, flags=flags):
                found, wanted = self.loss(batch, *flags)
                np.testing.assert_allclose(found, wanted, rtol=1e-5)  # a mean of 4 million terms in f32


if __name__ == "__main__":
    import unittest
    unittest.main()
