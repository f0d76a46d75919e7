"""--dump=gradients: each parameter's own gradient, also where one kernel clips and updates several units of one size."""

import os
import sys

import numpy as np

from harness import ROOT, ToolTest
import safetensors

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, Graph, value_info  # noqa: E402


class Gradients(ToolTest):
    def test_units_of_one_size_in_one_kernel(self):
        """y = tanh(tanh(x @ w0) @ w1), a unit for each matrix, clipped by the norm of both."""
        graph, random = Graph(), np.random.default_rng(0)
        y = "x"
        for layer in range(2):
            graph.scope = f"/h.{layer}"
            y = graph.op("Tanh", graph.op("MatMul", y, graph.weight(f"h.{layer}.fc.weight", 4, 4)))
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 4])], [value_info(y, FLOAT, ["B", 4])])
        x, targets, w0, w1 = (random.standard_normal((4, 4), np.float32) for _ in range(4))
        safetensors.save({"x": x, "targets": targets}, self.path("data.safetensors"))
        safetensors.save({"h.0.fc.weight": w0, "h.1.fc.weight": w1}, self.path("weights.safetensors"))
        self.succeed("tessera-compile", "model.onnx", "--batch", 4, "--loss", "mse", "--clip-norm", 0.1, "-o", "model.tessera")
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", "weights.safetensors", "--out", "run", "--dump=gradients", "--dump-step", 1)
        h = np.tanh(x @ w0)
        out = np.tanh(h @ w1)
        d = 2 * (out - targets) / out.size * (1 - out**2)
        want = {"h.1.fc.weight": h.T @ d, "h.0.fc.weight": x.T @ (d @ w1.T * (1 - h**2))}
        got = safetensors.load(self.path("run", "dump-1", "gradients.safetensors"))
        self.assertEqual(sorted(got), sorted(want))
        for name, gradient in want.items():
            self.assertLessEqual(np.abs(got[name] - gradient).max(), 1e-6 * np.abs(gradient).max(), name)


if __name__ == "__main__":
    import unittest
    unittest.main()
