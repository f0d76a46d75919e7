"""Parts of tests/gpu on a machine without a GPU: limits, logs, kernels, benchmarks, sanitizers, probes."""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from unittest import mock

from harness import BIN, ROOT, Golden, ToolTest

GPU = os.path.join(ROOT, "tests", "gpu")
sys.path[:0] = [GPU, os.path.join(ROOT, "tests", "bench")]
import attention  # noqa: E402
import bench  # noqa: E402
import breakdown  # noqa: E402
import cases  # noqa: E402
import prepare  # noqa: E402
import probe  # noqa: E402
import results  # noqa: E402
import run as gpu_run  # noqa: E402
import step_counts  # noqa: E402
import suite as common  # noqa: E402
import training  # noqa: E402


class Parts(ToolTest):
    def test_limits_fit_ten_minutes(self):
        limits = gpu_run.LIMITS
        # Kernels that fault start processes anew, and the launches of 24 trainings of several ranks cannot be timed without a
        # GPU: what is left below the deadline of 540 s is theirs.
        self.assertEqual(sum(limits[name] for name in gpu_run.DEFAULT.split(",")), 510)
        self.assertLessEqual(limits["probe"] + 2 * limits["bench"], 590)
        self.assertLessEqual(limits["probe"] + limits["sanitizer"], 540)
        self.assertLessEqual(limits["probe"] + limits["attention"], 300)
        self.assertLessEqual(limits["probe"] + limits["bench:gpt2-xl"], 540)
        self.assertTrue(all(seconds <= limits["bench"] for seconds in bench.LIMITS.values()))

    def test_what_is_cut_off_was_met_before(self):
        for some in (cases.TRAININGS[:2], cases.TRAININGS[2:]):
            self.assertEqual([set(kind) for kind in zip(*some)], [{"gpt", "llama"}, {"fp32", "bf16"}])
        first = cases.ranks_cases()[:8]
        self.assertEqual({(strategy, ranks) for _, _, strategy, ranks in first}, {("zero3", 2), ("ddp", 2)})
        self.assertEqual(len(set(cases.ranks_cases())), 24)

    def test_timed_steps_take_five_seconds(self):
        table = step_counts.load()
        for name, (*_, steps, _) in cases.BENCH.items():
            self.assertGreaterEqual(steps * table[name]["now"]["predicted: step"]["ms"], 5000, name)
            self.assertEqual(steps % 8, 0, "whole blocks of PyTorch's steps")

    def test_results_are_not_written_over(self):
        results.replace(self.path("results.json"), "{}")
        done = subprocess.run([os.path.join(GPU, "run.sh"), "--only", "probe", "--out", self.folder], stderr=subprocess.PIPE,
                              text=True, env={**os.environ, "PYTHON": sys.executable})
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{self.folder} has results already, which are not written over: name another --out", done.stderr)

    def test_the_log_keeps_what_commands_said(self):
        suite = common.Suite("cpu", self.path("out"), self.folder, 100)
        self.assertEqual(suite.run(["echo", "two words"], 5), "two words\n")
        with self.assertRaisesRegex(RuntimeError, "sh ended with 3: why"):
            suite.run(["sh", "-c", "echo why >&2; exit 3"], 5)
        with mock.patch.object(suite, "patience", lambda seconds: seconds):
            self.assertEqual(suite.attempt(["sh", "-c", "echo begun; exec sleep 9"], 2), ("sh took longer than 2 s", "begun\n"))
        self.assertEqual(len(suite.run([sys.executable, "-c", "print('x' * 300000 + 'end')"], 5)), 300004)
        with open(suite.log) as file:
            log = file.read()
        for line in ("$ echo 'two words'\ntwo words\n", "\nwhy\n\n# ended with 3, ", "\nbegun\n\n# took longer than 2 s, ",
                     "xxx\n[...]\nxxx", "xxxend\n\n# ended with 0, "):
            self.assertIn(line, log)
        self.assertLess(len(log), common.LOGGED + 1000)

    def test_kernels_go_on_behind_one_that_ends_the_context(self):
        """run.py and kernels.py with kernels that only say that they fail."""
        child = self.path("child")
        with open(child, "w") as file:
            file.write(f"""#!{sys.executable}
import sys
from unittest import mock
sys.modules["torch"] = mock.MagicMock()
sys.path.insert(0, {GPU!r})
import kernels, run

def load(backend, suite, group):
    if group["name"] == "unloadable":
        raise RuntimeError("cuModuleLoadData: CUDA error: device kernel image is invalid")
    return None, {{symbol: symbol for symbol in group["extents"]}}, "ptx"

def check(backend, module, symbol):
    if symbol == "faults":
        raise RuntimeError("cuCtxSynchronize: CUDA error: an illegal memory access was encountered")
    return "differs" if symbol == "wrong" else ""

kernels.load, kernels.check, sys.argv = load, check, sys.argv[2:]
print("hello from", sys.argv[-1])
sys.exit(run.main())
""")
        os.chmod(child, 0o755)
        os.mkdir(self.path("prepared"))
        groups = [{"name": name, "extents": dict.fromkeys(symbols)} for name, symbols in (
            ("one", ["a", "faults", "b"]), ("unloadable", ["c", "d"]), ("two", ["e", "wrong", "f", "faults"]), ("three", ["g"]))]
        results.replace(self.path("prepared", "manifest.json"), json.dumps({"kernels": groups}))
        suite = common.Suite("cpu", None, self.folder, 100)
        suite.manifest = {"kernels": groups}
        with mock.patch.object(sys, "executable", child):
            gpu_run.kernels(suite)
        self.assertEqual([(part.name.removeprefix("kernel "), part.passed) for part in suite.parts], [
            ("kernels of one can be loaded", True), ("one.a", True), ("one.faults", False), ("one.b", True),
            ("kernels of unloadable can be loaded", False), *2 * [("a kernel of unloadable", False)],
            ("kernels of two can be loaded", True), ("two.e", True), ("two.wrong", False), ("two.f", True), ("two.faults", False),
            ("kernels of three can be loaded", True), ("three.g", True)])
        self.assertIn("an illegal memory access", suite.parts[2].why)

    def test_attention_on_a_device(self):
        """Each test of the binary is a case; on the simulated device, there are no times."""
        if not os.path.exists(os.path.join(BIN, attention.BINARY)):
            self.skipTest(f"{attention.BINARY} is not built")
        suite = common.Suite("simulated", None, self.folder, 100)
        suite.runner = os.path.join(BIN, "tessera-run")
        suite.simulate(os.path.join(os.path.dirname(BIN), "gpu-simulator"))
        suite.environment["GTEST_FILTER"] = "*EqualsTheCpu/OneBF16:*EqualsTheCpu/WindowF16"
        attention.run(suite)
        self.assertEqual([(part.name, part.passed) for part in suite.parts], [
            (f"{attention.BINARY} is there", True), ("attention Shapes/TensorAttention.EqualsTheCpu/OneBF16", True),
            ("attention Shapes/TensorAttention.EqualsTheCpu/WindowF16", True)])
        suite.parts.clear()
        suite.device = "cuda"  # a driver of the build folder must not pass for that of the GPU
        attention.run(suite)
        self.assertEqual([part.passed for part in suite.parts], [True, False])
        self.assertRegex(suite.parts[-1].why, "it ran on another device than cuda")
        suite.parts.clear()
        suite.device = "simulated"
        suite.environment["TESSERA_SIM_FAIL"] = "launch:1"
        attention.run(suite)
        self.assertEqual([part.passed for part in suite.parts], [True, False, False])
        suite.parts.clear()
        suite.runner = self.path("tessera-run")
        attention.run(suite)
        self.assertRegex(suite.parts[-1].why, "gpu-attention-tests is missing")

    def test_times_of_attention(self):
        """Their rates count the products that are needed, of half of all pairs."""
        own = "[ RUN      ] Times\ntime heads 8 tokens 8192 depth 128 forward 1.0000 backward 4.5000\n"
        self.assertEqual(attention.times(own), {(8, 8192, 128): (1.0, 4.5)})
        self.assertEqual(attention.rate((1.0, 4.5), 8, 8192, 128), "137 and 76")
        suite = common.Suite("cuda", None, self.folder, 100)
        for theirs, note in (([[8, 8192, 128, 0.5, 1.5]], "1.00 and 4.50 ms, 137 and 76 TFLOP/s; PyTorch 0.50 and 1.50 ms, 275 and 229 TFLOP/s"),
                             (None, "1.00 and 4.50 ms, 137 and 76 TFLOP/s")):
            suite.parts.clear()
            with mock.patch.object(suite, "run", side_effect=[own, json.dumps(theirs) if theirs else RuntimeError("no torch")]):
                attention.measure(suite, "binary")
            self.assertEqual([part.passed for part in suite.parts], [True, theirs is not None, True])
            self.assertEqual((suite.parts[-1].name, suite.parts[-1].note), ("attention of 8192 tokens, 8 heads of 128", note))

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
        self.assertEqual(bench.rows_of("gpt2"), ["tessera", "fsdp2+compile+padded", "compile+padded", "tessera+fast", "eager",
                                                 "fsdp2", "tessera"])
        self.assertEqual(bench.rows_of("tiny"), ["tessera", "fsdp2+compile", "compile", "eager", "fsdp2", "tessera"])
        self.assertEqual(bench.parse("tessera+fp8=block128"), ("tessera", ["fp8=block128"]))
        for gpu, rows in (("sm_80", []), ("sm_90", ["tessera+fp8=block128"]), ("sm_100", ["tessera+fp8=mxfp8"])):
            self.assertEqual([row for row in bench.rows_of("qwen2-1.5b", gpu) if "fp8" in row], rows)
        for model in (*cases.BENCH, *cases.CPU_BENCH):
            for row in [row for gpu in cases.FP8 for row in bench.rows_of(model, gpu)]:
                bench.parse(row)
        self.assertEqual(bench.title(*bench.parse("fsdp2+compile+graphs")), "FSDP2, 1 rank, compile, graphs")
        for row in ("jax", "eager+graphs", "fsdp2+graphs", "tessera+slow", "tessera+padded", "eager+fast", "eager+compile", "tessera+fast+fast", "tessera+epilogues=none+epilogues=all",
                    "tessera+fp8=rowwise+epilogues=none", "eager+fp8=rowwise", "tessera+fp8=none"):
            with self.assertRaises(ValueError, msg=row):
                bench.parse(row)

    def test_what_is_known_of_a_gpu(self):
        for gpu, peak in (("NVIDIA H100 NVL, 580.1", 835), ("NVIDIA H100 PCIe", 756), ("NVIDIA H100 80GB HBM3", 989),
                          ("NVIDIA GH200 480GB", 989), ("NVIDIA A100-SXM4-80GB", 312)):
            self.assertEqual(bench.peak_of(gpu), peak * 1e12)
        self.assertIsNone(bench.peak_of("NVIDIA L4"))
        self.assertEqual(prepare.machines(), {"a100x8": "sm_80", "b200x8": "sm_100", "h100x8": "sm_90", "h200x8": "sm_90"})
        predictions = {"h100x8": {"products": 1}, "h200x8": {"products": 2}}
        for gpu, machine in (("NVIDIA H200, 580.1", "h200x8"), ("NVIDIA H100 80GB HBM3", "h100x8"), ("", "h200x8")):
            self.assertEqual(bench.prediction(gpu, predictions, "h200x8"), (machine, predictions[machine]))

    def test_the_gradient_of_attention_is_the_one_that_ran(self):
        self.assertEqual(bench.gradient_of("x\n[info] attention gradient: fast asked for, deterministic taken: no engine \ny", "fast"),
                         "fast asked for, deterministic taken: no engine")
        self.assertEqual(bench.gradient_of("attention gradient: deterministic\n", "deterministic"), "deterministic")
        self.assertEqual(bench.gradient_of("step 1", "fast"), "fast (asked for)")

    def test_memory_that_nvidia_smi_does_not_know_is_left_out(self):
        for says, peak in (('test "$3 $4" = "-i GPU-1" && echo 100', 0), ("echo [N/A]", None), ("exit 1", None), (None, None)):
            if says:
                self.script("nvidia-smi", f"#!/bin/sh\n{says}\n")
            else:
                os.remove(self.path("bin", "nvidia-smi"))
            with mock.patch.dict(os.environ, PATH=self.path("bin")), bench.Memory("GPU-1") as memory:
                end = time.monotonic() + 30
                while memory.peak != peak and time.monotonic() < end:
                    time.sleep(0.1)
            self.assertEqual(memory.peak, peak, says)

    def test_nvidia_smi_is_asked_for_the_gpu_that_cuda_uses(self):
        self.script("nvidia-smi", "#!/bin/sh\necho \"$4\"\n")
        driver = ("int cuInit(unsigned f) { return 0; } int cuDriverGetVersion(int *v) { *v = 13010; return 0; }"
                  "int cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 9 : 0; return 0; }")
        for more, name in (("int cuDeviceGetUuid(char *to, int d) { for (int i = 0; i < 16; ++i) to[i] = i; return 0; }",
                            "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"),
                           ("int cuDeviceGetUuid(char *to, int d) { return 1; }", "0"), ("", "0")):
            subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.path("libcuda.so.1")], input=driver + more, text=True,
                           check=True)
            facts = {}
            with mock.patch.dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"]):
                found = probe.gpu({**os.environ, "LD_LIBRARY_PATH": self.folder}, facts.__setitem__)
            self.assertEqual((found, facts), ((90, name), {"driver's CUDA": "13.1", "gpu": name}))

    def script(self, name, text):
        """An executable in the folder bin."""
        os.makedirs(self.path("bin"), exist_ok=True)
        with open(self.path("bin", name), "w") as file:
            file.write(text)
        os.chmod(self.path("bin", name), 0o755)
        return self.path("bin", name)

    def test_a_row_of_pytorch_is_kept_if_it_does_not_end(self):
        suite = common.Suite("cpu", None, self.folder, 100)
        shape = {"batch": 1, "sequence": 8, "vocabulary": 16, "precision": "fp32"}
        steps = bench.WARMUP + 16
        rows = [{"seconds": [1.0], "losses": [2.0] * count} for count in (steps - 8, steps)]
        some, row = (f"echo '{json.dumps(found)}'" for found in rows)
        cut = {"note": "only 8 of 16 steps: python ended with 9"}
        for said, kept, gradient, more in (
                (f"{some}; {row}; echo '{{\"attention_gradient\": \"flash\"}}'", rows[1], "flash", {}),
                (f"{some}; {row}; exit 9", rows[1], "unknown: the profiled step failed, python ended with 9", {}),
                (f"{some}; printf '{{\"sec'; exit 9", rows[0], "unknown: cut off before it was asked for", cut)):
            with mock.patch.object(sys, "executable", self.script("python", f"#!/bin/sh\n{said}\n")):
                found = bench.pytorch(suite, "tiny", shape, steps, "eager", [])
            self.assertEqual(found, {**kept, "attention_gradient": gradient, **more})
        with mock.patch.object(sys, "executable", self.script("python", "#!/bin/sh\necho no memory; exit 9\n")):
            with self.assertRaisesRegex(RuntimeError, "python ended with 9: no memory"):
                bench.pytorch(suite, "tiny", shape, steps, "eager", [])

    def test_a_benchmark_keeps_a_trace_and_what_ran(self):
        os.makedirs(self.path("prepared", "cpu"))
        subprocess.run([sys.executable, step_counts.__file__.replace("step_counts", "shape_model"), "tiny", "--batch=2", "--seq=16",
                        "-o", self.path("tiny.onnx")], check=True)
        self.succeed("tessera-compile", "tiny.onnx", "--batch", 2, "--seq", 16, "-o", "prepared/cpu/tiny.tessera",
                     "--report=report.json")
        with open(self.path("report.json")) as file:
            predictions = {"cpu-host": breakdown.predicted(json.load(file))}
        summary = json.loads(self.succeed("tessera-dump", "prepared/cpu/tiny.tessera", "--summary", "--json"))["summary"]
        suite = common.Suite("cpu", self.path("out"), self.folder, 100)
        suite.runner = os.path.join(BIN, "tessera-run")
        suite.manifest = {"bench": {"tiny": {
            "batch": 2, "sequence": 16, "precision": "fp32", "vocabulary": 256, "parameters": summary["parameters"], "flops": 1,
            "planned": 1, "epilogues": "none", "target": "cpu-host", "predictions": predictions}}}
        bench.run(suite, "tiny", ["tessera", "tessera", "eager+padded"])
        self.assertEqual([part.passed for part in suite.parts], [True, True, False], suite.parts[0].why)
        self.assertEqual(suite.parts[2].why, "its vocabulary needs no padding")
        self.assertEqual([row["what"] for row in suite.rows], ["Tessera", "Tessera, again"])
        for row in suite.rows:
            self.assertEqual(len(row["seconds"]), bench.WARMUP + cases.CPU_BENCH["tiny"][3])
            self.assertLessEqual(row["step_range"][0], row["step_seconds"])
            self.assertEqual(row["predicted_for"], "cpu-host")
        breakdown.table(self.path("out", "trace.json"), 1 + bench.TRACED, {})
        with open(suite.log) as file:
            log = file.read()
        self.assertEqual(log.count('"launch_seconds"'), 2)
        self.assertEqual(log.count('"step_seconds"'), 2 * len(suite.rows[0]["seconds"]))
        with mock.patch.object(breakdown, "table", side_effect=OSError("no trace")):
            bench.run(suite, "tiny", ["tessera"])
        self.assertTrue(suite.parts[-1].passed)
        self.assertIn("; no times by class: OSError: no trace", suite.parts[-1].note)
        self.assertEqual((suite.rows[-1]["breakdown"], suite.rows[-1]["is_cut"]), (None, False))
        found = {"parameters": summary["parameters"], "seconds": [1.0] * 5, "losses": [5.5] * 8, "memory": None,
                 "attention_gradient": "unknown", "note": "only 4 of 8 steps: why"}
        with mock.patch.object(bench, "pytorch", return_value=found):
            bench.run(suite, "tiny", ["eager"])
        self.assertEqual((suite.parts[-1].passed, suite.parts[-1].why), (False, "32 tokens/s; only 4 of 8 steps: why"))
        self.assertEqual((suite.rows[-1]["what"], suite.rows[-1]["is_cut"]), ("PyTorch eager", True))

    def test_a_sanitizer_must_see_a_planted_race(self):
        sanitizer = f"""#!{sys.executable}
import json, os, sys
if "--help" in sys.argv:
    print("  --kernel-name arg")
    sys.exit(1)
with open({self.path("commands")!r}, "a") as file:
    file.write(" ".join(sys.argv[1:]) + chr(10))
if sys.argv[-1].endswith("race.py"):
    print("========= RACECHECK SUMMARY: SEEN hazards displayed (SEEN errors, 0 warnings)")
    sys.exit(9)
if "--kernels-in" in sys.argv:
    for name in ("kernels of a can be loaded", "kernel a.k0", "kernel a.k1")[:DONE]:
        print(json.dumps({{"name": name, "passed": True}}))
    print("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)")
    sys.exit(0)
out = sys.argv[sys.argv.index("--out") + 1]
os.makedirs(out)
with open(os.path.join(out, "metrics.jsonl"), "w") as file:
    file.write(json.dumps({{"loss": 1.0}}))
print("========= ERROR SUMMARY: 0 errors")
"""
        for seen, done, passed in (("64", "3", [True] * 5), ("64", "2", [True, True, False, True, True]),
                                   ("0", "3", [True, False, False, True, False])):
            self.script("compute-sanitizer", sanitizer.replace("SEEN", seen).replace("DONE", done))
            suite = common.Suite("cuda", None, self.folder, 100)
            suite.runner = "tessera-run"
            suite.manifest = {"kernels": [{"launches": {"k0": [1, 32, 1], "k1": [1, 32, 1]}}]}
            with mock.patch.dict(os.environ, PATH=self.path("bin") + ":" + os.environ["PATH"]):
                training.sanitizer(suite)
            self.assertEqual([part.passed for part in suite.parts], passed, [part.why for part in suite.parts])
            if done == "2":
                self.assertEqual(suite.parts[2].why, "only 1 of 2 kernels ran under it; no race in them")
        self.assertIn("racecheck saw nothing: ========= RACECHECK SUMMARY: 0 hazards", suite.parts[1].why)
        self.assertEqual(suite.parts[2].why, "racecheck reports nothing, but it did not see a planted race either")
        with open(self.path("commands")) as file:
            first, second, *_ = file.read().splitlines()
        self.assertTrue(first.startswith("--tool memcheck --error-exitcode 9 --print-limit 5 --launch-timeout 0 --report-api-errors no "
                                         "tessera-run "), first)
        self.assertIn("--tool racecheck --error-exitcode 9 --print-limit 5 --launch-timeout 0 --kernel-name kns=_elementwise_ ", second)

    def test_the_planted_race_is_one_of_a_kernel_that_racecheck_looks_at(self):
        import race
        filters = [word.removeprefix("kns=") for word in training.own_kernels("") if word.startswith("kns=")]
        self.assertTrue(any(part in race.SYMBOL for part in filters))
        self.assertEqual(breakdown.kind_of(race.SYMBOL), "elementwise")

    def test_racecheck_looks_at_our_own_kernels(self):
        words = training.own_kernels("  --kernel-name arg   filter")
        self.assertEqual(words[:2], ["--kernel-name", "kns=_elementwise_"])
        self.assertIn("kns=tessera", words)
        self.assertEqual(set(training.own_kernels("  --kernel-regex arg")[::2]), {"--kernel-regex"})

    def test_kinds_of_kernels_are_those_of_the_compiler(self):
        for path, pattern in (("passes/lower/codegen/KernelPlan.cpp", r"names\[\] = \{(.*?)\};"),
                              ("compiler/cost/StepCounts.cpp", r"StringRef kind : \{(.*?)\}")):
            with open(os.path.join(ROOT, path)) as file:
                found = re.findall(r'"(\w+)"', re.search(pattern, file.read(), re.DOTALL)[1])
            self.assertEqual(tuple(found), breakdown.KINDS, path)

    def test_the_kernel_tests_can_be_prepared(self):
        options = argparse.Namespace(build=os.path.dirname(BIN), target="sm_90")
        found = prepare.Prepare(options, self.folder)
        for name in cases.KERNEL_FILES:
            found.kernels_of_file(name)
        for group in found.manifest["kernels"]:
            self.assertTrue(group["launches"], group["name"])
            if group["name"] not in cases.GPU_KERNEL_FILES:
                self.assertEqual(set(group["extents"]), set(group["launches"]), group["name"])

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
