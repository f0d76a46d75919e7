"""tessera-compile --report of large steps: Llama at the widths of 8B, 70B and 405B, two layers each (tests/models/wide), on up to 65,536
GPUs, one sample of 8,192 positions on each. TESSERA_WIDE_PROGRAMS names another folder of programs, such as those of all layers that
tests/models/record_wide.py --layers 0 writes."""

import json
import os

from harness import ROOT, ToolTest

PROGRAMS = os.environ.get("TESSERA_WIDE_PROGRAMS") or os.path.join(ROOT, "tests", "models", "wide")
RANKS, POSITIONS = (8, 1024, 16384, 65536), 8192
UNITS = 130 if "TESSERA_WIDE_PROGRAMS" in os.environ else 8  # that a program has at most


class LargeReports(ToolTest):
    def report(self, name, batch, *flags):
        self.succeed("tessera-compile", os.path.join(PROGRAMS, name + ".pt2"), "--batch", batch, "--seq", POSITIONS, "--precision", "bf16",
                     "--target", "h100x8", *flags, "--report=report.json")
        with open(self.path("report.json")) as file:
            return json.load(file)

    def test_ranks(self):
        """A rank does the same whatever others there are, but for its part of the state and what it sends."""
        for name in ("llama-8b", "llama-70b", "llama-405b"):
            reports = [self.report(name, ranks, "--mesh", f"shard={ranks}", "--strategy", "zero3") for ranks in RANKS]
            for ranks, report in zip(RANKS, reports, strict=True):
                with self.subTest(name, ranks=ranks):
                    memory = report["memory"]["at_peak_by_class"]
                    self.assertEqual(report["tokens_per_step"], ranks * POSITIONS)
                    # Two moments of 4 bytes; a rank's part of a unit is padded by up to 64 elements.
                    state = 8 * report["parameters"] / ranks
                    self.assertLess(abs(memory["optimizer"] - state), 8 * 64 * UNITS)
                    self.assertAlmostEqual(report["model_flops_per_step"] / reports[0]["model_flops_per_step"] * RANKS[0] / ranks, 1, delta=1e-6)
                    self.assertAlmostEqual(memory["activations"] / reports[0]["memory"]["at_peak_by_class"]["activations"], 1, delta=0.02)
                    self.assertGreater(report["step"]["seconds"], 0.99 * reports[0]["step"]["seconds"])
                    self.assertLess(report["step"]["seconds"], 1.2 * reports[0]["step"]["seconds"])

    def test_one_rank(self):
        """8 million tokens on one rank: no mask of positions is stored, which alone would be 64 GiB."""
        small, large = (self.report("llama-8b", batch)["memory"]["at_peak_by_class"] for batch in (64, 1024))
        self.assertAlmostEqual(large["activations"] / small["activations"], 16, delta=0.1)


if __name__ == "__main__":
    import unittest
    unittest.main()
