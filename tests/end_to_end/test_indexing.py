"""Reading and writing elements by index: losses and gradients against central differences in f64, on one rank and two, in one
micro-batch and two, with everything recomputed."""

from harness import ToolTest, safetensors

import numpy as np

BATCH, WIDTH, EXPERTS = 4, 5, 4

MODEL = """<ir_version: 8, opset_import: ["" : 18]>
indexing (float[B,%d] x, int64[B] at) => (float loss)
<float[%d,%d] gate = {%s}, float[%d,%d] experts = {%s}, int64[1] two = {2}, int64[1] four = {4}, int64[1] three = {3}, int64[3] split = {0, 4, 2},
 int64[1] last = {2}, int64[1] middle = {1}, int64 first = {0}, int64 step = {1}, int64[1] none = {0}>
{
  scores = MatMul (x, gate)
  p = Softmax <axis = 1> (scores)
  zero = Sub (p, p)
  size = Shape <end = 1> (x)
  batch = Squeeze (size)
  counted = Range (first, batch, step)
  rows = Unsqueeze (counted, middle)
  column = Unsqueeze (at, middle)
  pair = Concat <axis = 1> (rows, column)
  %s
  squares = Mul (y, y)
  loss = ReduceMean <keepdims = 0> (squares)
}
"""


def softmax(scores):
    e = np.exp(scores - scores.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def experts(x, w, g):
    return (np.tanh(x @ w).reshape(len(x), EXPERTS, 2) * g[..., None]).sum(1)


def routed(x, p, w, at):
    order = np.argsort(-p, axis=1, kind="stable")[:, :2]
    g = np.zeros_like(p)
    np.put_along_axis(g, order, np.take_along_axis(p, order, 1), 1)
    return experts(x, w, g)


def rows_replaced(x, p, w, at):
    y = p.copy()
    for row, (index, value) in enumerate(zip(at, p[:, 0])):
        y[index] = value * np.arange(1, EXPERTS + 1) if row == np.flatnonzero(at == index)[-1] else y[index]
    return y


def with_column(x, p, w, at):
    y = p.copy()
    y[:, 2] = 3 * p[:, 0] * p[:, 1]
    return y


def written(x, p, w, at):
    y = p.copy()
    y[np.arange(len(at)), at] = p[:, 3] ** 2
    return y


def largest(x, p, w, at):
    y = p.copy()
    y[np.arange(len(at)), at] = np.maximum(y[np.arange(len(at)), at], 2 * p[:, 3])
    return y


EXPERT_SUM = """h = MatMul (x, experts)
  t = Tanh (h)
  s = Reshape (t, split)
  u = Unsqueeze (g, last)
  v = Mul (s, u)
  y = ReduceSum <keepdims = 0> (v, middle)"""

# What the node does, in ONNX and in NumPy.
CASES = {
    "mixture of experts": ("w, i = TopK <axis = 1> (p, two)\n  g = ScatterElements <axis = 1> (zero, i, w)\n  " + EXPERT_SUM, routed),
    "sorted": ("s, i = TopK <axis = 1, largest = 0> (p, four)\n  f = CumSum (s, middle)\n  y = Mul (f, s)",
               lambda x, p, w, at: np.cumsum(np.sort(p, 1), 1) * np.sort(p, 1)),
    "one element of each row": ("y = GatherND (p, pair)", lambda x, p, w, at: p[np.arange(len(at)), at]),
    "gathered within rows": ("y = GatherElements <axis = 1> (p, column)", lambda x, p, w, at: p[np.arange(len(at)), at][:, None]),
    "one element of each row written": ("c = Gather <axis = 1> (p, three)\n  d = Squeeze (c, middle)\n  n = Mul (d, d)\n"
                                        "  y = ScatterND (p, pair, n)", written),
    "maximum": ("c = Gather <axis = 1> (p, three)\n  d = Squeeze (c, middle)\n  n = Add (d, d)\n"
                '  y = ScatterND <reduction = "max"> (p, pair, n)', largest),
    "column written": ("a = Gather <axis = 1> (p, none)\n  b = Gather <axis = 1> (p, middle)\n  c = Mul (a, b)\n  d = Sum (c, c, c)\n"
                       "  like = Mul (rows, rows)\n  third = Sub (rows, rows)\n  third2 = Add (third, two)\n"
                       "  both = Concat <axis = 1> (rows, third2)\n  e = Squeeze (d, middle)\n  y = ScatterND (p, both, e)", with_column),
}
# These let the samples of a batch influence each other.
WHOLE = {
    "rows replaced": ("a = Gather <axis = 1> (p, none)\n  f = CastLike (more, a)\n  n = Mul (a, f)\n  y = ScatterND (p, column, n)",
                      rows_replaced),
}


class Indexing(ToolTest):
    def setUp(self):
        super().setUp()
        self.runs = 0
        random = np.random.default_rng(3)
        self.weights = {"gate": random.standard_normal((WIDTH, EXPERTS), np.float32),
                        "experts": random.standard_normal((WIDTH, 2 * EXPERTS), np.float32)}
        self.data = {"x": random.standard_normal((BATCH, WIDTH), np.float32), "at": np.array([1, 3, 1, 0])}
        safetensors.save(self.data, self.path("data.safetensors"))

    def write(self, body):
        used = {name: weight for name, weight in self.weights.items() if name == "gate" or "experts" in body}
        safetensors.save(used, self.path("weights.safetensors"))
        zeros = [", ".join(["0"] * weight.size) for weight in self.weights.values()]
        text = MODEL % (WIDTH, WIDTH, EXPERTS, zeros[0], WIDTH, 2 * EXPERTS, zeros[1], body)
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(text.replace("int64[1] none", "int64[4] more = {1, 2, 3, 4}, int64[1] none"))

    def want(self, function):
        """(loss, gradients) by central differences."""
        x, at = self.data["x"].astype(np.float64), self.data["at"]
        weights = {name: weight.astype(np.float64) for name, weight in self.weights.items()}

        def loss():
            return (function(x, softmax(x @ weights["gate"]), weights["experts"], at)**2).mean()

        gradients = {}
        for name, weight in weights.items():
            gradients[name] = np.zeros_like(weight)
            for index in np.ndindex(weight.shape):
                before, ends = weight[index], []
                for step in (1e-6, -1e-6):
                    weight[index] = before + step
                    ends.append(loss())
                weight[index] = before
                gradients[name][index] = (ends[0] - ends[1]) / 2e-6
        return loss(), gradients

    def check(self, want, accumulate, *flags):
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", "gate|experts", "--batch", BATCH // accumulate, "--accumulate",
                     accumulate, "--loss", "output:loss", *flags, "-o", "model.tessera")
        self.runs += 1
        out = f"run-{self.runs}"
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1, "--threads", 1,
                     "--weights", "weights.safetensors", "--out", out, "--dump=gradients", "--dump-step", 1)
        self.assertLess(abs(self.metrics(out)[0]["loss"] - want[0]), 1e-6 * max(1, abs(want[0])))
        got = safetensors.load(self.path(out, "dump-1", "gradients.safetensors"))
        for name, gradient in got.items():
            # rounding of f32, and of differences of a loss of about 1 over 2e-6
            self.assertLess(np.abs(gradient - want[1][name]).max(), 2e-6 * max(1, np.abs(want[1][name]).max()), name)

    def test_within_samples(self):
        for name, (body, function) in CASES.items():
            self.write(body)
            want = self.want(function)
            self.assertGreater(np.abs(want[1]["gate"]).max(), 1e-3)
            for accumulate, flags in ((1, ()), (2, ()), (1, ("--mesh", "shard=2", "--strategy", "zero3")), (1, ("--remat", "full"))):
                with self.subTest(name, accumulate=accumulate, flags=flags):
                    self.check(want, accumulate, *flags)

    def test_across_samples(self):
        for name, (body, function) in WHOLE.items():
            self.write(body)
            want = self.want(function)
            with self.subTest(name):
                self.check(want, 1)

    def test_indices_outside_are_refused(self):
        """Where they are only compared, too."""
        self.write(CASES["one element of each row"][0])
        self.data["at"][2] = EXPERTS
        safetensors.save(self.data, self.path("data.safetensors"))
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", "gate|experts", "--batch", BATCH, "--loss", "output:loss", "-o",
                     "model.tessera")
        self.fail_with("4", "tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                       "--weights", "weights.safetensors", "--out", "run")


if __name__ == "__main__":
    import unittest
    unittest.main()
