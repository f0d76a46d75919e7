"""The scripts of tests/gpu, as far as they need no GPU: which libraries are used, what a cut leaves, how results are shown."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from harness import ROOT, Golden, ToolTest

GPU = os.path.join(ROOT, "tests", "gpu")
sys.path.insert(0, GPU)
import bench  # noqa: E402
import breakdown  # noqa: E402
import cases  # noqa: E402
import libraries  # noqa: E402
import prepare  # noqa: E402
import results  # noqa: E402
import run as gpu_run  # noqa: E402
import suite as common  # noqa: E402
import training  # noqa: E402

CUDNN = ["libcudnn.so.9", *(part + ".so.9" for part in libraries.CUDNN_PARTS)]
NEEDS = {"libcublasLt.so.13": ["cublasLtCreate"], "libcudnn.so.9": ["cudnnCreate"], "libnccl.so.2": ["ncclSend"]}


class Libraries(ToolTest):
    def library(self, folder, name, number, *functions):
        """A shared object that says it is of that version."""
        os.makedirs(self.path(folder), exist_ok=True)
        stem = name.split(".so.")[0]
        version = libraries.VERSION[stem]
        code = f"int {version}(int *to) {{ *to = {number}; return 0; }}" if stem == "libnccl" else \
            f"#include <stddef.h>\nsize_t {version}(void) {{ return {number}; }}"
        code += "".join(f"\nvoid {function}(void) {{}}" for function in functions)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{name}", "-o", self.path(folder, name)],
                       input=code, text=True, check=True)

    def machine(self, folder, cudnn=91900):
        self.library(folder, "libcublasLt.so.13", 130100, "cublasLtCreate")
        self.library(folder, "libnccl.so.2", 22809, "ncclSend")
        self.library(folder, "libcudnn.so.9", cudnn, "cudnnCreate")
        for name in CUDNN[1:]:
            shutil.copy(self.path(folder, "libcudnn.so.9"), self.path(folder, name))

    def where(self, *names):
        return [(self.path(name), name) for name in names]

    def test_the_first_whole_set_is_taken_with_its_version(self):
        self.machine("one")
        self.machine("two", 92000)
        os.remove(self.path("one", "libcudnn_graph.so.9"))  # a dispatcher without what it dispatches to
        chosen = libraries.find(NEEDS, self.where("one", "two"))
        self.assertEqual(chosen["libcublasLt.so.13"], {"path": self.path("one", "libcublasLt.so.13"), "version": "13.1.0",
                                                       "whose": "one"})
        self.assertEqual(chosen["libcudnn.so.9"], {"path": self.path("two", "libcudnn.so.9"), "version": "9.20.0", "whose": "two"})
        self.assertEqual(chosen["libnccl.so.2"]["version"], "2.28.9")
        self.assertEqual(libraries.search_path(chosen), [self.path("two"), self.path("one")], "cuDNN's folder is the first")

    def test_what_is_missing_is_named_with_what_was_found(self):
        self.machine("old")
        os.rename(self.path("old", "libcublasLt.so.13"), self.path("old", "libcublasLt.so.12"))
        self.library("old", "libnccl.so.2", 21805)  # knows no ncclSend
        os.remove(self.path("old", "libcudnn_heuristic.so.9"))
        with self.assertRaises(libraries.Missing) as raised:
            libraries.find(NEEDS, self.where("old"))
        message = str(raised.exception)
        self.assertIn("was built for CUDA 13", message)
        self.assertIn(f"libcublasLt.so.13: {self.path('old', 'libcublasLt.so.12')}", message)
        self.assertIn(f"libcudnn.so.9: {self.path('old', 'libcudnn.so.9')} (libcudnn_heuristic.so.9 not beside it)", message)
        self.assertIn(f"libnccl.so.2: {self.path('old', 'libnccl.so.2')} 2.18.5 (it has no ncclSend)", message)
        self.assertIn("PyTorch for CUDA 13 brings all of them", message)
        with self.assertRaisesRegex(libraries.Missing, "libnccl.so.2: none found"):
            libraries.find({"libnccl.so.2": []}, [])

    def test_packages_of_python_come_before_the_system(self):
        packages = self.path("site-packages")
        for name in ("cu13", "cudnn", "nccl"):
            os.makedirs(os.path.join(packages, "nvidia", name, "lib"))
        home = self.path("cuda")
        os.makedirs(os.path.join(home, "lib64"))
        script = (f"import sys; sys.path[:0] = [{GPU!r}, {packages!r}]; import libraries, json; "
                  "print(json.dumps([folder for folder, _ in libraries.folders()]))")
        environment = {**os.environ, "CUDA_HOME": home, "LD_LIBRARY_PATH": self.folder}
        found = json.loads(subprocess.run([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True,
                                          check=True).stdout)
        wanted = [self.folder, *(os.path.join(packages, "nvidia", name, "lib") for name in ("cu13", "cudnn", "nccl")),
                  os.path.join(home, "lib64")]
        self.assertEqual([folder for folder in found if folder.startswith(self.folder)], wanted)

    def test_the_loader_is_asked_which_files_it_would_take(self):
        self.machine("chosen")
        self.machine("other")
        plugin = self.path("plugin.so")
        subprocess.run(["cc", "-shared", "-x", "c", "/dev/null", "-x", "none", "-Wl,--no-as-needed", self.path("chosen", "libcudnn.so.9"),
                        "-o", plugin], check=True)
        self.assertEqual(libraries.needs_of(plugin), {"libcudnn.so.9": []})
        chosen = libraries.find({"libcudnn.so.9": []}, self.where("chosen"))
        libraries.verify(plugin, chosen, {"LD_LIBRARY_PATH": self.path("chosen")})
        with self.assertRaisesRegex(libraries.Missing, "would load libcudnn.so.9 from .*other.* instead of .*chosen"):
            libraries.verify(plugin, chosen, {"LD_LIBRARY_PATH": self.path("other") + ":" + self.path("chosen")})

    def test_nothing_of_nvidias_is_packed(self):
        listed = "".join(f"\t{name} => /usr/lib/{name} (0x1)\n" for name in (
            "libcudnn.so.9", "libcudnn_graph.so.9", "libcublasLt.so.13", "libnccl.so.2", "libcuda.so.1", "libnvrtc.so.13",
            "libcudart.so.13", "libc.so.6", "libspdlog.so.1.10", "libcrypto.so.3"))
        self.assertEqual(sorted(prepare.packed_libraries(listed)), ["libcrypto.so.3", "libspdlog.so.1.10"])

    def test_only_tessera_run_sees_the_packed_folder(self):
        suite = common.Suite("cpu", None, self.folder, 10)
        suite.use_libraries({}, None, ["/packed/lib"])
        self.assertTrue(suite.environment["LD_LIBRARY_PATH"].startswith("/packed/lib"))
        self.assertNotIn("/packed/lib", suite.plain.get("LD_LIBRARY_PATH", ""))
        for name in ("run.py", "bench.py"):  # the two that start a child which imports PyTorch
            with open(os.path.join(GPU, name)) as file:
                source = file.read()
            self.assertIn("suite.plain", source)
            self.assertNotIn("suite.environment", source)


ROW = {"model": "gpt2", "title": "GPT-2 124M", "system": "tessera", "what": "Tessera", "batch": 32, "sequence": 1024,
       "precision": "bf16", "step_seconds": 0.05, "tokens_per_second": 655360.0, "mfu": 0.52, "first_step": 0.2, "launch": 2.5,
       "launcher_cpu": 0.0005, "own_memory": 14 << 30, "gpu_memory": 15 << 30, "attention_gradient": "deterministic",
       "predicted_for": "h200x8", "seconds": [0.05],
       "breakdown": [{"class": "products", "count": 147, "seconds": 0.04, "predicted": 0.032}]}
FACTS = {"date": "2026-01-02 03:04", "command": "tests/gpu/run.sh --only bench:gpt2", "device": "cuda",
         "gpu": "NVIDIA H200, 580.1, 143771 MiB", "libcudnn.so.9": "9.19.0, /x/libcudnn.so.9 (system)"}


class Results(ToolTest):
    def test_a_killed_run_keeps_what_it_did(self):
        script = (f"import sys, os, signal; sys.path.insert(0, {GPU!r}); import suite\n"
                  f"s = suite.Suite('cpu', {self.path('out')!r}, {self.folder!r}, 60)\n"
                  f"s.note('gpu', 'none')\n"
                  "for number in range(3):\n"
                  "    with s.part(f'case {number}') as part:\n"
                  "        s.rows.append(" + repr(ROW) + ")\n"
                  "with s.part('the last'):\n"
                  "    os.kill(os.getpid(), signal.SIGKILL)\n")
        done = subprocess.run([sys.executable, "-c", script])
        self.assertEqual(done.returncode, -signal.SIGKILL)
        with open(self.path("out", "results.json")) as file:
            found = json.load(file)
        self.assertEqual([part["name"] for part in found["parts"]], ["case 0", "case 1", "case 2"])
        self.assertEqual((found["passed"], found["complete"], len(found["benchmarks"])), (3, False, 3))
        with open(self.path("out", "results.md")) as file:
            self.assertIn("3 passed, 0 failed so far: the run was cut off", file.read())

    def found(self, **facts):
        return {"facts": {**FACTS, **facts}, "complete": True, "passed": 1, "failed": 1, "benchmarks": [
            ROW, {**ROW, "system": "compile", "what": "torch.compile", "tokens_per_second": 595781.8, "breakdown": None,
                  "launch": None, "launcher_cpu": None, "attention_gradient": "scaled_dot_product_cudnn_attention_backward"}],
            "parts": [{"name": "oracle gpt-fp32", "passed": True, "why": "", "note": "loss 1e-6"},
                      *2 * [{"name": "ranks", "passed": False, "why": "not\nthe same", "note": ""}]]}

    def test_a_run_on_a_gpu_is_a_section_of_the_page(self):
        page = self.path("gpu.md")
        with open(results.PAGE) as file:
            text = file.read()
        with open(page, "w") as file:
            file.write(results.HEAD + results.NOTHING)
        with open(self.path("results.json"), "w") as file:
            json.dump(self.found(), file)
        command = [sys.executable, os.path.join(GPU, "results.py"), self.path("results.json"), "--page", page]
        subprocess.run(command, check=True)
        with open(page) as file:
            text = file.read()
        self.assertNotIn(results.NOTHING, text)
        for line in ("## 2026-01-02 03:04, `tests/gpu/run.sh --only bench:gpt2`", "- gpu: NVIDIA H200, 580.1, 143771 MiB",
                     "- libcudnn.so.9: 9.19.0, /x/libcudnn.so.9 (system)", "1 passed, 1 failed", "- oracle gpt-fp32: loss 1e-6",
                     "- failed: ranks: not the same (2 times)",
                     "| GPT-2 124M, bf16, B=32, T=1024 | Tessera | 655,360 | 50.00 | 52.0 % | 14.0 | 15.0 | 2.5, 0.2 | 0.50 | deterministic | 1.00 |",
                     "| products | 147 | 40.00 | 32.00 | 1.25 |"):
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r"torch.compile \| 595,782 .* scaled_dot_product_cudnn_attention_backward \| 1.10 \|")
        again = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        self.assertEqual((again.returncode, again.stderr), (1, "results: gpu.md has this run already\n"))
        results.append(self.found(date="2026-01-03 00:00"), page)
        with open(page) as file:
            self.assertTrue(file.read().startswith(text))

    def test_a_run_without_a_gpu_is_not_for_the_page(self):
        for facts in ({"device": "cpu"}, {"device": "simulated"}):
            with self.assertRaisesRegex(ValueError, "used no GPU: it is not for gpu.md"):
                results.append(self.found(**facts), self.path("gpu.md"))
        self.assertFalse(os.path.exists(self.path("gpu.md")))


class Parts(ToolTest):
    def test_limits_fit_ten_minutes(self):
        limits = gpu_run.LIMITS
        self.assertLessEqual(limits["kernels"] + limits["oracle"] + limits["ranks"], 300)
        self.assertLessEqual(limits["probe"] + 2 * limits["bench"], 590)
        self.assertTrue(all(seconds <= limits["bench"] for seconds in bench.LIMITS.values()))

    def test_a_part_has_its_own_limit(self):
        suite = common.Suite("cpu", None, self.folder, 100)
        with suite.stage(0):
            with suite.part("late"):
                suite.run(["touch", self.path("late")], 5)
        with suite.part("next"):
            suite.run(["touch", self.path("next")], 5)
        self.assertEqual([name for name in ("late", "next") if os.path.exists(self.path(name))], ["next"])
        self.assertEqual([(part.passed, part.why) for part in suite.parts], [(False, "no time left for this part"), (True, "")])

    def test_parts_are_chosen_by_name(self):
        models = ("gpt2", "llama-1b")
        self.assertEqual(gpu_run.parts_of("bench:llama-1b,probe", models), ["probe", "bench:llama-1b"])
        self.assertEqual(gpu_run.parts_of("bench,kernels", models), ["kernels", "bench:gpt2", "bench:llama-1b"])
        with self.assertRaisesRegex(ValueError, "unknown parts .'bench:gpt3'., expected some of probe"):
            gpu_run.parts_of("bench:gpt3", models)

    def test_rows_are_systems_with_options(self):
        self.assertEqual(bench.parse("tessera+fast+epilogues=bias"), ("tessera", ["fast", "epilogues=bias"]))
        self.assertEqual(bench.title(*bench.parse("tessera+fast+epilogues=none")), "Tessera, fast, epilogues none")
        for row in bench.ROWS:
            bench.parse(row)
        for row in ("jax", "tessera+slow", "eager+fast", "tessera+fast+fast", "tessera+epilogues=none+epilogues=all"):
            with self.assertRaises(ValueError, msg=row):
                bench.parse(row)

    def test_racecheck_looks_at_our_own_kernels(self):
        words = training.own_kernels("  --kernel-name arg   filter")
        self.assertEqual(words[:2], ["--kernel-name", "kns=_elementwise_"])
        self.assertIn("kns=tessera", words)
        self.assertEqual(set(training.own_kernels("  --kernel-regex arg")[::2]), {"--kernel-regex"})

    def test_kinds_of_kernels_are_those_of_the_compiler(self):
        for path, pattern in (("passes/lower/codegen/KernelPlan.cpp", r"names\[\] = \{(.*?)\};"),
                              ("compiler/cost/StepCounts.cpp", r"StringRef kind : \{(.*?)\}")):
            with open(os.path.join(ROOT, path)) as file:
                found = re.findall(r'"(\w+)"', re.search(pattern, file.read())[1])
            self.assertEqual(tuple(found), breakdown.KINDS, path)

    def test_every_op_of_the_kernel_tests_has_a_reference(self):
        with open(os.path.join(GPU, "reference.py")) as file:
            known = set(re.findall(r'"(?:train\.)?(\w+)"', file.read()))
        for name in cases.KERNEL_FILES:
            with open(os.path.join(ROOT, "tests", "passes", "lower", "codegen", name + ".mlir")) as file:
                self.assertLessEqual(set(re.findall(r"\btrain\.(\w+)", file.read())), known, name)

    def test_a_trace_is_a_table_by_class(self):
        golden = Golden("gpt")
        self.succeed("tessera-compile", *golden.compile_flags(), "-o", "gpt.tessera", "--report=report.json")
        self.succeed("tessera-run", "gpt.tessera", "--data", golden.data, "--steps", 3, "--trace-steps", 2, "--no-export",
                     "--out", "run")
        with open(self.path("report.json")) as file:
            report = json.load(file)
        prediction = breakdown.predicted(report)
        rows = breakdown.table(self.path("run", "trace.json"), 3, prediction)
        found = {row["class"]: row for row in rows}
        self.assertEqual(rows[-1]["class"], "all")
        self.assertEqual(found["products"]["count"], report["instructions"]["gemm"])
        for row in report["kernels"]:
            self.assertEqual(found[f"kernels: {row['kind']}"]["count"], row["launches"])
            self.assertEqual(found[f"kernels: {row['kind']}"]["predicted"], row["seconds"])
        self.assertAlmostEqual(found["all"]["seconds"], sum(row["seconds"] for row in rows[:-1]))
        self.assertNotIn("step", found)
        with self.assertRaisesRegex(RuntimeError, "nothing of step 1"):
            breakdown.table(self.path("run", "trace.json"), 1, prediction)

    def test_a_probe_says_what_is_there_without_a_gpu(self):
        done = subprocess.run([os.path.join(GPU, "run.sh"), "--only", "probe", "--prepared", self.path("absent.tar.xz"),
                               "--out", self.path("out")], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHON": sys.executable})
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED a GPU can be used: no NVIDIA driver: ", done.stdout)
        with open(self.path("out", "results.json")) as file:
            facts = json.load(file)["facts"]
        for name in ("date", "machine", "glibc", "python", "nvcc", "compute-sanitizer", "memory"):
            self.assertIn(name, facts)
        self.assertEqual(facts["command"][:32], "tests/gpu/run.sh --only probe --")


if __name__ == "__main__":
    unittest.main()
