"""Artifacts for GPUs, run by the unchanged backend on the simulated driver, cuBLASLt and NCCL of tests/gpu/simulator."""

import json
import os
import unittest

import numpy as np
from harness import BIN, Golden, ToolTest, safetensors

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
# Of losses and gradient norms, as tests/gpu/training.py.
LOSS = {"fp32": 1e-5, "bf16": 1e-3}
NORM = {"fp32": 1e-4, "bf16": 2e-2}
STEPS = 4


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

    def simulate(self, golden, artifact, run, *flags, steps=STEPS, seed=0, clean=True, **settings):
        """Trains on simulated GPUs; nothing leaks, and nothing is done that the driver would refuse."""
        report = self.path(run + ".json")
        environment = {"LD_LIBRARY_PATH": SIMULATOR, "TESSERA_SIM_REPORT": report, "TESSERA_SIM_SEED": str(seed),
                       **{"TESSERA_SIM_" + name.upper(): str(value) for name, value in settings.items()}}
        os.environ.update(environment)
        self.addCleanup(lambda: [os.environ.pop(name, None) for name in environment])
        try:
            self.succeed("tessera-run", *self.arguments(golden, artifact, run, *flags, steps=steps))
        finally:
            for name in environment:
                os.environ.pop(name, None)
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

    def test_gpt_fp32(self):
        self.check_model("gpt", "fp32")

    def test_gpt_bf16(self):
        self.check_model("gpt", "bf16")

    def test_llama_fp32(self):
        self.check_model("llama", "fp32")

    def test_llama_bf16(self):
        self.check_model("llama", "bf16")

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


if __name__ == "__main__":
    unittest.main()
