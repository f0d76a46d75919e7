"""Artifacts for several ranks on simulated GPUs: strategies, model and sequence axes, the same bits in every run."""

import json
import os
import re
import unittest
import unittest.mock
from simulated_gpu import SimulatedGpu


class Ranks(SimulatedGpu):
    def test_attention_on_two_gpus(self):
        """In bf16, each rank with its own cuDNN."""
        golden = self.compile("model", "llama", "--precision", "bf16", "--mesh", "shard=2", "--strategy", "zero3",
                              batch=2)
        self.cpu(golden, "model", "cpu", steps=2)
        counts = self.simulate(golden, "model", "graph", steps=2, devices=2)
        self.assertGreater(counts["cuDNN graphs"], 0)
        self.assert_close("graph", "cpu", "bf16")

    def test_parameters_on_model_axes(self):
        """Heads, feed-forward and vocabulary split over two of four GPUs: sums and maxima over axes in turn, on streams of their own."""
        golden = self.compile("model", "llama", "--mesh", "tp=2,fsdp=2", "--strategy", "zero3", "--place",
                              "[qkv]_proj|gate_proj|up_proj|embed_tokens|lm_head=0", "--place", "o_proj|down_proj=1", batch=2)
        rows = json.loads(self.succeed("tessera-dump", "model.tessera", "--collectives", "--json"))["collectives"]["list"]
        self.assertEqual({row["stream"] for row in rows}, {"gather", "reduce", "reduce tp"})
        self.assertIn("max", {row["reduction"] for row in rows})
        self.cpu(golden, "model", "cpu", steps=2)
        self.simulate(golden, "model", "issued", "--no-graph", steps=2, devices=4)
        graph = self.simulate(golden, "model", "graph", steps=2, devices=4, seed=1)
        self.assertEqual(graph["graph launches"], 4)
        for run in ("issued", "graph"):
            self.assert_close(run, "cpu", "fp32")
        self.assert_same_bits("issued", "graph")

    def test_sequence_axes(self):
        """Blocks of keys that go from GPU to GPU, and heads that are exchanged; ranges of keys on own kernels, those of bf16 on tensor
        cores, and plain attention on cuDNN."""
        for attention, precision in (("ring", "fp32"), ("ring", "bf16"), ("ulysses", "bf16"), ("allgather", "bf16")):
            with self.subTest(attention=attention, precision=precision):
                name = f"{attention}-{precision}"
                golden = self.compile(name, "llama", "--precision", precision, "--mesh", "seq=2", "--strategy", "zero3", "--attention",
                                      attention, "--loss-tile", "2KiB", batch=1)
                self.cpu(golden, name, name + "-on-cpu", steps=2)
                counts = self.simulate(golden, name, name + "-run", steps=2, devices=2)
                self.assertEqual("cuDNN graphs" in counts, attention == "ulysses")
                self.assert_close(name + "-run", name + "-on-cpu", precision)
                with self.settings(devices=2):
                    told = self.told(*self.arguments(golden, name, name + "-told", steps=1))
                self.assertEqual("attention by our own kernels on tensor cores, not by cuDNN: " in told,
                                 precision == "bf16" and attention != "ulysses")
                self.assertNotIn("attention by our own f32 kernels", told)

    def test_documents(self):
        """Kernels that find where documents begin, and ranges of keys that follow from it."""
        for model, precision, flags in (("packed_positions", "fp32", ["--mesh", "seq=2", "--attention", "ring", "--strategy", "zero3"]),
                                        ("packed_ends", "fp32", []), ("packed_ends", "bf16", ["--mesh", "seq=2", "--attention", "ulysses"])):
            with self.subTest(model=model, precision=precision):
                name = f"{model}-{precision}"
                golden = self.compile(name, model, "--precision", precision, *flags)
                self.cpu(golden, name, name + "-on-cpu", steps=2)
                self.simulate(golden, name, name + "-run", steps=2, devices=2 if flags else 1)
                self.assert_close(name + "-run", name + "-on-cpu", precision)

    def check_ranks(self, model, strategy):
        """Two ranks as threads: on one GPU (local), and each on its own (NCCL), issued and as graphs."""
        golden = self.compile("model", model, "--mesh", "shard=2", "--strategy", strategy)
        self.cpu(golden, "model", "cpu", steps=3)
        local = self.simulate(golden, "model", "local", steps=3)
        self.assertNotIn("collectives", local)
        issued = self.simulate(golden, "model", "issued", "--no-graph", steps=3, devices=2)
        graph = self.simulate(golden, "model", "graph", steps=3, devices=2, seed=1)
        self.assertEqual(graph["graph launches"], 2 * 2)
        # Gradients are reduced beside products, which leave NCCL its multiprocessors.
        beside = "products that leave multiprocessors"
        self.assertNotIn(beside, local)
        self.assertGreater(graph[beside], 0)
        self.assertLess(graph[beside], graph["products"])
        with self.settings(devices=2):
            output = self.told(*self.arguments(golden, "model", "told", steps=1))
        # Besides, each rank tries one of each communicator.
        channels = int(re.search(r"with (\d+) communicators", output).group(1))
        self.assertEqual(graph["collectives"], issued["collectives"] + 2 * channels)
        self.assertNotIn("broken off", output)
        for run in ("local", "issued", "graph"):
            self.assert_close(run, "cpu", "fp32")
        self.assert_same_bits("issued", "graph")

    def test_ddp_of_two(self):
        self.check_ranks("gpt", "ddp")

    def test_zero3_of_two(self):
        self.check_ranks("llama", "zero3")

    def test_reproducible(self):
        """Sums in the switches are off unless the user asks for them; a setting of the user's own that lets them is told."""
        golden = self.compile("model", "gpt", "--mesh", "shard=2", "--strategy", "zero3", batch=2)
        warning = "lets switches add: runs may differ in the last bits"
        for name, flags, chosen, is_told in (("default", [], None, False), ("on", ["--reproducible", "on"], "1", True),
                                             ("zero", [], "0", False), ("off", ["--reproducible", "off"], "1", False)):
            with self.subTest(name), self.settings(devices=2), unittest.mock.patch.dict(
                    os.environ, {"NCCL_NVLS_ENABLE": chosen} if chosen else {}):
                said = self.told(*self.arguments(golden, "model", name, *flags, steps=2))
                self.assertEqual(warning in said, is_told, said)
                with open(self.path(name, "run.json")) as file:
                    self.assertIn(json.load(file)["settings"].get("reproducible"), ("off",) if name == "off" else ("on", None))
        self.assert_same_bits("default", "off")  # the simulator has no switches

    def test_chance_changes_nothing(self):
        """Streams, graphs, blocks and warps run in other orders, with races in shared memory looked for."""
        golden = self.compile("model", "gpt", "--mesh", "shard=2", "--strategy", "zero3", batch=2)
        self.simulate(golden, "model", "first", steps=2, devices=2)
        for seed in range(1, 5):
            self.simulate(golden, "model", f"seed-{seed}", steps=2, devices=2, seed=seed, races=1)
            self.assert_same_bits("first", f"seed-{seed}")
        with self.settings(devices=2, fail="waits"):
            self.succeed("tessera-run", *self.arguments(golden, "model", "no-waits", steps=2))
        self.assertNotEqual(self.metrics("first")[0]["loss"], self.metrics("no-waits")[0]["loss"])
