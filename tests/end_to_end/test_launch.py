"""One artifact as threads, under mpirun, and in torchrun's environment: the same bits; failures end all ranks."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from harness import Golden, ToolTest, run_command
from launchers import HAS_MPI, MPI_ENVIRONMENT, free_port, ranks_of, tcp_environment

needs_mpi = unittest.skipUnless(HAS_MPI, "MPI is not installed, or tessera was built without it")


class LaunchTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("llama")

    def compile(self, name, *flags):
        self.succeed("tessera-compile", *self.golden.compile_flags(), *flags, "-o", name + ".tessera")

    def command(self, artifact, out, steps, *flags):
        return run_command(artifact + ".tessera", "--data", self.golden.data, "--steps", steps, "--out", out, "--threads", 1,
                           "--seed", 7, *flags)

    def start(self, command, environment=None):
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                   env={**os.environ, **(environment or {})}, start_new_session=True)

        def end():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            process.stdout.close()

        self.addCleanup(end)
        return process

    def mpirun(self, ranks, command, *options):
        return self.start(["mpirun", "-n", str(ranks), *options, *command], MPI_ENVIRONMENT)

    def tcp(self, ranks, command):
        port = free_port()
        return [self.start(command, tcp_environment(rank, ranks, port)) for rank in range(ranks)]

    def finish(self, process, status=0, timeout=180):
        output, _ = process.communicate(timeout=timeout)
        if status is not None:
            self.assertEqual(process.returncode, status, output)
        return output

    def wait_for_steps(self, run, steps, timeout=90):
        """Until the run has reported so many steps."""
        path = self.path(run, "metrics.jsonl")
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if os.path.exists(path) and len(self.metrics(run)) >= steps:
                return
            time.sleep(0.02)
        self.fail(f"{run} did not reach step {steps}")

    def records(self, run):
        with open(self.path(run, "metrics.jsonl")) as file:
            return [json.loads(line) for line in file]

    def metrics(self, run):
        try:
            return super().metrics(run)
        except json.JSONDecodeError:  # a line that is being written
            return []

    def assert_same_files(self, first, second, names):
        for name in names:
            with open(self.path(first, name), "rb") as a, open(self.path(second, name), "rb") as b:
                self.assertEqual(a.read(), b.read(), f"{name} of {first} and {second}")


FULL = ("--checkpoint-every", 3, "--dump", "gradients,parameters,losses", "--dump-step", 2)


def results_of(ranks):
    return ["model.safetensors", "checkpoints/ckpt-6/manifest.json",
            *(f"checkpoints/ckpt-6/rank-{rank}.safetensors" for rank in range(ranks)),
            *(f"dump-2/{kind}.safetensors" for kind in ("gradients", "parameters", "losses"))]


class SameBits(LaunchTest):
    MESHES = (("zero3", 2, ("--mesh", "shard=2", "--strategy", "zero3")),
              ("ddp", 2, ("--mesh", "shard=2", "--strategy", "ddp")),
              ("hsdp", 4, ("--mesh", "replicate=2,shard=2", "--strategy", "zero3")),
              ("model", 4, ("--mesh", "tp=2,fsdp=2", "--strategy", "zero3", "--place", "gate_proj|up_proj|embed_tokens|lm_head=0",
                            "--place", "down_proj=1", "--evaluate", "--ema", 0.9)))

    def compare(self, launch):
        for name, ranks, flags in self.MESHES:
            with self.subTest(name):
                self.compile(name, *flags)
                full = [*FULL, "--check-replicas", 2]
                if "--evaluate" in flags:
                    full += ["--eval-data", self.golden.data, "--eval-every", 3]
                self.finish(self.start(self.command(name, name + "-local", 6, *full)))
                processes = launch(ranks, self.command(name, name + "-many", 6, *full))
                outputs = [self.finish(process) for process in processes]
                printed = 2 if "--evaluate" in flags else 1
                self.assertEqual(sum(output.count("step 6/6") for output in outputs), printed, "only rank 0 prints")
                self.assert_same_files(name + "-local", name + "-many", results_of(ranks))
                local, many = self.metrics(name + "-local"), self.metrics(name + "-many")
                self.assertEqual([(r["step"], r["loss"], r["grad_norm"]) for r in local],
                                 [(r["step"], r["loss"], r["grad_norm"]) for r in many])
                evaluated = [[r["eval_loss"] for r in self.records(f"{name}-{how}") if "eval_loss" in r] for how in ("local", "many")]
                self.assertEqual(*evaluated)
                self.assertEqual(len(evaluated[0]), 2 if "--evaluate" in flags else 0)

    @needs_mpi
    def test_mpirun(self):
        self.compare(lambda ranks, command: [self.mpirun(ranks, command)])

    def test_torchrun_environment(self):
        self.compare(self.tcp)

    @needs_mpi
    def test_resume_on_another_launcher(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        self.finish(self.start(self.command("a", "whole", 6)))
        self.finish(self.mpirun(2, self.command("a", "half", 3, "--checkpoint-every", 3)))
        self.finish(self.start(self.command("a", "threads", 6, "--resume", "half")))
        self.finish(self.mpirun(2, self.command("a", "processes", 6, "--resume", "half")))
        for run in ("threads", "processes"):
            self.assert_same_files("whole", run, ["model.safetensors"])


@needs_mpi
class Disagreement(LaunchTest):
    def test_different_artifacts_are_one_error_on_all_ranks(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        self.compile("b", "--mesh", "shard=2", "--strategy", "ddp")
        output = self.finish(self.mpirun(1, [*self.command("a", "run", 3), ":", "-n", "1", *self.command("b", "run", 3)]),
                             status=None)
        same = re.findall(r"(?m)^error: (?:rank 0: )?rank 1 and rank 0 run different artifacts \(fingerprints differ:", output)
        self.assertGreater(len(same), 0, output)
        self.assertEqual(output.count("error: "), len(same))

    def test_different_settings(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        output = self.finish(self.mpirun(1, [*self.command("a", "run", 3), ":", "-n", "1", *self.command("a", "run", 4)]),
                             status=None)
        self.assertRegex(output, "(?m)^error: (rank 0: )?rank 1 and rank 0 differ in --steps or --epochs: 4 and 3")
        for flags, message in ((["--autotune"], "--autotune: on and off"), (["--no-graph"], "--no-graph: on and off"),
                               (["--trace-steps", 1], "--trace-steps: 1 and 0"),
                               (["--memory-snapshot"], "--memory-snapshot: on and off")):
            with self.subTest(message):
                other = [str(flag) for flag in [*self.command("a", "run", 3), *flags]]
                output = self.finish(self.mpirun(1, [*self.command("a", "run", 3), ":", "-n", "1", *other]), status=None)
                self.assertRegex(output, "(?m)^error: (rank 0: )?rank 1 and rank 0 differ in " + message)

    def test_wrong_number_of_processes(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        output = self.finish(self.mpirun(3, self.command("a", "run", 3)), status=None)
        self.assertIn("is for 2 ranks, but 3 processes were started", output)


class OtherSettings(LaunchTest):
    def test_ranks_that_would_train_other_parameters_are_refused(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        for flags, what in ((("--lr", 0.5), "--lr, --min-lr, --warmup, --schedule or its decay: constant lr=0.5 "),
                            (("--schedule", "cosine"), "--lr, --min-lr, --warmup, --schedule or its decay: cosine "),
                            (("--order", "sequential"), "--order: sequential and shuffled"),
                            (("--weights", self.golden.weights), r"the initial values \(--weights\): .+ and fresh")):
            with self.subTest(flags):
                port = str(free_port())
                runs = [self.start(self.command("a", "run", 3, *more), {"RANK": str(rank), "WORLD_SIZE": "2",
                                                                        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
                        for rank, more in enumerate(((), flags))]
                for run in runs:
                    self.assertRegex(self.finish(run, status=1), what)

    def test_ranks_that_would_round_whole_parameters_otherwise_are_refused(self):
        self.compile("split", "--mesh", "tp=2", "--place", "gate_proj|up_proj=0", "--place", "down_proj=1")
        self.compile("whole", "--mesh", "fsdp=2", "--strategy", "zero3")
        for name in ("split", "whole"):
            port = str(free_port())
            runs = []
            for rank in range(2):
                command = self.command(name, name, 3)
                command[command.index("--threads") + 1] = str(rank + 1)
                runs.append(self.start(command, {"RANK": str(rank), "WORLD_SIZE": "2",
                                                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}))
            for run in runs:
                if name == "whole":
                    self.finish(run)
                else:
                    self.assertRegex(self.finish(run, status=1), "rank 1 computes with --threads 2 on .+, rank 0 with --threads 1 on .+; "
                                                                 "give all ranks the same --threads")


class Failures(LaunchTest):
    """A rank that is killed, stopped or slow ends the others, which say where; then the run goes on from its checkpoint."""

    def setUp(self):
        super().setUp()
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")

    def long_run(self, out, *flags):
        return self.command("a", out, 1000000, "--checkpoint-every", 5, "--keep", 2, "--log-every", 0, *flags)

    def assert_resumes(self, run, launch):
        """The checkpoint is at most one interval older than the last step that was reported."""
        done = self.metrics(run)[-1]["step"]
        with open(self.path(run, "checkpoints", "latest")) as file:
            saved = int(file.read().strip().split("-")[1])
        self.assertGreaterEqual(saved, done - 2 * 5, "a checkpoint is written while the next steps run")
        output = self.finish(launch(self.command("a", run, saved + 3, "--resume", run)))
        self.assertIn(f"after step {saved}", output)
        self.assertEqual([record["step"] for record in self.metrics(run)], list(range(1, saved + 4)))

    WHERE = r"(all_gather|reduce_scatter|all_reduce|data|end)[^\n]* of step \d+"

    @needs_mpi
    def test_mpi_rank_is_stopped(self):
        run = self.mpirun(2, self.long_run("run", "--stall-timeout", 3))
        self.wait_for_steps("run", 12)
        os.kill(ranks_of(run.pid)[1], signal.SIGSTOP)
        output = self.finish(run, status=None, timeout=60)
        self.assertNotEqual(run.returncode, 0, output)
        self.assertRegex(output, r"error: rank 0: stalled: rank 1 did not reach " + self.WHERE)
        self.assertRegex(output, r"nothing was heard of rank 1 for \d+ s: it was stopped or killed")
        self.assert_resumes("run", lambda command: self.mpirun(2, command))

    @needs_mpi
    def test_mpi_rank_is_killed(self):
        run = self.mpirun(2, self.long_run("run", "--stall-timeout", 3))
        self.wait_for_steps("run", 12)
        os.kill(ranks_of(run.pid)[1], signal.SIGKILL)
        output = self.finish(run, status=None, timeout=60)
        self.assertNotEqual(run.returncode, 0, output)
        self.assertRegex(output, r"rank 1 .*exited on signal 9|rank 0: .*waits for rank 1 at|rank 1 (has ended|did not)")
        self.assert_resumes("run", lambda command: self.mpirun(2, command))

    def test_tcp_rank_is_killed(self):
        runs = self.tcp(2, self.long_run("run", "--stall-timeout", 30))
        self.wait_for_steps("run", 12)
        runs[1].kill()
        output = self.finish(runs[0], status=1, timeout=20)
        self.assertRegex(output, r"error: rank 0: rank 1 has ended: rank 0 waits for it at " + self.WHERE)
        self.assert_resumes("run", lambda command: self.start([*command, "--comm", "local"]))

    def test_a_signal_to_one_process_ends_all_with_its_status(self):
        for receiver in (0, 1):
            with self.subTest(receiver):
                run = f"run-{receiver}"
                runs = self.tcp(2, self.long_run(run))
                self.wait_for_steps(run, 3)
                runs[receiver].send_signal(signal.SIGTERM)
                for each in runs:
                    self.finish(each, status=128 + signal.SIGTERM, timeout=60)
                self.assert_resumes(run, lambda command: self.start([*command, "--comm", "local"]))

    def test_tcp_rank_is_stopped(self):
        runs = self.tcp(2, self.long_run("run", "--stall-timeout", 2))
        self.wait_for_steps("run", 12)
        runs[1].send_signal(signal.SIGSTOP)
        output = self.finish(runs[0], status=1, timeout=30)
        self.assertRegex(output, r"error: rank 0: stalled: rank 1 did not reach " + self.WHERE)
        runs[1].send_signal(signal.SIGCONT)
        self.assertRegex(self.finish(runs[1], status=1, timeout=30), r"error: rank 1: (stalled: rank 1|rank 0 has ended)")

    def delayed(self, launch, place, seconds, *flags):
        environment = {**os.environ, "TESSERA_TEST_DELAY": f"1:4:{seconds}:{place}"}
        return [self.start(command, {**environment, **extra}) for command, extra in launch(self.command("a", "run", 8, *flags))]

    def local(self, command):
        return [(command, {})]

    def processes(self, command):
        port = str(free_port())
        return [(command, {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
                for rank in range(2)]

    def test_a_slow_rank_ends_the_run(self):
        for launch in (self.local, self.processes):
            with self.subTest(launch.__name__):
                shutil.rmtree(self.path("run"), ignore_errors=True)
                runs = self.delayed(launch, "step", 60, "--stall-timeout", 1)
                begin = time.monotonic()
                output = self.finish(runs[0], status=1, timeout=50)
                self.assertRegex(output, r"error: (rank 0: )?stalled: rank 1 did not reach (all_gather|all_reduce) .*step 4 \(node .*\) "
                                         r"within 1 s, rank 0 waits there")
                self.assertLess(time.monotonic() - begin, 45, "the process must not wait for the stuck rank")
                for run in runs[1:]:
                    self.finish(run, status=1, timeout=50)

    def test_slow_data_do_not(self):
        runs = self.delayed(self.processes, "data", 4, "--stall-timeout", 1)
        for run in runs:
            self.finish(run)
        self.assertEqual(len(self.metrics("run")), 8)
