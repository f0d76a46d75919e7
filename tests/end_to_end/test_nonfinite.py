"""Steps whose loss or gradients are not finite change nothing, too many of them end a run, and nothing good is lost."""

import json
import os
import signal
import unittest
import unittest.mock

import numpy as np
from harness import BIN, GOLDENS, MODELS, safetensors, run_command
from test_launch import LaunchTest

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
BATCH, STEPS = 12, 10
BAD = (3, 4, 8)  # steps whose batch has a NaN or an infinity
MESHES = {"one": (), "ddp": ("--mesh", "shard=2", "--strategy", "ddp"), "zero3": ("--mesh", "shard=3", "--strategy", "zero3")}
ADAMW = ("--optimizer", "adamw", "--lr", 0.01, "--clip-norm", 0.5)
SGD = ("--optimizer", "sgd", "--lr", 0.05, "--momentum", 0.9, "--weight-decay", 0)


class Batches(LaunchTest):
    """An MLP on data of which some batches are damaged."""

    def setUp(self):
        super().setUp()
        data = {name: np.array(value) for name, value in
                safetensors.load(os.path.join(GOLDENS, "mlp", "data.safetensors")).items()}
        keep = [row for row in range(BATCH * STEPS) if row // BATCH + 1 not in BAD]
        safetensors.save({name: value[keep] for name, value in data.items()}, self.path("clean.safetensors"))
        for step, value in zip(BAD, (np.nan, np.inf, np.nan)):
            data["x"][step * BATCH - 5, 3] = value
        safetensors.save(data, self.path("damaged.safetensors"))

    def save_large_targets(self):
        data = {name: np.array(value) for name, value in safetensors.load(self.path("clean.safetensors")).items()}
        data["targets"] *= np.float32(1e12)
        safetensors.save(data, self.path("large.safetensors"))

    def compile(self, name, *flags, accumulate=1):
        self.succeed("tessera-compile", os.path.join(MODELS, "mlp.ts17.onnx"), "--loss", "mse", "--batch",
                     BATCH // accumulate, "--accumulate", accumulate, *flags, "-o", name + ".tessera")

    def arguments(self, artifact, run, steps, *flags, data="damaged"):
        return [artifact + ".tessera", "--data", data + ".safetensors", "--order", "sequential", "--steps", steps,
                "--threads", 1, "--weights", os.path.join(GOLDENS, "mlp", "weights.safetensors"), "--out", run, *flags]

    def train(self, artifact, run, steps, *flags, data="damaged"):
        done = self.tool("tessera-run", *self.arguments(artifact, run, steps, *flags, data=data))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stderr

    def resume(self, artifact, run, steps, source, *flags):
        arguments = self.arguments(artifact, run, steps, *flags)
        at = arguments.index("--weights")
        self.succeed("tessera-run", *arguments[:at], "--resume", source, *arguments[at + 2:])

    def assert_same_weights(self, one, other):
        first, second = (safetensors.load(self.path(run, "model.safetensors")) for run in (one, other))
        self.assertEqual(sorted(first), sorted(second))
        for name, value in first.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), second[name].view(np.uint32)), name)

    def check_skipping(self, name):
        """Damaged batches are as if they were not there."""
        told = self.train(name, name, STEPS)
        self.train(name, name + "-clean", STEPS - len(BAD), data="clean")
        self.assert_same_weights(name, name + "-clean")
        records = self.metrics(name)
        self.assertEqual([record["step"] for record in records if record.get("skipped")], list(BAD))
        self.assertEqual([record["loss"] for record in records if record["step"] in BAD], [None] * len(BAD))
        self.assertEqual([record["loss"] for record in records if record["step"] not in BAD],
                         [record["loss"] for record in self.metrics(name + "-clean")])
        for step in BAD:
            self.assertRegex(told, rf"step {step} changed nothing: its loss is (nan|inf) \(gradient norm (nan|inf)\)")

    def test_damaged_batches_are_skipped(self):
        for mesh, flags in MESHES.items():
            for kind, optimizer in (("adamw", ADAMW), ("sgd", SGD)):
                for accumulate in (1, 2):
                    name = f"{mesh}-{kind}-{accumulate}"
                    with self.subTest(name):
                        self.compile(name, *optimizer, *flags, accumulate=accumulate)
                        self.check_skipping(name)

    def test_copies_of_parameters_are_skipped_with_them(self):
        for mesh, flags in MESHES.items():
            with self.subTest(mesh):
                self.compile(mesh, *ADAMW, *flags, "--precision", "bf16")
                self.check_skipping(mesh)

    @unittest.skipUnless(os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")) and
                         os.path.exists(os.path.join(BIN, "libtessera-cuda.so")), "the build has no backend for GPUs")
    def test_damaged_batches_are_skipped_on_a_simulated_gpu(self):
        for kind, optimizer in (("adamw", ADAMW), ("sgd", SGD)):
            with self.subTest(kind), unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": SIMULATOR}):
                self.compile(kind, *optimizer, "--target", "sm_90")
                self.check_skipping(kind)

    def test_schedules_count_steps_and_bias_corrections_count_updates(self):
        self.compile("warm", *ADAMW, "--warmup", 6, "--schedule", "cosine")
        self.train("warm", "warm", STEPS)
        self.train("warm", "finite", STEPS, data="clean")
        self.assertEqual([record["lr"] for record in self.metrics("warm")], [record["lr"] for record in self.metrics("finite")])

    def test_a_resumed_run_equals_one_that_did_not_stop(self):
        for mesh, flags in MESHES.items():
            with self.subTest(mesh):
                self.compile(mesh, *ADAMW, *flags)
                self.train(mesh, mesh + "-whole", STEPS)
                for stop in (2, 3, 4, 5, 8):  # before, between, after skipped steps
                    half = f"{mesh}-{stop}"
                    self.train(mesh, half, stop, "--checkpoint-every", 1)
                    kept = sorted(name for name in os.listdir(self.path(half, "checkpoints")) if name != "latest")
                    # Skipped steps have no checkpoint, except that the last step of a run always has.
                    self.assertEqual(kept, sorted(f"ckpt-{step}" for step in range(1, stop + 1)
                                                  if step not in BAD or step == stop))
                    with open(self.path(half, "checkpoints", f"ckpt-{stop}", "manifest.json")) as file:
                        manifest = json.load(file)
                    self.assertEqual(manifest["skipped_steps"], sum(step <= stop for step in BAD))
                    self.assertEqual(manifest["skipped_in_a_row"], {2: 0, 3: 1, 4: 2, 5: 0, 8: 1}[stop])
                    self.resume(mesh, half + "-rest", STEPS, half)
                    self.assert_same_weights(mesh + "-whole", half + "-rest")

    def test_a_run_whose_last_steps_changed_nothing(self):
        self.compile("a", *ADAMW)
        done = self.tool("tessera-run", *self.arguments("a", "run", BAD[1]))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"the final weights are those of step {BAD[0] - 1}: no later one changed them", done.stderr)
        self.assertIn("| loss nan | norm nan |", done.stdout)
        self.assertNotIn("final weights", self.train("a", "more", BAD[1] + 1))

    def test_stop(self):
        self.compile("a", *ADAMW, *MESHES["ddp"])
        output = self.fail_with(r"error: step 3 changed nothing: its loss is nan \(gradient norm nan\); learning rate 0\.01; use a "
                                r"lower --lr.*; the newest checkpoint is '.*/ckpt-2'", "tessera-run",
                                *self.arguments("a", "run", STEPS, "--on-nonfinite", "stop", "--checkpoint-every", 1,
                                                "--dump", "gradients", "--dump-step", 3))
        self.assertNotIn("stalled", output)
        gradients = safetensors.load(self.path("run", "dump-3", "gradients.safetensors"))
        self.assertTrue(np.isnan(gradients["fc1.weight"]).any())
        self.assertEqual(len(self.metrics("run")), 3)
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))

    def test_ignore(self):
        """Training goes on as without the guard; a checkpoint that is not finite is not written."""
        self.compile("on", *ADAMW, *MESHES["ddp"])
        self.compile("off", *ADAMW, *MESHES["ddp"], "--guard-updates", "off")
        for name in ("on", "off"):
            told = self.train(name, name, STEPS, "--on-nonfinite", "ignore", "--checkpoint-every", 1)
            self.assertEqual(told.count("is not finite: its loss is nan"), 1, told)
            self.assertEqual(told.count("checkpoint of step 3 is not written: "), 1, told)
            self.assertRegex(told, r"of the final weights, parameter 'fc1\..*' has \d+ values that are not finite")
            self.assertEqual(sorted(os.listdir(self.path(name, "checkpoints"))), ["ckpt-1", "ckpt-2", "latest"])
            self.assertFalse(any("skipped" in record for record in self.metrics(name)))
        weights = [safetensors.load(self.path(name, "model.safetensors")) for name in ("on", "off")]
        for name, value in weights[0].items():
            self.assertTrue(np.isnan(value).any(), name)
            np.testing.assert_array_equal(value, weights[1][name])

    def test_a_run_that_ignores_and_is_stopped(self):
        """What it names to go on from is not a state that was never saved."""
        self.compile("a", *ADAMW)
        run = self.start(run_command(*self.arguments("a", "run", 1000000, "--on-nonfinite", "ignore", "--checkpoint-every", 1)))
        self.wait_for_steps("run", STEPS)
        run.send_signal(signal.SIGTERM)
        self.assertRegex(self.finish(run, status=128 + signal.SIGTERM),
                         r"stopped after step \d+, which has no checkpoint; the newest is 'run/checkpoints/ckpt-2'\n")

    def test_without_the_guard(self):
        self.compile("off", *ADAMW, "--guard-updates", "off")
        self.fail_with(r"error: --on-nonfinite skip: the artifact cannot skip an update; compile it with --guard-updates on",
                       "tessera-run", *self.arguments("off", "refused", STEPS, "--on-nonfinite", "skip"))
        self.fail_with(r"error: step 3 is not finite: its loss is nan .*its update is made, .*the newest checkpoint is '.*/ckpt-2'",
                       "tessera-run", *self.arguments("off", "run", STEPS, "--checkpoint-every", 2, "--keep", 1))
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))
        self.assertEqual(sorted(os.listdir(self.path("run", "checkpoints"))), ["ckpt-2", "latest"])

    def test_the_guard_changes_nothing_that_is_finite(self):
        for mesh, flags in MESHES.items():
            for kind, optimizer in (("adamw", ADAMW), ("unclipped", (*ADAMW[:4], "--weight-decay", 0)), ("sgd", SGD),
                                    ("plain", SGD[:4])):
                with self.subTest(mesh + kind):
                    for guard in ("on", "off"):
                        self.compile(guard, *optimizer, *flags, "--guard-updates", guard)
                        self.train(guard, mesh + kind + guard, 7, data="clean")
                    self.assert_same_weights(mesh + kind + "on", mesh + kind + "off")

    def test_an_update_that_overflows_is_not_saved(self):
        """Loss and gradients are finite, the new parameters are not: no checkpoint, no export."""
        self.save_large_targets()
        for mesh, flags in MESHES.items():
            with self.subTest(mesh):
                self.compile(mesh, "--optimizer", "sgd", "--lr", 1e-20, "--weight-decay", 0, *flags)
                self.train(mesh, mesh + "-good", 1, "--checkpoint-every", 1, data="large")
                large = self.arguments(mesh, mesh + "-good", 2, "--lr", 1e30, "--keep", 1, data="large")
                at = large.index("--weights")
                large[at:at + 2] = ["--resume", mesh + "-good"]
                found = r"parameter 'fc\d\.(weight|bias)' has \d+ values that are not finite"
                self.fail_with(rf"error: checkpoint of step 2 is not written: {found}.*; the newest one is '.*/ckpt-1'",
                               "tessera-run", *large, "--checkpoint-every", 1)
                self.assertEqual(sorted(os.listdir(self.path(mesh + "-good", "checkpoints"))), ["ckpt-1", "latest"])
                self.fail_with(rf"error: the final weights are not written: {found}", "tessera-run", *large, "--export",
                               "final.safetensors")
                self.assertFalse(os.path.exists(self.path("final.safetensors")))

    def test_weights_that_are_not_written_fail_all_processes(self):
        self.save_large_targets()
        for mesh in ("ddp", "zero3"):
            with self.subTest(mesh):
                self.compile(mesh, *SGD, *MESHES[mesh])
                run = self.arguments(mesh, mesh + "-run", 1, "--lr", 1e30, data="large")
                for process in self.tcp(int(MESHES[mesh][1][-1]), run_command(*run)):
                    self.assertRegex(self.finish(process, status=1), r"error: rank \d: .*the final weights are not written: ")
                self.assertFalse(os.path.exists(self.path(mesh + "-run", "model.safetensors")))


class Rates(LaunchTest):
    """A learning rate that ruins the model, on threads and on processes."""

    def test_a_rate_too_high_ends_the_run_and_leaves_the_checkpoint(self):
        for strategy in ("ddp", "zero3"):
            self.compile(strategy, "--mesh", "shard=2", "--strategy", strategy)
            for launch in ("local", "tcp"):
                with self.subTest(strategy=strategy, launch=launch):
                    run = f"{strategy}-{launch}"
                    start = (lambda command: [self.start(command)]) if launch == "local" else (lambda command: self.tcp(2, command))
                    for process in start(self.command(strategy, run, 4, "--checkpoint-every", 2, "--no-export")):
                        self.finish(process)
                    ruined = self.command(strategy, run, 40, "--resume", run, "--lr", 1e10, "--checkpoint-every", 2, "--keep", 1)
                    for process in start(ruined):
                        output = self.finish(process, status=1)
                        self.assertRegex(output, r"error: .*10 steps in a row changed nothing, from step \d+ on; of the last, "
                                         r"its (loss|gradient norm) is .*; learning rate 1e\+10; use a lower --lr, .*; the "
                                         r"newest checkpoint is '.*/ckpt-4'")
                        self.assertNotIn("stalled", output)
                    self.assertFalse(os.path.exists(self.path(run, "model.safetensors")))
                    self.assertEqual(sorted(os.listdir(self.path(run, "checkpoints"))), ["ckpt-2", "ckpt-4", "latest"])
                    for process in start(self.command(strategy, run, 6, "--resume", run)):
                        self.finish(process)
                    self.assertEqual([record["step"] for record in self.metrics(run)], [1, 2, 3, 4, 5, 6])
                    self.assertTrue(all(np.isfinite(value).all() for value in
                                        safetensors.load(self.path(run, "model.safetensors")).values()))
