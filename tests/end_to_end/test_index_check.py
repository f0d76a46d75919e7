"""An index that the model computes from data and that lies outside of its table: an error that says which, or the nearest one."""

import os
import shutil
import unittest
import unittest.mock

import numpy as np

from harness import BIN, ToolTest
import safetensors

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")

# Positions counted from a mask read a table of 4 rows; with an offset they may be negative and count from the end.
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
counted (int64[B,6] mask, int64[B,1] shift) => (float loss)
<float[4,3] table = {%s}, int64[1] time = {1}>
{
  count = ReduceSum (mask, time)
  index = Sub (count, shift)
  %s
  loss = ReduceMean <keepdims = 0> (rows)
}
"""


class IndexCheck(ToolTest):
    def prepare(self, counts, shifts, *flags, accumulate=1, node="rows = Gather (table, index)"):
        """Compiles the model for one step over samples with these counts."""
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(MODEL % (", ".join(map(str, range(12))), node))
        mask = np.arange(6)[None, :] < np.array(counts)[:, None]
        safetensors.save({"mask": mask.astype(np.int64), "shift": np.array(shifts, np.int64)[:, None]}, self.path("data.safetensors"))
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", ".", "--batch", len(counts) // accumulate,
                     "--accumulate", accumulate, "--loss", "output:loss", "--init", "table=constant:1", "--optimizer", "sgd",
                     "--lr", 1, "--clip-norm", 0, "-o", "model.tessera", *flags)
        shutil.rmtree(self.path("run"), ignore_errors=True)
        return ("tessera-run", "model.tessera", "--data", "data.safetensors", "--steps", 1, "--order", "sequential", "--out", "run",
                "--dump=gradients", "--dump-step", 1)

    def rows(self):
        """How often each row of the table was read, from its gradient."""
        gradient = safetensors.load(self.path("run", "dump-1", "gradients.safetensors"))["table"][:, 0]
        return list(np.rint(gradient / gradient.sum() * 4).astype(int))

    def test_inside(self):
        for flags in ([], ["--mesh", "shard=2", "--strategy", "zero3"]):
            self.succeed(*self.prepare([0, 1, 3, 2], [0, 0, 0, 3], *flags))
            self.assertEqual(self.rows(), [1, 1, 0, 2])  # -1 is the last row

    def test_outside_is_an_error(self):
        for flags, accumulate in (([], 1), (["--mesh", "shard=2", "--strategy", "zero3"], 1), ([], 2),
                                  (["--mesh", "shard=2", "--strategy", "ddp"], 2)):
            with self.subTest(flags, accumulate=accumulate):
                self.fail_with(r"step 1: node '.*' computed the index 5 of 'table', outside \[-4, 4\)",
                               *self.prepare([1, 2, 3, 5], [0, 0, 0, 0], *flags, accumulate=accumulate))
                self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))
                self.fail_with(r"computed the index -5 of 'table', outside \[-4, 4\)",
                               *self.prepare([0, 2, 3, 1], [5, 0, 0, 0], *flags, accumulate=accumulate))

    @unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")), "the build has no backend for GPUs")
    def test_on_a_simulated_gpu(self):
        for ranks in (1, 2):
            flags = ["--target", "sm_90", "--mesh", f"shard={ranks}"]
            with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": SIMULATOR, "TESSERA_SIM_DEVICES": str(ranks)}):
                self.fail_with(r"step 1: node '.*' computed the index 5 of 'table', outside \[-4, 4\)",
                               *self.prepare([1, 2, 3, 5], [0, 0, 0, 0], *flags))
                self.succeed(*self.prepare([0, 1, 3, 2], [0, 0, 0, 3], *flags))
            self.assertEqual(self.rows(), [1, 1, 0, 2])

    def test_each_coordinate_is_checked(self):
        """An index outside of its dimension may be inside the flat table: there it would read another row."""
        for node, wrong in (("rows = GatherElements <axis = 0> (table, index)", 4),
                            ("zero = Mul (index, shift)\n  at = Concat <axis = -1> (zero, index)\n"
                             "  rows = GatherND (table, at)", 3)):
            with self.subTest(node):
                self.fail_with(f"computed the index {wrong} of", *self.prepare([wrong, 1, 2, 0], [0, 0, 0, 0], node=node))
                self.succeed(*self.prepare([2, 1, 0, 1], [0, 0, 0, 0], node=node))

    def test_clamp(self):
        for flags in ([], ["--mesh", "shard=2", "--strategy", "zero3"]):
            self.succeed(*self.prepare([1, 2, 5, 1], [0, 0, 0, 6], "--index-check", "clamp", *flags))
            self.assertEqual(self.rows(), [1, 1, 1, 1])

    def test_other_values_of_the_flag(self):
        self.fail_with("--index-check", "tessera-compile", "model.onnx", "--index-check", "ignore")


if __name__ == "__main__":
    unittest.main()
