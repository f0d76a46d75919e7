"""Products in every form that einsum and packed weights give them: loss and gradients on one rank, several, in micro-batches and
in bf16, against NumPy."""

import os
import shutil
import sys

import numpy as np

from harness import ROOT, ToolTest
import safetensors

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, Graph, message, value_info  # noqa: E402

SIZES = {"b": 4, "t": 3, "d": 4, "e": 5, "f": 2, "u": 2}
# The first term is the input. The summed dimension stands between others, first, or last; there are several, or a batch of products.
EQUATIONS = ["btd,edf->btef", "btd,ude->btue", "btd,td->bd", "btd,def->bfte", "btd,tde->bte", "btd,edf,te->btf", "btd,t,d->b"]
SPLITS = [[], ["--mesh", "shard=2", "--strategy", "zero3"], ["--mesh", "shard=2", "--strategy", "ddp"]]


class Products(ToolTest):
    def train(self, graph, y, shape, arrays, want, flags, accumulate=1, tolerance=1e-5):
        """Compiles and runs one step on the mean squared error of y and compares loss and gradients."""
        data = {"x": arrays["x"], "targets": arrays["targets"]}
        weights = {name: value for name, value in arrays.items() if name not in data}
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", *arrays["x"].shape[1:]])], [value_info(y, FLOAT, ["B", *shape])])
        safetensors.save(data, self.path("data.safetensors"))
        safetensors.save(weights, self.path("weights.safetensors"))
        self.succeed("tessera-compile", "model.onnx", "--batch", SIZES["b"] // accumulate, "--accumulate", accumulate, "--loss", "mse",
                     "--clip-norm", 0, "-o", "model.tessera", *flags)
        shutil.rmtree(self.path("run"), ignore_errors=True)
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", "weights.safetensors", "--out", "run", "--dump=gradients", "--dump-step", 1)
        loss, gradients = want
        np.testing.assert_allclose(self.metrics("run")[0]["loss"], loss, rtol=tolerance)
        if accumulate == 1:
            got = safetensors.load(self.path("run", "dump-1", "gradients.safetensors"))
            for name, gradient in gradients.items():
                self.assertLessEqual(np.abs(got[name] - gradient).max(), tolerance * np.abs(gradient).max(), name)

    def test_einsum(self):
        for equation in EQUATIONS:
            random = np.random.default_rng(0)
            inputs, output = equation.split("->")
            terms = inputs.split(",")
            shapes = [[SIZES[letter] for letter in term] for term in terms]
            names = ["x", *(f"w{i}" for i in range(1, len(terms)))]
            values = [random.standard_normal(shape, np.float32) for shape in shapes]
            targets = random.standard_normal([SIZES[letter] for letter in output], np.float32)
            y = np.einsum(equation, *values)
            d = 2 * (y - targets) / y.size
            gradients = {}
            for i in range(1, len(terms)):
                others = [j for j in range(len(terms)) if j != i]
                gradients[names[i]] = np.einsum(",".join([output, *(terms[j] for j in others)]) + "->" + terms[i], d,
                                                *(values[j] for j in others))
            want = ((y - targets) ** 2).mean(), gradients
            arrays = dict(zip(names, values), targets=targets)
            # Both operands of a product are rounded to 8 bits in bf16, and so is the gradient of its result.
            runs = [(flags, 1, 1e-5) for flags in SPLITS] + [([], 2, 1e-5), (["--precision", "bf16"], 1, 3e-2)]
            for flags, accumulate, tolerance in runs:
                with self.subTest(equation, flags=flags, accumulate=accumulate):
                    graph = Graph()
                    for name, shape in zip(names[1:], shapes[1:]):
                        graph.weight(name, *shape)
                    graph.nodes.append(message(*((1, name) for name in names), (2, "y"), (3, "/Einsum"), (4, "Einsum"),
                                               (5, message((1, "equation"), (4, equation), (20, 3)))))
                    self.train(graph, "y", targets.shape[1:], arrays, want, flags, accumulate, tolerance)

    def test_slices_of_a_packed_weight(self):
        """y = x @ w[:4] + tanh(x) @ w[4:] + c, as nn.MultiheadAttention reads its packed projection."""
        random = np.random.default_rng(0)
        x, w, c, targets = (random.standard_normal(shape, np.float32) for shape in ((4, 4), (8, 3), (3,), (4, 3)))
        d = 2 * (x @ w[:4] + np.tanh(x) @ w[4:] + c - targets) / targets.size
        want = ((d * targets.size / 2) ** 2).mean(), {"w": np.concatenate([x.T @ d, np.tanh(x).T @ d]), "c": d.sum(0)}
        for accumulate in (1, 2, 4):
            for flags in SPLITS if accumulate < 4 else SPLITS[:1]:
                with self.subTest(flags, accumulate=accumulate):
                    graph = Graph()
                    graph.weight("w", 8, 3), graph.weight("c", 3)
                    parts = [graph.op("Slice", "w", graph.ints(start), graph.ints(start + 4), graph.ints(0)) for start in (0, 4)]
                    y = graph.op("Add", graph.op("MatMul", "x", parts[0]), graph.op("MatMul", graph.op("Tanh", "x"), parts[1]))
                    y = graph.op("Add", y, "c")
                    self.train(graph, y, [3], {"x": x, "w": w, "c": c, "targets": targets}, want, flags, accumulate)


if __name__ == "__main__":
    import unittest
    unittest.main()
