"""The tools say how they are used, dump every phase, and show what an artifact holds."""

import json
import os
import signal
import subprocess
import time

from harness import MODELS, Golden, ToolTest, run_command

TOOLS = ("tessera-compile", "tessera-run", "tessera-dump", "tessera-opt", "tessera-interp")
PHASES = ("import", "differentiate", "optimize", "precision", "shard", "schedule", "lower")


class Tools(ToolTest):
    def test_help_has_an_example(self):
        for tool in TOOLS:
            with self.subTest(tool):
                self.assertRegex(self.succeed(tool, "--help"), r"(?i)example")

    def test_every_phase_can_be_stopped_at_and_dumped(self):
        flags = [*Golden("llama").compile_flags(), "--mesh", "shard=2", "--strategy", "zero3"]
        for phase in PHASES:
            with self.subTest(phase):
                self.assertIn("func.func" if phase != "lower" else "exec.", self.succeed(
                    "tessera-compile", *flags, "--compile-to", phase))
        self.succeed("tessera-compile", *flags, "--dump-phases", "phases", "--embed-ir", "-o", "llama.tessera")
        names = sorted(os.listdir(self.path("phases")))
        self.assertEqual(names, [f"{i}-{phase}.mlir" for i, phase in enumerate(PHASES, 1)])
        self.assertIn("dist.all_gather", self.succeed("tessera-dump", "llama.tessera", "--ir=shard"))

    def test_phases_compute_the_same(self):
        """The interpreter gives the same step after optimize, after shard and after schedule, on two ranks."""
        flags = [*Golden("llama").compile_flags(4), "--mesh", "shard=2", "--strategy", "zero3", "--dump-phases", "p",
                 "--compile-to", "schedule"]
        flags[flags.index("--batch") + 1] = 2
        flags[flags.index("--seq") + 1] = 16
        self.succeed("tessera-compile", *flags)
        for phase in ("5-shard", "6-schedule"):
            self.succeed("tessera-interp", "p/3-optimize.mlir", f"--compare=p/{phase}.mlir", "--rtol", 1e-4, "--atol", 1e-5)

    def test_dump_shows_memory_schedule_and_collectives(self):
        self.succeed("tessera-compile", *Golden("gpt").compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o",
                     "gpt.tessera")
        memory = self.succeed("tessera-dump", "gpt.tessera", "--memory")
        for name in ("parameters", "gradients", "optimizer", "activations"):
            self.assertIn(name, memory.lower())
        self.assertRegex(memory, r"forward 0-\d+ +backward \d+-\d+ +update \d+-\d+\n  parameters ")
        plan = json.loads(self.succeed("tessera-dump", "gpt.tessera", "--memory", "--json"))["memory"]
        parts = plan["parts"]
        self.assertEqual([part["name"] for part in parts], ["forward", "backward", "update"])
        self.assertEqual([part["end"] for part in parts[:-1]], [part["first_instruction"] for part in parts[1:]])
        self.assertEqual(max(part["most"] for part in parts), plan["peak"])
        for part in parts:
            self.assertGreaterEqual(sum(part["most_by_class"].values()), part["most"])
        self.assertRegex(self.succeed("tessera-dump", "gpt.tessera", "--collectives"), r"all.?gather")
        self.assertRegex(self.succeed("tessera-dump", "gpt.tessera", "--schedule"), r"gemm")
        self.assertTrue(json.loads(self.succeed("tessera-dump", "gpt.tessera", "--json")))

    def test_rules_of_init(self):
        flags = [*Golden("llama").compile_flags(), "-o", "llama.tessera", "--init"]
        self.fail_with("no parameter matches 'wte'", "tessera-compile", *flags, "wte=zeros")
        output = self.fail_with("expected <regex>=", "tessera-compile", *flags, ".*=normal:-1")
        self.assertEqual(len(output.splitlines()), 1, "an error is one line, without the program")
        self.assertFalse(os.path.exists(self.path("llama.tessera")))
        self.succeed("tessera-compile", *flags, ".*norm.*=constant:0.5")
        self.assertRegex(self.succeed("tessera-dump", "llama.tessera", "--state"), r"norm\.weight .*constant 0\.5")

    def test_running_statistics_are_not_silently_stale(self):
        for model, warns, *flags in (("cnn.ts17.onnx", True), ("cnn.ts17eval.onnx", False, "--parameters", "."),
                                     ("mlp.ts17.onnx", False)):
            with self.subTest(model):
                done = self.tool("tessera-compile", os.path.join(MODELS, model), "--batch", 2, "--loss", "mse", *flags,
                                 "--compile-to", "import")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual("running mean and variance are not updated" in done.stderr, warns, done.stderr)


class Run(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("llama")
        self.succeed("tessera-compile", *self.golden.compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o",
                     "a.tessera")

    def flags(self, out, steps):
        return ["a.tessera", "--data", self.golden.data, "--steps", steps, "--out", out, "--threads", 1]

    def test_signals_end_a_run_with_a_checkpoint(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                out = f"run-{number}"
                run = subprocess.Popen(run_command(*self.flags(out, 1000000)),
                                       cwd=self.folder, stdout=subprocess.PIPE, text=True)
                self.addCleanup(run.kill)
                end = time.monotonic() + 60
                while time.monotonic() < end and (not os.path.exists(self.path(out, "metrics.jsonl"))
                                                  or not os.path.getsize(self.path(out, "metrics.jsonl"))):
                    time.sleep(0.01)
                run.send_signal(number)
                output, _ = run.communicate(timeout=60)
                self.assertEqual(run.returncode, 128 + number, output)
                last = self.metrics(out)[-1]["step"]
                self.assertIn(f"stopped after step {last}; go on with --resume {out}", output)
                self.assertEqual(sorted(os.listdir(self.path(out, "checkpoints"))), [f"ckpt-{last}", "latest"])
                self.assertFalse(os.path.exists(self.path(out, "model.safetensors")))
                self.succeed("tessera-run", *self.flags(out, last + 2), "--resume", out)
                self.assertEqual([record["step"] for record in self.metrics(out)], list(range(1, last + 3)))

    def test_a_signal_during_set_up_ends_the_run(self):
        """The folder is made before the ranks are set up; the signal comes as soon as it is there."""
        run = subprocess.Popen(run_command(*self.flags("early", 1000000)), cwd=self.folder,
                               stdout=subprocess.PIPE, text=True)
        self.addCleanup(run.kill)
        end = time.monotonic() + 60
        while time.monotonic() < end and not os.path.exists(self.path("early")):
            time.sleep(0.0005)
        run.send_signal(signal.SIGTERM)
        output, _ = run.communicate(timeout=60)
        self.assertEqual(run.returncode, 128 + signal.SIGTERM, output)
        self.assertRegex(output, r"stopped (before the first step|after step \d+)")
        self.assertFalse(os.path.exists(self.path("early", "model.safetensors")))

    def test_bad_flags_are_refused_before_training(self):
        for flags, message in ((["--export", "none/x"], "there is no folder 'none'"), (["--keep", -1], "keep"),
                               (["--export", "."], "is a folder"), (["--threads", -2], "threads"),
                               (["--checkpoint-every", -1], "checkpoint-every"),
                               (["--trace-steps", -1], "trace-steps"),
                               (["--dump", "losses", "--dump-step", 0], "dump-step"),
                               (["--dump", "losses", "--dump-step", 9], "--dump-step is 9, but --steps ends at 2"),
                               (["--dump-step", 1], "--dump-step requires --dump"),
                               (["--min-lr", 0.1], "--min-lr is where a schedule ends, but the schedule is constant"),
                               (["--ranks", -1], "ranks"), (["--seed", -1], "seed"), (["--warmup", -1], "warmup"),
                               (["--threads", 100000], "threads.*from 0 to 1024"), (["--lr", "nan"], "lr"),
                               (["--lr", -1], "lr"), (["--peak-gflops", "inf"], "peak-gflops"),
                               (["--stall-timeout", -1], "stall-timeout"), (["--stall-timeout", "1e300"], "stall-timeout"),
                               (["--resume", ""], "resume: the name is empty"), (["--weights", ""], "weights: the name"),
                               (["--resume", "a" * 5000], "no checkpoint at 'a+': not a folder"),
                               (["--export", "a" * 5000 + "/b"], "there is no folder 'a+'")):
            with self.subTest(str(flags)[:80]):
                self.assertNotIn("step 1/2", self.fail_with(message, "tessera-run", *self.flags("bad", 2), *flags))
        self.fail_with("--steps: '0' is no whole number from 1", "tessera-run", *self.flags("bad", 0))
        self.fail_with("steps: '100000000000000000000' is no whole number", "tessera-run", *self.flags("bad", 10 ** 20))
        self.succeed("tessera-run", *self.flags("good", 2), "--export", "good/mine.safetensors")
        self.assertTrue(os.path.exists(self.path("good", "mine.safetensors")))

    def test_the_records_of_two_runs_are_not_mixed(self):
        for out, seed in (("one", 1), ("other", 2)):
            self.succeed("tessera-run", *self.flags(out, 2), "--seed", seed, "--checkpoint-every", 2)
        before = self.metrics("other")
        self.fail_with("'other' already holds a run", "tessera-run", *self.flags("other", 4), "--resume", "one")
        self.assertEqual(self.metrics("other"), before)
        for resume in ("one", "one/checkpoints", "one/checkpoints/ckpt-2/"):
            self.succeed("tessera-run", *self.flags("one", 4), "--resume", resume)
            self.assertEqual([record["step"] for record in self.metrics("one")], [1, 2, 3, 4])

    def test_going_on_in_another_order_is_said(self):
        self.succeed("tessera-run", *self.flags("run", 2), "--checkpoint-every", 2)
        for flags, warning in (((), "^$"), (("--order", "sequential"), r"the order of the data is sequential, that of .* was "
                                          r"shuffled: the run continues at sample \d+ of a different order"),
                               (("--seed", 5), "the seed of the data is 5, that of .* was 0")):
            with self.subTest(flags):
                done = self.tool("tessera-run", *self.flags("run", 4), "--resume", "run", *flags)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, warning)
                self.assertEqual(done.stderr.count("warning"), 1 if flags else 0, done.stderr)

    def test_a_run_is_not_overwritten(self):
        self.succeed("tessera-run", *self.flags("run", 2))
        self.fail_with("already holds a run", "tessera-run", *self.flags("run", 2))
