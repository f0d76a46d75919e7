"""Parameters of bf16, f16 and f64: products, gradients and updates, on one rank and several, against NumPy."""

import json
import os
import shutil
import struct
import sys
import unittest
import unittest.mock

import numpy as np

from harness import BIN, ROOT, ToolTest
import safetensors

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import BFLOAT16, DOUBLE, FLOAT, FLOAT16, Graph, value_info  # noqa: E402

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
STEPS, BATCH, RATE = 3, 4, 0.1


def bfloat16(x):
    """Rounds to the nearest bf16, ties to even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)


# How a type is rounded to and stored, and the largest error of a gradient relative to its largest element. Narrow types
# are rounded at each op, here only at the end: some roundings of half a unit in the last place (2^-9, 2^-12). The
# learning rate is f32, so that f64 is only as exact as that after the first update.
TYPES = {
    "BF16": (BFLOAT16, bfloat16, lambda w: (w.view(np.uint32) >> 16).astype(np.uint16), 2e-2),
    "F16": (FLOAT16, lambda x: np.asarray(x).astype(np.float16).astype(np.float32), lambda w: w.astype(np.float16), 2e-3),
    "F64": (DOUBLE, lambda x: np.asarray(x, np.float64), lambda w: w, 1e-14),
}


class ParameterTypes(ToolTest):
    def write(self, kind, weights, path):
        """A safetensors file of that type, which NumPy need not know."""
        header, body = {}, b""
        for name, value in weights.items():
            data = TYPES[kind][2](value).tobytes()
            header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(data)]}
            body += data
        text = json.dumps(header).encode()
        with open(path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + body)

    def check(self, kind, *flags):
        """loss = mean((tanh(x @ a) @ b - targets)^2), a and b of the type, SGD."""
        element, rounded, _, tolerance = TYPES[kind]
        graph, random = Graph(), np.random.default_rng(0)
        x = graph.op("Cast", "x", to=element)
        h = graph.op("Tanh", graph.op("MatMul", x, graph.weight("a", 6, 16, element=element)))
        output = DOUBLE if kind == "F64" else FLOAT
        y = graph.op("Cast", graph.op("MatMul", h, graph.weight("b", 16, 2, element=element)), to=output)
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 6])], [value_info(y, output, ["B", 2])])
        data = {"x": random.standard_normal((STEPS * BATCH, 6), np.float32),
                "targets": random.standard_normal((STEPS * BATCH, 2), np.float64 if kind == "F64" else np.float32)}
        a, b = (rounded(random.standard_normal(shape)) for shape in ((6, 16), (16, 2)))
        safetensors.save(data, self.path("data.safetensors"))
        self.write(kind, {"a": a, "b": b}, self.path("weights.safetensors"))
        accumulate = 2 if "--accumulate" in flags else 1
        self.succeed("tessera-compile", "model.onnx", "--batch", BATCH // accumulate, "--loss", "mse", "--optimizer", "sgd",
                     "--lr", RATE, "--clip-norm", 0, "--weight-decay", 0, "--momentum", 0, "-o", "model.tessera", *flags)
        shutil.rmtree(self.path("run"), ignore_errors=True)
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", STEPS,
                     "--weights", "weights.safetensors", "--out", "run", "--dump=gradients", "--dump-step", 1)
        losses, first = [], None
        for step in range(STEPS):
            rows = slice(step * BATCH, (step + 1) * BATCH)
            x, targets = (data[name][rows].astype(np.float64) for name in ("x", "targets"))
            h = np.tanh(x @ a)
            error = h @ b - targets
            d = 2 * error / error.size
            gradients = {"a": x.T @ (d @ b.T * (1 - h**2)), "b": h.T @ d}
            first = first or gradients
            losses.append((error**2).mean())
            a, b = rounded(a - RATE * gradients["a"]), rounded(b - RATE * gradients["b"])
        np.testing.assert_allclose([record["loss"] for record in self.metrics("run")], losses, rtol=max(tolerance, 1e-6))
        if accumulate == 1:
            got = safetensors.load(self.path("run", "dump-1", "gradients.safetensors"))
            for name, gradient in first.items():
                self.assertEqual(got[name].dtype, np.float64 if kind == "F64" else np.float32)
                self.assertLessEqual(np.abs(got[name] - gradient).max(), tolerance * np.abs(gradient).max(), (name, flags))

    def test_each_type(self):
        for kind in TYPES:
            for flags in ([], ["--mesh", "shard=2", "--strategy", "zero3"], ["--accumulate", 2]):
                with self.subTest(kind, flags=flags):
                    self.check(kind, *flags)

    @unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")), "needs CUDA's toolkit when building")
    def test_on_simulated_gpus(self):
        """Sums over ranks are our own kernels on one GPU, NCCL's on two."""
        for kind in ("BF16", "F16"):
            for devices in (1, 2):
                with self.subTest(kind, devices=devices), unittest.mock.patch.dict(
                        os.environ, {"LD_LIBRARY_PATH": SIMULATOR, "TESSERA_SIM_DEVICES": str(devices)}):
                    self.check(kind, "--mesh", "shard=2", "--strategy", "ddp", "--target", "sm_90")

    def test_initial_values(self):
        """A parameter of a narrow type starts from its initialiser, rounded."""
        graph = Graph()
        y = graph.op("Cast", graph.op("MatMul", graph.op("Cast", "x", to=BFLOAT16), graph.weight("a", 3, 2, element=BFLOAT16)),
                     to=FLOAT)
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 3])], [value_info(y, FLOAT, ["B", 2])])
        safetensors.save({"x": np.ones((1, 3), np.float32), "targets": np.zeros((1, 2), np.float32)}, self.path("data.safetensors"))
        self.succeed("tessera-compile", "model.onnx", "--batch", 1, "--loss", "mse", "--init", "a=constant:0.1", "-o", "model.tessera")
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--steps", 1, "--out", "run")
        want = bfloat16(3 * bfloat16(np.full(1, 0.1)))[0]**2
        np.testing.assert_allclose(self.metrics("run")[0]["loss"], want, rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
