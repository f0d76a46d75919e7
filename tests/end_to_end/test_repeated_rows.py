"""Values that are the same for each sample of a batch that is too large for them to be evaluated (tests/pt2/programs/positions.pt2)."""

import os

import numpy as np
from harness import ROOT, ToolTest

PROGRAM = os.path.join(ROOT, "tests", "pt2", "programs", "positions.pt2")
POSITIONS = 1024


# What is computed over the rows depends on how many there are.
OVER_ROWS = """<ir_version: 8, opset_import: ["" : 17]>
rows (float[B,1024] x) => (float loss)
<float w = {1.0}, int64 zero = {0}, int64 length = {1024}, int64 one = {1}> {
  n = Shape(x)
  places = Range(zero, length, one)
  p = Cast<to = 1>(places)
  wide = Expand(p, n)
  share = LogSoftmax<axis = 0>(wide)
  scaled = Mul(x, w)
  product = Mul(scaled, share)
  loss = ReduceMean<keepdims = 0>(product)
}
"""


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

    def test_what_is_computed_over_rows(self):
        with open(self.path("rows.onnxtxt"), "w") as file:
            file.write(OVER_ROWS)
        for batch in (42, 4200):
            x = np.random.default_rng(0).random((batch, POSITIONS), np.float32)
            np.savez(self.path("x.npz"), x=x)
            self.succeed("tessera-compile", "rows.onnxtxt", "--parameters", "^w$", "--constants", "zero|length|one", "--batch", batch, "--loss",
                         "output:loss", "--init", "w=constant:1", "-o", "net.tessera")
            self.succeed("tessera-run", "net.tessera", "--data", "x.npz", "--order", "sequential", "--steps", 1, "--out", f"over-{batch}", "--no-export")
            np.testing.assert_allclose(self.metrics(f"over-{batch}")[0]["loss"], -np.log(batch) * x.astype(np.float64).mean(), rtol=1e-5)


if __name__ == "__main__":
    import unittest
    unittest.main()
