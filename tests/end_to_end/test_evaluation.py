"""Evaluation between steps: what it says, on any mesh, and that training does not notice."""

import json

import numpy as np

from harness import Golden, ToolTest
import safetensors
from test_dropout import MODEL as DROPOUT

SEQUENCE, BATCH = 64, 6
CASES = {"one": [], "ddp": ["--mesh", "shard=2"], "zero3": ["--mesh", "shard=3", "--strategy", "zero3"],
         "hsdp": ["--mesh", "replicate=2,shard=3", "--strategy", "hsdp"],
         "model": ["--mesh", "fsdp=3,tp=2", "--strategy", "zero3", "--place", r"mlp\.c_fc\.=0", "--place", r"mlp\.c_proj\.weight=1"]}


class Evaluation(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        rows = self.golden.cut(None, SEQUENCE)
        safetensors.save({name: value[:36] for name, value in rows.items()}, self.path("train.safetensors"))
        # 14 samples are two batches and a third of one; every target of one sample is ignored, and some of others.
        held = {name: value[-14:].copy() for name, value in rows.items()}
        held["targets"][3] = -100
        held["targets"][5, 10:] = -100
        self.held = held
        safetensors.save(held, self.path("held.safetensors"))

    def compile(self, name, *flags, model=None, accumulate=1):
        self.succeed("tessera-compile", model or self.golden.model, "--batch", BATCH // accumulate, "--seq", SEQUENCE,
                     "--accumulate", accumulate, "--lr", 1e-3, *flags, "-o", name + ".tessera")

    def run_steps(self, name, *flags, artifact=None, out=None):
        out = out or name
        printed = self.succeed("tessera-run", (artifact or name) + ".tessera", "--data", "train.safetensors", "--steps",
                               4, "--weights", self.golden.weights, "--out", out, "--threads", 1, *flags)
        return printed

    def evaluations(self, name):
        with open(self.path(name, "metrics.jsonl")) as file:
            return [record for record in map(json.loads, file) if record.get("stage") == "evaluation"]

    def losses(self, name):
        return [record["loss"] for record in self.metrics(name)]

    def assert_same_training(self, name, reference):
        self.assertEqual(self.losses(name), self.losses(reference))
        first, second = (safetensors.load(self.path(each, "model.safetensors")) for each in (name, reference))
        for parameter, value in first.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), second[parameter].view(np.uint32)), parameter)

    def test_training_does_not_notice(self):
        want = None
        for name, flags in CASES.items():
            with self.subTest(name):
                self.compile(name, "--evaluate", *flags)
                self.run_steps(name, "--eval-data", "held.safetensors", "--eval-every", 2)
                self.run_steps(name, artifact=name, out=name + "-without")
                self.assert_same_training(name, name + "-without")
                self.compile(name + "-none", *flags)
                self.run_steps(name + "-none")
                self.assert_same_training(name, name + "-none")
                found = self.evaluations(name)
                self.assertEqual([record["step"] for record in found], [2, 4])
                for record in found:
                    self.assertEqual(record["eval_targets"], int((self.held["targets"] != -100).sum()))
                    self.assertEqual((record["eval_samples"], record["eval_batches"]), (14, 3))
                    self.assertAlmostEqual(record["eval_perplexity"], np.exp(record["eval_loss"]), places=4)
                values = [record["eval_loss"] for record in found]
                want = want or values
                np.testing.assert_allclose(values, want, rtol=1e-5)

    def train_losses_at_rest(self, name, data, steps, *flags):
        """Losses of training steps that change nothing, over samples in order."""
        self.succeed("tessera-run", name + ".tessera", "--data", data, "--order", "sequential", "--steps", steps, "--lr",
                     0, "--weights", self.golden.weights, "--out", name + "-rest", "--threads", 1, "--no-export", *flags)
        return self.losses(name + "-rest")

    def test_is_the_loss_of_training_at_rest(self):
        """The loss of training weighs batches by what counts in them, as evaluation does over all of them."""
        whole = {name: value[:12] for name, value in self.held.items()}
        safetensors.save(whole, self.path("whole.safetensors"))
        counts = [(whole["targets"][i:i + BATCH] != -100).sum() for i in (0, BATCH)]
        for name, flags in (("fp32", []), ("bf16", ["--precision", "bf16"]),
                            ("bf16-zero3", ["--precision", "bf16", "--mesh", "shard=2", "--strategy", "zero3"]),
                            ("remat", ["--remat", "full"]), ("offload", ["--offload", "optimizer,parameters"])):
            with self.subTest(name):
                self.compile(name, "--evaluate", "--weight-decay", 0, *flags)
                losses = self.train_losses_at_rest(name, "whole.safetensors", 2)
                printed = self.succeed("tessera-run", name + ".tessera", "--eval-only", "--eval-data", "whole.safetensors",
                                       "--weights", self.golden.weights, "--threads", 1)
                got = float(printed.split("eval loss ")[1].split()[0])
                self.assertAlmostEqual(got, np.average(losses, weights=counts), delta=2e-6 if name == "fp32" else 2e-4)

    def test_fewer_samples_than_a_batch(self):
        """The rest of the batch is padded; what is padded does not count."""
        few = {name: value[:2].copy() for name, value in self.held.items()}
        safetensors.save(few, self.path("few.safetensors"))
        losses = []
        for name, batch, flags in (("exact", 2, []), ("padded", BATCH, []), ("ranks", BATCH, ["--mesh", "shard=3", "--strategy", "zero3"])):
            self.succeed("tessera-compile", self.golden.model, "--batch", batch, "--seq", SEQUENCE, "--evaluate", *flags, "-o",
                         name + ".tessera")
            printed = self.succeed("tessera-run", name + ".tessera", "--eval-only", "--eval-data", "few.safetensors", "--weights",
                                   self.golden.weights, "--threads", 1)
            self.assertIn("2 samples", printed)
            losses.append(float(printed.split("eval loss ")[1].split()[0]))
        np.testing.assert_allclose(losses, losses[0], rtol=1e-5)

    def test_some_batches(self):
        """The first ones of the data, as many as are asked for; more than there are is all."""
        self.compile("gpt", "--evaluate")
        first = {name: value[:BATCH].copy() for name, value in self.held.items()}
        safetensors.save(first, self.path("first.safetensors"))
        printed = {}
        for name, file, flags in (("one", "held", ["--eval-batches", 1]), ("first", "first", []),
                                  ("many", "held", ["--eval-batches", 99]), ("all", "held", [])):
            text = self.succeed("tessera-run", "gpt.tessera", "--eval-only", "--eval-data", file + ".safetensors", "--weights",
                                self.golden.weights, "--threads", 1, *flags)
            printed[name] = text.split("eval loss ")[1].rsplit(" | ", 1)[0]
        self.assertEqual(printed["one"], printed["first"])
        self.assertRegex(printed["one"], rf"{BATCH} samples in 1 batch$")
        self.assertEqual(printed["many"], printed["all"])
        self.assertIn("14 samples in 3 batches", printed["all"])

    def test_averages_are_evaluated_as_weights(self):
        self.compile("gpt", "--evaluate", "--ema", 0.9)
        self.run_steps("gpt", "--eval-data", "held.safetensors")
        losses = {}
        for file in ("model", "model-average"):
            printed = self.succeed("tessera-run", "gpt.tessera", "--eval-only", "--eval-data", "held.safetensors", "--weights",
                                   self.path("gpt", file + ".safetensors"), "--threads", 1)
            losses[file] = float(printed.split("eval loss ")[1].split()[0])
        self.assertAlmostEqual(losses["model"], self.evaluations("gpt")[-1]["eval_loss"], delta=1e-6)
        self.assertNotEqual(losses["model-average"], losses["model"])

    def test_micro_batches(self):
        self.compile("whole", "--evaluate")
        self.compile("micro", "--evaluate", accumulate=3)
        for name in ("whole", "micro"):
            self.run_steps(name, "--eval-data", "held.safetensors")
        whole, micro = self.evaluations("whole")[-1], self.evaluations("micro")[-1]
        self.assertEqual(micro["eval_batches"], 7)
        self.assertEqual(micro["eval_targets"], whole["eval_targets"])
        self.assertAlmostEqual(micro["eval_loss"], whole["eval_loss"], delta=1e-5)

    def test_resumed_runs_and_checkpoints(self):
        self.compile("gpt", "--evaluate")
        flags = ["--eval-data", "held.safetensors", "--eval-every", 1, "--checkpoint-every", 2]
        self.run_steps("gpt", *flags)
        want = self.evaluations("gpt")
        self.succeed("tessera-run", "gpt.tessera", "--data", "train.safetensors", "--steps", 4, "--resume",
                     "gpt/checkpoints/ckpt-2", "--out", "again", "--threads", 1, *flags)
        self.assertEqual([(each["step"], each["eval_loss"]) for each in self.evaluations("again")],
                         [(each["step"], each["eval_loss"]) for each in want[2:]])
        printed = self.succeed("tessera-run", "gpt.tessera", "--eval-only", "--eval-data", "held.safetensors", "--resume",
                               "gpt", "--threads", 1)
        self.assertIn(f"eval loss {want[-1]['eval_loss']:.6f}", printed)
        self.assertIn(f"{want[-1]['eval_targets']} targets", printed)

    def test_dropout_is_off(self):
        with open(self.path("dropout.onnxtxt"), "w") as file:
            file.write(DROPOUT)
        with open(self.path("plain.onnxtxt"), "w") as file:
            file.write(DROPOUT.replace("bool training = {1}", "bool training = {0}"))
        losses = []
        for name in ("dropout", "plain"):
            self.succeed("tessera-compile", name + ".onnxtxt", "--parameters", "embed|head", "--constants",
                         "ratio|training", "--batch", BATCH, "--seq", SEQUENCE, "--init", ".*=normal:1", "--evaluate",
                         "-o", name + ".tessera")
            self.succeed("tessera-run", name + ".tessera", "--data", "train.safetensors", "--steps", 1, "--lr", 0, "--out",
                         name, "--threads", 1, "--eval-data", "held.safetensors")
            losses.append((self.losses(name)[0], self.evaluations(name)[0]["eval_loss"]))
        self.assertNotEqual(losses[0][0], losses[1][0])
        self.assertEqual(losses[0][1], losses[1][1])

    def test_what_cannot_be(self):
        self.compile("plain")
        data = ["--data", "train.safetensors", "--out", "run", "--steps", 1]
        self.fail_with("has no program that evaluates; compile it with --evaluate", "tessera-run", "plain.tessera", *data,
                       "--eval-data", "held.safetensors")
        self.fail_with("--eval-every, .* need --eval-data", "tessera-run", "plain.tessera", *data, "--eval-every", 2)
        self.fail_with("--data is required", "tessera-run", "plain.tessera", "--out", "run")
        self.compile("gpt", "--evaluate")
        self.fail_with("--eval-data", "tessera-run", "gpt.tessera", *data, "--eval-data", "none.safetensors")
        self.fail_with("has no program 'dream'; it has 'step', 'evaluate'", "tessera-dump", "gpt.tessera", "--program",
                       "dream")
        self.assertIn("evaluate", self.succeed("tessera-dump", "gpt.tessera"))
        self.assertNotIn("reduce_scatter", self.succeed("tessera-dump", "gpt.tessera", "--program", "evaluate",
                                                        "--schedule", "--collectives"))
