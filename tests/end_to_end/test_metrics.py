"""Metrics of an evaluation: those of all samples as one batch, on any mesh, while training does not notice."""

import json
import os

import numpy as np

from harness import ROOT, ToolTest
import safetensors

PROGRAM = os.path.join(ROOT, "tests", "pt2", "programs", "scored.pt2")
METRICS = ("accuracy", "output:near", "output:near_counted", "output:smoothed", "output:detached", "output:hits", "output:norm")
CASES = {"one": (6, []), "micro-batches": (3, ["--accumulate", 2]), "ddp": (6, ["--mesh", "shard=2"]),
         "zero3": (6, ["--mesh", "shard=3", "--strategy", "zero3"])}


class Metrics(ToolTest):
    begins_by_rule = False

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(0)
        for name, samples in (("train", 12), ("held", 24), ("odd", 20)):
            label = random.integers(0, 5, samples)
            label[::5] = -100
            np.savez(self.path(name + ".npz"), x=random.standard_normal((samples, 4), np.float32), label=label,
                     targets=label.astype(np.int32))

    def compile(self, batch, *flags):
        self.succeed("tessera-compile", PROGRAM, "--batch", batch, "--optimizer", "sgd", "--weight-decay", 0, *flags, "-o", "net.tessera")

    def train(self, out, *flags):
        return self.succeed("tessera-run", "net.tessera", "--data", "train.npz", "--order", "sequential", "--steps", 2, "--lr", 0.1,
                            "--out", out, *flags)

    def wanted(self, out, data):
        """The metrics of all samples of a file, of the weights that a run left."""
        weights, held = safetensors.load(self.path(out, "model.safetensors")), np.load(self.path(data))
        logits, label = held["x"] @ weights["layer.weight"].T + weights["layer.bias"], held["label"]
        near = (np.argsort(-logits, 1)[:, :2] == label[:, None]).any(1)
        hits, counted = (logits.argmax(1) == label).sum(), (label != -100).sum()
        return {"accuracy": hits / counted, "near": near.mean(), "near_counted": near.sum() / counted, "smoothed": near.sum() / (counted + 1),
                "detached": near.sum() / counted, "hits": hits,
                "norm": np.linalg.norm(weights["layer.weight"])}

    def evaluations(self, out):
        with open(self.path(out, "metrics.jsonl")) as file:
            return [record for record in map(json.loads, file) if record.get("stage") == "evaluation"]

    def test_values(self):
        asked = [word for metric in METRICS for word in ("--metric", metric)]
        for name, (batch, flags) in CASES.items():
            with self.subTest(name):
                self.compile(batch, *flags)
                self.train(name + "-without")
                self.compile(batch, *flags, "--evaluate", *asked)
                printed = self.train(name, "--eval-data", "held.npz")
                self.assertEqual([step["loss"] for step in self.metrics(name)], [step["loss"] for step in self.metrics(name + "-without")])
                (found,) = self.evaluations(name)
                for metric, value in self.wanted(name, "held.npz").items():
                    self.assertAlmostEqual(found["eval_" + metric], value, delta=1e-6 * max(1, value), msg=metric)
                    self.assertIn(f" | {metric} {found['eval_' + metric]:.4g}", printed)

    def test_incomplete_last_batch(self):
        """It is filled where all that is counted are targets, else left out."""
        self.compile(8, "--evaluate", "--metric", "accuracy")
        self.train("filled", "--eval-data", "odd.npz")
        (found,) = self.evaluations("filled")
        self.assertEqual(found["eval_samples"], 20)
        self.assertAlmostEqual(found["eval_accuracy"], self.wanted("filled", "odd.npz")["accuracy"], delta=1e-6)
        self.compile(8, "--evaluate", "--metric", "accuracy", "--metric", "output:near")
        self.train("left", "--eval-data", "odd.npz")
        (found,) = self.evaluations("left")
        self.assertEqual(found["eval_samples"], 16)

    def test_refused(self):
        for flags, reason in ((["--metric", "accuracy"], "--metric is of evaluations: add --evaluate"),
                              (["--evaluate", "--metric", "acuracy"], "--metric: unknown value 'acuracy', expected one of accuracy, output:<name>"),
                              (["--evaluate", "--metric", "accuracy", "--loss", "output:near"], "the metric accuracy is of the loss cross-entropy, got output:near"),
                              (["--evaluate", "--metric", "output:far"], "the model has no output 'far'; its outputs are 'logits', 'near'"),
                              (["--evaluate", "--metric", "output:each"], "output 'each' cannot be a metric: expected one number, got "),
                              (["--evaluate", "--metric", "output:near", "--metric", "output:near"], "two metrics are called \"near\""),
                              (["--evaluate", "--metric", "output:smoothed_twice"], "a metric of several batches does not follow from theirs"),
                              (["--evaluate", "--metric", "output:spread"],
                               r"node 'std': the model cannot be evaluated: a metric of several batches does not follow from theirs: ")):
            with self.subTest(flags):
                self.fail_with(reason, "tessera-compile", PROGRAM, "--batch", 4, *flags, "-o", "net.tessera")


if __name__ == "__main__":
    import unittest
    unittest.main()
