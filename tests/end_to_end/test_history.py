"""What a run goes on from, and what it replaces: finished runs stay, and other settings than those of the checkpoint are said."""

import json
import os
import re
import shutil

import numpy as np

from harness import ToolTest

VOCABULARY, WIDTH = 100, 8
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
bigram (int64[B,T] tokens) => (float[B,T,V] logits)
<float[100,8] embed = {%s}, float[8,100] head = {%s}>
{
  embedded = Gather (embed, tokens)
  logits = MatMul (embedded, head)
}
""" % ((", ".join(f"0.{i % 7}" for i in range(VOCABULARY * WIDTH)),) * 2)


class HistoryTest(ToolTest):
    def setUp(self):
        super().setUp()
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(MODEL)
        (np.arange(4000) * 7 % VOCABULARY).astype(np.uint16).tofile(self.path("data.bin"))
        self.compile("a")

    def compile(self, name, *flags):
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", ".", "--batch", 4, "--seq", 16, "--lr", 0.01,
                     "--schedule", "cosine", "--min-lr", 0.001, "--warmup", 2, "--evaluate", *flags, "-o", name + ".tessera")

    def command(self, out, steps, *flags, artifact="a"):
        return ["tessera-run", artifact + ".tessera", "--data", "data.bin", "--steps", steps, "--out", out, "--threads", 1, *flags]

    def train(self, *arguments, **options):
        """What the tool says, on both streams."""
        done = self.tool(*self.command(*arguments, **options))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def refused(self, message, *arguments, **options):
        return self.fail_with(message, *self.command(*arguments, **options))

    def run_info(self, run):
        with open(self.path(run, "run.json")) as file:
            return json.load(file)

    def content(self, run):
        """Every file of a run but its lease, by name."""
        found = {}
        for folder, _, names in os.walk(self.path(run)):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    found[os.path.relpath(os.path.join(folder, name), self.path(run))] = file.read()
        return found


class FinishedRuns(HistoryTest):
    def test_auto_keeps_a_finished_run_without_checkpoints(self):
        for flags in ((), ("--no-export",), ("--export", "elsewhere.safetensors")):
            with self.subTest(flags=flags):
                self.train("run", 6, *flags)
                before = self.content("run")
                for steps, more in ((6, ()), (6, ("--seed", 3)), (4, ()), (9, ())):
                    self.refused("run folder 'run' holds a run that has made all its 6 steps and left no checkpoint to go on from: "
                                 "its weights and metrics would be replaced; remove it or choose another",
                                 "run", steps, "--resume", "auto", *more)
                    self.assertEqual(self.content("run"), before)
                shutil.rmtree(self.path("run"))

    def test_a_run_of_an_earlier_version_says_nothing_of_its_end(self):
        self.train("run", 6)
        info = self.run_info("run")
        del info["finished_step"]
        with open(self.path("run", "run.json"), "w") as file:
            json.dump(info, file)
        self.refused("has made all its 6 steps", "run", 6, "--resume", "auto")

    def test_auto_does_not_go_back_behind_the_end(self):
        self.train("run", 6, "--checkpoint-every", 4)
        self.train("run", 10, "--resume", "run")
        self.assertEqual(self.run_info("run")["finished_step"], 10)
        shutil.rmtree(self.path("run", "checkpoints", "ckpt-6"))
        with open(self.path("run", "checkpoints", "latest"), "w") as file:
            file.write("ckpt-4\n")
        before = self.content("run")
        self.refused(r"has made 10 steps, and --steps ends at 8: its weights and metrics would be replaced", "run", 8, "--resume", "auto")
        self.assertEqual(self.content("run"), before)
        # As many steps are done again from the newest checkpoint, as after one that is damaged; one that is named is wanted.
        output = self.train("run", 10, "--resume", "auto")
        self.assertRegex(output, r"resumed from run/checkpoints/ckpt-4 after step 4; steps 5 to 10 of 'run' are done again\n")
        output = self.train("run", 8, "--resume", "run/checkpoints/ckpt-4")
        self.assertIn("; steps 5 to 10 of 'run' are done again", output)
        self.assertEqual([record["step"] for record in self.metrics("run")], list(range(1, 9)))

    def test_a_run_that_was_killed_begins_anew_and_says_so(self):
        self.train("run", 3, "--no-export")
        info = self.run_info("run")
        del info["finished_step"]
        with open(self.path("run", "run.json"), "w") as file:
            json.dump(info, file)
        self.assertIn("run folder 'run' holds 3 steps of a run that was ended before its first checkpoint: they are done again",
                      self.train("run", 4, "--resume", "auto"))
        self.assertEqual([record["step"] for record in self.metrics("run")], [1, 2, 3, 4])

    def test_files_that_exist_are_not_replaced(self):
        os.mkdir(self.path("own"))
        with open(self.path("own", "model.safetensors"), "w") as file:
            file.write("mine")
        self.refused("run folder 'own' holds 'own/model.safetensors', which the run would replace", "own", 2)
        self.train("first", 2, "--checkpoint-every", 2, "--export", "w.safetensors")
        self.refused("--export: 'w.safetensors' exists and would be replaced; remove it or name another file", "second", 2, "--export",
                     "w.safetensors")
        self.assertFalse(os.path.exists(self.path("second")))
        self.assertIn("--export: 'w.safetensors' exists and will be replaced at the end of the run",
                      self.train("first", 4, "--resume", "auto", "--export", "w.safetensors"))
        os.mkdir(self.path("dumped"))
        os.mkdir(self.path("dumped", "dump-1"))
        self.refused("run folder 'dumped' holds 'dumped/dump-1', which the run would replace", "dumped", 2, "--dump", "parameters")
        os.mkdir(self.path("events"))
        os.mkdir(self.path("events", "tensorboard"))
        self.refused("run folder 'events' holds 'events/tensorboard', which the run would replace", "events", 2, "--tensorboard")
        os.symlink("nowhere", self.path("link"))
        self.refused("--export: 'link' exists and would be replaced", "linked", 2, "--export", "link")

    def test_averages_that_exist_are_not_replaced(self):
        self.compile("ema", "--ema", 0.9)
        for name in ("w-average.safetensors", "own/model-average.safetensors"):
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            with open(self.path(name), "w") as file:
                file.write("mine")
        self.refused("--export: 'w-average.safetensors' exists and would be replaced", "run", 2, "--export", "w.safetensors",
                     artifact="ema")
        self.refused("run folder 'own' holds 'own/model-average.safetensors', which the run would replace", "own", 2,
                     artifact="ema")

    def test_whole_numbers_are_decimal(self):
        output = self.train("ten", "010", "--seed", "008")
        self.assertIn("step 10/10", output)
        self.assertIn("(seed 8)", output)


class Records(HistoryTest):
    def test_run_json_keeps_what_made_the_state(self):
        self.train("base", 2)
        self.train("run", 4, "--weights", "base/model.safetensors", "--seed", 5, "--checkpoint-every", 2)
        self.train("run", 6, "--resume", "run", "--checkpoint-every", 2)
        self.train("other", 8, "--resume", "run", "--lr", 0.02)
        info = self.run_info("other")
        self.assertEqual(info["settings"]["weights"], "base/model.safetensors")
        self.assertEqual((info["resumed_from"], info["resumed_step"]), ("run/checkpoints/ckpt-6", 6))
        first, second = info["earlier"]
        self.assertEqual(first["settings"]["weights"], "base/model.safetensors")
        self.assertIn("--weights", first["command"])
        self.assertEqual((first["settings"]["steps"], second["settings"]["steps"], info["settings"]["steps"]), ("4", "6", "8"))
        self.assertEqual(second["resumed_from"], "run/checkpoints/ckpt-4")
        for each in (first, second):
            self.assertNotIn("earlier", each)
            self.assertEqual(each["settings"]["seed"], "5")
        # A checkpoint alone knows of no run.
        shutil.copytree(self.path("run", "checkpoints", "ckpt-4"), self.path("ckpt-4"))
        self.train("alone", 6, "--resume", "ckpt-4")
        self.assertEqual(self.run_info("alone")["earlier"], [])

    def test_an_evaluation_names_what_it_evaluates(self):
        self.train("run", 4, "--checkpoint-every", 4)
        evaluate = ["tessera-run", "a.tessera", "--eval-data", "data.bin", "--eval-only", "--threads", 1]
        data = "over 249 samples of uint16 tokens \\(by values and a vocabulary of 100\\)"
        printed = self.succeed(*evaluate, "--resume", "run")
        self.assertRegex(printed, rf"^a\.tessera: evaluates step 4 \('run/checkpoints/ckpt-4'\) {data}\neval loss ")
        self.train("run", 6, "--resume", "run")  # without checkpoints
        done = self.tool(*evaluate, "--resume", "run")
        self.assertIn("'run/checkpoints/ckpt-4' is of step 4, but its run went on to step 6: --weights ", done.stderr)
        self.assertIn("evaluates step 4 ", done.stdout)
        weights = re.search(r"--weights (\S+) are", done.stderr).group(1)
        done = self.tool(*evaluate, "--weights", weights)
        self.assertRegex(done.stdout, rf"^a\.tessera: evaluates values: \d+ tensors of '{weights}' {data}\n")


class OtherSettings(HistoryTest):
    def warnings(self, out, steps, *flags, **options):
        return [line for line in self.train(out, steps, *flags, **options).splitlines() if "warn" in line]

    def learning_rate(self, run, step):
        return next(record["lr"] for record in self.metrics(run) if record["step"] == step)

    def test_a_learning_rate_that_is_lifted_is_said(self):
        self.train("run", 10, "--checkpoint-every", 5)
        for kind, flags in (("cosine", ()), ("linear", ("--schedule", "linear")), ("wsd", ("--schedule", "wsd", "--decay-steps", 4))):
            with self.subTest(kind):
                self.train(kind, 10, "--checkpoint-every", 5, *flags)
                warnings = self.warnings(kind + "-more", 20, "--resume", kind, *flags)
                before, after = self.learning_rate(kind, 10), self.learning_rate(kind + "-more", 11)
                self.assertGreater(after, 2 * before)
                self.assertEqual(len(warnings), 1, warnings)
                self.assertIn(f"the learning rate goes from {before:.4g} in step 10 to {after:.4g} in step 11, and would have gone to "
                              "0.001: the schedule depends on the last step, which is 20, and for", warnings[0])
                # Not where it goes on as it would have.
                self.assertEqual(self.warnings(kind + "-same", 10, "--resume", kind + "/checkpoints/ckpt-5", *flags), [])
        for kind in ("constant", "inverse-sqrt"):
            flags = ("--schedule", kind, *(() if kind == "constant" else ("--min-lr", 0)))
            self.train(kind, 10, "--checkpoint-every", 5, *flags)
            self.assertEqual(self.warnings(kind + "-more", 20, "--resume", kind, *flags), [])
        # A plateau goes on, wherever its end is.
        flags = ("--schedule", "wsd", "--decay-steps", 4)
        self.assertEqual(self.warnings("plateau", 20, "--resume", "wsd/checkpoints/ckpt-5", *flags), [])

    def test_other_flags_of_the_learning_rate(self):
        self.train("run", 10, "--checkpoint-every", 5)
        warnings = self.warnings("higher", 10, "--resume", "run/checkpoints/ckpt-5", "--lr", 0.02)
        self.assertRegex(warnings[0], r"the learning rate goes from \S+ in step 5 to \S+ in step 6, and would have gone to \S+: the "
                                      r"schedule is cosine lr=0\.02 .*, that of 'run/checkpoints/ckpt-5' was cosine lr=0\.01")
        self.assertEqual(len(warnings), 1)

    def test_another_artifact(self):
        self.train("run", 4, "--checkpoint-every", 2)
        for name, flags, expected in (
                ("bf16", ("--precision", "bf16"), ["precision bf16, what 'run/checkpoints/ckpt-2' was trained with had fp32"]),
                ("clipped", ("--clip-norm", 2.5, "--weight-decay", 0.5),
                 ["clip_norm 2.5, what 'run/checkpoints/ckpt-2' was trained with had ",
                  "weight_decay 0.5, what 'run/checkpoints/ckpt-2' was trained with had "]),
                ("halves", None, ["accumulate 2, what 'run/checkpoints/ckpt-2' was trained with had 1"]),
                ("two", ("--mesh", "shard=2", "--strategy", "zero3"), [])):
            with self.subTest(name):
                if flags is None:
                    self.compile_halves()
                else:
                    self.compile(name, *flags)
                warnings = self.warnings(name, 4, "--resume", "run/checkpoints/ckpt-2", artifact=name)
                self.assertEqual(len(warnings), len(expected), warnings)
                for warning, text in zip(warnings, expected):
                    self.assertIn(f"'{name}.tessera' was compiled with {text}", warning)

    def test_another_model(self):
        """Of the same parameters: what it computes is another thing; the size of its batch is not."""
        self.train("run", 4, "--checkpoint-every", 2)
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(MODEL.replace("MatMul (embedded, head)", "MatMul (relu, head)").replace("logits =", "relu = Relu (embedded)\n  logits ="))
        self.compile("other")
        warnings = self.warnings("other", 4, "--resume", "run/checkpoints/ckpt-2", artifact="other")
        self.assertEqual([warning.split("warning: ")[-1] for warning in warnings],
                         ["'other.tessera' computes something else than what 'run/checkpoints/ckpt-2' was trained with: another model with "
                          "the same parameters"])

    def test_going_back(self):
        """What goes on after a run that went back is that run, not the one that it left."""
        self.train("run", 6, "--checkpoint-every", 2)
        old = self.content("run")["model.safetensors"]
        self.assertIn("is of steps that this run makes again",
                      "\n".join(self.warnings("run", 4, "--resume", "run/checkpoints/ckpt-2", "--lr", 0.02)))
        went = self.content("run")
        self.assertEqual(went["checkpoints/latest"], b"ckpt-2\n")
        for resume in ("auto", "run"):
            done = self.train("run", 4, "--resume", resume, "--lr", 0.02)
            self.assertIn("resumed from", done)
            self.assertIn("ckpt-2 after step 2", done)
            self.assertEqual(self.content("run")["model.safetensors"], went["model.safetensors"])
        self.assertNotEqual(went["model.safetensors"], old)
        self.train("run", 8, "--resume", "auto", "--lr", 0.02)
        self.assertEqual([record["step"] for record in self.metrics("run")], list(range(1, 9)))

    def test_warm_up_without_an_end(self):
        (warning,) = self.warnings("short", 1)
        self.assertIn("the learning rate warms up for 2 steps, and --steps ends at 1", warning)

    def test_damaged_records(self):
        self.train("run", 4, "--checkpoint-every", 2)
        with open(self.path("run", "metrics.jsonl")) as file:
            lines = file.readlines()
        with open(self.path("run", "metrics.jsonl"), "w") as file:
            file.writelines(["{\n", *lines])
        (warning,) = self.warnings("run", 6, "--resume", "run", "--schedule", "constant", "--min-lr", 0)[-1:]
        self.assertIn("'run/metrics.jsonl': 1 lines are not ones of a run, and are dropped", warning)

    def test_folder_of_the_data(self):
        """What a run writes below it would be read as data, by the run that goes on."""
        os.makedirs(self.path("data"))
        shutil.move(self.path("data.bin"), self.path("data", "data.bin"))
        os.symlink("data", self.path("link"))
        run = ["tessera-run", "a.tessera", "--data", "data", "--steps", 2]
        for flags in (("--out", "./data/"), ("--out", "data/runs/a"), ("--out", "link/runs"), ("--out", "run", "--export", "data/new.safetensors")):
            with self.subTest(flags):
                self.fail_with(f"{flags[-2]}: '{flags[-1]}' lies in the folder of the data, 'data'", *run, *flags)
        self.assertEqual(os.listdir(self.path("data")), ["data.bin"])

    def test_rates_that_cross(self):
        """The rate that a run is given is not below where the artifact's schedule ends."""
        self.refused("--min-lr 0.001 is above --lr 1e-05, where the schedule ends below it", "low", 4, "--lr", 1e-5)
        self.refused("--min-lr 5 is above --lr 0.01", "high", 4, "--min-lr", 5)
        self.train("both", 4, "--lr", 1e-5, "--min-lr", 1e-6)

    def compile_halves(self):
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", ".", "--batch", 2, "--accumulate", 2, "--seq", 16, "--lr", 0.01,
                     "--schedule", "cosine", "--min-lr", 0.001, "--warmup", 2, "-o", "halves.tessera")


class FailedCheckpoints(HistoryTest):
    def test_it_is_told_at_the_next_step(self):
        # A file where the folder of checkpoints should be: nothing can be written, as on a full disk.
        os.mkdir(self.path("run"))
        with open(self.path("run", "checkpoints"), "w"):
            pass
        self.refused("checkpoint of step 1000 is not written: cannot create 'run/checkpoints'", "run", 1000000,
                     "--checkpoint-every", 1000, "--log-every", 0)
        # The writer is another thread: it may be a few steps behind, and the next checkpoint is not waited for.
        self.assertLess(self.metrics("run")[-1]["step"], 1900)


if __name__ == "__main__":
    import unittest
    unittest.main()
