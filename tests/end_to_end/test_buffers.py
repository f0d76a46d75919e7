"""Buffers that a module changes (running statistics, an average of its own) train as in PyTorch: goldens/buffers/record.py."""

import json
import os
import unittest

import numpy as np
from harness import GOLDENS, ToolTest, safetensors
from simulated_gpu import SimulatedGpu

FOLDER = os.path.join(GOLDENS, "buffers")
PROGRAM, DATA = os.path.join(FOLDER, "program.pt2"), os.path.join(FOLDER, "data.safetensors")
STEPS = 4
FLAGS = ["--batch", 4, "--loss", "cross-entropy", "--optimizer", "sgd", "--lr", 0.05, "--weight-decay", 0,
         "--schedule", "constant", "--warmup", 0]
TWO = {"one rank": [], "ddp": ["--mesh", "data=2", "--strategy", "ddp"], "zero3": ["--mesh", "shard=2", "--strategy", "zero3"]}
# The same sums in f32 in another order, over a few hundred elements and four steps.
TOLERANCE = 2e-6


def golden(name):
    return os.path.join(FOLDER, name)


class Buffers(ToolTest):
    def compile(self, name, *flags):
        self.succeed("tessera-compile", PROGRAM, *FLAGS, *flags, "-o", name + ".tessera")

    def train(self, name, out, steps, *flags):
        if "--resume" not in flags and "--weights" not in flags:
            flags = (*flags, "--weights", PROGRAM)
        self.succeed("tessera-run", name + ".tessera", "--data", DATA, "--order", "sequential", "--steps", steps,
                     "--out", out, "--threads", 1, *flags)

    def final(self, out):
        return safetensors.load(self.path(out, "model.safetensors"))

    def assert_state(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for name, value in want.items():
            self.assertEqual(got[name].dtype, value.dtype, name)
            self.assertEqual(got[name].shape, value.shape, name)
            error = np.abs(got[name].astype(np.float64) - value).max() / max(np.abs(value).max(), 1.0)
            self.assertLessEqual(error, TOLERANCE if value.dtype == np.float32 else 0, name)

    def test_as_pytorch(self):
        with open(golden("losses.json")) as file:
            losses = json.load(file)
        for count in (1, 2):
            want = safetensors.load(golden(f"after-{count}.safetensors"))
            for ranks, flags in TWO.items():
                with self.subTest(f"{count} micro-batches, {ranks}"):
                    name = f"net-{count}-{ranks.replace(' ', '-')}"
                    self.compile(name, "--accumulate", count, *flags)
                    self.train(name, name, STEPS)
                    got = [record["loss"] for record in self.metrics(name)]
                    np.testing.assert_allclose(got, losses[str(count)], rtol=TOLERANCE)
                    self.assert_state(self.final(name), want)

    def test_evaluation(self):
        """Normalisations by the running statistics, as in eval()."""
        with open(golden("evaluations.json")) as file:
            wanted = json.load(file)
        for count, flags in ((1, []), (1, TWO["zero3"]), (2, [])):
            with self.subTest(count, flags=flags):
                name = f"net-{count}-{len(flags)}"
                self.compile(name, "--accumulate", count, "--evaluate", *flags)
                self.train(name, name, STEPS, "--eval-data", DATA, "--checkpoint-every", STEPS)
                with open(self.path(name, "metrics.jsonl")) as file:
                    losses = [record["eval_loss"] for record in map(json.loads, file) if "eval_loss" in record]
                np.testing.assert_allclose(losses, [wanted[str(count)]], rtol=TOLERANCE)
                printed = self.succeed("tessera-run", name + ".tessera", "--eval-only", "--eval-data", DATA, "--resume", name)
                self.assertAlmostEqual(float(printed.split("eval loss ")[1].split()[0]), losses[0], delta=1e-6)

    def test_resume(self):
        """Bit for bit on as many ranks, and with the same counters on others."""
        for name, flags in (("one", []), ("two", TWO["zero3"])):
            self.compile(name, *flags)
        self.train("two", "whole", STEPS)
        self.train("two", "half", 2, "--checkpoint-every", 2)
        self.train("two", "again", STEPS, "--resume", "half")
        whole, again = self.final("whole"), self.final("again")
        for name, value in whole.items():
            self.assertEqual(value.tobytes(), again[name].tobytes(), name)
        self.train("one", "other", STEPS, "--resume", "half")
        self.assert_state(self.final("other"), safetensors.load(golden("after-1.safetensors")))

    def test_weights_bring_them(self):
        """What a run has exported is where another one begins; buffers that are missing are an error, counters are not."""
        self.compile("net")
        self.train("net", "first", 2)
        begun = self.final("first")
        self.train("net", "second", 1, "--weights", self.path("first", "model.safetensors"))
        self.assertEqual(self.final("second")["norm.num_batches_tracked"], begun["norm.num_batches_tracked"] + 2)
        del begun["last.num_batches_tracked"]
        safetensors.save(begun, self.path("no-counter.safetensors"))
        self.train("net", "third", 1, "--weights", "no-counter.safetensors")
        self.assertEqual(self.final("third")["last.num_batches_tracked"], 1)
        del begun["norm.running_var"]
        safetensors.save(begun, self.path("no-variance.safetensors"))
        self.fail_with("missing: 'norm.running_var'", "tessera-run", "net.tessera", "--data", DATA, "--steps", 1,
                       "--weights", "no-variance.safetensors", "--out", "none")

    def test_skipped_steps(self):
        """A step that is not finite changes no buffer."""
        data = {name: value.copy() for name, value in safetensors.load(DATA).items()}
        data["x"][4:8] = np.nan
        safetensors.save(data, self.path("data.safetensors"))
        self.compile("net")
        self.train("net", "one", 1)
        self.succeed("tessera-run", "net.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 2,
                     "--out", "skipped", "--threads", 1, "--weights", PROGRAM)
        one, skipped = self.final("one"), self.final("skipped")
        for name, value in one.items():
            self.assertEqual(value.tobytes(), skipped[name].tobytes(), name)

    def test_bf16(self):
        """Statistics stay f32, and follow those of f32."""
        for precision in ("fp32", "bf16"):
            self.compile(precision, "--precision", precision)
            self.train(precision, precision, STEPS)
        wide, narrow = self.final("fp32"), self.final("bf16")
        for name, value in wide.items():
            self.assertEqual(narrow[name].dtype, value.dtype, name)
            np.testing.assert_allclose(narrow[name], value, atol=0.05, err_msg=name)  # 8 bits of a few steps

    def test_averages(self):
        """Averaged weights are written with the buffers as they are."""
        self.compile("net", "--ema", 0.9)
        self.train("net", "net", 2)
        final, averages = self.final("net"), safetensors.load(self.path("net", "model-average.safetensors"))
        self.assertEqual(sorted(final), sorted(averages))
        for name, value in final.items():
            self.assertEqual(np.array_equal(value, averages[name]), name.startswith("average") or
                             name.endswith(("running_mean", "running_var", "num_batches_tracked")), name)


class BuffersOnGpu(SimulatedGpu):
    def test_as_pytorch(self):
        for count in (1, 2):
            self.succeed("tessera-compile", PROGRAM, *FLAGS, "--accumulate", count, "--target", "sm_90", "-o", "gpu.tessera")
            with self.settings():
                self.succeed("tessera-run", "gpu.tessera", "--data", DATA, "--order", "sequential", "--steps", STEPS,
                             "--out", f"gpu-{count}", "--weights", PROGRAM)
            got = safetensors.load(self.path(f"gpu-{count}", "model.safetensors"))
            for name, value in safetensors.load(golden(f"after-{count}.safetensors")).items():
                np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-5, err_msg=name)  # as losses there


if __name__ == "__main__":
    unittest.main()
