"""Artifacts for GPUs on one simulated GPU: training as on the CPU, epilogues, gradients of library calls, waits, failures."""

import argparse
import json
import os
import re
import subprocess
import sys
import unittest
import unittest.mock

import numpy as np
from harness import GOLDENS, MODELS, ROOT, safetensors
from simulated_gpu import STEPS, SimulatedGpu

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import shape_model  # noqa: E402


class OneGpu(SimulatedGpu):
    def test_the_race_planted_for_racecheck_is_one(self):
        command = [sys.executable, os.path.join(ROOT, "tests", "gpu", "race.py")]
        with self.settings():
            subprocess.run(command, check=True)
        with self.settings(races=1):
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("simulator: kernel k0_elementwise_planted_race", done.stderr)
        self.assertIn("race: thread 32 ", done.stderr)

    def test_gpt_fp32(self):
        self.check_model("gpt", "fp32")

    def test_gpt_bf16(self):
        self.check_model("gpt", "bf16")

    def test_llama_fp32(self):
        self.check_model("llama", "fp32")

    def test_llama_bf16(self):
        self.check_model("llama", "bf16")

    def test_epilogues(self):
        """Products with epilogues replace kernels, and both give what the CPU gives without them."""
        counts = {}
        for epilogues in ("none", "all"):
            golden = self.compile("model", "gpt", "--epilogues", epilogues, "--precision", "bf16", batch=2)
            self.cpu(golden, "model", epilogues + "-cpu")
            counts[epilogues] = self.simulate(golden, "model", epilogues)
            self.assert_close(epilogues, "none-cpu", "bf16")
            self.assert_close(epilogues, epilogues + "-cpu", "bf16")
        self.assertLess(counts["all"]["kernels"], counts["none"]["kernels"])
        split = self.simulate(golden, "model", "split", fail="epilogue")
        self.assert_close("split", "all-cpu", "bf16")
        self.assertGreater(split["kernels"], counts["all"]["kernels"])
        golden = self.compile("model", "gpt", "--epilogues", "all", "--remat", "selective", "--precision", "bf16", batch=2)
        selective = self.simulate(golden, "model", "selective")
        self.assert_close("selective", "none-cpu", "bf16")
        for epilogue in (36 | 128, 64 | 128):  # CUBLASLT_EPILOGUE_GELU_AUX_BIAS, DGELU
            name = f"products with epilogue {epilogue}"
            self.assertEqual(selective[name], counts["all"][name], name)

    def test_epilogues_without_an_algorithm(self):
        """What cuBLASLt has no algorithm for is done after the product, and told."""
        golden = self.compile("model", "gpt", "--epilogues", "all", batch=2)
        self.cpu(golden, "model", "cpu")
        self.simulate(golden, "model", "split", fail="epilogue")
        self.assert_close("split", "cpu", "fp32")
        with self.settings(fail="epilogue"):
            done = self.tool("tessera-run", *self.arguments(golden, "model", "told", steps=1))
        self.assertRegex(done.stdout + done.stderr, r"node '.+': epilogue GeluAuxBias by a kernel of our own")

    def test_autotune(self):
        """The choices are kept and found again; all ranks take those of rank 0; a damaged file is replaced."""
        golden = self.compile("model", "gpt", "--mesh", "shard=2", "--strategy", "zero3", batch=2)
        with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": self.path("cache")}):
            for run in ("first", "second"):
                self.simulate(golden, "model", run, "--autotune", steps=2, devices=2)
                self.assert_same_bits("first", run)
        file = self.path("cache", "tessera", "gemm.json")
        with open(file) as cache:
            kept = json.load(cache)
        (gpu, products), = kept["gpus"].items()
        self.assertRegex(gpu, "^simulated GPU, driver [0-9]+, cuBLASLt 130000$")
        self.assertTrue(any("GeluAuxBias" in product for product in products))
        with self.settings(devices=2):
            arguments = self.arguments(golden, "model", "third", "--autotune=" + file, steps=2)
            self.assertNotIn("autotune:", self.told(*arguments))
            with open(file, "w") as cache:
                cache.write("{")
            output = self.told(*self.arguments(golden, "model", "fourth", "--autotune=" + file, steps=2))
        self.assertIn("gemm.json' is not a cache of products: not JSON with 'version' and 'gpus'; products are timed again", output)
        self.assertIn("autotune: ", output)
        with open(file) as cache:
            self.assertEqual(json.load(cache)["gpus"].keys(), kept["gpus"].keys())
        with self.settings(devices=2, fail="algorithm"):
            output = self.told(*self.arguments(golden, "model", "fifth", "--autotune=" + self.path("new.json"), steps=1))
        self.assertRegex(output, "autotune: .*: algorithm 2 of 2 is left out: cuBLASLt matmul: ")
        self.assertNotIn("algorithm 2 of 2,", output)
        self.assertRegex(output, "autotune: epilogue of .* GeluAuxBias .*: epilogue by ")
        with self.settings(devices=2, fail="slow-epilogue"):
            output = self.told(*self.arguments(golden, "model", "sixth", "--autotune=" + self.path("slow.json"), steps=1))
        self.assertRegex(output, "autotune: epilogue of .*: epilogue by a kernel of our own, ")
        self.assertNotRegex(output, "autotune: epilogue of .*: epilogue by cuBLASLt, ")
        with open(self.path("slow.json")) as cache:
            (_, products), = json.load(cache)["gpus"].items()
        self.assertEqual({choice for product, choice in products.items() if product.startswith("epilogue of ")}, {"apart"})
        for run in ("apart", "again"):
            counts = self.simulate(golden, "model", run, "--autotune=" + self.path("slow.json"), steps=2, devices=2)
            self.assertFalse([name for name in counts if name.startswith("products with epilogue")])
            self.assert_same_bits("apart", run)
        self.assertIn("--autotune is not applied: it chooses among algorithms of cuBLASLt",
                      self.told(*self.arguments(golden, "model-cpu", "cpu", "--autotune", steps=1)))

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
        with self.settings(fail="cudnn"):
            self.fail_with("error: node .*conv1.*: cuDNN graph: CUDNN_STATUS_NOT_SUPPORTED", "tessera-run", "cnn.tessera", "--data",
                           os.path.join(GOLDENS, "cnn", "data.safetensors"), "--steps", 1, "--out", "unsupported")

    def test_attention_gradients(self):
        """By cuDNN's graphs: other lengths, heads and groups than the models have."""
        for name, batch, queries, keys, heads, groups, size, value, causal, graphs in (
                ("long", 1, 200, 200, 2, 1, 16, 16, 1, 2), ("plain", 2, 200, 200, 2, 2, 8, 8, 0, 2),
                ("cross", 3, 37, 53, 6, 3, 24, 40, 0, 2), ("forward", 1, 40, 40, 2, 1, 256, 256, 1, 1),
                ("neither", 1, 31, 31, 2, 1, 12, 12, 1, 0)):
            with self.subTest(name):
                self.check_gradients(
                    name, {"x": (batch, queries, 16), "c": (batch, keys, 16)},
                    {"wq": (16, heads * size), "wk": (16, groups * size), "wv": (16, groups * value), "wo": (heads * value, 4)},
                    f"""q = MatMul (x, wq)
                        k = MatMul (c, wk)
                        v = MatMul (c, wv)
                        a = Attention <q_num_heads = {heads}, kv_num_heads = {groups}, is_causal = {causal}> (q, k, v)
                        y = MatMul (a, wo)""", (batch, queries, 4), 2e-2, graphs,
                    accumulate=3 if name == "cross" else 1, flags=["--precision", "bf16"])

    def test_frequent_tokens(self):
        """Most of a batch is one token, as padding is: all warps of a block add up its row of the embedding's gradient."""
        golden = self.compile("model", "gpt", batch=8)
        data = safetensors.load(golden.data)
        for name, values in data.items():
            data[name] = np.where(np.arange(values.shape[-1]) % 8 == 3, values, values.flat[0])
        golden.data = self.path("frequent.safetensors")
        safetensors.save(data, golden.data)
        self.succeed("tessera-run", *self.arguments(golden, "model-cpu", "cpu", "--dump=gradients", steps=1))
        self.simulate(golden, "model", "frequent", "--dump=gradients", steps=1, races=1)
        self.assert_close("frequent", "cpu", "fp32")
        want, got = (safetensors.load(self.path(run, "dump-1", "gradients.safetensors")) for run in ("cpu", "frequent"))
        self.assertEqual(sorted(want), sorted(got))
        for name, value in want.items():
            self.assertLessEqual(np.abs(got[name] - value).max(), 1e-5 * max(np.abs(value).max(), 1e-3), name)
        self.simulate(golden, "model", "again", steps=1, seed=7)
        self.assert_same_bits("frequent", "again")

    def test_vocabulary_that_no_16_bytes_divide(self):
        """Products of 1031 classes are cut into 1024 and 7, whose parts are written into one padded table."""
        model = self.path("odd.onnx")
        shape_model.Gpt2(4, 64, (*shape_model.GPT2["gpt2-tiny"][:-1], 1031)).write(model)
        tokens = np.random.default_rng(0).integers(0, 1031, (STEPS * 4, 65))
        data = self.path("odd.safetensors")
        safetensors.save({"tokens": tokens[:, :-1], "targets": tokens[:, 1:]}, data)
        for precision in ("bf16", "fp32"):
            for name, target in ((precision, ["--target", "sm_90"]), (precision + "-cpu", [])):
                self.succeed("tessera-compile", model, "--batch", 4, "--seq", 64, "--precision", precision, *target, "-o",
                             name + ".tessera")
            flags = ["--data", data, "--order", "sequential", "--steps", STEPS, "--seed", 1, "--dump=gradients", "--dump-step", 1]
            self.succeed("tessera-run", precision + "-cpu.tessera", *flags, "--out", precision + "-cpu")
            with self.settings():
                self.succeed("tessera-run", precision + ".tessera", *flags, "--out", precision)
            self.assert_close(precision, precision + "-cpu", precision)
            want, got = (safetensors.load(self.path(run, "dump-1", "gradients.safetensors"))
                         for run in (precision + "-cpu", precision))
            for name, value in want.items():
                error = np.abs(got[name] - value).max() / np.abs(value).max()
                self.assertLessEqual(error, {"bf16": 2e-2, "fp32": 1e-5}[precision], name)
        schedule = self.succeed("tessera-dump", "bf16.tessera", "--schedule")
        self.assertRegex(schedule, r"gemm b\d+ bf16\[256,\d+\], b\d+ bf16\[\d+,1024\] -> b\d+ bf16\[256,1024\]")
        self.assertRegex(schedule, r"gemm b\d+ bf16\[256,7\], b\d+ bf16\[7,\d+\] -> b\d+ f32\[256,\d+\] beta 1")

    def test_waits_of_the_host(self):
        """A step waits once for its inputs and scalars, and once for its results."""
        golden = self.compile("model", "gpt", batch=2)
        few, many = (self.simulate(golden, "model", f"{steps}", steps=steps)["waits of the host"] for steps in (3, 7))
        self.assertEqual(many - few, 2 * 4)

    def test_fast_attention_gradient(self):
        """Its parts are added in any order: near, but not in the same bits. The default has the same bits whatever chance does."""
        golden = self.compile("model", "llama", "--precision", "bf16", batch=2)
        self.cpu(golden, "model", "cpu")
        seeds = {"deterministic": (1, 2), "fast": (1, 2, 3, 4, 5)}  # some sums round to the same bf16 in both orders
        for way in seeds:
            for seed in seeds[way]:
                counts = self.simulate(golden, "model", f"{way}-{seed}", "--attention-gradient", way, seed=seed)
                self.assertEqual(counts["cuDNN plans"], 2)
                self.assert_close(f"{way}-{seed}", "cpu", "bf16")
            with self.settings():
                self.assertIn(f"attention gradient: {way}\n",
                              self.told(*self.arguments(golden, "model", f"{way}-told", "--attention-gradient", way, steps=1)))
        self.assert_same_bits("deterministic-1", "deterministic-2")
        with self.assertRaises(AssertionError):
            for seed in seeds["fast"][1:]:
                self.assert_same_bits("fast-1", f"fast-{seed}")

    def test_capture_refused(self):
        """Where the driver or NCCL lets communicators not be captured that use copy engines, or do not block, others are taken."""
        golden = self.compile("model", "llama", "--mesh", "shard=2", "--strategy", "zero3", batch=2)
        usual = self.simulate(golden, "model", "usual", devices=2)
        for failure, line in (("nccl-engines", "trying again with gathers that use no copy engines"),
                              ("nccl-capture", "communicators that do not block cannot be part of CUDA graphs")):
            refused = self.simulate(golden, "model", failure, devices=2, fail=failure)
            self.assertEqual(refused["graph launches"], usual["graph launches"])
            # Gathers on multiprocessors: products beside them leave some.
            more = self.assertGreater if failure == "nccl-engines" else self.assertEqual
            more(refused["products that leave multiprocessors"], usual["products that leave multiprocessors"])
            self.assert_same_bits("usual", failure)
            with self.settings(devices=2, fail=failure):
                self.assertIn(line, self.told(*self.arguments(golden, "model", failure + "-told", steps=1)))

    def test_convolution_gradients(self):
        """In f32: groups, strides, dilations and unequal padding; the first one has no gradient of its input. Micro-batches of
        245 numbers begin at addresses that are aligned to 4 bytes only."""
        for name, image, filters, result, how in (
                ("groups", (4, 6, 9, 7), (4, 3, 3, 2), (4, 4, 5, 7), "strides = [2, 1], pads = [1, 0, 2, 1], group = 2"),
                ("dilated", (3, 4, 11, 10), (8, 1, 3, 3), (3, 8, 8, 2),
                 "strides = [1, 3], pads = [0, 2, 1, 0], dilations = [2, 3], group = 4"),
                ("depthwise", (1, 5, 7, 7), (5, 1, 3, 3), (1, 5, 7, 7), "pads = [1, 1, 1, 1], group = 5")):
            with self.subTest(name):
                channels, outputs = image[1], filters[0]
                self.check_gradients(
                    name, {"x": image},
                    {"first": (channels, channels, 1, 1), "w": filters, "b": (outputs,), "last": (outputs, outputs, 1, 1)},
                    f"""z = Conv (x, first)
                        u = Conv <{how}> (z, w, b)
                        t = Tanh (u)
                        y = Conv (t, last)""", result, 1e-5, 8, accumulate=3 if name == "depthwise" else 1)

    def test_f32_beside_bf16(self):
        """A head that is computed with in f32, and beside adapters a model that is held in bf16 alone."""
        for name, flags in (("kept", ["--keep-f32", "lm_head|norm"]),
                            ("frozen", ["--lora", "rank=4,alpha=8,targets=proj,train=lm_head", "--frozen-dtype", "bf16"])):
            with self.subTest(name):
                golden = self.compile(name, "llama", "--precision", "bf16", "--mesh", "shard=2", "--strategy", "zero3", *flags, batch=2)
                self.cpu(golden, name, name + "-on-cpu", steps=2)
                self.simulate(golden, name, name + "-on-gpu", steps=2, devices=2)
                self.assert_close(name + "-on-gpu", name + "-on-cpu", "bf16")

    def test_other_generations(self):
        """The PTX of other targets, on a later GPU."""
        golden = self.compile("model", "llama", "--precision", "bf16", batch=2)
        self.cpu(golden, "model", "cpu", steps=2)
        for target in ("sm_80", "sm_100"):
            self.succeed("tessera-compile", *golden.compile_flags(), "--precision", "bf16", "--target", target, "-o",
                         target + ".tessera")
            self.simulate(golden, target, target, steps=2, capability=120)
            self.assert_close(target, "cpu", "bf16")

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
