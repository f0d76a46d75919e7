"""Lion, clipping by value, moving averages and narrow moments equal PyTorch's training, on one rank and sharded."""

import json
import os

import numpy as np

from harness import GOLDENS, MODELS, ToolTest, safetensors

MLP = os.path.join(GOLDENS, "mlp")
LAYOUTS = ((1, "ddp"), (2, "ddp"), (2, "zero1"), (2, "zero3"), (3, "zero3"))
SCHEDULE_TOLERANCE = 1e-7  # PyTorch's warm-up begins at a billionth, ours at 0


def recorded(name):
    with open(os.path.join(GOLDENS, name + ".json")) as file:
        return json.load(file)


class Training(ToolTest):
    def compile(self, out, *flags):
        self.succeed("tessera-compile", os.path.join(MODELS, "mlp.ts17.onnx"), "--batch", 12, "--loss", "mse", *flags, "-o",
                     out + ".tessera")

    def train(self, artifact, out, steps, *flags):
        """Runs up to a step; returns the losses and the final parameters."""
        self.succeed("tessera-run", artifact + ".tessera", "--data", os.path.join(MLP, "data.safetensors"), "--order",
                     "sequential", "--steps", steps, "--threads", 1, "--out", out, *flags)
        return [record["loss"] for record in self.metrics(out)], safetensors.load(self.path(out, "model.safetensors"))

    def from_weights(self, artifact, out, steps=10, *flags):
        return self.train(artifact, out, steps, "--weights", os.path.join(MLP, "weights.safetensors"), *flags)

    def assert_same(self, first, second):
        self.assertEqual(sorted(first), sorted(second))
        for name, value in first.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), second[name].view(np.uint32)), name)

    def assert_near(self, got, want, tolerance):
        self.assertEqual(sorted(got), sorted(want))
        for name, value in want.items():
            self.assertLessEqual(np.abs(got[name] - value).max(), tolerance, name)


class Recorded(Training):
    def compare(self, case):
        golden = recorded("optimizers")[case]
        want = safetensors.load(os.path.join(GOLDENS, "optimizers", case + ".safetensors"))
        for ranks, strategy in LAYOUTS:
            with self.subTest(ranks=ranks, strategy=strategy):
                out = f"{strategy}-{ranks}"
                self.compile(out, *golden["flags"], "--mesh", f"shard={ranks}", "--strategy", strategy)
                losses, final = self.from_weights(out, out)
                self.assertEqual(len(losses), len(golden["losses"]))
                for step, (value, loss) in enumerate(zip(losses, golden["losses"]), 1):
                    self.assertLessEqual(abs(value - loss) / loss, 1e-5, f"loss of step {step}: {value} and {loss}")
                for record, norm in zip(self.metrics(out), golden["norms"]):
                    self.assertLessEqual(abs(record["grad_norm"] - norm) / norm, 1e-4)
                self.assert_near(final, want, 2e-5)
                average = self.path(out, "model-average.safetensors")
                self.assertEqual(os.path.exists(average), case.endswith("ema"))
                if case.endswith("ema"):
                    self.assert_near(safetensors.load(average),
                                     safetensors.load(os.path.join(GOLDENS, "optimizers", case + "-average.safetensors")), 2e-5)

    def test_lion(self):
        self.compare("lion")

    def test_lion_with_clipping_by_value_and_averages(self):
        self.compare("lion-ema")

    def test_adamw_with_clipping_by_value(self):
        self.compare("adamw-value")

    def test_sgd_clips_by_norm_and_then_by_value(self):
        self.compare("sgd-norm-value")

    def test_adamw_with_averages(self):
        self.compare("adamw-ema")


class Resumed(Training):
    """A run that stops and resumes is one that does not, to the bit: in averages and in moments that are rounded at random."""

    CASES = {"lion": ("--optimizer", "lion", "--lr", 0.003), "ema": ("--ema", 0.9), "bf16": ("--moments", "bf16"),
             "all": ("--moments", "bf16", "--ema", 0.9, "--clip-value", 0.05, "--precision", "bf16")}

    def test_resume(self):
        for case, flags in self.CASES.items():
            with self.subTest(case):
                self.compile(case, *flags, "--mesh", "shard=2", "--strategy", "zero3")
                losses, whole = self.train(case, case + "-whole", 6)
                self.train(case, case + "-half", 3, "--checkpoint-every", 3)
                rest, final = self.train(case, case + "-rest", 6, "--resume", case + "-half")
                self.assertEqual(rest, losses[3:])
                self.assert_same(final, whole)
                if "--ema" in flags:
                    self.assert_same(*(safetensors.load(self.path(f"{case}-{run}", "model-average.safetensors"))
                                       for run in ("whole", "rest")))

    def test_other_states_are_refused(self):
        self.compile("plain")
        self.train("plain", "half", 3, "--checkpoint-every", 3)
        run = ("--data", os.path.join(MLP, "data.safetensors"), "--steps", 6, "--resume", "half", "--out", "rest")
        for name, flags, message in (("lion", ("--optimizer", "lion"), r"\(v\) is not in the program"),
                                     ("ema", ("--ema", 0.9), r"\(average\) is not in the checkpoint"),
                                     ("bf16", ("--moments", "bf16"), r"\(m\) has type F32, expected BF16")):
            with self.subTest(name):
                self.compile(name, *flags)
                self.fail_with(message, "tessera-run", name + ".tessera", *run)


class NarrowMoments(Training):
    FLAGS = ("--lr", 0.01, "--moments", "bf16")

    def test_close_to_wide_ones_and_the_same_on_any_ranks(self):
        self.compile("wide", "--lr", 0.01)
        losses, wide = self.from_weights("wide", "wide")
        finals = {}
        for ranks, strategy in LAYOUTS:
            out = f"{strategy}-{ranks}"
            self.compile(out, *self.FLAGS, "--mesh", f"shard={ranks}", "--strategy", strategy)
            narrow, finals[out] = self.from_weights(out, out)
            for got, want in zip(narrow, losses):
                self.assertLessEqual(abs(got - want) / want, 0.02, out)
            self.assert_near(finals[out], wide, 0.02)
        # Equal gradients, to the bit, give equal roundings however the state is split.
        self.assert_same(finals["zero3-2"], finals["ddp-2"])
        self.assert_same(finals["zero1-2"], finals["ddp-2"])

    def test_memory_and_refusals(self):
        sizes = {}
        for moments in ("fp32", "bf16"):
            self.compile(moments, "--moments", moments)
            report = json.loads(self.succeed("tessera-dump", moments + ".tessera", "--memory", "--json"))
            sizes[moments] = report["memory"]["classes"]["optimizer"]["all_slots"]
        self.assertLess(abs(sizes["bf16"] - sizes["fp32"] / 2), 256)
        model = os.path.join(MODELS, "mlp.ts17.onnx")
        for flags, message in ((("--optimizer", "sgd", "--moments", "bf16"), "--moments bf16 is not for sgd"),
                               (("--optimizer", "lion", "--momentum", 0.9), "lion has no momentum"),
                               (("--optimizer", "sgd", "--nesterov"), "nesterov needs a momentum"),
                               (("--betas", 1, 0.9), r"beta1 must lie in \[0, 1\), got 1"),
                               (("--clip-value", -1), "--clip-value must be finite and not negative"),
                               (("--ema", 1), r"--ema must be in \[0, 1\)")):
            with self.subTest(message):
                self.fail_with(message, "tessera-compile", model, "--batch", 12, "--loss", "mse", *flags, "-o", "no.tessera")


class Schedules(Training):
    def test_schedules_of_pytorch(self):
        for name, golden in recorded("schedules").items():
            with self.subTest(name):
                self.compile("s", "--lr", 0.8, *golden["flags"])
                rates = golden["rates"]
                self.succeed("tessera-run", "s.tessera", "--data", os.path.join(MLP, "data.safetensors"), "--steps", len(rates),
                             "--threads", 1, "--out", name + "-long", "--on-nonfinite", "ignore", "--no-export")
                got = [record["lr"] for record in self.metrics(name + "-long")]
                self.assertEqual(len(got), len(rates))
                for step, (value, want) in enumerate(zip(got, rates), 1):
                    self.assertLessEqual(abs(value - want), SCHEDULE_TOLERANCE, f"{name}, step {step}: {value} and {want}")

    def test_command_lines(self):
        self.compile("cosine", "--schedule", "cosine", "--lr", 0.5, "--min-lr", 0.1, "--warmup", 2)
        text = self.succeed("tessera-dump", "cosine.tessera")
        self.assertIn("cosine, peak 0.5, lowest 0.1: linear 0 to peak before step 2; cosine peak to lowest until the end", text)
        self.from_weights("cosine", "other", 4, "--lr-schedule", "wsd", "--decay-steps", 2, "--min-lr", 0)
        self.assertEqual([record["lr"] for record in self.metrics("other")], [0.25, 0.5, 0.25, 0])
        run = ("cosine.tessera", "--data", os.path.join(MLP, "data.safetensors"), "--steps", 4, "--out", "no")
        self.fail_with("needs --decay-steps", "tessera-run", *run, "--schedule", "wsd")
        self.fail_with("not for cosine", "tessera-run", *run, "--decay-steps", 3)
        self.fail_with("--decay-curve: unknown value 'root'", "tessera-run", *run, "--decay-curve", "root")
