"""Flags of the tools, by what they change in a run."""

import json
import os
import re

import numpy as np

from harness import Golden, ToolTest, safetensors


class CompileFlags(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        self.model = [self.golden.model, "--batch", self.golden.batch, "--seq", self.golden.sequence]

    def train(self, name, *flags, steps=1, run_flags=(), data=None):
        """Parameters before and after `steps` steps of the golden's data, or of `data`, and the metrics."""
        self.succeed("tessera-compile", *self.model, *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", data or self.golden.data, "--order", "sequential",
                     "--steps", steps, "--weights", self.golden.weights, "--threads", 1, "--out", name, *run_flags)
        return safetensors.load(self.path(name, "model.safetensors")), self.metrics(name)

    def test_values_that_no_pass_can_take(self):
        for message, *flags in (("--no-decay: braces must be balanced, got 'a}'", "--no-decay", "a}"),
                                ("--keep-gathered: braces must be balanced", "--strategy", "zero3", "--keep-gathered", "a{"),
                                ("--init: braces must be balanced", "--init", "b=zeros}"),
                                ("--loss: braces must be balanced", "--loss", "output:}{"),
                                ("the model has no output 'a b'", "--loss", "output:a b"),
                                ("unknown wrap policy 'size:1 2'", "--wrap", "size:1 2"),
                                ("--clip-norm must be finite and not negative", "--clip-norm", "inf"),
                                ("--lr and --min-lr must be finite and not negative", "--lr", "nan"),
                                ("--weight-decay must be finite and not negative", "--weight-decay", "inf"),
                                ("ignore-index must be a 32-bit integer", "--ignore-index", "4294967296"),
                                ("micro-batches of .* are too large", "--accumulate", "4611686018427387904")):
            with self.subTest(" ".join(flags)):
                self.fail_with(message, "tessera-compile", *self.model, *flags, "-o", "no.tessera")
                self.assertFalse(os.path.exists(self.path("no.tessera")))

    def test_nesterov_adds_the_momentum_of_the_first_gradient(self):
        before = self.golden.load("weights")
        sgd = ("--optimizer", "sgd", "--lr", 0.125, "--weight-decay", 0, "--momentum", 0.5)
        plain, _ = self.train("plain", *sgd)
        nesterov, _ = self.train("nesterov", *sgd, "--nesterov")
        for name, value in plain.items():
            step, want = nesterov[name] - before[name], 1.5 * (value - before[name])
            self.assertLessEqual(np.abs(step - want).max(), 1e-6 * max(1, np.abs(before[name]).max()), name)
            self.assertGreater(np.abs(step).max(), 0, name)
        self.assertIn("nesterov=true", self.succeed("tessera-dump", "nesterov.tessera"))

    def test_parameters_without_decay_are_chosen_by_name(self):
        sgd = ("--optimizer", "sgd", "--lr", 0.5, "--momentum", 0)
        without, _ = self.train("without", *sgd, "--weight-decay", 0)
        chosen, _ = self.train("chosen", *sgd, "--weight-decay", 0.5, "--no-decay", "attn")
        for name, value in without.items():
            same = np.array_equal(value, chosen[name])
            self.assertEqual(same, "attn" in name or not np.any(self.golden.load("weights")[name]), name)

    def test_targets_ignored_and_smoothed(self):
        _, (plain,) = self.train("plain")
        # Smoothing is linear in its amount: at 0.5 it moves the loss twice as far as at 0.25.
        _, (smooth,) = self.train("smooth", "--label-smoothing", 0.25)
        _, (more,) = self.train("more", "--label-smoothing", 0.5)
        self.assertAlmostEqual(more["loss"] - plain["loss"], 2 * (smooth["loss"] - plain["loss"]), places=5)
        self.assertGreater(abs(smooth["loss"] - plain["loss"]), 1e-4)
        # -100, the default, and another index ignore the same targets.
        data = {name: value[: self.golden.batch].copy() for name, value in self.golden.load("data").items()}
        ignored = np.isin(data["targets"], (-100, 7))
        losses = {}
        for index, flags in ((-100, ()), (7, ("--ignore-index", 7))):
            data["targets"][ignored] = index
            safetensors.save(data, self.path("data.safetensors"))
            _, (record,) = self.train(f"ignored{index}", *flags, data="data.safetensors")
            losses[index] = record["loss"]
        self.assertEqual(losses[-100], losses[7])
        self.assertNotEqual(losses[7], plain["loss"])

    def test_a_cosine_ends_at_its_lowest_rate(self):
        _, records = self.train("cosine", "--schedule", "cosine", "--lr", 0.01, "--min-lr", 0.001, steps=3)
        self.assertAlmostEqual(records[-1]["lr"], 0.001, places=9)
        _, records = self.train("other", "--schedule", "cosine", "--lr", 0.01, steps=3, run_flags=("--min-lr", 0.002))
        self.assertAlmostEqual(records[-1]["lr"], 0.002, places=9)

    def test_utilisation_of_a_given_peak(self):
        _, (record,) = self.train("peak", run_flags=("--peak-gflops", 100))
        flops = re.search(r"flops_per_step=(\d+)", self.succeed("tessera-dump", "peak.tessera"))
        self.assertAlmostEqual(record["mfu"], int(flops[1]) / (record["step_seconds"] * 100e9), places=6)

    def test_printed_pipelines_do_what_the_phases_do(self):
        flags = [*self.model, "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", "--place", "mlp.c_fc.=0", "--place",
                 "mlp.c_proj.weight=1", "--no-decay", "x{1,3}, y|bias", "--init", "c_fc.weigh[t]{1,2}=normal:0.01", "--remat",
                 "budget=1e9", "--ema", 0.987654321, "--clip-norm", 0.1234567891, "--label-smoothing", 0.12345678901]
        pipelines = dict(line.split(": ", 1)
                         for line in self.succeed("tessera-compile", *flags, "--print-pipelines").splitlines())
        phases = ("import", "differentiate", "optimize", "precision", "shard", "schedule", "lower")
        for phase in phases:
            with open(self.path(phase + ".mlir"), "w") as file:
                file.write(self.succeed("tessera-compile", *flags, "--compile-to", phase))
        for before, phase in zip(phases, phases[1:]):
            with self.subTest(phase):
                # Read and written again, so that both are printed without locations.
                ours = self.succeed("tessera-opt", phase + ".mlir")
                theirs = self.succeed("tessera-opt", before + ".mlir", f"--pass-pipeline={pipelines[phase]}")
                self.assertEqual(ours, theirs)

    def test_timing_lists_the_phases(self):
        done = self.tool("tessera-compile", *self.model, "-o", "a.tessera", "--timing")
        self.assertEqual(done.returncode, 0)
        for phase in ("import", "differentiate", "optimize", "precision", "shard", "schedule", "lower", "artifact", "total"):
            self.assertRegex(done.stdout + done.stderr, rf"(?m)^{phase} +\d+\.\d+")

    def test_versions_agree(self):
        version = self.succeed("tessera-compile", "--version")
        self.assertRegex(version, r"^\d+\.\d+\.\d+\n$")
        for tool in ("tessera-run", "tessera-dump", "tessera-calibrate", "tessera-compare"):
            self.assertEqual(self.succeed(tool, "--version"), version, tool)


class DataFlags(ToolTest):
    def test_the_field_that_holds_the_text(self):
        golden = Golden("gpt")
        self.succeed("tessera-compile", golden.model, "--batch", 2, "--seq", golden.sequence, "-o", "a.tessera")
        os.mkdir(self.path("data"))
        with open(self.path("data", "a.jsonl"), "w") as file:
            for _ in range(200):
                file.write(json.dumps({"text": "ab", "body": "aaaaaaaaaaaaaaaa"}) + "\n")
        for field, low, high in (("text", 0.9, 1.2), ("body", 0.1, 0.4)):
            self.succeed("tessera-run", "a.tessera", "--data", "data", "--steps", 1, "--text-field", field, "--out", field)
            with open(self.path(field, "run.json")) as file:
                self.assertTrue(low < json.load(file)["unigram_entropy"] < high)
        self.fail_with("has no field 'title'", "tessera-run", "a.tessera", "--data", "data", "--steps", 1, "--text-field",
                       "title", "--out", "title")
