"""A place for fault drills: compiled steps, runs that nothing disturbed, and how to start the same ones by any launcher."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "end_to_end"))
from harness import BIN, Golden  # noqa: E402
from launchers import HAS_MPI, MPI_ENVIRONMENT, free_port, ranks_of, tcp_environment  # noqa: E402

SIMULATOR = os.path.join(os.path.dirname(BIN), "gpu-simulator")
PATIENCE = 90  # seconds for all that must end by itself, on a machine that is busy
STALL = 4      # seconds


class Failure(Exception):
    """What a trial found."""


def require(condition, message):
    if not condition:
        raise Failure(message)


def launchers():
    """Those that this machine has."""
    found = ["local", "tcp"]
    if HAS_MPI:
        found.append("mpi")
    if os.path.exists(os.path.join(SIMULATOR, "libcuda.so.1")) and os.path.exists(os.path.join(BIN, "libtessera-cuda.so")):
        found.append("gpu")
    return found


class Setup:
    """A compiled step with the number of its ranks and steps."""

    def __init__(self, name, golden, ranks, steps, flags, batch=None):
        self.name, self.ranks, self.steps, self.flags = name, ranks, steps, flags
        self.golden = Golden(golden)
        if batch:
            self.golden.batch = batch


SETUPS = {
    "cpu": [Setup("zero3", "llama", 2, 40, ["--mesh", "shard=2", "--strategy", "zero3"]),
            Setup("ddp", "llama", 2, 40, ["--mesh", "replicate=2", "--strategy", "ddp"]),
            Setup("hsdp", "llama", 4, 25, ["--mesh", "replicate=2,shard=2", "--strategy", "zero3"])],
    "gpu": [Setup("simulated", "gpt", 2, 8, ["--mesh", "shard=2", "--strategy", "zero3", "--target", "sm_90"], batch=4)],
}


class Started:
    """The processes of one run; what they say is read as it comes."""

    def __init__(self, processes, ranks, launcher):
        self.processes, self.ranks, self.launcher = processes, ranks, launcher
        self.port = None  # where rank 0 listens, for tcp
        self.outputs = ["" for _ in processes]
        self.readers = [threading.Thread(target=self.read, args=(index,), daemon=True) for index in range(len(processes))]
        for reader in self.readers:
            reader.start()

    def read(self, index):
        self.outputs[index] = self.processes[index].stdout.read()

    def send(self, number, rank):
        """A signal to the process of a rank; False if it has ended already, or not begun."""
        if self.launcher == "mpi":
            found = ranks_of(self.processes[0].pid).get(rank)
        else:
            process = self.processes[min(rank, len(self.processes) - 1)]
            found = process.pid if process.poll() is None else None
        if found is None:
            return False
        try:
            os.kill(found, number)
        except ProcessLookupError:
            return False
        return True

    def is_over(self):
        return all(process.poll() is not None for process in self.processes)

    def end(self):
        """Statuses and everything said, once all have ended by themselves."""
        limit = time.monotonic() + PATIENCE
        try:
            for process in self.processes:
                process.wait(max(0.1, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            alive = [index for index, process in enumerate(self.processes) if process.poll() is None]
            self.kill()
            raise Failure(f"process {alive} did not end within {PATIENCE} s\n" + self.text()) from None
        for reader in self.readers:
            reader.join(10)
        for bad in ("unexpected exception", "internal error", "AddressSanitizer", "runtime error:", "terminate called"):
            require(bad not in self.text(), f"says '{bad}'\n" + self.text())
        return [process.returncode for process in self.processes]

    def text(self):
        return "\n".join(self.outputs)

    def kill(self):
        """All of them at once; what mpirun has started would live a little longer otherwise."""
        for number in ranks_of(self.processes[0].pid).values() if self.launcher == "mpi" else ():
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for reader in self.readers:
            reader.join(10)


class World:
    """A scratch folder with the compiled steps and their undisturbed runs."""

    def __init__(self, folder):
        self.folder = folder
        self.compiled = {}
        self.started = []

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def compile(self, setup):
        if setup.name in self.compiled:
            return
        subprocess.run([os.path.join(BIN, "tessera-compile"), *map(str, setup.golden.compile_flags()), *setup.flags, "-o",
                        self.path(setup.name + ".tessera")], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        shutil.copy(setup.golden.data, self.path(setup.name + "-data.safetensors"))
        launcher = "gpu" if setup.name == "simulated" else "local"
        self.compiled[setup.name] = True
        run = self.start(setup, launcher, "whole-" + setup.name)
        statuses = run.end()
        require(statuses == [0], "the undisturbed run failed\n" + run.text())

    def command(self, setup, out, *flags, data=None):
        return [os.path.join(BIN, "tessera-run"), setup.name + ".tessera", "--data",
                data or setup.name + "-data.safetensors", "--steps", str(setup.steps), "--out", out, "--threads", "1",
                "--seed", "7", "--weights", "fresh", "--log-every", "0", "--checkpoint-every", "4", "--keep", "3",
                "--stall-timeout", str(STALL), "--start-timeout", "20",
                *map(str, flags)]

    def start(self, setup, launcher, out, *flags, data=None, environment=None, delays=(), preexec=None):
        """`delays`: seconds by rank before a process of its own is started."""
        command = self.command(setup, out, *flags, data=data)
        variables = {**os.environ, **(environment or {})}

        def process(arguments, extra):
            return subprocess.Popen(arguments, cwd=self.folder, env={**variables, **extra}, stdout=subprocess.PIPE,
                                    stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True,
                                    preexec_fn=preexec)

        port = free_port()
        if launcher == "mpi":
            made = [process(["mpirun", "-n", str(setup.ranks), *command], MPI_ENVIRONMENT)]
        elif launcher == "tcp":
            made = []
            for rank in range(setup.ranks):
                if rank < len(delays):
                    time.sleep(delays[rank])
                made.append(process(command, tcp_environment(rank, setup.ranks, port)))
        else:
            extra = {"LD_LIBRARY_PATH": SIMULATOR, "TESSERA_SIM_DEVICES": "2"} if launcher == "gpu" else {}
            made = [process([*command, "--comm", "local"], extra)]
        run = Started(made, setup.ranks, launcher)
        run.port = port
        self.started.append(run)
        return run

    def start_one(self, setup, out, environment, *flags, data=None):
        """One rank of several that are started each in its own way."""
        command = self.command(setup, out, *flags, data=data)
        for name in flags[::2]:  # the last of a flag counts
            first = command.index(name)
            if first != len(command) - 1 - command[::-1].index(name):
                del command[first:first + 2]
        made = subprocess.Popen(command, cwd=self.folder, env={**os.environ, **environment}, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
        run = Started([made], 1, "tcp")
        self.started.append(run)
        return run

    def records(self, out):
        """Step and loss of what the run has reported."""
        lines = []
        try:
            with open(self.path(out, "metrics.jsonl")) as file:
                for line in file:
                    try:
                        record = json.loads(line)
                    except json.JSONDecodeError:
                        continue  # being written
                    if "loss" in record:
                        lines.append((record["step"], record["loss"]))
        except FileNotFoundError:
            pass
        return lines

    def require_as_undisturbed(self, setup, out):
        names = ["model.safetensors"] + [f"checkpoints/ckpt-{setup.steps}/rank-{rank}.safetensors"
                                         for rank in range(setup.ranks)]
        for name in names:
            ours, theirs = self.path(out, name), self.path("whole-" + setup.name, name)
            require(os.path.exists(ours) == os.path.exists(theirs), f"{name} is there in one of the two only")
            if os.path.exists(ours):
                with open(ours, "rb") as a, open(theirs, "rb") as b:
                    require(a.read() == b.read(), f"{name} differs from the undisturbed run's")
        require(self.records(out) == self.records("whole-" + setup.name), "the metrics differ from the undisturbed run's")
        left = [name for _, folders, files in os.walk(self.path(out)) for name in folders + files
                if ".tmp-" in name or name.endswith(".old") or name == "lease"]
        require(not left, f"left behind: {left}")

    def finish(self, setup, launcher, out, *flags):
        """Goes on with `--resume auto` until the run is whole, as a job script does."""
        run = self.start(setup, launcher, out, "--resume", "auto", *flags)
        statuses = run.end()
        require(set(statuses) == {0}, f"the resumed run ended with {statuses}\n" + run.text())
        self.require_as_undisturbed(setup, out)

    def clean(self, out):
        for run in self.started:
            if not run.is_over():
                run.kill()
        self.started.clear()
        shutil.rmtree(self.path(out), ignore_errors=True)
