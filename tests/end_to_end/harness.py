"""Runs the Tessera tools in a temporary folder and reads what they leave."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "frontends", "python")]
import safetensors  # noqa: E402

# A shell starts its background jobs with SIGINT ignored, and nohup ignores SIGHUP: programs started here would inherit
# that, and respect it.
for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.default_int_handler if ignored == signal.SIGINT else signal.SIG_DFL)

BIN = os.environ.get("TESSERA_BIN", os.path.join(ROOT, "build", "release", "bin"))
TORCH_PYTHON = os.environ.get("TESSERA_TORCH_PYTHON", "python3")
MODELS = os.path.join(ROOT, "tests", "onnx", "models")
GOLDENS = os.path.join(ROOT, "tests", "end_to_end", "goldens")


def with_package():
    """The environment of a Python that finds the package tessera of this clone, and the tools under test."""
    paths = [os.path.join(ROOT, "frontends", "python"), os.environ.get("PYTHONPATH")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "TESSERA_BIN": BIN}


def torch_has(*modules):
    """Whether the Python with torch, TORCH_PYTHON, can import all of these."""
    try:
        return subprocess.run([TORCH_PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0
    except OSError:
        return False


def run_command(*arguments):
    """The words of a call of tessera-run. Most models of tests come without values: where a test names no weights and no
    checkpoint, its run begins by rule."""
    words = [os.path.join(BIN, "tessera-run"), *map(str, arguments)]
    resumes = "--resume" in words and words[words.index("--resume") + 1] != "auto"
    return words if resumes or "--weights" in words else [*words, "--weights", "fresh"]


class ToolTest(unittest.TestCase):
    """A test case with a folder of its own and the tools as methods. begins_by_rule: runs that name no weights do."""
    begins_by_rule = True

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="tessera-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def tool(self, name, *arguments, timeout=300, env=None):
        command = [os.path.join(BIN, name), *map(str, arguments)]
        if name == "tessera-run" and self.begins_by_rule:
            command = run_command(*arguments)
        return subprocess.run(command, cwd=self.folder, timeout=timeout, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", env=env)

    def succeed(self, name, *arguments, timeout=300):
        done = self.tool(name, *arguments, timeout=timeout)
        self.assertEqual(done.returncode, 0, f"{name} {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
        return done.stdout

    def fail_with(self, message, name, *arguments, timeout=120):
        """The tool ends by itself with a non-zero status, says `message` (a regular expression), and not as a crash."""
        done = self.tool(name, *arguments, timeout=timeout)
        output = done.stdout + done.stderr
        self.assertGreater(done.returncode, 0, f"{name} ended with {done.returncode}\n{output}")
        self.assertLess(done.returncode, 126, output)
        self.assertRegex(output, message)
        return output

    def check_cases(self, script, timeout=900, python=TORCH_PYTHON, **environment):
        """Runs a file of cases of this folder in a Python (torch_cases.py); each is a subtest."""
        done = subprocess.run([python, os.path.join(ROOT, "tests", "end_to_end", script), self.folder], capture_output=True,
                              text=True, timeout=timeout, env=with_package() | environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = json.loads(done.stdout.splitlines()[-1])
        self.assertTrue(results)
        for name, problem in results.items():
            with self.subTest(name):
                self.assertIsNone(problem)

    def metrics(self, run):
        """The step records of a run folder, in order."""
        with open(os.path.join(self.folder, run, "metrics.jsonl")) as file:
            return [record for record in map(json.loads, file) if "loss" in record]


class Golden:
    """What make_goldens.py recorded for one model."""

    def __init__(self, name):
        self.folder = os.path.join(GOLDENS, name)
        with open(os.path.join(self.folder, "golden.json")) as file:
            record = json.load(file)
        self.model = os.path.join(MODELS, record["model"])
        self.batch, self.sequence, self.steps = record["batch"], record["sequence"], record["steps"]
        self.hyper, self.losses, self.norms = record["hyper"], record["losses"], record["gradient_norms"]
        self.weights = os.path.join(self.folder, "weights.safetensors")
        self.data = os.path.join(self.folder, "data.safetensors")

    def load(self, what):
        return safetensors.load(os.path.join(self.folder, what + ".safetensors"))

    def cut(self, samples, sequence):
        """The first samples of the data, shortened."""
        return {name: np.ascontiguousarray(value[:samples, :sequence]) for name, value in self.load("data").items()}

    def compile_flags(self, accumulate=1):
        """Flags that compile exactly the recorded training; the global batch is the same under accumulation."""
        h = self.hyper
        return [self.model, "--batch", self.batch // accumulate, "--seq", self.sequence, "--accumulate", accumulate,
                "--loss", "cross-entropy", "--optimizer", "adamw", "--lr", h["lr"], "--betas", h["beta1"], h["beta2"],
                "--epsilon", h["epsilon"], "--weight-decay", h["weight_decay"], "--clip-norm", h["clip_norm"]]
