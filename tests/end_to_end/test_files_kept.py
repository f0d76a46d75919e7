"""Outputs never replace inputs, devices or pipes; an output that cannot be written is an error, or a warning of a training."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np

from harness import BIN, ROOT, ToolTest

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import safetensors  # noqa: E402

PROGRAM = os.path.join(ROOT, "tests", "pt2", "programs", "scored.pt2")


class FilesKept(ToolTest):
    begins_by_rule = False

    def setUp(self):
        super().setUp()
        shutil.copy(PROGRAM, self.path("net.pt2"))
        random = np.random.default_rng(0)
        np.savez(self.path("data.npz"), x=random.standard_normal((64, 4), np.float32), label=random.integers(0, 5, 64),
                 targets=random.integers(0, 5, 64).astype(np.int32))

    def compile(self, *flags, output="net.tessera"):
        return self.succeed("tessera-compile", "net.pt2", "--batch", 4, *flags, "-o", output)

    def test_outputs(self):
        with open(PROGRAM, "rb") as file:
            model = file.read()
        os.mkfifo(self.path("pipe"))
        for flags, reason in ((["-o", "net.pt2"], "-o: 'net.pt2' is read, too, and would be replaced"),
                              (["--report=net.pt2"], "--report: 'net.pt2' is read, too, and would be replaced"),
                              (["-o", "pipe"], "-o: 'pipe' is not a regular file"), (["-o", "/dev/null"], "not a regular file")):
            with self.subTest(flags):
                self.fail_with(reason, "tessera-compile", "net.pt2", "--batch", 4, *flags)
        with open(self.path("net.pt2"), "rb") as file:
            self.assertEqual(file.read(), model)
        self.compile(output="first.tessera")
        os.symlink("first.tessera", self.path("link.tessera"))
        before = os.stat(self.path("first.tessera")).st_ino
        self.compile(output="link.tessera")
        self.assertTrue(os.path.islink(self.path("link.tessera")))
        self.assertNotEqual(os.stat(self.path("first.tessera")).st_ino, before)
        self.fail_with("is the artifact, and would be replaced", "tessera-dump", "link.tessera", "--write-code", "link.tessera")

    def test_pipes_are_no_input(self):
        """Nobody may ever write to them."""
        self.compile()
        os.mkfifo(self.path("pipe.safetensors"))
        for command in (["tessera-compile", "pipe.safetensors", "-o", "x.tessera"], ["tessera-dump", "pipe.safetensors"],
                        ["tessera-run", "pipe.safetensors", "--data", "data.npz", "--out", "run", "--steps", 1],
                        ["tessera-run", "net.tessera", "--data", "pipe.safetensors", "--out", "run", "--steps", 1],
                        ["tessera-run", "net.tessera", "--data", "data.npz", "--weights", "pipe.safetensors", "--out", "run", "--steps", 1]):
            with self.subTest(command):
                self.fail_with("not a regular file", *command)

    def limited(self, blocks, *command):
        """The ending of a tool whose files may have `blocks` KiB."""
        words = " ".join(map(str, (os.path.join(BIN, command[0]), *command[1:])))
        return subprocess.run(["bash", "-c", f"ulimit -f {blocks}; {words}"], cwd=self.folder, capture_output=True, text=True, timeout=120)

    def test_limits_of_files(self):
        done = self.limited(8, "tessera-compile", "net.pt2", "--batch", 4, "-o", "net.tessera")
        self.assertEqual((done.returncode, "too large" in done.stderr), (1, True), done.stderr)

    def test_a_trace_that_cannot_be_written(self):
        self.compile()
        run = ["tessera-run", "net.tessera", "--data", "data.npz", "--out", "run", "--checkpoint-every", 2]
        self.succeed(*run, "--steps", 2)
        os.makedirs(self.path("run", "trace.json"))
        done = self.tool(*run, "--steps", 6, "--resume", "auto", "--trace-steps", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"warning: cannot write 'run/trace.json': .*; the run goes on without it")
        self.assertTrue(os.path.exists(self.path("run", "model.safetensors")))

    def test_exports(self):
        """Of a run that goes on, which may replace what it exported, and nothing else."""
        self.compile()
        run = ["tessera-run", "net.tessera", "--data", "data.npz", "--out", "run", "--checkpoint-every", 2]
        self.succeed(*run, "--steps", 2, "--export", "out.safetensors")
        self.fail_with("--export: 'net.pt2' exists and holds no weights that a run wrote", *run, "--steps", 4, "--resume", "run", "--export",
                       "net.pt2")
        self.succeed(*run, "--steps", 4, "--resume", "run", "--export", "out.safetensors")

    def test_an_evaluation_that_is_missing(self):
        """Is made when the run goes on, and only then."""
        self.compile("--evaluate")
        run = ["tessera-run", "net.tessera", "--data", "data.npz", "--out", "run", "--checkpoint-every", 2, "--eval-data", "data.npz",
               "--eval-every", 2, "--steps", 4]
        self.succeed(*run)
        with open(self.path("run", "metrics.jsonl")) as file:
            whole = file.readlines()

        def evaluations(lines):
            return [(record["step"], record["eval_loss"]) for record in map(json.loads, lines) if record.get("stage") == "evaluation"]
        with open(self.path("run", "metrics.jsonl"), "w") as file:  # as a run leaves it that ends before the last evaluation
            file.writelines(line for line in whole if not ('"evaluation"' in line and '"step":4' in line))
        for _ in range(2):
            self.succeed(*run, "--resume", "auto")
            with open(self.path("run", "metrics.jsonl")) as file:
                self.assertEqual(evaluations(file), evaluations(whole))

    def test_an_evaluation_that_is_stopped(self):
        """The last one of a run without checkpoints leaves one, to make it up from."""
        self.compile("--evaluate")
        random, samples = np.random.default_rng(1), 400_000
        np.savez(self.path("long.npz"), x=random.standard_normal((samples, 4), np.float32), label=random.integers(0, 5, samples),
                 targets=random.integers(0, 5, samples).astype(np.int32))
        run = ["tessera-run", "net.tessera", "--data", "data.npz", "--out", "run", "--steps", 2, "--log-every", 1]
        with subprocess.Popen([os.path.join(BIN, run[0]), *map(str, run[1:]), "--eval-data", "long.npz"], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                if "step 2/2" in line:
                    process.terminate()
                    break
            _, said = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 143, said)
        self.assertIn("the evaluation after step 2 was stopped", said)
        self.assertIn("ckpt-2", os.listdir(self.path("run", "checkpoints")))
        self.assertIn("eval loss", self.succeed(*run, "--eval-data", "data.npz", "--resume", "auto"))

    def test_records_of_others(self):
        """A run replaces no file of its folder that is not a run's."""
        self.compile()
        run = ["tessera-run", "net.tessera", "--data", "data.npz", "--steps", 2, "--out"]
        for name in ("run.json", "metrics.jsonl", "trace.json", "memory.json"):
            with self.subTest(name):
                os.makedirs(self.path("mine-" + name))
                with open(self.path("mine-" + name, name), "w") as file:
                    file.write('{"my": "experiment"}\n')
                self.fail_with(f"holds 'mine-{name}/{name}', which the run would replace", *run, "mine-" + name)
                with open(self.path("mine-" + name, name)) as file:
                    self.assertEqual(file.read(), '{"my": "experiment"}\n')
        for name in ("run.json", "metrics.jsonl", "checkpoints/latest", "checkpoints", ""):
            with self.subTest(name):
                self.fail_with("is among the run's own files", *run, "run", "--export", os.path.join("run", name))
        self.succeed(*run, "run", "--export", "run/best.safetensors")

    def test_weights_of_integers(self):
        """Are quantised, or something else, and no values of parameters."""
        self.compile()
        weights = {name: np.ones(value.shape, np.int8) for name, value in self.weights().items()}
        safetensors.save(weights, self.path("weights.safetensors"))
        self.fail_with("mismatched: '.*' has type I8, expected F32", "tessera-run", "net.tessera", "--data", "data.npz", "--steps", 1, "--out",
                       "run", "--weights", "weights.safetensors")

    def weights(self):
        self.succeed("tessera-run", "net.tessera", "--data", "data.npz", "--steps", 1, "--out", "first")
        return safetensors.load(self.path("first", "model.safetensors"))

    def test_two_outputs_of_one_name(self):
        for flags in (("--report=x", "-o", "./x"), ("--report=x", "-o", "y", "--remat-report", "folder/../x")):
            with self.subTest(flags):
                self.fail_with("are one file", "tessera-compile", "net.pt2", "--batch", 4, *flags)
        os.makedirs(self.path("phases"))
        self.succeed("tessera-compile", "net.pt2", "--batch", 4, "--compile-to", "import", "-o", "phases/1-import.mlir")
        self.fail_with("--dump-phases: 'phases/1-import.mlir' is read, too", "tessera-compile", "phases/1-import.mlir", "--compile-to", "lower",
                       "--dump-phases", "phases")

    def test_targets_that_are_none(self):
        with open(self.path("deep.json"), "w") as file:
            file.write("[" * 200_000)
        os.mkfifo(self.path("pipe.json"))
        for name, reason in (("deep.json", "not a target file"), ("pipe.json", "not a regular file")):
            with self.subTest(name):
                self.fail_with(reason, "tessera-compile", "net.pt2", "--batch", 4, "--report", "--target", name)

    def test_words_that_are_none(self):
        for flags, reason in ((("--compile-to", "shart"), "unknown phase 'shart', expected import, "),
                              (("--mesh", "shard=99999999999"), "has 99999999999 ranks, and a mesh has 65536 at most"),
                              (("--dim", "seq=3"), "no input has a symbolic dimension 'seq'; --seq binds what counts positions")):
            with self.subTest(flags):
                self.fail_with(reason, "tessera-compile", "net.pt2", "--batch", 4, *flags, "-o", "net.tessera")

    def test_formats_of_plots(self):
        self.compile()
        self.succeed("tessera-run", "net.tessera", "--data", "data.npz", "--steps", 2, "--out", "run")
        for name in ("loss.svg", "loss.pdf", "loss.png"):
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "plot-loss.py"), "run", "--output", name], cwd=self.folder,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, os.path.getsize(self.path(name)) > 1000), (0, True), done.stderr)
        done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "plot-loss.py"), "run", "--output", "loss.txt"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertRegex(done.stderr, "^plot-loss: cannot write 'loss.txt': ")

    def test_a_checkpoint_that_moved(self):
        """And is linked to where it was, is the run's."""
        self.compile()
        run = ["tessera-run", "net.tessera", "--data", "data.npz", "--out", "run", "--checkpoint-every", 2, "--log-every", 1]
        self.succeed(*run, "--steps", 4)
        shutil.move(self.path("run", "checkpoints", "ckpt-4"), self.path("elsewhere"))
        os.symlink(self.path("elsewhere"), self.path("run", "checkpoints", "ckpt-4"))
        done = self.tool(*run, "--steps", 6, "--resume", "auto")
        self.assertEqual((done.returncode, "warn" in done.stderr), (0, False), done.stderr)
        self.assertIn("resumed from run/checkpoints/ckpt-4 after step 4", done.stdout)

    def test_what_a_resume_says(self):
        self.compile()
        run = ["tessera-run", "--data", "data.npz", "--out", "run", "--checkpoint-every", 2]
        self.succeed(*run, "net.tessera", "--steps", 4)
        self.compile("--label-smoothing", 0.1, "--no-decay", ".", "--ignore-index", 3, output="other.tessera")
        done = self.tool(*run, "other.tessera", "--steps", 6, "--resume", "run/checkpoints/ckpt-2")
        self.assertEqual(done.returncode, 0, done.stderr)
        for setting in ("label_smoothing 0.1", "no_decay .", "ignore_index 3"):
            self.assertIn(f"was compiled with {setting}, what 'run/checkpoints/ckpt-2' was trained with had unset", done.stderr)
        self.assertIn("ckpt-4' is of steps that this run makes again", done.stderr)


if __name__ == "__main__":
    import unittest
    unittest.main()
