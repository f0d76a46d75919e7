"""--precision fp8 on simulated GPUs: products by cuBLASLt with scales in its layouts, casts by generated kernels."""

import json
import os
import re
import unittest
import unittest.mock

from harness import BIN, GOLDENS
import safetensors
from test_fp8 import LayerSteps, fp8

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
# What each GPU multiplies, and the modes of scales by which cuBLASLt counts (cublasLtMatmulMatrixScale_t).
TENSOR, ROW, VECTOR, BLOCK, MICRO = 0, 3, 4, 5, 2
# Two layers of three products; the first has no input gradient. The library's first operand is our second, the weight.
PRODUCTS = {
    ("sm_90", "tensorwise"): {f"{TENSOR} x {TENSOR} fast": 2, f"{TENSOR} x {TENSOR}": 3},
    ("sm_90", "rowwise"): {f"{ROW} x {ROW} fast": 2, f"{ROW} x {ROW}": 3},
    ("sm_90", "rowwise_hp"): {f"{ROW} x {ROW} fast": 2, f"{ROW} x {ROW}": 1},
    ("sm_90", "block128"): {"blocks": 3, f"{VECTOR} x {VECTOR}": 2},
    ("sm_100", "tensorwise"): {f"{TENSOR} x {TENSOR} fast": 2, f"{TENSOR} x {TENSOR}": 3},
    ("sm_100", "rowwise"): {f"{TENSOR} x {TENSOR} fast": 2, f"{TENSOR} x {TENSOR}": 3},
    ("sm_100", "rowwise_hp"): {f"{TENSOR} x {TENSOR} fast": 2, f"{TENSOR} x {TENSOR}": 1},
    ("sm_100", "mxfp8"): {f"{MICRO} x {MICRO}": 5},
}


class Simulated(LayerSteps):
    """The steps of test_fp8.Layers on GPUs."""

    target = "sm_90"
    WIDTH = 256  # two blocks of 128: of one, scales are those of rows

    def settings(self, **settings):
        # Machine code cannot be interpreted: the GPU is of another generation than the artifact.
        capability = {"sm_90": 100, "sm_100": 120}[self.target]
        changes = {"capability": capability, "library": self.target[3:], **settings}
        return unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": SIMULATOR, **{
            f"TESSERA_SIM_{name.upper()}": str(value) for name, value in changes.items()}})

    def counts(self, report):
        with open(self.path(report)) as file:
            told = json.load(file)
        self.assertEqual(told["errors"], [])
        self.assertEqual(told["leaks"], {})
        found = {}
        for name, count in told["counts"].items():
            if scaled := re.fullmatch("products with scales (.*)", name):
                modes = scaled[1]
                found["blocks" if set(modes.split(" x ")) == {str(VECTOR), str(BLOCK)} else modes] = count
        return found

    def step(self, name, recipe, *flags):
        with self.settings(report=self.path("report.json")):
            return super().step(name, recipe, "--target", self.target, "--fp8-select", "all", *flags)


@unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")) and
                     os.path.exists(os.path.join(BIN, "libtessera-cuda.so")),
                     "the build has no backend for GPUs: CUDA's toolkit was not found")
class GpuLayers(Simulated):
    def test_recipes(self):
        """Every gradient as the recipe's definition has it, whichever way weights are stored."""
        for (self.target, recipe), products in PRODUCTS.items():
            for transposed in (False, True):
                with self.subTest(target=self.target, recipe=recipe, transposed=transposed):
                    self.check(recipe, transposed)
                    self.assertEqual(self.counts("report.json"), products)
                    # What recipes with blocks make of a gradient, for both of its products, is one kernel.
                    kernels = [kernel["symbol"] for kernel in self.dump(f"run-{self.runs}", "kernels")["kernels"]]
                    self.assertEqual(any("_blocks_" in name for name in kernels), recipe in ("block128", "mxfp8"))

    def test_ranks(self):
        """Two ranks on two GPUs compute what one does."""
        for recipe in ("tensorwise", "rowwise", "rowwise_hp", "block128"):
            with self.subTest(recipe=recipe), self.settings(devices=2):
                self.check(recipe, False, "--mesh", "shard=2", "--strategy", "zero3")

    def test_padded_scales(self):
        """K / 128 = 3 is no multiple of 4: scales that are not padded would be read from other places."""
        self.WIDTH = 384
        self.setUp()
        for recipe in ("block128", "rowwise"):
            with self.subTest(recipe=recipe):
                self.check(recipe, False)

    def test_accumulation(self):
        """Micro-batches have scales of their own: the CPU's gradients, whose products are not added in place."""
        self.store(False)
        flags = ("--accumulate", 2)
        for recipe in ("rowwise", "block128"):
            with self.subTest(recipe=recipe):
                self.TOKENS = LayerSteps.TOKENS // 2
                loss, gradients = self.step(recipe + "-gpu", recipe, *flags)
                self.compare(loss, gradients, *LayerSteps.step(self, recipe + "-cpu", recipe, *flags))

    def test_no_algorithm(self):
        self.store(False)
        self.compile("model", "model.onnx", "--batch", self.TOKENS, "--loss", "mse", "--precision", "fp8", "--fp8-recipe", "block128",
                     "--target", "sm_90", "--fp8-select", "all")
        with self.settings(fail="fp8"):
            self.fail_with("cuBLASLt has no algorithm for the product of 8-bit floats with scales of modes Block128 and Block128x128",
                           "tessera-run", "model.tessera", "--data", "data.safetensors", "--steps", 1, "--weights", "weights.safetensors",
                           "--out", "run")

    def test_autotune(self):
        """Algorithms are kept by types, modes of scales and accumulation."""
        self.store(False)
        self.compile("model", "model.onnx", "--batch", self.TOKENS, "--loss", "mse", "--precision", "fp8", "--fp8-recipe", "rowwise",
                     "--target", "sm_90", "--fp8-select", "all")
        with self.settings():
            self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--steps", 1, "--weights",
                         "weights.safetensors", "--out", "run", "--autotune=cache.json")
        with open(self.path("cache.json")) as file:
            keys = [key for products in json.load(file)["gpus"].values() for key in products]
        self.assertTrue(any(key.startswith("F8E4M3FN Row x Row fast-BF16") for key in keys), keys)
        self.assertTrue(any(key.startswith("F8E4M3FN Row x Row-F32") for key in keys), keys)


@unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")) and
                     os.path.exists(os.path.join(BIN, "libtessera-cuda.so")),
                     "the build has no backend for GPUs: CUDA's toolkit was not found")
class GpuTrainings(Simulated):
    def test_against_the_cpu(self):
        """Three steps of a GPT and a Llama, on two ranks with sharded weights."""
        for model, recipe in (("gpt", "rowwise"), ("gpt", "block128"), ("llama", "tensorwise"), ("llama", "rowwise_hp")):
            with self.subTest(model=model, recipe=recipe):
                self.train(model, recipe)

    def train(self, model, recipe):
        folder = os.path.join(GOLDENS, "fp8")
        with open(os.path.join(folder, model + ".json")) as file:
            record = json.load(file)
        weights, tokens, targets = fp8.training_values(record["shapes"], record["steps"] * record["batch"], record["sequence"])
        safetensors.save(weights, self.path("weights.safetensors"))
        safetensors.save({"tokens": tokens, "targets": targets}, self.path("data.safetensors"))
        for name, flags in (("gpu", ("--target", "sm_90")), ("cpu", ())):
            self.compile(name, os.path.join(folder, model + ".onnx"), "--batch", record["batch"], "--seq", record["sequence"],
                         "--loss", "cross-entropy", "--optimizer", "adamw", "--precision", "fp8", "--fp8-recipe", recipe,
                         "--fp8-select", "all", "--mesh", "shard=2", "--strategy", "zero3", *flags)
        run = ("--data", "data.safetensors", "--order", "sequential", "--steps", 3, "--weights", "weights.safetensors")
        self.succeed("tessera-run", "cpu.tessera", *run, "--out", model + recipe + "-cpu")
        with self.settings(report=self.path("report.json"), devices=2):
            self.succeed("tessera-run", "gpu.tessera", *run, "--out", model + recipe + "-gpu")
        self.assertGreater(sum(self.counts("report.json").values()), 0)
        for got, want in zip(self.metrics(model + recipe + "-gpu"), self.metrics(model + recipe + "-cpu")):
            # As bf16 on simulated GPUs (test_gpu_simulated.py): kernels round in other places.
            self.assertLessEqual(abs(got["loss"] - want["loss"]) / want["loss"], 1e-3)
            self.assertLessEqual(abs(got["grad_norm"] - want["grad_norm"]) / want["grad_norm"], 2e-2)


if __name__ == "__main__":
    unittest.main()
