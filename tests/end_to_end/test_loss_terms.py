"""A loss of several terms is that of the whole batch, in as few or as many micro-batches; or it is refused."""

import json
import math
import re

from harness import ToolTest, safetensors

import numpy as np

VOCABULARY, WIDTH, TIME, BATCH, STEPS = 11, 6, 5, 4, 3

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
terms (int64[B,T] tokens, int64[B,T] labels) => (float%s loss)
<float[%d,%d] embed = {%s}, float[%d,%d] head = {%s}, float half = {0.5}, float small = {0.01}, float eight = {8.0}, float one = {1.0},
 int64[1] depth = {%d}, int64[1] batch = {0}, int64[2] inner = {1, 2}, int64[1] time = {1}, int64[1] classes = {2},
 int64[1] none = {0}, int64[1] last = {-1}, int64[1] all = {1000}, int64 ignored = {-100}, float[%d] fixed = {%s},
 float[%d] weight = {%s}>
{
  x = Gather (embed, tokens)
  logits = MatMul (x, head)
  rows = Transpose <perm = [0, 2, 1]> (logits)
  squares = Mul (logits, logits)
  square = ReduceMean <keepdims = 0> (squares)
  ce = SoftmaxCrossEntropyLoss <ignore_index = -100> (rows, labels)
  each = SoftmaxCrossEntropyLoss <ignore_index = -100, reduction = "none"> (rows, labels)
  %s
}
"""

# What can be split. The same numbers must come out for one, two and four samples per micro-batch.
SPLIT = {
    "cross-entropy": "loss = Identity (ce)",
    "mean": "loss = Identity (square)",
    "cross-entropy and mean": "halved = Mul (half, square)\n  loss = Add (ce, halved)",
    "difference": "loss = Sub (square, ce)",
    "sum over the batch": "loss = ReduceSum <keepdims = 0> (squares)",
    "summed cross-entropy": 'loss = SoftmaxCrossEntropyLoss <ignore_index = -100, reduction = "sum"> (rows, labels)',
    "sum and mean": "total = ReduceSum <keepdims = 0> (each)\n  loss = Add (square, total)",
    "of parameters": "p = ReduceSumSquare <keepdims = 0> (head)\n  q = Mul (small, p)\n  loss = Add (ce, q)",
    "of parameters and a mean": "p = ReduceSumSquare <keepdims = 0> (head)\n  q = Mul (small, p)\n  loss = Add (q, square)",
    "all kinds": "p = ReduceSumSquare <keepdims = 0> (head)\n  total = ReduceSum <keepdims = 0> (each)\n"
                 "  a = Sum (ce, square, p, total)\n  loss = Neg (a)",
    "mean of means": "m = ReduceMean <axes = [1, 2], keepdims = 0> (squares)\n  loss = ReduceMean <axes = [0], keepdims = 0> (m)",
    "sum of means": "m = ReduceMean <axes = [1, 2], keepdims = 0> (squares)\n  loss = ReduceSum <keepdims = 0> (m, batch)",
    "mean of sums": "m = ReduceSum <keepdims = 0> (squares, inner)\n  loss = ReduceMean <axes = [0], keepdims = 0> (m)",
    "mean over the batch first": "m = ReduceMean <axes = [0], keepdims = 1> (squares)\n  loss = ReduceMean <keepdims = 0> (m)",
    "sum over the batch, mean over the rest": "m = ReduceSum <keepdims = 0> (squares, batch)\n  loss = ReduceMean <keepdims = 0> (m)",
    "nonlinear in each sample": "m = ReduceMean <axes = [1, 2], keepdims = 0> (squares)\n  e = Sqrt (m)\n"
                                "  loss = ReduceMean <axes = [0], keepdims = 0> (e)",
    "half of a cross-entropy": "m = Mul (half, ce)\n  loss = Add (m, square)",
    "weighted cross-entropy": "loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (rows, labels, fixed)",
    "weighted likelihood": "p = LogSoftmax <axis = 1> (rows)\n"
                           "  loss = NegativeLogLikelihoodLoss <ignore_index = -100> (p, labels, fixed)",
    "shifted labels": "r = Slice (rows, none, last, classes)\n  l = Slice (labels, time, all, time)\n"
                      "  loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (r, l)",
    "masked mean": "e = Equal (labels, ignored)\n  k = Not (e)\n  c = Cast <to = 1> (k)\n  n = ReduceSum <keepdims = 0> (c)\n"
                   "  m = Max (n, one)\n  d = ReduceMean <axes = [2], keepdims = 0> (squares)\n  f = Mul (c, d)\n"
                   "  total = ReduceSum <keepdims = 0> (f)\n  q = Div (total, m)\n  loss = Mul (half, q)",
    "weights that add up to 1": "e = Equal (labels, ignored)\n  k = Not (e)\n  c = Cast <to = 1> (k)\n"
                                "  n = ReduceSum <keepdims = 0> (c)\n  v = Div (c, n)\n  f = Mul (v, each)\n"
                                "  loss = ReduceSum <keepdims = 0> (f)",
    "count of integers": "e = Equal (labels, ignored)\n  k = Not (e)\n  c = Cast <to = 7> (k)\n  n = ReduceSum <keepdims = 0> (c)\n"
                         "  m = Cast <to = 1> (n)\n  total = ReduceSum <keepdims = 0> (each)\n  loss = Div (total, m)",
    "mean weighted by a mean": "e = Equal (labels, ignored)\n  k = Not (e)\n  c = Cast <to = 1> (k)\n"
                               "  n = ReduceMean <keepdims = 0> (c)\n  f = Mul (c, each)\n  m = ReduceMean <keepdims = 0> (f)\n"
                               "  loss = Div (m, n)",
    "temperature that is learned": "p = ReduceMean <keepdims = 0> (head)\n  t = Exp (p)\n  total = ReduceSum <keepdims = 0> (each)\n"
                                   "  loss = Mul (t, total)",
}

# What cannot: the body, the op that is in the way, and why.
NOT_SPLIT = {
    "exponential of a mean": ("loss = Exp (square)", "train.exp", "is not linear in what was added up over the batch"),
    "product of two means": ("m = ReduceMean <axes = [0, 1], keepdims = 0> (squares)\n  n = ReduceMean <axes = [0, 1], keepdims = 0> (logits)\n"
                             "  f = Mul (m, n)\n  balance = ReduceSum <keepdims = 0> (f)\n  loss = Add (ce, balance)",
                             "train.mul", "is not linear in what was added up over the batch"),
    "maximum over the batch": ("loss = ReduceMax <keepdims = 0> (squares)", "train.reduce",
                               "lets the samples of a batch influence each other"),
    "deviation from a batch mean": ("m = ReduceMean <axes = [0], keepdims = 1> (logits)\n  d = Sub (logits, m)\n  e = Mul (d, d)\n"
                                    "  loss = ReduceMean <keepdims = 0> (e)",
                                    "train.sub", "lets the samples of a batch influence each other"),
    "mean of what is not 0": ("zero = Sub (one, one)\n  counts = Greater (each, zero)\n  c = Cast <to = 1> (counts)\n"
                    "  n = ReduceSum <keepdims = 0> (c)\n  total = ReduceSum <keepdims = 0> (each)\n  loss = Div (total, n)",
                    "train.div", "is not linear in what was added up over the batch"),
    "scaled count": ("e = Equal (labels, ignored)\n  k = Not (e)\n  c = Cast <to = 1> (k)\n  n = ReduceSum <keepdims = 0> (c)\n"
                     "  m = Mul (n, half)\n  total = ReduceSum <keepdims = 0> (each)\n  loss = Div (total, m)",
                     "train.mul", "multiplies a sum over the batch by a number"),
    "weighted cross-entropy of trained weights": (
        "loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (rows, labels, weight)",
        "train.div", "is not linear in what was added up over the batch"),
    "scaled sum": ("total = ReduceSum <keepdims = 0> (each)\n  loss = Mul (half, total)", "train.mul", "multiplies a sum over the batch by a number"),
    "divided sum": ("total = ReduceSum <keepdims = 0> (each)\n  loss = Div (total, eight)", "train.div", "multiplies a sum over the batch by a number"),
    "parameters repeated for each sample": ("p = ReduceMean <axes = [1], keepdims = 0> (head)\n  like = Shape <end = 1> (tokens)\n"
                                            "  more = Concat <axis = 0> (like, depth)\n  q = Expand (p, more)\n"
                                            "  total = ReduceSum <keepdims = 0> (q)\n  loss = Add (ce, total)",
                                            "train.reduce", "adds up equal values"),
    "similarity of samples": ("m = ReduceMean <axes = [1], keepdims = 0> (x)\n  t = Transpose <perm = [1, 0]> (m)\n  s = MatMul (m, t)\n"
                              "  loss = ReduceMean <keepdims = 0> (s)", "train.dot_general", "lets the samples of a batch influence each other"),
}

COUNT = "e = Equal (labels, ignored)\n  k = Not (e)\n  c = Cast <to = 1> (k)\n  n = ReduceSum <keepdims = 0> (c)\n"
TOTAL = COUNT + "  total = ReduceSum <keepdims = 0> (each)\n"

# What can be evaluated, in batches of any size, beside what SPLIT has of it.
EVALUATED = {
    "count of at least 1": TOTAL + "  m = Max (one, n)\n  loss = Div (total, m)",
    "clipped count": TOTAL + "  m = Clip (n, one)\n  loss = Div (total, m)",
    "count of at least 8": TOTAL + "  m = Max (n, eight)\n  loss = Div (total, m)",
    "count of at least 64, which all samples do not reach": TOTAL + "  b = Mul (eight, eight)\n  m = Max (n, b)\n  loss = Div (total, m)",
    "count of at least 8 and more": TOTAL + "  m = Add (half, n)\n  o = Max (m, eight)\n  p = Sub (o, half)\n  loss = Div (total, p)",
    "count and a number": TOTAL + "  m = Add (n, half)\n  loss = Div (total, m)",
    "half of a quotient, negated": TOTAL + "  m = Div (total, n)\n  o = Mul (half, m)\n  loss = Neg (o)",
}
# What cannot, beside what SPLIT has of it and all of NOT_SPLIT.
NOT_EVALUATED = {
    "mean times a sum": COUNT + "  m = ReduceMean <keepdims = 0> (each)\n  loss = Mul (m, n)",
    "weights less their mean": COUNT + "  m = ReduceMean <keepdims = 0> (c)\n  w = Sub (c, m)\n  f = Mul (w, each)\n"
                                       "  loss = ReduceMean <keepdims = 0> (f)",
    "sum over a mean": TOTAL + "  m = ReduceMean <keepdims = 0> (c)\n  loss = Div (total, m)",
    "sum over a square": TOTAL + "  m = Mul (n, n)\n  loss = Div (total, m)",
    "sum over a root": TOTAL + "  m = Sqrt (n)\n  loss = Div (total, m)",
    "sum over at most 8": TOTAL + "  m = Min (n, eight)\n  loss = Div (total, m)",
    "sum over two sums": TOTAL + "  m = Div (total, n)\n  loss = Div (m, n)",
}
SPLIT_NOT_EVALUATED = {
    "cross-entropy and mean", "difference", "sum over the batch", "summed cross-entropy", "sum and mean",
    "of parameters", "all kinds", "sum of means", "sum over the batch, mean over the rest", "half of a cross-entropy",
    "weights that add up to 1", "mean weighted by a mean", "temperature that is learned",
}

# Outputs in front of which samples meet: the body, and the op where they do.
MEETING = {
    "deviation from a batch mean": ("m = ReduceMean <axes = [0], keepdims = 1> (logits)\n  loss = Sub (logits, m)", "train.sub"),
    "attention over the batch": ("t = Transpose <perm = [1, 0, 2]> (x)\n  u = Transpose <perm = [1, 2, 0]> (x)\n  s = MatMul (t, u)\n"
                                 "  a = Softmax <axis = -1> (s)\n  y = MatMul (a, t)\n  z = Transpose <perm = [1, 0, 2]> (y)\n"
                                 "  loss = MatMul (z, head)", "train.attention"),
    "sort": ("k = Shape <end = 1> (tokens)\n  loss, order = TopK <axis = 0> (logits, k)", "train.sort_indices"),
    "running sum": ("loss = CumSum (logits, batch)", "train.dot_general"),
    "roll": ("a = Slice (logits, last, all, batch)\n  b = Slice (logits, none, last, batch)\n  loss = Concat <axis = 0> (a, b)",
             "train.slice"),
    "distance to the largest": ("m = ReduceMax <axes = [0], keepdims = 1> (logits)\n  loss = Sub (logits, m)", "train.reduce"),
}


def zeros(count):
    return ", ".join(["0"] * count)


class LossTerms(ToolTest):
    def setUp(self):
        super().setUp()
        self.runs = 0
        random = np.random.default_rng(7)
        self.weights = {"embed": random.standard_normal((VOCABULARY, WIDTH), np.float32),
                        "head": random.standard_normal((WIDTH, VOCABULARY), np.float32)}
        labels = random.integers(0, VOCABULARY, (BATCH * STEPS, TIME))
        labels[0, :4] = -100  # micro-batches have different numbers of targets
        labels[2, 1] = -100
        labels[3] = -100
        self.data = {"tokens": random.integers(0, VOCABULARY, (BATCH * STEPS, TIME)), "labels": labels}
        safetensors.save(self.data, self.path("data.safetensors"))

    def write(self, body, shape=""):
        more = {"weight": np.resize(np.float32([1, 2]), VOCABULARY)} if "weight)" in body else {}
        safetensors.save({**self.weights, **more}, self.path("weights.safetensors"))
        self.tied = ("--tied", "head") if re.search(r"\bhead\b", body) else ()  # in the product that makes logits, too
        with open(self.path("model.onnxtxt"), "w") as file:
            size = VOCABULARY * WIDTH
            file.write(MODEL % (shape, VOCABULARY, WIDTH, zeros(size), WIDTH, VOCABULARY, zeros(size), WIDTH, VOCABULARY,
                                ", ".join(["1", "2", "0.5"] * 3 + ["1", "3"]), VOCABULARY, zeros(VOCABULARY), body))

    def compile(self, micro, *flags, batch=BATCH, loss="output:loss"):
        return ("tessera-compile", "model.onnxtxt", "--parameters", ".", "--constants", "^(half|small|eight|one|fixed)$", *self.tied,
                "--batch", micro, "--accumulate", batch // micro, "--seq", TIME, "--loss",
                loss, "--optimizer", "sgd", "--lr", 0.1, "--weight-decay", 0, *flags, "-o", "model.tessera")

    def train(self, micro, *flags, loss="output:loss"):
        self.succeed(*self.compile(micro, *flags, loss=loss))
        self.runs += 1
        out = f"run-{self.runs}"
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", STEPS,
                     "--threads", 1, "--weights", "weights.safetensors", "--out", out)
        losses = [record["loss"] for record in self.metrics(out)]
        trained = safetensors.load(self.path(out, "model.safetensors"))
        return losses, {name: self.weights[name] - trained[name] for name in self.weights}

    def assert_same(self, got, want):
        for one, other in zip(got[0], want[0], strict=True):
            self.assertLess(abs(one - other), 2e-6 * max(1.0, abs(other)))
        for name in self.weights:
            scale = np.abs(want[1][name]).max()
            self.assertLess(np.abs(got[1][name] - want[1][name]).max(), 2e-6 * max(1.0, scale), name)

    def test_terms_do_not_depend_on_micro_batches(self):
        for name, body in SPLIT.items():
            with self.subTest(name):
                self.write(body)
                whole = self.train(4)
                self.assertGreater(max(np.abs(change).max() for change in whole[1].values()), 1e-3)
                for micro in (2, 1):
                    self.assert_same(self.train(micro), whole)

    def test_terms_do_not_depend_on_ranks(self):
        self.write(SPLIT["cross-entropy and mean"])
        whole = self.train(4)
        for micro in (4, 2):
            self.assert_same(self.train(micro, "--mesh", "shard=2", "--strategy", "zero3"), whole)

    def test_sums_and_means_are_what_they_say(self):
        """Against the definitions, in f64."""
        embed, head = (self.weights[name].astype(np.float64) for name in ("embed", "head"))
        logits = embed[self.data["tokens"][:BATCH]] @ head
        labels = self.data["labels"][:BATCH]
        counts = labels != -100
        top = logits.max(-1, keepdims=True)
        lse = (np.log(np.exp(logits - top).sum(-1, keepdims=True)) + top)[..., 0]
        rows = np.where(counts, lse - np.take_along_axis(logits, np.where(counts, labels, 0)[..., None], -1)[..., 0], 0)
        square = (logits**2).mean()
        weights = np.where(counts, np.array([1, 2, 0.5] * 3 + [1, 3])[np.where(counts, labels, 0)], 0)
        shifted = np.take_along_axis(logits[:, :-1], np.where(counts, labels, 0)[:, 1:, None], -1)[..., 0]
        wanted = {"weighted cross-entropy": (weights * rows).sum() / weights.sum(),
                  "shifted labels": (counts[:, 1:] * (lse[:, :-1] - shifted)).sum() / counts[:, 1:].sum(),
                  "masked mean": 0.5 * (counts * (logits**2).mean(-1)).sum() / counts.sum(),
                  "cross-entropy and mean": rows.sum() / counts.sum() + 0.5 * square,
                  "all kinds": -(rows.sum() / counts.sum() + square + (head**2).sum() + rows.sum()),
                  "mean of sums": (logits**2).sum() / BATCH}
        for name, want in wanted.items():
            self.write(SPLIT[name])
            for micro in (4, 2, 1):
                with self.subTest(name, micro=micro):
                    self.assertTrue(math.isclose(self.train(micro)[0][0], want, rel_tol=2e-6))

    def test_what_cannot_be_split_is_refused(self):
        for name, (body, op, why) in NOT_SPLIT.items():
            with self.subTest(name):
                self.write(body)
                self.train(4)  # in one piece it can be trained
                for micro in (2, 1):
                    self.fail_with(f"the loss cannot be split into micro-batches: '{op}' {why}", *self.compile(micro))

    def test_samples_that_meet_in_front_of_an_added_loss(self):
        """In micro-batches that is refused; on ranks the result is that of one rank."""
        shape = (BATCH * STEPS, TIME, VOCABULARY)
        targets = {"mse": np.random.default_rng(8).standard_normal(shape, np.float32), "cross-entropy": self.data["labels"].astype(np.int32)}
        for loss, values in targets.items():
            safetensors.save({**self.data, "targets": values}, self.path("data.safetensors"))
            for name, (body, op) in MEETING.items():
                with self.subTest(name, loss=loss):
                    self.write(body, f"[B, T, {VOCABULARY}]")
                    self.fail_with(f"the loss cannot be split into micro-batches: '{op}.*; with --accumulate 1 and a larger --batch "
                                   "it stays whole", *self.compile(2, loss=loss))
                    whole = self.train(4, loss=loss)
                    self.assert_same(self.train(4, "--mesh", "shard=2", "--strategy", "zero3", loss=loss), whole)
                    self.assertIn("samples of a batch may influence each other",
                                  self.tool(*self.compile(4, "--evaluate", loss=loss)).stderr)

    def test_data_in_front_of_an_added_loss_is_of_the_whole_batch(self):
        """A mean over the batch of what follows from data alone: no sample meets another one's parameters."""
        shape = (BATCH * STEPS, TIME, VOCABULARY)
        safetensors.save({**self.data, "targets": np.random.default_rng(8).standard_normal(shape, np.float32)},
                         self.path("data.safetensors"))
        self.write("d = Cast <to = 1> (labels)\n  e = Mul (small, d)\n  m = ReduceMean <axes = [0], keepdims = 1> (e)\n"
                   "  f = Sub (e, m)\n  g = Unsqueeze (f, classes)\n  loss = Add (logits, g)", f"[B, T, {VOCABULARY}]")
        whole = self.train(4, loss="mse")
        for micro in (2, 1):
            self.assert_same(self.train(micro, loss="mse"), whole)

    def evaluate(self, out, batch, *flags):
        """The loss of all data in batches of this size, and of the first one in training."""
        self.succeed(*self.compile(batch, "--evaluate", *flags, batch=batch))
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1, "--lr", 0,
                     "--threads", 1, "--weights", "weights.safetensors", "--no-export", "--out", out, "--eval-data", "data.safetensors")
        with open(self.path(out, "metrics.jsonl")) as file:
            (loss,) = [each["eval_loss"] for each in map(json.loads, file) if each.get("stage") == "evaluation"]
        return loss, self.metrics(out)[0]["loss"]

    def test_evaluation_is_the_loss_of_one_batch(self):
        """In any batches, also where all targets of one are ignored; what is not is refused."""
        labels = self.data["labels"].copy()
        labels[4:6] = -100
        labels[6:, 1:] = -100
        safetensors.save({**self.data, "labels": labels}, self.path("data.safetensors"))
        rows = len(labels)
        refused = set()
        for name, body in {**SPLIT, **EVALUATED, **NOT_EVALUATED, **{name: body for name, (body, *_) in NOT_SPLIT.items()}}.items():
            self.write(body)
            with self.subTest(name):
                if name in NOT_SPLIT or name in NOT_EVALUATED or name in SPLIT_NOT_EVALUATED:
                    self.fail_with("the model cannot be evaluated", *self.compile(4), "--evaluate")
                    refused.add(name)
                    continue
                whole, trained = self.evaluate(f"{name}-whole", rows)
                # Sums in f32, in another order.
                np.testing.assert_allclose([trained, *(self.evaluate(f"{name}-{batch}", batch)[0] for batch in (4, 2, 1))], whole,
                                           rtol=2e-6)
                if name.startswith("count of"):
                    ranks = self.evaluate(f"{name}-ranks", 4, "--mesh", "shard=2", "--strategy", "zero3")[0]
                    np.testing.assert_allclose(ranks, whole, rtol=2e-6)
        self.assertEqual(refused, {*NOT_SPLIT, *NOT_EVALUATED, *SPLIT_NOT_EVALUATED})

    def test_a_loss_of_one_sample_is_no_loss_of_the_batch(self):
        self.write("loss = ReduceMean <axes = [1, 2], keepdims = 0> (squares)", "[B]")
        self.fail_with("'train.reshape' leaves no dimension that counts samples", *self.compile(1))


if __name__ == "__main__":
    import unittest
    unittest.main()
