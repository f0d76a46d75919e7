"""Losses that read the size of the batch are those of the whole batch in micro-batches, too, or are refused (tests/pt2/programs/sizes.pt2)."""

import os
import re

import numpy as np
from harness import ROOT, ToolTest

PROGRAM = os.path.join(ROOT, "tests", "pt2", "programs", "sizes.pt2")
SAMPLES, STEPS = 16, 2
SPLIT = ("doubled", "batchmean", "by_size", "by_elements", "by_one_less", "by_root", "times_inverse", "mean_times", "each_by_size",
         "by_literal", "by_deviation", "and_parameters", "targets", "pairs", "rest", "every_second", "groups", "ghosts", "last", "some",
         "gathered")
REFUSED = {"halves": "slice", "parts": "reshape", "variance": "sub", "places": "mul", "first": "slice", "repeated": "reduce"}
# Of a batch of four, the first ones look like losses that can be split.
OTHER_SIZE = {"part": (4, "computes otherwise"), "mask": (4, "on their place in it"), "where": (4, "on their place in it"),
              "columns": (4, "on their place in it"),
              "rows": (4, "computes otherwise"), "picked": (4, "cannot be split"), "from_third": (8, "cannot be split"),
              "own_table": (8, "slice' gives another"), "row_of_size": (8, "slice' gives another"), "padded": (8, "pad' gives another"),
              "features": (8, "slice' gives another")}


class BatchSizes(ToolTest):
    begins_by_rule = False

    def train(self, loss, parts):
        """The losses of some steps and the parameters after them."""
        self.succeed("tessera-compile", PROGRAM, "--batch", SAMPLES // parts, "--accumulate", parts, "--loss", "output:" + loss,
                     "--optimizer", "sgd", "--weight-decay", 0, "--lr", 0.05, "--schedule", "constant", "-o", "net.tessera")
        run = f"{loss}-{parts}"
        self.succeed("tessera-run", "net.tessera", "--data", "data.npz", "--order", "sequential", "--steps", STEPS, "--out", run)
        return [step["loss"] for step in self.metrics(run)]

    def test_split(self):
        random = np.random.default_rng(0)
        x, y = random.standard_normal((STEPS * SAMPLES, 5, 4), np.float32), random.standard_normal((STEPS * SAMPLES, 4), np.float32)
        np.savez(self.path("data.npz"), x=x, y=y, last=random.integers(0, 5, STEPS * SAMPLES))
        for loss in SPLIT:
            whole = self.train(loss, 1)
            for parts in (2, 4):
                with self.subTest(loss, parts=parts):
                    # Sums of another order in f32.
                    np.testing.assert_allclose(self.train(loss, parts), whole, rtol=3e-6)

    def test_language_model(self):
        """The loss that is added to logits [B, T, V] is that of the whole batch, too, and evaluations are of all samples."""
        np.savez(self.path("tokens.npz"), tokens=np.arange(8 * 16).reshape(8, 16) % 97, targets=np.arange(8 * 16).reshape(8, 16) % 89)
        found = {}
        for parts in (1, 2):
            done = self.tool("tessera-compile", os.path.join(ROOT, "tools", "demo", "gpt.pt2"), "--batch", 4 // parts, "--accumulate", parts,
                             "--seq", 16, "--evaluate", "-o", "net.tessera")
            self.assertEqual((done.returncode, done.stderr.count("warning")), (0, 0), done.stderr)
            out = f"words-{parts}"
            self.succeed("tessera-run", "net.tessera", "--weights", "fresh", "--data", "tokens.npz", "--order", "sequential", "--steps", STEPS,
                         "--eval-data", "tokens.npz", "--out", out, "--no-export")
            found[parts] = [step["loss"] for step in self.metrics(out)]
        np.testing.assert_allclose(found[2], found[1], rtol=3e-6)

    def test_evaluation(self):
        """A loss that is divided by the number of samples is that of all samples in evaluation."""
        random = np.random.default_rng(0)
        data = {"x": random.standard_normal((24, 5, 4), np.float32), "y": random.standard_normal((24, 4), np.float32),
                "last": random.integers(0, 5, 24)}
        np.savez(self.path("data.npz"), **data)
        found = {}
        for batch in (24, 8):
            self.succeed("tessera-compile", PROGRAM, "--batch", batch, "--loss", "output:by_size", "--evaluate", "-o", "net.tessera")
            printed = self.succeed("tessera-run", "net.tessera", "--eval-only", "--eval-data", "data.npz")
            found[batch] = float(printed.split("eval loss ")[1].split()[0])
        np.testing.assert_allclose(found[8], found[24], rtol=1e-6)

    def test_refused(self):
        """At the user's line."""
        for loss, op in REFUSED.items():
            with self.subTest(loss):
                self.fail_with(rf"cannot be split into micro-batches: 'train.{op}' .*\(\S+\.py:\d+\)\n", "tessera-compile", PROGRAM,
                               "--batch", 8, "--accumulate", 2, "--loss", "output:" + loss, "-o", "net.tessera")
                self.succeed("tessera-compile", PROGRAM, "--batch", 16, "--loss", "output:" + loss, "-o", "net.tessera")

    def test_it_is_one_computation(self):
        """Whatever the size of the batch is, and the parts of it: a run that goes on with another size goes on with this model."""
        def computation(*flags, program=PROGRAM):
            self.succeed("tessera-compile", program, *flags, "-o", "net.tessera")
            return re.search(r"computation=(\w+)", self.succeed("tessera-dump", "net.tessera"))[1]
        found = {computation(*flags, "--loss", "output:batchmean")
                 for flags in (("--batch", 16), ("--batch", 4), ("--batch", 8, "--accumulate", 2), ("--batch", 16, "--evaluate"))}
        self.assertEqual(len(found), 1)
        other = os.path.join(os.path.dirname(PROGRAM), "other_size-{}.pt2")
        ones = {computation("--batch", 16, "--loss", "output:output", program=other.format(name)) for name in ("from_third", "own_table", "mask")}
        self.assertEqual(len(ones), 3)

    def test_other_size(self):
        """A loss that is another function for a batch of another size is refused, in evaluation, too."""
        for loss, (batch, reason) in OTHER_SIZE.items():
            program = os.path.join(os.path.dirname(PROGRAM), f"other_size-{loss}.pt2")
            with self.subTest(loss):
                for wanted, flags in ((reason, ["--accumulate", 4]), ("cannot be evaluated|computes otherwise", ["--evaluate"])):
                    self.fail_with(wanted, "tessera-compile", program, "--batch", batch, *flags, "--loss", "output:output", "-o", "net.tessera")
                self.succeed("tessera-compile", program, "--batch", 16, "--loss", "output:output", "-o", "net.tessera")


if __name__ == "__main__":
    import unittest
    unittest.main()
