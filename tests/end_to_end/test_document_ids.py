"""Ids of documents that are an input: every program of an artifact, and every rank in a process of its own, sees an id that comes back."""

import json
import os
import unittest

import numpy as np

from harness import Golden, safetensors, run_command
from test_launch import LaunchTest

SAMPLES, LENGTH = 8, 24
APART = r"samples.* is 5, which has come before, but not right before; equal ids of 'samples' must lie side by side, or .* --document-ids any"


class DocumentIds(LaunchTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("packed_ids")
        random = np.random.default_rng(5)
        self.tokens = random.integers(1, 32, (SAMPLES, LENGTH))
        self.ids = np.repeat(np.tile([9, 5, -4, 7], (SAMPLES, 1)), LENGTH // 4, axis=1)
        self.write("fine.safetensors", self.ids)

    def write(self, name, ids):
        safetensors.save({"tokens": self.tokens, "samples": ids, "targets": np.roll(self.tokens, -1, axis=1)}, self.path(name))

    def write_apart(self, name):
        """The last position of sample 6 has the id of its second document, which is on another rank."""
        ids = self.ids.copy()
        ids[6, -1] = 5
        self.write(name, ids)

    def compile(self, name, *flags):
        self.succeed("tessera-compile", self.golden.model, "--batch", 4, "--seq", LENGTH, *flags, "-o", name + ".tessera")

    def command(self, artifact, out, steps, *flags, data="fine.safetensors"):
        return run_command(artifact + ".tessera", "--data", data, "--order", "sequential", "--steps", steps, "--out", out, "--threads",
                           1, "--seed", 7, *flags)

    def test_each_way_to_compile_keeps_the_promise(self):
        for flags in ((), ("--accumulate", 2), ("--precision", "bf16"), ("--remat", "full"), ("--evaluate",),
                      ("--mesh", "fsdp=2", "--strategy", "zero3", "--accumulate", 2),
                      ("--mesh", "seq=2", "--attention", "ulysses"), ("--mesh", "seq=2", "--attention", "ring", "--sequence-order", "zigzag")):
            with self.subTest(flags=flags):
                self.compile("a", *flags)
                batch = json.loads(self.succeed("tessera-dump", "a.tessera", "--json"))["summary"]["batch"]
                self.assertEqual({entry["name"]: entry.get("has_runs", False) for entry in batch},
                                 {"tokens": False, "samples": True, "targets": False})

    def test_micro_batches(self):
        self.write_apart("apart.safetensors")
        self.compile("a", "--accumulate", 2)
        self.assertRegex(self.finish(self.start(self.command("a", "run", 2, data="apart.safetensors")), status=1), APART)
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")), "something half-written is left")

    def test_processes_see_what_threads_see(self):
        for attention, order in (("allgather", "contiguous"), ("ring", "zigzag"), ("ulysses", "contiguous")):
            with self.subTest(attention):
                self.compile(attention, "--mesh", "seq=2", "--attention", attention, "--sequence-order", order)
                self.finish(self.start(self.command(attention, attention + "-local", 2)))
                for process in self.tcp(2, self.command(attention, attention + "-many", 2)):
                    self.finish(process)
                self.assertEqual(*([record["loss"] for record in self.metrics(f"{attention}-{how}")] for how in ("local", "many")))
                self.assert_same_files(attention + "-local", attention + "-many", ["model.safetensors"])

    def test_each_process_refuses_ids_that_come_back(self):
        self.write_apart("apart.safetensors")
        for order in ("contiguous", "zigzag"):
            with self.subTest(order):
                self.compile("a", "--mesh", "seq=2", "--attention", "ring", "--sequence-order", order)
                for process in self.tcp(2, self.command("a", order, 2, data="apart.safetensors")):
                    self.assertRegex(self.finish(process, status=1), APART)
                self.assertEqual(len(self.metrics(order)), 1)  # the second batch has sample 6

    def test_evaluation_refuses_them(self):
        self.write_apart("apart.safetensors")
        self.compile("a", "--evaluate")
        self.finish(self.start(self.command("a", "fine", 1, "--eval-data", "fine.safetensors", "--eval-every", 1)))
        process = self.start(self.command("a", "run", 1, "--eval-data", "apart.safetensors", "--eval-every", 1))
        self.assertRegex(self.finish(process, status=1), APART)


if __name__ == "__main__":
    unittest.main()
