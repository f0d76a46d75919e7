"""The tools say how they are used, dump every phase, and show what an artifact holds."""

import json
import os

from harness import Golden, ToolTest

TOOLS = ("tessera-compile", "tessera-run", "tessera-dump", "tessera-opt", "tessera-interp")
PHASES = ("import", "differentiate", "optimize", "precision", "shard", "schedule", "lower")


class Tools(ToolTest):
    def test_help_has_an_example(self):
        for tool in TOOLS:
            with self.subTest(tool):
                self.assertRegex(self.succeed(tool, "--help"), r"(?i)example")

    def test_every_phase_can_be_stopped_at_and_dumped(self):
        flags = [*Golden("llama").compile_flags(), "--mesh", "shard=2", "--strategy", "zero3"]
        for phase in PHASES:
            with self.subTest(phase):
                self.assertIn("func.func" if phase != "lower" else "exec.", self.succeed(
                    "tessera-compile", *flags, "--compile-to", phase))
        self.succeed("tessera-compile", *flags, "--dump-phases", "phases", "--embed-ir", "-o", "llama.tessera")
        names = sorted(os.listdir(self.path("phases")))
        self.assertEqual(names, [f"{i}-{phase}.mlir" for i, phase in enumerate(PHASES, 1)])
        self.assertIn("dist.all_gather", self.succeed("tessera-dump", "llama.tessera", "--ir=shard"))

    def test_phases_compute_the_same(self):
        """The interpreter gives the same step after optimize, after shard and after schedule, on two ranks."""
        flags = [*Golden("llama").compile_flags(4), "--mesh", "shard=2", "--strategy", "zero3", "--dump-phases", "p",
                 "--compile-to", "schedule"]
        flags[flags.index("--batch") + 1] = 2
        flags[flags.index("--seq") + 1] = 16
        self.succeed("tessera-compile", *flags)
        for phase in ("5-shard", "6-schedule"):
            self.succeed("tessera-interp", "p/3-optimize.mlir", f"--compare=p/{phase}.mlir", "--rtol", 1e-4, "--atol", 1e-5)

    def test_dump_shows_memory_schedule_and_collectives(self):
        self.succeed("tessera-compile", *Golden("gpt").compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o",
                     "gpt.tessera")
        memory = self.succeed("tessera-dump", "gpt.tessera", "--memory")
        for name in ("parameters", "gradients", "optimizer", "activations"):
            self.assertIn(name, memory.lower())
        self.assertRegex(self.succeed("tessera-dump", "gpt.tessera", "--collectives"), r"all.?gather")
        self.assertRegex(self.succeed("tessera-dump", "gpt.tessera", "--schedule"), r"gemm")
        self.assertTrue(json.loads(self.succeed("tessera-dump", "gpt.tessera", "--json")))
