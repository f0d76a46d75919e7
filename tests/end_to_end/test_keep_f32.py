"""--keep-f32: what reads the parameters it names is computed in f32, and all else in bf16 as ever."""

import os
import sys

import numpy as np

from harness import ROOT, Golden, ToolTest
import safetensors

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, INT64, Graph, value_info  # noqa: E402

# f32 sums in another order; a bf16 value where an f32 one belongs is off by up to 2^-9 = 2e-3 of itself.
TOLERANCE = 2e-6


def bf16(values):
    """Rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


class KeepF32(ToolTest):
    def setUp(self):
        super().setUp()
        graph, random = Graph(), np.random.default_rng(7)
        graph.scope = "/h.0"
        h = graph.op("Tanh", graph.op("MatMul", "x", graph.weight("h.0.fc.weight", 16, 8)))
        y = graph.op("MatMul", h, graph.weight("head.weight", 8, 4))
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 16])], [value_info(y, FLOAT, ["B", 4])])
        self.x, self.targets, self.fc, self.head = (random.standard_normal(shape).astype(np.float32)
                                                    for shape in ((8, 16), (8, 4), (16, 8), (8, 4)))
        safetensors.save({"x": self.x, "targets": self.targets}, self.path("data.safetensors"))
        safetensors.save({"h.0.fc.weight": self.fc, "head.weight": self.head}, self.path("weights.safetensors"))

    def train(self, name, *flags):
        """The loss and the gradients of one step."""
        self.succeed("tessera-compile", "model.onnx", "--batch", 8, "--loss", "mse", "--optimizer", "sgd", "--precision",
                     "bf16", *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", "weights.safetensors", "--out", name, "--dump=gradients", "--dump-step", 1, "--threads", 1)
        return self.metrics(name)[0]["loss"], safetensors.load(self.path(name, "dump-1", "gradients.safetensors"))

    def expected(self):
        """The head in f32 of what is stored in bf16; its gradient too, and what it sends back meets bf16 at a product."""
        x = bf16(self.x)
        h = bf16(np.tanh(bf16(x @ bf16(self.fc))))
        difference = h @ self.head - self.targets
        d = 2 * difference / difference.size
        dh = bf16(d @ self.head.T * (1 - h ** 2))
        return (difference ** 2).mean(), {"h.0.fc.weight": x.T @ dh, "head.weight": h.T @ d}

    def check(self, loss, gradients, tolerance=TOLERANCE):
        wanted, want = self.expected()
        self.assertLessEqual(abs(loss - wanted), tolerance * wanted)
        self.assertEqual(sorted(gradients), sorted(want))
        for name, gradient in want.items():
            self.assertLessEqual(np.abs(gradients[name] - gradient).max(), tolerance * np.abs(gradient).max(), name)

    def test_a_head_between_f32_and_bf16(self):
        self.check(*self.train("kept", "--keep-f32", "^head"))
        loss, gradients = self.train("narrow")
        with self.assertRaises(AssertionError):  # the tolerance tells them apart
            self.check(loss, gradients)

    def test_a_router_that_is_normed_by_hand(self):
        """A softmax written out and the squares' shares of their rows: sums of rows that are repeated stay f32."""
        graph = Graph()
        graph.scope = "/h.0"
        h = graph.op("Tanh", graph.op("MatMul", "x", graph.weight("h.0.fc.weight", 16, 8)))
        logits = graph.op("MatMul", h, graph.weight("head.weight", 8, 4))
        exp = graph.op("Exp", graph.op("Sub", logits, graph.op("ReduceMax", logits, axes=[1], keepdims=1)))
        axes = graph.ints(1)
        shares = graph.op("Div", exp, graph.op("ReduceSum", exp, axes, keepdims=1))
        squares = graph.op("Mul", shares, shares)
        y = graph.op("Div", squares, graph.op("ReduceSum", squares, axes, keepdims=1))
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 16])], [value_info(y, FLOAT, ["B", 4])])
        x = bf16(self.x)
        h = bf16(np.tanh(bf16(x @ bf16(self.fc))))
        logits = h @ self.head
        exp = np.exp(logits - logits.max(axis=1, keepdims=True))
        p = exp / exp.sum(axis=1, keepdims=True)
        total = (p * p).sum(axis=1, keepdims=True)
        y = p * p / total
        difference = y - self.targets
        dy = 2 * difference / difference.size
        dp = 2 * p * (dy - (dy * y).sum(axis=1, keepdims=True)) / total
        d = p * (dp - (dp * p).sum(axis=1, keepdims=True))
        want = {"h.0.fc.weight": x.T @ bf16(d @ self.head.T * (1 - h ** 2)), "head.weight": h.T @ d}
        for name, flags in (("one", ()), ("remat", ("--remat", "full")), ("zero3", ("--mesh", "fsdp=2", "--strategy", "zero3"))):
            with self.subTest(name):
                loss, gradients = self.train(name, "--keep-f32", "^head", *flags)
                self.assertLessEqual(abs(loss - (difference ** 2).mean()), TOLERANCE * loss)
                for parameter, gradient in want.items():
                    self.assertLessEqual(np.abs(gradients[parameter] - gradient).max(), TOLERANCE * np.abs(gradient).max(), parameter)

    def test_on_ranks(self):
        """Gathered in f32, in a unit of its own, while the rest is gathered in bf16."""
        for strategy, mesh in (("ddp", "dp=2"), ("zero3", "fsdp=2"), ("hsdp", "dp=2,fsdp=2")):
            with self.subTest(strategy):
                self.check(*self.train(strategy, "--keep-f32", "head", "--mesh", mesh, "--strategy", strategy))
        collectives = self.succeed("tessera-dump", "zero3.tessera", "--collectives")
        self.assertRegex(collectives, r"head\.read_f32")
        self.assertIn("keep_f32", self.succeed("tessera-dump", "zero3.tessera", "--json"))

    def test_split_over_a_model_axis(self):
        self.check(*self.train("placed", "--keep-f32", "head", "--mesh", "tp=2,fsdp=2", "--strategy", "zero3", "--place",
                               "fc=1", "--place", "head=0"))

    def test_all_parameters_are_fp32(self):
        """With nothing left to round the step is that of --precision fp32, bit for bit."""
        golden = Golden("llama")
        losses = []
        for name, flags in (("wide", ()), ("kept", ("--precision", "bf16", "--keep-f32", "."))):
            self.succeed("tessera-compile", *golden.compile_flags(1), *flags, "-o", name + ".tessera")
            self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--order", "sequential", "--steps", 3,
                         "--weights", golden.weights, "--out", name, "--threads", 1)
            losses.append([record["loss"] for record in self.metrics(name)])
        self.assertEqual(*losses)
        wide, kept = (safetensors.load(self.path(name, "model.safetensors")) for name in ("wide", "kept"))
        for parameter, value in wide.items():
            self.assertTrue(np.array_equal(value, kept[parameter]), parameter)

    def test_a_table_that_is_also_the_head(self):
        """The terms of its gradient are added up in f32: the head's, and that of the rows that were looked up."""
        graph, random = Graph(), np.random.default_rng(5)
        table = graph.weight("wte.weight", 12, 8)
        h = graph.op("MatMul", graph.op("Gather", table, "tokens", axis=0), graph.weight("h.0.fc.weight", 8, 8))
        logits = graph.op("MatMul", h, graph.op("Transpose", table, perm=[1, 0]))
        graph.store(self.path("tied.onnx"), [value_info("tokens", INT64, ["B"])], [value_info(logits, FLOAT, ["B", 12])])
        wte, fc = (random.standard_normal(shape).astype(np.float32) for shape in ((12, 8), (8, 8)))
        tokens, targets = (random.integers(0, 12, 6) for _ in range(2))
        safetensors.save({"tokens": tokens, "targets": targets}, self.path("tied-data.safetensors"))
        safetensors.save({"wte.weight": wte, "h.0.fc.weight": fc}, self.path("tied-weights.safetensors"))
        self.succeed("tessera-compile", "tied.onnx", "--batch", 6, "--loss", "cross-entropy", "--optimizer", "sgd",
                     "--precision", "bf16", "--keep-f32", "wte", "-o", "tied.tessera")
        self.succeed("tessera-run", "tied.tessera", "--data", "tied-data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", "tied-weights.safetensors", "--out", "tied", "--dump=gradients", "--dump-step", 1, "--threads", 1)
        x, narrow = bf16(wte[tokens]), bf16(fc)
        h = bf16(x @ narrow)
        exp = np.exp(h @ wte.T - (h @ wte.T).max(axis=1, keepdims=True))
        d = (exp / exp.sum(axis=1, keepdims=True) - np.eye(12)[targets]).astype(np.float32) / 6
        dh = bf16(d @ wte)
        head, rows = d.T @ h, bf16(dh @ narrow.T)
        np.add.at(head, tokens, rows)
        got = safetensors.load(self.path("tied", "dump-1", "gradients.safetensors"))
        for name, want in (("wte.weight", head), ("h.0.fc.weight", x.T @ dh)):
            self.assertLessEqual(np.abs(got[name] - want).max(), TOLERANCE * np.abs(want).max(), name)

    def test_refusals(self):
        self.fail_with("--keep-f32 needs --precision bf16", "tessera-compile", "model.onnx", "-o", "a.tessera", "--keep-f32", "head")
        self.fail_with("--keep-f32: no parameter matches 'router'; nearest: ", "tessera-compile", "model.onnx", "-o", "a.tessera",
                       "--precision", "bf16", "--keep-f32", "router", "--batch", 8, "--loss", "mse")
