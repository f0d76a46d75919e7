"""Artifacts for GPUs, run by the unchanged backend on the simulated driver, cuBLASLt and NCCL of tests/gpu/simulator."""

import argparse
import contextlib
import json
import os
import re
import unittest
import unittest.mock

import numpy as np
from harness import BIN, GOLDENS, MODELS, Golden, ToolTest, safetensors

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
# Of losses and gradient norms, as tests/gpu/training.py.
LOSS = {"fp32": 1e-5, "bf16": 1e-3}
NORM = {"fp32": 1e-4, "bf16": 2e-2}
STEPS = 3


@unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")) and
                     os.path.exists(os.path.join(BIN, "libtessera-cuda.so")),
                     "the build has no backend for GPUs: CUDA's toolkit was not found")
class SimulatedGpu(ToolTest):
    def compile(self, name, model, *flags, batch=4):
        """The same training for the GPU and for the CPU."""
        golden = Golden(model)
        golden.batch = batch
        for suffix, target in (("", ["--target", "sm_90"]), ("-cpu", [])):
            self.succeed("tessera-compile", *golden.compile_flags(), *flags, *target, "-o", name + suffix + ".tessera")
        return golden

    def arguments(self, golden, artifact, run, *flags, steps=STEPS):
        return [artifact + ".tessera", "--data", golden.data, "--order", "sequential", "--steps", steps, "--weights",
                golden.weights, "--out", run, *flags]

    @contextlib.contextmanager
    def settings(self, **settings):
        """The environment of a run on simulated GPUs."""
        changes = {"LD_LIBRARY_PATH": SIMULATOR, **{f"TESSERA_SIM_{name.upper()}": str(value)
                                                    for name, value in settings.items()}}
        with unittest.mock.patch.dict(os.environ, changes):
            yield

    def simulate(self, golden, artifact, run, *flags, steps=STEPS, **settings):
        """Trains on simulated GPUs; nothing leaks, and nothing is done that the driver would refuse."""
        report = self.path(run + ".json")
        with self.settings(report=report, **settings):
            self.succeed("tessera-run", *self.arguments(golden, artifact, run, *flags, steps=steps))
        with open(report) as file:
            told = json.load(file)
        self.assertEqual(told["errors"], [])
        self.assertEqual(told["leaks"], {})
        return told["counts"]

    def cpu(self, golden, artifact, run, steps=STEPS):
        self.succeed("tessera-run", *self.arguments(golden, artifact + "-cpu", run, steps=steps))

    def weights(self, run):
        return safetensors.load(self.path(run, "model.safetensors"))

    def assert_same_bits(self, one, other):
        first, second = self.weights(one), self.weights(other)
        self.assertEqual(sorted(first), sorted(second))
        for name, value in first.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), second[name].view(np.uint32)),
                            f"{name} differs between {one} and {other}")

    def assert_close(self, run, wanted, precision):
        got, want = self.metrics(run), self.metrics(wanted)
        self.assertEqual(len(got), len(want))
        for record, expected in zip(got, want):
            for key, tolerance in (("loss", LOSS[precision]), ("grad_norm", NORM[precision])):
                error = abs(record[key] - expected[key]) / expected[key]
                self.assertLessEqual(error, tolerance, f"{key} of step {record['step']}: {record[key]}, {expected[key]}")

    def check_model(self, model, precision):
        golden = self.compile("model", model, *(["--precision", precision] if precision != "fp32" else []))
        self.cpu(golden, "model", "cpu")
        issued = self.simulate(golden, "model", "issued", "--no-graph", seed=1)
        self.assertNotIn("graph launches", issued)
        self.assert_close("issued", "cpu", precision)
        graph = self.simulate(golden, "model", "graph", seed=2)
        self.assertEqual(graph["graph launches"], STEPS - 1)
        self.assertEqual(graph["kernels"], issued["kernels"])
        self.assert_same_bits("issued", "graph")
        if precision != "fp32":  # attention ran on cuDNN's graphs; now it runs on own kernels
            own = self.simulate(golden, "model", "own", fail="cudnn")
            self.assertGreater(own["kernels"], graph["kernels"])
            self.assert_close("own", "cpu", precision)

    def test_gpt_fp32(self):
        self.check_model("gpt", "fp32")

    def test_gpt_bf16(self):
        self.check_model("gpt", "bf16")

    def test_llama_fp32(self):
        self.check_model("llama", "fp32")

    def test_llama_bf16(self):
        self.check_model("llama", "bf16")

    def test_arrays(self):
        """A CNN, whose convolutions are cuDNN's, and an MLP, against what PyTorch recorded."""
        for model, loss in (("cnn", "cross-entropy"), ("mlp", "mse")):
            folder = os.path.join(GOLDENS, model)
            with open(os.path.join(folder, "golden.json")) as file:
                golden = json.load(file)
            self.succeed("tessera-compile", os.path.join(MODELS, golden["model"]), "--batch", golden["batch"], "--loss", loss,
                         "--optimizer", "sgd", "--lr", golden["lr"], "--momentum", golden["momentum"], "--weight-decay", 0,
                         "--target", "sm_90", "-o", model + ".tessera")
            files = argparse.Namespace(data=os.path.join(folder, "data.safetensors"),
                                       weights=os.path.join(folder, "weights.safetensors"))
            counts = self.simulate(files, model, model)
            self.assertEqual("cuDNN graphs" in counts, model == "cnn")
            for record, want in zip(self.metrics(model), golden["losses"][:STEPS], strict=True):
                self.assertLessEqual(abs(record["loss"] - want) / want, 2e-5, f"{model}, step {record['step']}")

    def check_ranks(self, model, strategy):
        """Two ranks as threads: on one GPU (local), and each on its own (NCCL), issued and as graphs."""
        golden = self.compile("model", model, "--mesh", "shard=2", "--strategy", strategy)
        self.cpu(golden, "model", "cpu", steps=3)
        local = self.simulate(golden, "model", "local", steps=3)
        self.assertNotIn("collectives", local)
        issued = self.simulate(golden, "model", "issued", "--no-graph", steps=3, devices=2)
        graph = self.simulate(golden, "model", "graph", steps=3, devices=2, seed=1)
        self.assertEqual(graph["graph launches"], 2 * 2)
        self.assertEqual(graph["collectives"], issued["collectives"])
        for run in ("local", "issued", "graph"):
            self.assert_close(run, "cpu", "fp32")
        self.assert_same_bits("issued", "graph")

    def test_ddp_of_two(self):
        self.check_ranks("gpt", "ddp")

    def test_zero3_of_two(self):
        self.check_ranks("llama", "zero3")

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

    def test_failures(self):
        golden = self.compile("model", "gpt", batch=2)
        for message, settings in (
                ("this machine has no NVIDIA GPU", {"devices": 0}),
                ("the driver is for CUDA 12.8, this tessera-run needs one for CUDA 13", {"driver": 12080}),
                ("the GPU 'simulated GPU' is an sm_80; compile the model with --target sm_80", {"capability": 80}),
                (r"the plan needs \d+ MiB on the GPU .*'simulated GPU' has 8 MiB", {"memory": 8 << 20}),
                ("out of memory", {"fail": "alloc:2"})):
            with self.subTest(message), self.settings(**settings):
                self.fail_with(message, "tessera-run", *self.arguments(golden, "model", "run"))
                self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))

    def test_failed_kernels_are_named(self):
        """Whether the host waits for the step or still issues it when it is told, which depends on its threads."""
        golden = self.compile("model", "gpt", "--mesh", "shard=2", "--strategy", "zero3", batch=2)
        for seed in range(1, 6):
            with self.settings(devices=2, fail="launch:5", seed=seed):
                output = self.fail_with("unspecified launch failure", "tessera-run",
                                        *self.arguments(golden, "model", f"run-{seed}"))
            kernel = re.search(r"simulator: kernel (\w+) fails", output).group(1)
            self.assertRegex(output, fr"under way: (.*, )?(launch '{kernel}'|attention) of node '.*' \(instruction \d+\).*: "
                                     "the GPU failed: unspecified launch failure")


if __name__ == "__main__":
    unittest.main()
