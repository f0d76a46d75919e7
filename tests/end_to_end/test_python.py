"""The Python package: keywords and flags, errors of the tools, a training and its metrics; and with a Python that has torch
(python3, or the one that TESSERA_TORCH_PYTHON names), programs exported, saved, checked and trained."""

import io
import os
import re
import signal
import stat
import subprocess
import sys
import time
import unittest
from unittest import mock

import numpy as np
from harness import BIN, MODELS, ToolTest, torch_has, with_package

import tessera
from tessera import options, tools
from tessera.progress import Progress
from tessera.run import Run

MODEL = os.path.join(MODELS, "mlp.dynamo18.onnx")


class Flags(unittest.TestCase):
    """What keywords stand for."""

    def test_forms(self):
        cases = [(dict(batch=8), ["--batch", "8"]), (dict(mesh={"replicate": 2, "shard": 4}), ["--mesh", "replicate=2,shard=4"]),
                 (dict(mesh="shard=2"), ["--mesh", "shard=2"]), (dict(betas=(0.9, 0.95)), ["--betas", "0.9", "0.95"]),
                 (dict(dim={"n": 4, "m": 5}), ["--dim", "n=4", "--dim", "m=5"]), (dict(nesterov=True), ["--nesterov"]),
                 (dict(nesterov=False, seq=None), []), (dict(offload=["optimizer", "parameters"]),
                                                        ["--offload", "optimizer", "--offload", "parameters"]),
                 (dict(lr=1e-3), ["--lr", "0.001"]), (dict(memory_limit="40GiB"), ["--memory-limit", "40GiB"])]
        for given, wanted in cases:
            with self.subTest(str(given)):
                self.assertEqual(options.flags_of(options.COMPILE, "compile", given), wanted)

    def test_wrong_values(self):
        for given in (dict(batch="8"), dict(batch=1.5), dict(batch=True), dict(lr="1"), dict(mesh=2), dict(mesh={}), dict(betas=0.9),
                      dict(nesterov=1), dict(strategy=3), dict(dim=4), dict(dim=[[1]]), dict(colour="red")):
            with self.subTest(str(given)), self.assertRaises(TypeError):
                options.flags_of(options.COMPILE, "compile", given)

    def test_every_flag_is_the_tools(self):
        """The tables name flags that there are, and leave out only what is not for Python."""
        left = {"tessera-compile": {"help", "version", "output", "report", "fit", "compile-to", "dump-phases", "timing", "remarks",
                                    "verbose", "print-pipelines", "remat-report", "lr-schedule"},
                "tessera-run": {"help", "version", "data", "steps", "epochs", "out", "weights", "eval-only", "export-only", "autotune",
                                "lr-schedule"}}
        for tool, table in (("tessera-compile", options.COMPILE), ("tessera-run", options.TRAIN)):
            text = subprocess.run([os.path.join(BIN, tool), "--help"], capture_output=True, text=True, check=True).stdout
            there = {name for line in text.splitlines() if re.match(r"  -", line)
                     for name in re.findall(r"--([a-z0-9-]+)", line.split("  ", 2)[1].split(" ")[0])}
            with self.subTest(tool):
                self.assertEqual({name[2:] for name, _ in table.values()}, there - left[tool])


class Tools(ToolTest):
    """Compiling, predicting and training an ONNX file. No torch."""

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.dict(os.environ, {"TESSERA_BIN": BIN}))

    def data(self, artifact, samples):
        generator = np.random.default_rng(0)
        return {name: generator.integers(0, entry.get("index_bound", 2), (samples, *entry["shape"][1:])).astype(np.int32)
                if entry["dtype"].startswith("i") else
                generator.standard_normal((samples, *entry["shape"][1:])).astype(np.float32)
                for name, entry in artifact.batch.items()}

    def test_a_training(self):
        artifact = tessera.compile(MODEL, self.path("mlp.tessera"), batch=4, mesh={"shard": 2}, strategy="zero3", lr=1e-3)
        self.assertEqual(os.fspath(artifact), self.path("mlp.tessera"))
        run = tessera.train(artifact, self.data(artifact, 24), steps=6, out=self.path("run"), weights="fresh",
                            checkpoint_every=3, show=False)
        self.assertEqual(len(run.losses), 6)
        self.assertEqual([record["step"] for record in run.metrics], list(range(1, 7)))
        self.assertTrue(all(np.isfinite(run.losses)))
        self.assertEqual([os.path.basename(path) for path in run.checkpoints], ["ckpt-3", "ckpt-6"])
        self.assertTrue(os.path.exists(run.weights))
        again = tessera.train(artifact, self.data(artifact, 24), steps=6, out=self.path("again"), weights=run.weights,
                              show=False)
        self.assertLess(again.losses[0], run.losses[0])

    def test_an_end_of_python_ends_the_training(self):
        """By a signal that it can see, and by one that it cannot; nothing is left but the run, which goes on from its checkpoint."""
        artifact = tessera.compile(MODEL, self.path("mlp.tessera"), batch=4)
        np.savez(self.path("data.npz"), **self.data(artifact, 24))
        os.mkdir(self.path("temporary"))
        program = ("import sys, numpy, tessera\n"
                   "data = dict(numpy.load('data.npz'))\n"
                   "tessera.train('mlp.tessera', data, steps=100000000, out=sys.argv[1], weights='fresh', show=False)\n")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            out = self.path(f"run-{number}")
            with self.subTest(number):
                process = subprocess.Popen([sys.executable, "-c", program, out], cwd=self.folder,
                                           env=with_package() | {"TESSERA_BIN": BIN, "TMPDIR": self.path("temporary")})
                self.wait_for(lambda: os.path.exists(os.path.join(out, "metrics.jsonl"))
                              and os.path.getsize(os.path.join(out, "metrics.jsonl")) > 4000)
                process.send_signal(number)
                self.assertEqual(process.wait(60), -number if number == signal.SIGKILL else 128 + number)
                self.wait_for(lambda: not os.path.exists(os.path.join(out, "lease")))
                self.assertEqual(len(Run(out).checkpoints), 1)
                if number != signal.SIGKILL:
                    self.assertEqual(os.listdir(self.path("temporary")), [])

    def wait_for(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_report(self):
        report = tessera.report(MODEL, batch=64, target="h100x8", mesh="shard=8", strategy="zero3")
        self.assertIn("memory of one rank", str(report))
        self.assertGreater(sum(report["memory"]["at_peak_by_class"].values()), 0)

    def test_errors_have_the_tools_text(self):
        with self.assertRaises(tessera.CompileError) as caught:
            tessera.compile(MODEL, self.path("x.tessera"), batch=4, strategy="none")
        self.assertIn("strategy", str(caught.exception))
        self.assertFalse(os.path.exists(self.path("x.tessera")))
        with self.assertRaises(TypeError):
            tessera.compile(MODEL, self.path("x.tessera"), batch=4, stratagem="zero3")
        artifact = tessera.compile(MODEL, self.path("mlp.tessera"), batch=4)
        with self.assertRaises(tessera.ToolError) as caught:
            tessera.train(artifact, self.path("absent.npz"), steps=1, out=self.path("run"))
        self.assertIn("absent.npz", str(caught.exception))

    def test_tools_that_are_not_there(self):
        with mock.patch.dict(os.environ, {"TESSERA_BIN": self.folder}), self.assertRaises(tessera.ToolError) as caught:
            tools.find_tool("tessera-compile")
        self.assertIn("TESSERA_BIN", str(caught.exception))
        with open(self.path("tessera-compile"), "w") as file:
            file.write("#!/bin/sh\necho 'tessera-compile: error: from a fake' >&2\nexit 3\n")
        os.chmod(self.path("tessera-compile"), stat.S_IRWXU)
        with mock.patch.dict(os.environ, {"TESSERA_BIN": self.folder}), self.assertRaises(tessera.CompileError) as caught:
            tessera.compile("net.onnx", batch=1)
        self.assertEqual((caught.exception.status, caught.exception.reason), (3, "from a fake"))

    def test_metrics(self):
        os.mkdir(self.path("run"))
        with open(self.path("run", "metrics.jsonl"), "w") as file:
            file.write('{"stage": "after data creation", "ranks": []}\n{"step": 1, "loss": 2.0}\n{"step": 2, "loss": null}\n'
                       '{"step": 2, "stage": "evaluation", "eval_loss": 1.5}\n{"step": 3, "lo')
        run = Run(self.path("run"))
        self.assertEqual(run.metrics, [{"step": 1, "loss": 2.0}, {"step": 2, "loss": None}])
        self.assertTrue(np.isnan(run.losses[1]))
        self.assertEqual([record["eval_loss"] for record in run.evaluations], [1.5])
        self.assertEqual((run.checkpoints, run.weights), ([], None))


class Shown(unittest.TestCase):
    """What a training shows where there is no terminal."""

    def test_lines_of_steps(self):
        stream, now = io.StringIO(), iter([2, 3, 4, 13, 14, 15])
        progress = Progress(stream, interval=10, clock=lambda: next(now))
        lines = [f"2026-11-28 13:14:11 step {step}/200 | loss 2.0 | 5 ms\n" for step in (1, 2, 3, 12, 13, 200)]
        for line in ("data: 3 files\n", *lines):
            progress.line(line)
        self.assertEqual(stream.getvalue(), "".join(["data: 3 files\n", lines[0], lines[3], lines[5]]))


@unittest.skipUnless(torch_has("torch"), "no Python with torch (TESSERA_TORCH_PYTHON)")
class Programs(ToolTest):
    """python_cases.py runs in the Python that has torch."""

    def test_programs(self):
        self.check_cases("python_cases.py")


if __name__ == "__main__":
    unittest.main()
