"""Artifacts for GPUs: what the compiler writes, and what a machine without a GPU says to them."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

from harness import BIN, ROOT, Golden, ToolTest


class Gpu(ToolTest):
    def machine(self, name):
        with open(os.path.join(ROOT, "compiler", "cost", "targets", name + ".json")) as file:
            return json.load(file)

    def test_kernels_say_how_they_are_launched(self):
        golden = Golden("gpt")
        flags = [*golden.compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "--target", "sm_90"]
        for name in ("one", "two"):
            self.succeed("tessera-compile", *flags, "-o", name + ".tessera")
        with open(self.path("one.tessera"), "rb") as one, open(self.path("two.tessera"), "rb") as two:
            self.assertEqual(one.read(), two.read())
        dump = json.loads(self.succeed("tessera-dump", "one.tessera", "--kernels", "--json"))
        kernels = dump["kernels"]["kernels"]
        self.assertGreater(len(kernels), 5)
        for kernel in kernels:
            self.assertGreater(kernel["blocks"], 0, kernel)
            self.assertLessEqual(kernel["threads"][0] * kernel["threads"][1], 1024, kernel)
        formats = {code["format"] for code in dump["kernels"]["code_objects"]}
        self.assertIn("Ptx", formats)
        self.assertLessEqual(formats, {"Ptx", "Cubin"})

    def test_no_kernel_spills_registers(self):
        """ptxas says so where it is installed; the shapes are real, the models small."""
        for name in ("gpt2", "qwen2-1.5b"):
            model = self.path(name + ".onnx")
            subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/shape_model.py"), name, "--layers", "2",
                            "--batch", "2", "--seq", "512", "-o", model], check=True)
            for target in ("sm_80", "sm_90", "sm_100"):
                with self.subTest(model=name, target=target):
                    done = self.tool("tessera-compile", model, "--precision", "bf16", "--target", target, "--remarks",
                                     "--clip-norm", "1", "-o", "x.tessera", timeout=300)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertNotIn("spill", done.stderr)

    def test_attention_kernels_spill_no_registers(self):
        """Those of the plugin, on tensor cores; two blocks of 128 threads fit on a multiprocessor."""
        files = sorted(glob.glob(os.path.join(os.path.dirname(BIN), "runtime", "device", "cuda", "tensorAttention*x*.cpp.ptx")))
        ptxas = shutil.which("ptxas") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas")
        if not files or not os.path.exists(ptxas):
            self.skipTest("the plugin is not built, or there is no ptxas")
        self.assertEqual(len(files), 4)
        for file in files:
            with open(file) as text:
                self.assertIn("mma.sync.aligned.m16n8k16", text.read())
            for target in ("sm_80", "sm_90", "sm_100"):
                with self.subTest(file=os.path.basename(file), target=target):
                    said = subprocess.run([ptxas, "-v", f"-arch={target}", "-o", os.devnull, file], stderr=subprocess.PIPE,
                                          text=True, check=True).stderr
                    self.assertEqual(said.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"), 3, said)

    def test_logits_of_an_odd_vocabulary_are_not_copied(self):
        """GPT-2's 50257 classes: rows of 50304, which one kernel reads once, and another overwrites with the gradient."""
        model = self.path("gpt2.onnx")
        subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/shape_model.py"), "gpt2", "--layers", "1",
                        "--batch", "2", "--seq", "512", "-o", model], check=True)
        text = self.succeed("tessera-compile", model, "--precision", "bf16", "--target", "sm_90", "--compile-to", "lower")
        logits = [line for line in text.splitlines() if re.search(r"exec\.(launch|copy|gemm|fill) .*(50304|50257)x?", line)]
        tables = [line for line in logits if "memref<1024x50304xbf16>" in line]
        self.assertNotIn("exec.copy", "".join(logits))
        self.assertEqual(len([line for line in tables if "_row_" in line and "log" in line]), 1, tables)
        gradient = [re.search(r"\((.*?)\) -> \((.*?)\)", line) for line in tables if "elementwise_exp" in line]
        self.assertEqual(len(gradient), 1, tables)
        self.assertIn(gradient[0].group(2), gradient[0].group(1).split(", "))

    def test_unknown_architecture(self):
        flags = [*Golden("gpt").compile_flags(), "-o", "x.tessera", "--target"]
        self.fail_with("unknown target 'sm_75', expected cpu, sm_80, sm_90, sm_100, a target file", "tessera-compile",
                       *flags, "sm_75")
        machine = self.machine("h200x8")
        for architecture, message in ((None, "old.json: the target file names no 'architecture'"),
                                      ("sm_75", "unknown GPU target 'sm_75', expected sm_80, sm_90 or sm_100")):
            machine.pop("architecture")
            if architecture:
                machine["architecture"] = architecture
            with open(self.path("old.json"), "w") as file:
                json.dump(machine, file)
            self.fail_with(message, "tessera-compile", *flags, "old.json")
            machine["architecture"] = architecture
        self.assertFalse(os.path.exists(self.path("x.tessera")))

    def test_a_machine_names_the_code_and_the_costs(self):
        flags = [*Golden("gpt").compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "--prefetch", "auto"]
        for target, epilogues in (("h200x8", "fuse-epilogues{kinds=all}"), ("a100x8", "fuse-epilogues{kinds=bias}")):
            self.assertIn(epilogues, self.succeed("tessera-compile", *flags, "--target", target, "--print-pipelines"))
            self.succeed("tessera-compile", *flags, "--target", target, "-o", target + ".tessera")
            dump = json.loads(self.succeed("tessera-dump", target + ".tessera", "--json"))
            self.assertEqual(dump["summary"]["target"], self.machine(target)["architecture"])

    def test_suite_for_gpus_fails_where_nothing_can_run(self):
        done = subprocess.run([os.path.join(ROOT, "tests", "gpu", "run.sh"), "--only", "oracle,bench:gpt2", "--prepared",
                               self.path("absent.tar.xz"), "--out", self.path("results")],
                              env={**os.environ, "PYTHON": sys.executable}, stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("absent.tar.xz is missing: run tests/gpu/prepare.sh", done.stdout)
        self.assertIn("FAILED a GPU can be used: no NVIDIA driver", done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], "0 passed, 4 failed")


if __name__ == "__main__":
    unittest.main()
