"""A run that stops and resumes equals one that did not stop; on another number of ranks too, up to rounding."""

import os

import numpy as np

from harness import Golden, ToolTest
import safetensors


class Resume(ToolTest):
    def compile(self, name, *flags):
        golden = Golden("llama")
        self.succeed("tessera-compile", *golden.compile_flags(), *flags, "-o", name + ".tessera")

    def run_steps(self, artifact, out, steps, *flags):
        golden = Golden("llama")
        self.succeed("tessera-run", artifact + ".tessera", "--data", golden.data, "--steps", steps, "--out", out,
                     "--threads", 1, "--seed", 7, *flags)

    def setUp(self):
        super().setUp()
        self.compile("two", "--mesh", "shard=2", "--strategy", "zero3")
        self.run_steps("two", "whole", 6)
        self.run_steps("two", "half", 3, "--checkpoint-every", 3)
        self.whole = safetensors.load(self.path("whole", "model.safetensors"))

    def resumed(self, artifact):
        self.run_steps(artifact, "resumed-" + artifact, 6, "--resume", "half")
        records = self.metrics("resumed-" + artifact)
        self.assertEqual([record["step"] for record in records], [4, 5, 6])
        return records, safetensors.load(self.path("resumed-" + artifact, "model.safetensors"))

    def test_same_ranks_bitwise(self):
        records, final = self.resumed("two")
        self.assertEqual([r["loss"] for r in records], [r["loss"] for r in self.metrics("whole")[3:]])
        for name, value in self.whole.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), final[name].view(np.uint32)), name)

    def test_other_ranks_and_wrap(self):
        for name, flags in (("one", ()), ("three", ("--mesh", "shard=3", "--strategy", "zero3", "--wrap", "none"))):
            with self.subTest(name):
                self.compile(name, *flags)
                records, _ = self.resumed(name)
                for got, want in zip(records, self.metrics("whole")[3:]):
                    self.assertLessEqual(abs(got["loss"] - want["loss"]) / want["loss"], 1e-6)

    def test_damaged_checkpoints_are_refused(self):
        folder = self.path("half")
        checkpoint = next(os.path.join(root, name) for root, _, names in os.walk(folder) for name in names
                          if name == "rank-1.safetensors")
        with open(checkpoint, "r+b") as file:
            file.truncate(os.path.getsize(checkpoint) // 2)
        flags = ["two.tessera", "--data", Golden("llama").data, "--steps", 6, "--resume", "half", "--out", "bad"]
        self.fail_with(r"rank-1\.safetensors", "tessera-run", *flags)
        os.remove(checkpoint)
        self.fail_with(r"rank-1\.safetensors", "tessera-run", *flags)
