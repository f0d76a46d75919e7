"""Epochs, the best checkpoint, and runs that end when evaluations no longer improve."""

import json
import os
import subprocess

import numpy as np

from harness import BIN, Golden, ToolTest
from launchers import free_port, tcp_environment
import safetensors

SEQUENCE, BATCH, SAMPLES = 64, 6, 36


class Best(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        rows = self.golden.cut(None, SEQUENCE)
        safetensors.save({name: value[:SAMPLES] for name, value in rows.items()}, self.path("train.safetensors"))
        safetensors.save({name: value[-14:] for name, value in rows.items()}, self.path("held.safetensors"))

    def compile(self, *flags):
        self.succeed("tessera-compile", self.golden.model, "--batch", BATCH, "--seq", SEQUENCE, "--lr", 1e-3, "--evaluate",
                     *flags, "-o", "net.tessera")

    def words(self, out, *flags):
        return ["net.tessera", "--data", "train.safetensors", "--weights", self.golden.weights, "--out", out, "--threads", 1, *flags]

    def train(self, out, *flags):
        return self.succeed("tessera-run", *self.words(out, *flags))

    def train_processes(self, out, *flags):
        port = free_port()
        command = [os.path.join(BIN, "tessera-run"), *map(str, self.words(out, "--comm", "tcp", *flags))]
        ranks = [subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  env=os.environ | tcp_environment(rank, 2, port)) for rank in range(2)]
        for rank in ranks:
            printed, _ = rank.communicate(timeout=120)
            self.assertEqual(rank.returncode, 0, printed)

    def evaluations(self, out):
        with open(self.path(out, "metrics.jsonl")) as file:
            return [record["step"] for record in map(json.loads, file) if record.get("stage") == "evaluation"]

    def info(self, out):
        with open(self.path(out, "run.json")) as file:
            return json.load(file)

    def weights(self, out):
        return safetensors.load(self.path(out, "model.safetensors"))

    def assert_same_weights(self, out, reference):
        for name, value in self.weights(reference).items():
            self.assertTrue(np.array_equal(value.view(np.uint32), self.weights(out)[name].view(np.uint32)), name)

    def test_epochs(self):
        """As many steps as bring every sample that often; evaluations follow each epoch."""
        self.compile()
        for epochs, steps, evaluated in (("1.5", 9, [6, 9]), ("1", 6, [6]), ("0.01", 1, [1]), ("1.01", 7, [6, 7])):
            out = "epochs-" + epochs
            self.train(out, "--epochs", epochs, "--eval-data", "held.safetensors", "--no-export")
            self.assertEqual(len(self.metrics(out)), steps)
            self.assertEqual(self.evaluations(out), evaluated)
            self.assertEqual(self.info(out)["finished_step"], steps)
        self.train("every", "--epochs", 1, "--eval-data", "held.safetensors", "--eval-every", 4, "--no-export")
        self.assertEqual(self.evaluations("every"), [4, 6])
        self.train("resumed", "--steps", 4, "--checkpoint-every", 2, "--no-export")
        self.succeed("tessera-run", "net.tessera", "--data", "train.safetensors", "--resume", "resumed", "--out", "resumed",
                     "--threads", 1, "--epochs", 1.5, "--no-export")
        self.assertEqual([record["loss"] for record in self.metrics("resumed")],
                         [record["loss"] for record in self.metrics("epochs-1.5")])

    def test_shares_of_all_steps(self):
        self.compile("--schedule", "wsd", "--decay-steps", 1)
        rates = {}
        for out, flags in (("share", ["--warmup", "34%", "--decay-steps", "20%"]), ("count", ["--warmup", 4, "--decay-steps", 2])):
            self.train(out, "--epochs", "1.5", "--no-export", *flags)
            rates[out] = [record["lr"] for record in self.metrics(out)]
        self.assertEqual(rates["share"], rates["count"])
        self.assertLess(rates["share"][0], rates["share"][3])

    def check_best(self, out, last):
        """A rate that ruins the weights: the loss after step 1 is the lowest."""
        self.assertEqual(self.evaluations(out), list(range(1, last + 1)))
        with open(self.path(out, "checkpoints", "best")) as file:
            self.assertEqual(file.read(), "ckpt-1\n")
        self.assertEqual((self.info(out)["finished_step"], self.info(out)["best_step"]), (last, 1))

    def test_the_best_weights_are_exported(self):
        for name, flags in (("one", []), ("zero3", ["--mesh", "shard=2", "--strategy", "zero3"])):
            with self.subTest(name):
                self.compile("--ema", 0.5, *flags)
                held = ["--eval-data", "held.safetensors", "--eval-every", 1, "--lr", 1]
                for steps in (1, 3):
                    self.train(f"{name}-{steps}", "--steps", steps, "--lr", 1)
                printed = self.train(name + "-best", "--steps", 8, "--patience", 2, *held)
                self.assertIn("2 evaluations without a loss below", printed)
                self.check_best(name + "-best", 3)
                self.assert_same_weights(name + "-best", name + "-1")
                self.train(name + "-last", "--steps", 8, "--patience", 2, "--export-step", "last", *held)
                self.check_best(name + "-last", 3)
                self.assert_same_weights(name + "-last", name + "-3")
                again = self.train(name + "-best", "--steps", 8, "--patience", 2, "--resume", "auto", *held)
                self.assertIn("resumed from", again)
                self.check_best(name + "-best", 3)
                self.assert_same_weights(name + "-best", name + "-1")
                if name == "zero3":
                    self.train_processes("tcp", "--steps", 8, "--patience", 2, *held)
                    self.check_best("tcp", 3)
                    self.assert_same_weights("tcp", name + "-1")

    def test_a_run_that_goes_on_knows_what_was_best(self):
        self.compile()
        held = ["--eval-data", "held.safetensors", "--eval-every", 1, "--lr", 1, "--checkpoint-every", 1, "--keep", 1]
        self.train("first", "--steps", 1, "--lr", 1)
        self.train("run", "--steps", 2, "--keep-best", *held)
        self.assertEqual(sorted(os.listdir(self.path("run", "checkpoints"))), ["best", "ckpt-1", "ckpt-2", "latest"])
        self.succeed("tessera-run", "net.tessera", "--data", "train.safetensors", "--resume", "run", "--out", "run", "--threads",
                     1, "--steps", 8, "--patience", 3, *held)
        self.check_best("run", 4)
        self.assert_same_weights("run", "first")
        printed = self.succeed("tessera-run", "net.tessera", "--eval-only", "--eval-data", "held.safetensors", "--resume",
                               self.path("run", "checkpoints", "best"), "--threads", 1)
        self.assertIn("step 1 ('", printed)

    def test_checkpoints_that_were_kept_stay(self):
        """Beside those of --checkpoint-every only the best and the last are there."""
        self.compile()
        self.train("run", "--steps", 4, "--checkpoint-every", 2, "--no-export")
        self.succeed("tessera-run", "net.tessera", "--data", "train.safetensors", "--resume", "run", "--out", "run", "--threads",
                     1, "--steps", 8, "--keep-best", "--eval-data", "held.safetensors", "--eval-every", 1, "--no-export")
        with open(self.path("run", "checkpoints", "best")) as file:
            best = file.read().strip()
        self.assertEqual(set(os.listdir(self.path("run", "checkpoints"))), {"best", "latest", "ckpt-2", "ckpt-4", "ckpt-8", best})

    def test_epochs_of_other_batches(self):
        """Steps of fewer samples came before: the number of steps that epochs are is no longer right."""
        self.compile()
        self.train("run", "--steps", 2, "--checkpoint-every", 1, "--no-export")
        self.succeed("tessera-compile", self.golden.model, "--batch", 2 * BATCH, "--seq", SEQUENCE, "--lr", 1e-3, "-o", "wide.tessera")
        again = ["wide.tessera", "--data", "train.safetensors", "--resume", "run", "--out", "run", "--threads", 1, "--no-export"]
        self.fail_with(r"--epochs 1 \(3 steps of 12 samples\) would end after 24 samples.*--steps 4 ends", "tessera-run", *again,
                       "--epochs", 1)
        self.succeed("tessera-run", *again, "--steps", 4)

    def test_what_has_no_meaning(self):
        self.compile()
        for flags, problem in (
                (["--keep-best"], "need --eval-data"), (["--patience", 2], "need --eval-data"),
                (["--eval-data", "held.safetensors", "--keep-best"], "need several evaluations"),
                (["--eval-data", "none", "--keep-best"], "need --eval-data"), (["--export-step", "last"], "--export-step needs --keep-best"),
                (["--epochs", 1, "--steps", 2], "excludes"), (["--epochs", 0], "more than 0"), (["--epochs", "x"], "no number"),
                (["--patience", 0], "from 1 to"), (["--warmup", "101%"], "no number from 0 to 100"), (["--warmup", "x%"], "no number"),
                (["--warmup", "-1"], "no whole number")):
            with self.subTest(flags):
                self.fail_with(problem, "tessera-run", *self.words("out", *flags))
                self.assertFalse(os.path.exists(self.path("out", "metrics.jsonl")))
