"""A run as operators meet it: signals, requeued jobs, twins, left-overs, damaged copies, bad data found late."""

import json
import os
import shutil
import signal
import time
import unittest

import numpy as np

from launchers import HAS_MPI, free_port, ranks_of, tcp_environment
from test_launch import LaunchTest


class Operation(LaunchTest):
    """Two ranks; `steps` of the undisturbed run are what every disturbed one must give, bit for bit."""
    STEPS = 40

    def setUp(self):
        super().setUp()
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")

    def run_command(self, out, *flags, steps=None, artifact="a"):
        command = self.command(artifact, out, steps or self.STEPS, "--log-every", 0, *flags)
        for name, value in (("--checkpoint-every", 7), ("--keep", 2)):
            if name not in flags:
                command += [name, str(value)]
        return command

    def launch(self, kind, command, environment=None):
        """The processes of one run; the first gives the run's output."""
        environment = environment or {}
        if kind == "mpi":
            return [self.mpirun(2, command)]
        if kind == "local":
            return [self.start([*command, "--comm", "local"], environment)]
        port = str(free_port())
        return [self.start(command, {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                     "MASTER_PORT": port, **environment}) for rank in range(2)]

    def end(self, runs, status):
        return "".join(self.finish(run, status=status, timeout=120) for run in runs)

    def manifest(self, run):
        with open(self.path(run, "checkpoints", "latest")) as file:
            name = file.read().strip()
        with open(self.path(run, "checkpoints", name, "manifest.json")) as file:
            return json.load(file)

    def whole(self):
        if not os.path.exists(self.path("whole", "model.safetensors")):
            self.end(self.launch("local", self.run_command("whole")), 0)
        return "whole"

    def records(self, run):
        return [(record["step"], record["loss"]) for record in self.metrics(run)]

    def assert_as_undisturbed(self, run):
        self.assert_same_files(self.whole(), run, ["model.safetensors", f"checkpoints/ckpt-{self.STEPS}/rank-0.safetensors",
                                                   f"checkpoints/ckpt-{self.STEPS}/rank-1.safetensors"])
        self.assertEqual(self.records(run), self.records(self.whole()))


class Signals(Operation):
    KINDS = ("local", "tcp", *(("mpi",) if HAS_MPI else ()))

    def test_a_stop_skips_no_batch_whichever_rank_it_reaches(self):
        for kind in self.KINDS:
            for receiver in range(1 if kind == "local" else 2):
                for after in (1, 4, 9):
                    with self.subTest(kind=kind, receiver=receiver, after=after):
                        run = f"{kind}-{receiver}-{after}"
                        runs = self.launch(kind, self.run_command(run, steps=1000000))
                        self.wait_for_steps(run, after)
                        if kind == "mpi":
                            os.kill(ranks_of(runs[0].pid)[receiver], signal.SIGTERM)
                        else:
                            runs[receiver].send_signal(signal.SIGTERM)
                        self.end(runs, None if kind == "mpi" else 128 + signal.SIGTERM)
                        manifest = self.manifest(run)
                        self.assertEqual(manifest["step"], self.metrics(run)[-1]["step"])
                        self.assertEqual(manifest["data_position"], manifest["step"] * self.golden.batch)
                        if manifest["step"] < self.STEPS:
                            self.end(self.launch(kind, self.run_command(run, "--resume", run)), 0)
                            self.assert_as_undisturbed(run)


    def test_a_start_that_takes_long_ends_soon(self):
        for kind in ("local", "tcp"):
            for receivers in ((0,), (0, 1)):
                with self.subTest(kind=kind, receivers=receivers):
                    run = f"{kind}-{len(receivers)}"
                    runs = self.launch(kind, self.run_command(run), {"TESSERA_TEST_DELAY": "0:0:60:open"})
                    time.sleep(2)  # it has opened its connections, and reads its data
                    begin = time.monotonic()
                    for receiver in receivers[:len(runs)]:
                        runs[receiver].send_signal(signal.SIGTERM)
                    output = self.finish(runs[0], status=143, timeout=30)
                    self.assertIn("stopped before the first step", output)
                    for other in runs[1:]:
                        output = self.finish(other, status=143 if len(receivers) == 2 else 1, timeout=30)
                        if len(receivers) == 1:
                            self.assertIn("error: rank 1: rank 0: asked to end by signal 15", output)
                    self.assertLess(time.monotonic() - begin, 20, "the process must not wait for its data")
                    self.assertFalse(os.path.exists(self.path(run, "lease")))


class Requeue(Operation):
    def test_auto_begins_and_goes_on(self):
        command = self.run_command("run", "--resume", "auto", "--take-over")
        # Stopped before the first checkpoint, and even before the first step.
        for steps in (0, 2):
            runs = self.launch("tcp", self.run_command("run", "--resume", "auto", "--take-over", "--checkpoint-every", 0,
                                                       steps=1000000))
            if steps:
                self.wait_for_steps("run", steps)
                for run in runs:
                    run.kill()
                self.end(runs, -signal.SIGKILL)
            else:
                for run in runs:
                    run.send_signal(signal.SIGUSR1)
                self.end(runs, None)
        self.end(self.launch("tcp", command), 0)
        self.assert_as_undisturbed("run")
        # Started once more when everything is done: it ends as it has, and the weights are there.
        os.remove(self.path("run", "model.safetensors"))
        output = self.end(self.launch("tcp", command), 0)
        self.assertIn(f"after step {self.STEPS}, which was the last", output)
        self.assert_as_undisturbed("run")

    def test_auto_takes_the_newest_whole_one(self):
        self.end(self.launch("local", self.run_command("run", "--keep", 0)), 0)
        newest = self.path("run", "checkpoints", f"ckpt-{self.STEPS}")
        os.truncate(os.path.join(newest, "rank-1.safetensors"), 100)
        shutil.rmtree(self.path("run", "checkpoints", "ckpt-35"))
        output = self.end(self.launch("tcp", self.run_command("run", "--resume", "auto")), 0)
        self.assertIn(f"ckpt-{self.STEPS}' is corrupted: 'rank-1.safetensors' has 100 bytes", output)
        self.assertIn("ckpt-28 after step 28", output)
        self.assert_as_undisturbed("run")
        for name in os.listdir(self.path("run", "checkpoints")):
            if name.startswith("ckpt-"):
                os.remove(self.path("run", "checkpoints", name, "manifest.json"))
        self.assertIn("checkpoints in 'run/checkpoints' is complete",
                      self.end(self.launch("local", self.run_command("run", "--resume", "auto")), 1))

    def test_weights_are_for_the_begin(self):
        flags = ("--weights", self.golden.weights)
        self.end(self.launch("local", self.run_command("run", *flags, "--resume", "auto", steps=14)), 0)
        self.end(self.launch("local", self.run_command("run", *flags, "--resume", "auto")), 0)
        self.end(self.launch("local", self.run_command("at-once", *flags)), 0)
        self.assert_same_files("run", "at-once", ["model.safetensors"])
        self.fail_with("--weights starts a run and --resume continues one", "tessera-run", "a.tessera", "--data", self.golden.data, "--out", "x",
                       "--resume", "run", *flags)

    def test_a_run_of_another_artifact_is_not_overwritten(self):
        self.compile("b", "--mesh", "shard=2", "--strategy", "ddp")
        self.end(self.launch("local", self.run_command("run", "--checkpoint-every", 0)), 0)
        output = self.end(self.launch("local", self.run_command("run", "--resume", "auto", artifact="b")), 1)
        self.assertIn("run folder 'run' holds a run of another artifact", output)
        self.assertEqual(len(self.metrics("run")), self.STEPS)
        self.assertIn("already holds a run", self.end(self.launch("local", self.run_command("run")), 1))


class Twins(Operation):
    def test_a_second_run_in_the_folder_is_refused(self):
        for first, second in (("local", "local"), ("tcp", "local"), ("local", "tcp")):
            with self.subTest(first=first, second=second):
                run = f"{first}-{second}"
                runs = self.launch(first, self.run_command(run, "--resume", "auto", steps=1000000))
                self.wait_for_steps(run, 10)
                for flags in ((), ("--take-over",)):
                    output = self.end(self.launch(second, self.run_command(run, "--resume", "auto", *flags)), 1)
                    self.assertRegex(output, rf"error: .*run folder '{run}' is in use by process {runs[0].pid} on host '.*' since ")
                steps = len(self.metrics(run))
                self.wait_for_steps(run, steps + 5)
                for each in runs:
                    each.send_signal(signal.SIGTERM)
                self.end(runs, 143)
                self.assertFalse(os.path.exists(self.path(run, "lease")))

    def test_a_folder_that_is_taken_away_ends_the_run(self):
        runs = self.launch("local", self.run_command("run", steps=1000000))
        self.wait_for_steps("run", 10)
        before = self.manifest("run")["step"]
        with open(self.path("run", "other"), "w") as file:
            file.write("beat 000000000001\nid 1\nhost node7\npid 42\nspace x\nstarted 1\nsince 2026-01-01T00:00:00Z\n")
        os.rename(self.path("run", "other"), self.path("run", "lease"))
        output = self.end(runs, 1)
        self.assertRegex(output, r"error: .*the run folder was taken over by process 42 on host 'node7'")
        self.assertLessEqual(self.manifest("run")["step"], before + 7)
        self.assertTrue(os.path.exists(self.path("run", "lease")), "it is the other one's")

    def test_weights_are_not_written_into_a_folder_that_was_taken_away(self):
        runs = self.launch("local", self.run_command("run", "--checkpoint-every", 0, steps=5), {"TESSERA_TEST_DELAY": "0:5:3:step"})
        self.wait_for_steps("run", 4)  # between two signs of life: only a look at the file tells
        with open(self.path("run", "other"), "w") as file:
            file.write("beat 000000000001\nid 1\nhost node7\npid 42\nspace x\nstarted 1\nsince 2026-01-01T00:00:00Z\n")
        os.rename(self.path("run", "other"), self.path("run", "lease"))
        self.assertRegex(self.end(runs, 1), r"error: .*the run folder was taken over by process 42 on host 'node7'")
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))

    def test_left_overs_of_a_killed_run_are_removed(self):
        os.makedirs(self.path("run", "checkpoints", ".ckpt-7.tmp-1"))
        for name in ("checkpoints/latest.tmp-1-0", "run.json.tmp-1-0", "model.safetensors.tmp-1-1", "lease.tmp-1-0"):
            with open(self.path("run", name), "w") as file:
                file.write("half")
        self.end(self.launch("local", self.run_command("run")), 0)
        self.assert_as_undisturbed("run")
        left = [name for _, folders, files in os.walk(self.path("run")) for name in folders + files if ".tmp-" in name]
        self.assertEqual(left, [])


class Copies(Operation):
    def setUp(self):
        super().setUp()
        self.compile("ddp", "--mesh", "replicate=2", "--strategy", "ddp")

    def test_a_damaged_replica_ends_the_run_and_is_not_saved(self):
        for kind in ("local", "tcp"):
            for flags, step in (((), 14), (("--check-replicas", 1), 9)):
                with self.subTest(kind=kind, flags=flags):
                    run = f"{kind}{step}"
                    runs = self.launch(kind, self.run_command(run, *flags, artifact="ddp"), {"TESSERA_TEST_DELAY": "1:9:0:flip"})
                    output = self.end(runs, 1)
                    self.assertRegex(output, rf"error: .*rank 1 and rank 0 hold different values of '.*' \(parameter\) after step {step}")
                    self.assertEqual(self.manifest(run)["step"], 7)

    def test_a_damaged_replica_is_not_exported(self):
        for kind in ("local", "tcp"):
            with self.subTest(kind):
                runs = self.launch(kind, self.run_command(kind, "--checkpoint-every", 0, steps=9, artifact="ddp"),
                                   {"TESSERA_TEST_DELAY": "1:9:0:flip"})
                self.assertIn("(parameter) after step 9, but must hold the same", self.end(runs, 1))
                self.assertFalse(os.path.exists(self.path(kind, "model.safetensors")))

    def test_shards_have_no_copies(self):
        runs = self.launch("local", self.run_command("run", "--check-replicas", 1), {"TESSERA_TEST_DELAY": "1:9:0:flip"})
        self.end(runs, 0)

    def test_other_checkpoints_are_noticed(self):
        self.end(self.launch("local", self.run_command("one", steps=7)), 0)
        self.end(self.launch("local", self.run_command("two", "--order", "sequential", steps=7)), 0)
        port = str(free_port())
        runs = [self.start(self.run_command("run", "--resume", run),
                           {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
                for rank, run in enumerate(("one", "two"))]
        difference = r"rank 1 and rank 0 differ in the checkpoint to resume: step 7, manifest \w+ and step 7"
        self.assertRegex(self.end(runs, 1), difference)
        # The same name, but the folder of another host.
        os.makedirs(self.path("elsewhere"))
        shutil.move(self.path("two"), self.path("elsewhere", "one"))
        port = str(free_port())
        command = self.run_command(self.path("run"), "--resume", "one")
        command[1] = self.path("a.tessera")
        environment = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        folder = self.folder
        runs = [self.start(command, {"RANK": "0", **environment})]
        self.folder = os.path.join(folder, "elsewhere")
        runs.append(self.start(command, {"RANK": "1", **environment}))
        self.folder = folder
        self.assertRegex(self.end(runs, 1), difference)


class LateData(Operation):
    def test_a_stop_of_which_one_rank_cannot_write_its_part(self):
        """No process ends as if all were saved."""
        command, port = self.run_command("run", "--checkpoint-every", 1000000, steps=100000), free_port()
        limited = ["bash", "-c", 'ulimit -f 200; exec "$0" "$@"', *command]  # less than a part of a checkpoint has
        runs = [self.start(words, tcp_environment(rank, 2, port)) for rank, words in enumerate((command, limited))]
        self.wait_for_steps("run", 4)
        runs[0].send_signal(signal.SIGTERM)
        self.assertRegex(self.finish(runs[0], status=1), "error: rank 0: checkpoint of step .* is not written: rank 1: ")
        self.assertRegex(self.finish(runs[1], status=1), "rank-1.safetensors.*file size limit reached")

    def test_a_bad_token_found_late_costs_no_step(self):
        golden = self.golden
        data = golden.load("data")
        bad = {name: value.copy() for name, value in data.items()}
        last = len(next(iter(bad.values()))) - 1
        name = next(name for name in bad if name != "targets")
        bad[name][last, 0] = 10 ** 6
        np.savez(self.path("bad.npz"), **bad)
        steps = last // golden.batch  # whole batches before the bad one, in the order of the file
        self.assertGreater(steps, 2)
        for kind in ("local", "tcp"):
            with self.subTest(kind=kind):
                command = self.run_command(kind, "--order", "sequential")
                command[command.index("--data") + 1] = "bad.npz"
                output = self.end(self.launch(kind, command), 1)
                self.assertRegex(output, rf"error: .*sample {last} of .*is 1000000, but '{name}' must be in")
                self.assertEqual(self.manifest(kind)["step"], steps)
                self.assertEqual(self.manifest(kind)["data_position"], steps * golden.batch)
                self.assertIn(f"stopped after step {steps}; go on with --resume", output)


if __name__ == "__main__":
    unittest.main()
