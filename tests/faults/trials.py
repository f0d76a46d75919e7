"""The kinds of trial: each disturbs one run in its own way, then demands what must hold. See drills.py."""

import os
import resource
import shutil
import signal
import socket
import time

from world import require  # also finds the helpers of the end-to-end tests
from launchers import free_port

KINDS = {}


def kind(launchers=("local", "tcp", "mpi", "gpu")):
    """A trial, and the launchers for which it makes sense."""
    def add(function):
        KINDS[function.__name__] = (function, launchers)
        return function
    return add


def moment(random, setup, launcher):
    """Seconds from the start of a run: mostly among its steps, sometimes before them or near the end."""
    length = {"local": 1.0, "tcp": 1.5, "mpi": 2.5, "gpu": 12.0}[launcher]
    return random.uniform(0, length) if random.random() < 0.8 else random.uniform(0, 0.3)


def ended_by(statuses, allowed):
    return all(status in allowed for status in statuses)


@kind()
def stop(world, random, setup, launcher, out):
    """A signal that asks a rank to end: all end alike, nothing is skipped."""
    number = random.choice([signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
    rank = random.randrange(setup.ranks)
    run = world.start(setup, launcher, out, "--resume", "auto")
    time.sleep(moment(random, setup, launcher))
    sent = run.send(number, rank)
    statuses = run.end()
    asked = 128 + number
    # Before its main function has begun, the system ends a process by the signal; the others then miss it.
    early = "step" not in run.text()
    allowed = {0, asked} | ({-number, 1} if early else set())
    if launcher != "mpi":
        require(ended_by(statuses, allowed) and (early or len(set(statuses)) == 1),
                f"signal {number} to rank {rank} (sent: {sent}): ended with {statuses}\n" + run.text())
    if asked in statuses and not early:
        require("stopped" in run.text(), "does not say that it was stopped\n" + run.text())
    world.finish(setup, launcher, out, "--take-over")


@kind()
def kill(world, random, setup, launcher, out):
    """A rank is killed: the others end by themselves."""
    rank = random.randrange(setup.ranks)
    run = world.start(setup, launcher, out, "--resume", "auto")
    time.sleep(moment(random, setup, launcher))
    run.send(signal.SIGKILL, rank)
    statuses = run.end()
    if launcher == "tcp":
        require(ended_by(statuses, {0, 1, -9}), f"ended with {statuses}\n" + run.text())
    world.finish(setup, random.choice(["local", launcher]) if launcher != "gpu" else launcher, out)


@kind()
def kill_all(world, random, setup, launcher, out):
    """Everything is killed at once, several times, as by a node that fails."""
    for _ in range(random.randrange(1, 4)):
        run = world.start(setup, launcher, out, "--resume", "auto")
        time.sleep(moment(random, setup, launcher))
        run.kill()
    world.finish(setup, launcher, out)


@kind(("tcp",))
def hang(world, random, setup, launcher, out):
    """A rank is stopped for good: the others name it and end."""
    rank = random.randrange(setup.ranks)
    run = world.start(setup, launcher, out, "--resume", "auto")
    while not world.records(out) and not run.is_over():
        time.sleep(0.01)
    time.sleep(random.uniform(0, 0.5))
    if run.send(signal.SIGSTOP, rank):
        others = [process for index, process in enumerate(run.processes) if index != rank]
        for process in others:
            process.wait(60)
        run.send(signal.SIGKILL, rank)
        run.end()
        for index, output in enumerate(run.outputs):
            if index != rank and run.processes[index].returncode != 0:
                require(f"rank {rank} " in output, f"rank {index} does not name rank {rank}\n" + output)
    world.finish(setup, launcher, out)


@kind()
def twins(world, random, setup, launcher, out):
    """A second run in the same folder is refused, the first one goes on."""
    run = world.start(setup, launcher, out, "--resume", "auto")
    while not os.path.exists(world.path(out, "lease")) and not run.is_over():
        time.sleep(0.005)
    time.sleep(random.uniform(0, 0.3))
    begun_early = not run.is_over()
    second = world.start(setup, launcher, out, "--resume", "auto", *random.choice([(), ("--take-over",)]))
    statuses = second.end()
    if set(statuses) != {0} or (begun_early and not run.is_over()):
        require("is in use by process" in second.text(), f"the second run ended with {statuses}\n" + second.text())
    require(set(run.end()) == {0}, "the first run did not end well\n" + run.text())
    world.require_as_undisturbed(setup, out)


@kind()
def damage(world, random, setup, launcher, out):
    """A checkpoint is damaged after a crash: an older one is taken, or none, never a wrong one."""
    run = world.start(setup, launcher, out, "--resume", "auto")
    while len(world.records(out)) < 6 and not run.is_over():
        time.sleep(0.01)
    run.kill()
    folder = world.path(out, "checkpoints")
    names = [name for name in os.listdir(folder) if name.startswith("ckpt-")] if os.path.isdir(folder) else []
    for name in random.sample(names, random.randrange(len(names) + 1)):
        files = os.listdir(os.path.join(folder, name))
        if not files:
            continue
        path = os.path.join(folder, name, random.choice(files))
        how = random.choice(["truncate", "flip", "remove", "empty"])
        size = os.path.getsize(path)
        if how == "truncate":
            os.truncate(path, random.randrange(size + 1) if size else 0)
        elif how == "flip" and size:
            with open(path, "r+b") as file:
                place = random.randrange(size)
                file.seek(place)
                byte = file.read(1)[0]
                file.seek(place)
                file.write(bytes([byte ^ 1 << random.randrange(8)]))
        elif how == "remove":
            os.remove(path)
        else:
            open(path, "w").close()
    if random.random() < 0.3 and os.path.exists(os.path.join(folder, "latest")):
        with open(os.path.join(folder, "latest"), "w") as file:
            file.write(random.choice(["", "ckpt-99999\n", "../../etc", "\0\0"]))
    run = world.start(setup, launcher, out, "--resume", "auto")
    statuses = run.end()
    if set(statuses) == {0}:
        world.require_as_undisturbed(setup, out)
    else:
        require("is complete" in run.text(), f"ended with {statuses}\n" + run.text())
        shutil.rmtree(folder)
        world.finish(setup, launcher, out)


@kind(("local", "tcp", "gpu"))
def full_disk(world, random, setup, launcher, out):
    """Files may not grow beyond a limit: one error, what was saved before stays."""
    limit = random.randrange(1, 600) * 1024

    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    run = world.start(setup, launcher, out, "--resume", "auto", preexec=lower)
    statuses = run.end()
    if set(statuses) == {0}:
        world.require_as_undisturbed(setup, out)
        return
    require(ended_by(statuses, {1}), f"ended with {statuses}\n" + run.text())
    require("file size limit reached" in run.text() or "File too large" in run.text(), run.text())
    world.finish(setup, launcher, out)


@kind(("local", "tcp"))
def shrinking_data(world, random, setup, launcher, out):
    """The data file loses its end while it is read: one error that names it."""
    data = out + "-data.safetensors"
    shutil.copy(setup.golden.data, world.path(data))
    try:
        run = world.start(setup, launcher, out, "--resume", "auto", data=data)
        time.sleep(moment(random, setup, launcher))
        os.truncate(world.path(data), random.randrange(os.path.getsize(world.path(data))))
        statuses = run.end()
        require(ended_by(statuses, {0, 1}), f"ended with {statuses}\n" + run.text())
        if set(statuses) != {0}:
            require(data in run.text(), "does not name the file\n" + run.text())
        shutil.copy(setup.golden.data, world.path(data))
        again = world.start(setup, launcher, out, "--resume", "auto", data=data)
        statuses = again.end()
        require(set(statuses) == {0}, f"the resumed run ended with {statuses}\n" + again.text())
        world.require_as_undisturbed(setup, out)
    finally:
        os.remove(world.path(data))


@kind(("tcp",))
def other_state(world, random, setup, launcher, out):
    """One rank has other settings or data: refused on all ranks before the first step."""
    other = random.choice([("--order", "sequential"), ("--lr", "0.5"), ("--checkpoint-every", "5"), ("--steps", "41"), "data"])
    port = free_port()
    wrong = random.randrange(setup.ranks)
    data = out + "-data.safetensors"
    shutil.copy(setup.golden.data, world.path(data))
    with open(world.path(data), "r+b") as file:
        file.seek(-random.randrange(1, 4000), os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))
    runs = []
    try:
        for rank in range(setup.ranks):
            flags, path = (), None
            if rank == wrong:
                flags, path = ((), data) if other == "data" else (other, None)
            environment = {"RANK": str(rank), "WORLD_SIZE": str(setup.ranks), "MASTER_ADDR": "127.0.0.1",
                           "MASTER_PORT": str(port)}
            command_flags = ("--resume", "auto")
            runs.append(world.start_one(setup, out, environment, *command_flags, *flags, data=path))
        statuses = [run.end()[0] for run in runs]
        text = "\n".join(run.text() for run in runs)
        require(ended_by(statuses, {1}), f"{other} at rank {wrong}: ended with {statuses}\n{text}")
        require("differ in" in text, f"{other} at rank {wrong}\n{text}")
    finally:
        os.remove(world.path(data))
    world.finish(setup, launcher, out)


@kind(("tcp",))
def noisy_port(world, random, setup, launcher, out):
    """Ranks come late and strangers knock at the port: the run begins all the same."""
    delays = [random.uniform(0, 1.5) for _ in range(setup.ranks)]
    run = world.start(setup, launcher, out, "--resume", "auto", delays=delays)
    port = int(run.port)
    sockets = []
    for _ in range(random.randrange(1, 30)):
        try:
            stranger = socket.create_connection(("127.0.0.1", port), timeout=0.2)
            sockets.append(stranger)
            stranger.sendall(random.choice([b"", b"GET / HTTP/1.0\r\n\r\n", random.randbytes(200), b"tessera1"]))
        except OSError:
            time.sleep(0.02)
    statuses = run.end()
    for stranger in sockets:
        stranger.close()
    require(set(statuses) == {0}, f"ended with {statuses}\n" + run.text())
    world.require_as_undisturbed(setup, out)


@kind(("local", "tcp"))
def divergence(world, random, setup, launcher, out):
    """The loss stops being finite: the run ends with an error and keeps what was good."""
    flags = ("--resume", "auto", "--on-nonfinite", random.choice(["skip", "stop"]), "--lr", random.choice(["1e30", "1e20"]))
    run = world.start(setup, launcher, out, *flags)
    statuses = run.end()
    require(ended_by(statuses, {1}), f"ended with {statuses}\n" + run.text())
    require("finite" in run.text(), run.text())
    require(not os.path.exists(world.path(out, "model.safetensors")), "weights were exported")
    shutil.rmtree(world.path(out))
    world.finish(setup, launcher, out)


@kind(("local", "tcp"))
def damaged_memory(world, random, setup, launcher, out):
    """A bit of one replica flips: found at the next comparison, never saved."""
    step = random.randrange(1, setup.steps)
    flags = random.choice([(), ("--check-replicas", random.randrange(1, 5))])
    run = world.start(setup, launcher, out, "--resume", "auto", *flags,
                      environment={"TESSERA_TEST_DELAY": f"1:{step}:0:flip"})
    statuses = run.end()
    if setup.name == "zero3":  # no copies: nobody can know
        require(set(statuses) == {0}, run.text())
        shutil.rmtree(world.path(out))
    else:
        require(ended_by(statuses, {1}), f"ended with {statuses}\n" + run.text())
        require("hold different values of" in run.text(), run.text())
    world.finish(setup, launcher, out)


@kind()
def left_overs(world, random, setup, launcher, out):
    """What a killed process of any number left behind blocks nothing and is removed."""
    os.makedirs(world.path(out, "checkpoints"))
    names = {"": ["run.json", "metrics.jsonl", "model.safetensors", "trace.json", "lease"],
             "checkpoints/": ["latest", ".ckpt-4", ".ckpt-8"]}
    for index in range(random.randrange(1, 40)):
        where = random.choice(list(names))
        name = random.choice(names[where])
        path = world.path(out, f"{where}{name}.tmp-{random.randrange(99999)}-{index}")
        if name.startswith(".ckpt"):
            os.makedirs(path)
        else:
            open(path, "w").close()
    world.finish(setup, launcher, out)
