"""--dump=gradients: each parameter's own gradient, also where one kernel clips and updates several units of one size."""

import os
import sys

import numpy as np

from harness import ROOT, ToolTest
import safetensors

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, Graph, value_info  # noqa: E402


class Gradients(ToolTest):
    runs = 0

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


    def test_micro_batches_make_no_difference(self):
        """What is dumped is the gradient of the whole batch, whatever the micro-batches and wherever it is scaled."""
        graph, random = Graph(), np.random.default_rng(1)
        y = graph.op("Tanh", graph.op("MatMul", "x", graph.weight("fc.weight", 4, 4)))
        loss = graph.op("ReduceMean", graph.op("Mul", y, y), keepdims=0)
        x, targets, w = (random.standard_normal((4, 4), np.float32) for _ in range(3))
        safetensors.save({"x": x, "targets": targets}, self.path("data.safetensors"))
        safetensors.save({"fc.weight": w}, self.path("weights.safetensors"))
        h = np.tanh(x @ w)
        wanted = {"output:" + loss: x.T @ (2 * h / h.size * (1 - h**2)),
                  "mse": x.T @ (2 * (h - targets) / h.size * (1 - h**2))}
        for kind, want in wanted.items():
            result = value_info(y, FLOAT, ["B", 4]) if kind == "mse" else value_info(loss, FLOAT, [])
            graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 4])], [result])
            for micro in (4, 2, 1):
                for flags in ((), ("--clip-norm", 0.1), *(("--mesh", "shard=2", "--strategy", strategy)
                                                         for strategy in ("ddp", "zero1", "zero2", "zero3") if micro > 1)):
                    with self.subTest(kind, micro=micro, flags=flags):
                        self.runs += 1
                        out = f"run-{self.runs}"
                        self.succeed("tessera-compile", "model.onnx", "--batch", micro, "--accumulate", 4 // micro, "--loss", kind,
                                     *flags, "-o", "model.tessera")
                        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps",
                                     1, "--weights", "weights.safetensors", "--out", out, "--dump=gradients", "--dump-step", 1)
                        got = safetensors.load(self.path(out, "dump-1", "gradients.safetensors"))["fc.weight"]
                        self.assertLessEqual(np.abs(got - want).max(), 1e-6 * np.abs(want).max())


if __name__ == "__main__":
    import unittest
    unittest.main()
