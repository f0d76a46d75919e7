"""Runs of artifacts for GPUs by the unchanged backend on the simulated driver, cuBLASLt and NCCL of tests/gpu/simulator."""

import argparse
import contextlib
import json
import os
import unittest
import unittest.mock

import numpy as np
from harness import BIN, Golden, ToolTest, safetensors

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

    def told(self, *arguments):
        """What a run that succeeds says."""
        done = self.tool("tessera-run", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout + done.stderr

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
        # Two layers, forward and backward, that share plans.
        self.assertEqual(issued.get("cuDNN graphs", 0), 0 if precision == "fp32" else 4 * STEPS)
        self.assertEqual(issued.get("cuDNN plans", 0), 0 if precision == "fp32" else 2)
        self.assertNotIn("NCCL ids", graph)
        if precision != "fp32":  # attention ran on cuDNN's graphs; now it runs on own kernels
            own = self.simulate(golden, "model", "own", fail="cudnn")
            self.assertNotIn("cuDNN graphs", own)
            self.assertGreater(own["kernels"], graph["kernels"])
            self.assert_close("own", "cpu", precision)
            with self.settings(fail="cudnn"):
                self.assertIn("attention by our own kernels on tensor cores, not by cuDNN: ",
                              self.told(*self.arguments(golden, "model", "told", steps=1)))

    def check_gradients(self, name, inputs, parameters, body, result, tolerance, graphs, accumulate=1, flags=()):
        """One small model, written down here: its gradients against those of the CPU in fp32; issued and captured steps
        give the same bits."""
        def declare(shapes, values=lambda shape: ""):
            return ", ".join(f"float[{','.join(map(str, shape))}] {one}{values(shape)}" for one, shape in shapes.items())

        def zeros(shape):
            return " = {" + ", ".join(["0"] * int(np.prod(shape))) + "}"

        random = np.random.default_rng(len(name))
        with open(self.path(name + ".onnxtxt"), "w") as file:
            file.write(f'<ir_version: 10, opset_import: ["" : 23]>\nmodel ({declare(inputs)}) => '
                       f"({declare({'y': result})})\n<{declare(parameters, zeros)}>\n{{\n{body}\n}}\n")
        samples = {one: random.standard_normal((STEPS * accumulate * shape[0], *shape[1:]), np.float32)
                   for one, shape in {**inputs, "targets": result}.items()}
        weights = {one: random.standard_normal(shape, np.float32) / np.float32(np.sqrt(np.prod(shape[1:])))
                   for one, shape in parameters.items()}
        files = argparse.Namespace(data=self.path(name + "-data.safetensors"),
                                   weights=self.path(name + "-weights.safetensors"))
        safetensors.save(samples, files.data)
        safetensors.save(weights, files.weights)
        for suffix, more in (("", [*flags, "--target", "sm_90"]), ("-cpu", [])):
            self.succeed("tessera-compile", name + ".onnxtxt", "--parameters", ".", "--loss", "mse", "--optimizer", "sgd", "--lr", 0.01,
                         "--accumulate", accumulate, *more, "-o", name + suffix + ".tessera")
        dumped = self.simulate(files, name, name + "-dumped", "--dump=gradients", steps=1)
        self.assertEqual(dumped.get("cuDNN graphs", 0), graphs * accumulate)
        self.succeed("tessera-run", *self.arguments(files, name + "-cpu", name + "-cpu", "--dump=gradients", steps=1))
        got, want = (safetensors.load(self.path(name + run, "dump-1", "gradients.safetensors")) for run in ("-dumped", "-cpu"))
        self.assertEqual(sorted(got), sorted(parameters))
        for one, gradient in want.items():
            error = np.abs(got[one] - gradient).max() / np.abs(gradient).max()
            self.assertLessEqual(error, tolerance, f"gradient of {one}")
        issued = self.simulate(files, name, name + "-issued", "--no-graph", seed=1)
        self.assertEqual(issued.get("cuDNN graphs", 0), graphs * accumulate * STEPS)
        self.simulate(files, name, name + "-graph", seed=2)
        self.assert_same_bits(name + "-issued", name + "-graph")
