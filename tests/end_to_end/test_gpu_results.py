"""What tests/gpu writes of a run: its record, and its section of the page of figures."""

import json
import os
import signal
import subprocess
import sys

from harness import ROOT, ToolTest

GPU = os.path.join(ROOT, "tests", "gpu")
sys.path[:0] = [GPU, os.path.join(ROOT, "tests", "bench")]
import results  # noqa: E402


ROW = {"model": "gpt2", "title": "GPT-2 124M", "system": "tessera", "what": "Tessera", "batch": 32, "sequence": 1024,
       "precision": "bf16", "step_seconds": 0.05,
       "step_range": [0.049, 0.052], "tokens_per_second": 655360.0, "mfu": 0.52, "first_step": 0.2, "launch": 2.5,
       "launcher_cpu": 0.0005, "own_memory": 14 << 30, "gpu_memory": 15 << 30, "attention_gradient": "deterministic",
       "predicted_for": "h200x8", "seconds": [0.05], "note": "", "is_cut": False,
       "breakdown": [{"class": "products", "count": 147, "seconds": 0.04, "predicted": 0.032}]}
FACTS = {"date": "2026-01-02 03:04", "command": "tests/gpu/run.sh --only bench:gpt2 --out /x/out", "device": "cuda",
         "machine": "x86_64, 16 processors, Linux-6.1",
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
            ROW, {**ROW, "what": "Tessera, again", "tokens_per_second": 668734.7}, {**ROW, "system": "compile", "what": "torch.compile", "tokens_per_second": 595781.8, "breakdown": None,
                  "launch": None, "launcher_cpu": None, "attention_gradient": "scaled_dot_product_cudnn_attention_backward", "note": "only 8 of 112\nsteps"}],
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
        for line in ("## 2026-01-02 03:04, NVIDIA H200", "- command: tests/gpu/run.sh --only bench:gpt2", "- gpu: NVIDIA H200, 580.1, 143771 MiB",
                     "- libcudnn.so.9: 9.19.0 (system)", "- machine: x86_64, 16 processors", "1 passed, 2 failed", "- oracle gpt-fp32: loss 1e-6",
                     "- failed: ranks: not the same (2 times)",
                     "| GPT-2 124M, bf16, B=32, T=1024 | Tessera | 655,360 | 50.00 (49.00 to 52.00) | 52.0 % | 14.0 | 15.0 | 2.5, 0.2 | 0.50 | deterministic | 1.00 |",
                     "| products | 147 | 40.00 | 32.00 | 1.25 |"):
            self.assertIn(line + "\n", text)
        self.assertRegex(text, r"Tessera, again \| 668,735 .* 0.98 \|")
        self.assertIn("MFU counts causal attention by half.", text)
        self.assertRegex(text, r"torch.compile; only 8 of 112 steps \| 595,782 .* scaled_dot_product_cudnn_attention_backward \| 1.10 \|")
        again = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        self.assertEqual((again.returncode, again.stderr), (1, "results: gpu.md has this run already\n"))
        results.append(self.found(date="2026-01-03 00:00"), page)
        with open(page) as file:
            self.assertTrue(file.read().startswith(text))

    def test_several_calls_are_one_section(self):
        """With each part and row of theirs; calls on other machines are not put together."""
        other = self.found(command="tests/gpu/run.sh --only sanitizer")
        other["parts"] = [{"name": name, "passed": passed, "why": "", "note": ""} for name, passed in (
            ("oracle gpt-fp32", True), ("oracle gpt-fp32", False), ("ranks", True), ("memcheck", True))]
        whole = results.together([self.found(), other])
        self.assertEqual([(part["name"], part["passed"]) for part in whole["parts"]],
                         [("oracle gpt-fp32", True), ("ranks", False), ("ranks", False), ("oracle gpt-fp32", False),
                          ("ranks", True), ("memcheck", True)])
        self.assertEqual((whole["passed"], whole["failed"], len(whole["benchmarks"])), (3, 3, 6))
        self.assertEqual(whole["facts"]["command"], "tests/gpu/run.sh --only bench:gpt2; tests/gpu/run.sh --only sanitizer")
        with self.assertRaisesRegex(ValueError, "runs of different machines or builds: gpu$"):
            results.together([self.found(), self.found(gpu="NVIDIA H100")])

    def test_a_run_without_a_gpu_is_not_for_the_page(self):
        for facts in ({"device": "cpu"}, {"device": "simulated"}):
            with self.assertRaisesRegex(ValueError, "used no GPU: it is not for gpu.md"):
                results.append(self.found(**facts), self.path("gpu.md"))
        self.assertFalse(os.path.exists(self.path("gpu.md")))


if __name__ == "__main__":
    unittest.main()
