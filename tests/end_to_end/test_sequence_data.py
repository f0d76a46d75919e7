"""Ranks in processes read their parts of each window: the same bits as ranks that share whole windows, and the same errors.

How many bytes that are is counted in tests/runtime/data/BatchPartTest.cpp.
"""

import json
import os
import unittest

import numpy as np

from harness import run_command
import safetensors
from launchers import HAS_MPI
from test_launch import LaunchTest, needs_mpi, results_of

SEQUENCE, TOKENS = 32, 32 * 40 + 1


class SequenceData(LaunchTest):
    def setUp(self):
        super().setUp()
        self.ids = np.random.default_rng(3).integers(0, 256, TOKENS)
        self.write(self.ids)

    def write(self, ids):
        ids.astype(np.uint16).tofile(self.path("train.bin"))

    def compile(self, name, *flags):
        self.succeed("tessera-compile", self.golden.model, "--batch", 4, "--seq", SEQUENCE, "--lr", 0.01, *flags, "-o", name + ".tessera")

    def command(self, artifact, out, steps, *flags, data="train.bin"):
        return run_command(artifact + ".tessera", "--data", data, "--steps", steps, "--out", out, "--threads", 1, "--seed", 7, *flags)

    def by_mpi(self, ranks, command):
        return [self.mpirun(ranks, command)]

    def same(self, name, ranks, launch, *flags, data="train.bin", artifact=None):
        """A run of threads, which read whole windows, and one of processes."""
        full = ["--checkpoint-every", 3, "--dump", "gradients,parameters,losses", "--dump-step", 2, *flags]
        local, many = name + "-local", name + "-many"
        self.finish(self.start(self.command(artifact or name, local, 6, *full, data=data)))
        for process in launch(ranks, self.command(artifact or name, many, 6, *full, data=data)):
            self.finish(process)
        self.assert_same_files(local, many, results_of(ranks))
        numbers = [[(r["step"], r["loss"], r["grad_norm"]) for r in self.metrics(run)] for run in (local, many)]
        self.assertEqual(*numbers)
        self.assertEqual(len(numbers[0]), 6)

    def splits(self, name):
        entries = json.loads(self.succeed("tessera-dump", name + ".tessera", "--json"))["summary"]["batch"]
        return [[(split["axes"], split["order"]) for split in entry["splits"]] for entry in entries]

    def test_torchrun_environment(self):
        for order in ("contiguous", "zigzag"):
            for attention in ("ring", "allgather"):
                name = f"{order}-{attention}"
                with self.subTest(name):
                    self.compile(name, "--mesh", "seq=4", "--attention", attention, "--sequence-order", order)
                    self.assertEqual(self.splits(name), [[(["seq"], order)]] * 2)
                    self.same(name, 4, self.tcp, "--order", "sequential" if attention == "ring" else "shuffled")

    @needs_mpi
    def test_mpirun(self):
        self.compile("zigzag", "--mesh", "seq=4", "--attention", "ring")
        self.assertEqual(self.splits("zigzag"), [[(["seq"], "zigzag")]] * 2)
        self.same("zigzag", 4, self.by_mpi)
        self.compile("ranges", "--mesh", "seq=2", "--attention", "ulysses")
        self.assertEqual(self.splits("ranges"), [[(["seq"], "contiguous")]] * 2)
        self.same("ranges", 2, self.by_mpi)

    def test_beside_data_axes_with_micro_batches(self):
        self.compile("data", "--mesh", "fsdp=2,seq=2", "--strategy", "zero3", "--accumulate", 2, "--attention", "ring")
        self.assertEqual(self.splits("data"), [[(["fsdp"], "contiguous"), (["seq"], "zigzag")]] * 2)
        self.same("data", 4, self.tcp)

    def test_two_sequence_axes(self):
        self.compile("two", "--mesh", "a:sequence=2,b:sequence=2", "--attention", "ring+ulysses", "--strategy", "zero3")
        self.same("two", 4, self.tcp)

    def test_types_of_tokens(self):
        """Each rank reads its ranges of wider tokens, too, and finds a file of another type as all do."""
        self.compile("types", "--mesh", "seq=2", "--attention", "ring")
        for kind in ("uint16", "uint32", "int64"):
            with self.subTest(kind):
                self.ids.astype(kind).tofile(self.path(kind + ".bin"))
                self.same(kind, 2, self.tcp, data=kind + ".bin", artifact="types")
                self.assert_same_files("uint16-many", kind + "-many", ["model.safetensors"])
        for process in self.tcp(2, self.command("types", "narrow", 6, "--token-bytes", 4, data="int64.bin")):
            self.assertIn("does not look like uint32 (--token-bytes 4)", self.finish(process, status=1))

    def test_text_lines_and_arrays(self):
        self.compile("text", "--mesh", "seq=2", "--attention", "ring")
        words = "".join(map(chr, self.ids % 26 + 97))
        cuts = np.cumsum(np.random.default_rng(4).integers(1, 90, 40))
        with open(self.path("lines.jsonl"), "w") as file:
            for document in (words[a:b] for a, b in zip(cuts, cuts[1:])):
                if document:
                    file.write(json.dumps({"text": document}) + "\n")
        with open(self.path("words.txt"), "w") as file:
            file.write(words)
        arrays = self.golden.cut(48, SEQUENCE)
        np.savez(self.path("arrays.npz"), **arrays)
        safetensors.save(arrays, self.path("arrays.safetensors"))
        for data in ("lines.jsonl", "words.txt", "arrays.npz", "arrays.safetensors"):
            with self.subTest(data):
                self.same(data, 2, self.tcp, data=data, artifact="text")
        self.assert_same_files("arrays.npz-many", "arrays.safetensors-many", ["model.safetensors"])

    def test_evaluation(self):
        """Over data that do not fill the last batch."""
        self.compile("eval", "--mesh", "seq=2", "--attention", "ring", "--evaluate")
        self.ids[:SEQUENCE * 7 + 5].astype(np.uint16).tofile(self.path("held.bin"))
        self.same("eval", 2, self.tcp, "--eval-data", "held.bin", "--eval-every", 3)
        losses = [[r["eval_loss"] for r in self.records(f"eval-{how}") if "eval_loss" in r] for how in ("local", "many")]
        self.assertEqual(*losses)
        self.assertEqual(len(losses[0]), 2)

    def test_processes_go_on_where_threads_ended(self):
        self.compile("a", "--mesh", "seq=2", "--attention", "ring")
        self.finish(self.start(self.command("a", "whole", 6)))
        self.finish(self.start(self.command("a", "half", 3, "--checkpoint-every", 3)))
        for process in self.tcp(2, self.command("a", "many", 6, "--resume", "half")):
            self.finish(process)
        self.assert_same_files("whole", "many", ["model.safetensors"])

    def test_an_id_that_one_rank_reads_ends_all(self):
        """In a zigzag of two, rank 1 has the second and the third quarter of a window, and the fourth's first token as a target."""
        self.compile("a", "--mesh", "seq=2", "--attention", "ring")
        self.ids[SEQUENCE * 5 + SEQUENCE // 2 + 2] = 999
        self.write(self.ids)
        message = rf"token {SEQUENCE * 5 + SEQUENCE // 2 + 2} of 'train\.bin' is 999, but 'tokens' must be in \[0, 256\)"
        outputs = [self.finish(process, status=1) for process in
                   self.tcp(2, self.command("a", "run", 6, "--order", "sequential"))]
        self.assertRegex(outputs[0], "rank 1: " + message)
        self.assertRegex(outputs[1], message)
        self.assertEqual(len(self.metrics("run")), 1)  # the second batch has sample 5
        if HAS_MPI:
            output = self.finish(self.mpirun(2, self.command("a", "mpi", 6, "--order", "sequential")), status=None)
            self.assertRegex(output, "rank 1: .*" + message)
            self.assertEqual(len(self.metrics("mpi")), 1)


if __name__ == "__main__":
    unittest.main()
