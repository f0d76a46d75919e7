"""One artifact as threads, under mpirun, and in torchrun's environment: the same bits; failures end all ranks."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from harness import BIN, Golden, ToolTest

HAS_MPI = shutil.which("mpirun") is not None and os.path.exists(os.path.join(BIN, "libtessera-mpi.so"))
needs_mpi = unittest.skipUnless(HAS_MPI, "MPI is not installed, or tessera was built without it")
# Open MPI asks for this where it runs as root, and where there are fewer cores than ranks.
MPI_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class LaunchTest(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("llama")

    def compile(self, name, *flags):
        self.succeed("tessera-compile", *self.golden.compile_flags(), *flags, "-o", name + ".tessera")

    def command(self, artifact, out, steps, *flags):
        return [os.path.join(BIN, "tessera-run"), artifact + ".tessera", "--data", self.golden.data, "--steps",
                str(steps), "--out", out, "--threads", "1", "--seed", "7", *map(str, flags)]

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
        return [self.start(command, {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                     "MASTER_PORT": str(port)}) for rank in range(ranks)]

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

    def metrics(self, run):
        try:
            return super().metrics(run)
        except json.JSONDecodeError:  # a line that is being written
            return []

    def ranks_of(self, launcher):
        """Process ids of the tessera-run processes below a launcher, by rank."""
        ranks = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open(f"/proc/{name}/stat") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{name}/environ") as file:
                    environment = dict(item.split("=", 1) for item in file.read().split("\0") if "=" in item)
                with open(f"/proc/{name}/comm") as file:
                    command = file.read().strip()
            except OSError:
                continue
            if int(fields[1]) == launcher.pid and command == "tessera-run":
                ranks[int(environment["OMPI_COMM_WORLD_RANK"])] = int(name)
        return ranks

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
              ("hsdp", 4, ("--mesh", "replicate=2,shard=2", "--strategy", "zero3")))

    def compare(self, launch):
        for name, ranks, flags in self.MESHES:
            with self.subTest(name):
                self.compile(name, *flags)
                self.finish(self.start(self.command(name, name + "-local", 6, *FULL)))
                processes = launch(ranks, self.command(name, name + "-many", 6, *FULL))
                outputs = [self.finish(process) for process in processes]
                self.assertEqual(sum(output.count("step 6/6") for output in outputs), 1, "only rank 0 prints")
                self.assert_same_files(name + "-local", name + "-many", results_of(ranks))
                local, many = self.metrics(name + "-local"), self.metrics(name + "-many")
                self.assertEqual([(r["step"], r["loss"], r["grad_norm"]) for r in local],
                                 [(r["step"], r["loss"], r["grad_norm"]) for r in many])

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
        self.assertIn("error: rank 1 and rank 0 run different artifacts (fingerprints differ:", output)
        self.assertEqual(output.count("error: "), output.count("error: rank 1 and rank 0 run different artifacts"))

    def test_different_settings(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        output = self.finish(self.mpirun(1, [*self.command("a", "run", 3), ":", "-n", "1", *self.command("a", "run", 4)]),
                             status=None)
        self.assertIn("error: rank 1 and rank 0 differ in --steps: 4 and 3", output)

    def test_wrong_number_of_processes(self):
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        output = self.finish(self.mpirun(3, self.command("a", "run", 3)), status=None)
        self.assertIn("is for 2 ranks, but 3 processes were started", output)
