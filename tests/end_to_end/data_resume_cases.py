"""Cases of test_data_build.py: builds by several processes, and builds that are ended and go on."""

import errno
import os
import signal
import subprocess
import sys
import time

import cases
import data_tokenizers
from data_packing_cases import corpus
from data_support import Built, build, call, write_lines
from tessera.data import build as building
from tessera.data import reading, store
from tessera.data import workers as tasks

WORDS = ("--model", "gpt", "--seq", 48, "--split", "valid=10%")


def prepare():
    """Inputs of many small blocks; returns what the commands name."""
    reading.BLOCK, reading.CHUNK, reading.PACKED_CHUNK = 2000, 700, 500
    building.SAVED, tasks.TASK = 0, 1
    data_tokenizers.gpt("gpt")
    os.mkdir("in")
    records = corpus()
    write_lines("in/a.jsonl", records[:70])
    write_lines("in/c.jsonl", records[70:])
    with open("in/b.txt", "w") as file:
        file.write(data_tokenizers.TEXTS[0])
    subprocess.run(["gzip", "in/c.jsonl"], check=True)
    return ("in", *WORDS)


def ended_at(take, act, *words):
    """Builds in a child process that calls act() before it takes block number `take`; returns (its status as of os.waitpid,
    what it wrote to standard error)."""
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.dup2(os.open("stderr", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            sys.stderr = open(2, "w", closefd=False)
            take_one, taken = building.Build.take, 0

            def take_some(self, encoded):
                nonlocal taken
                taken += 1
                if taken == take:
                    with open("workers", "w") as file:
                        file.write(" ".join(map(str, workers_of(os.getpid()))))
                    act()
                take_one(self, encoded)

            building.Build.take = take_some
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                status = building_command(*words)
            except SystemExit as end:
                status = end.code
            sys.stderr.flush()
        finally:
            os._exit(status)
    status = os.waitpid(child, 0)[1]
    with open("stderr") as file:
        return status, file.read()


def building_command(*words):
    from tessera.data import command
    sys.stdout = open(os.devnull, "w")
    return command.main([str(word) for word in ("build", *words)])


def workers_of(parent):
    with open(f"/proc/{parent}/task/{parent}/children") as file:
        return [int(word) for word in file.read().split()]


def have_ended(processes):
    """Whether processes end within some seconds."""
    until = time.monotonic() + 10
    while any(map(is_alive, processes)) and time.monotonic() < until:
        time.sleep(0.01)
    return not any(map(is_alive, processes))


def is_alive(process):
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def workers_do_not_change_bytes(test, folder):
    words = prepare()
    one, three = build(test, "one", *words), build(test, "three", *words, workers=3)
    test.assertEqual(three.files(), one.files())
    test.assertEqual(len(one.manifest["sources"]), 3)
    reading.BLOCK = 1 << 20
    test.assertEqual(build(test, "large", *words).files(), one.files())


def ended_builds_go_on(test, folder):
    words = [*prepare(), "--field", "text=text"]
    want = build(test, "want", *words).files()
    kill = lambda number: lambda: os.kill(os.getpid(), number)  # noqa: E731
    for name, number, workers, take in (("kill-1", signal.SIGKILL, 1, 5), ("kill-3", signal.SIGKILL, 3, 3),
                                        ("term", signal.SIGTERM, 3, 8),
                                        ("int", signal.SIGINT, 3, 6), ("first", signal.SIGTERM, 1, 1)):
        status, said = ended_at(take, kill(number), *words, "-o", name, "--workers", workers)
        kept = f"; {name}.partial is kept, and the same command goes on from it" if take > 1 else ""
        if number == signal.SIGKILL:
            test.assertEqual((os.WTERMSIG(status), said), (number, ""))
        else:
            what = "interrupted" if number == signal.SIGINT else f"ended by signal {number.value}"
            test.assertEqual((os.WEXITSTATUS(status), said), (128 + number, f"tessera: error: {what}{kept}\n"))
        with open("workers") as file:
            processes = [int(word) for word in file.read().split()]
        test.assertEqual(len(processes), workers if workers > 1 else 0)
        test.assertTrue(have_ended(processes))
        test.assertFalse(os.path.exists(name))
        test.assertEqual(os.path.exists(f"{name}.partial"), take > 1)
        made = build(test, name, *words, workers=2)
        test.assertEqual("goes on from" in made.printed, take > 1)
        test.assertEqual(made.files(), want, name)


def partial_folders(test, folder):
    words = prepare()
    want = build(test, "want", *words).files()
    ended_at(5, lambda: os.kill(os.getpid(), signal.SIGKILL), *words, "-o", "data", "--workers", 1)
    with open("data.partial/progress.json") as file:
        before = file.read()
    status, _, err = call("build", *words, "--train-on", "all", "--seed", 1, "-o", "data")
    test.assertEqual(status, 1)
    test.assertRegex(err, r"^tessera: error: \S*data.partial is the beginning of another build, which differs in --train-on, "
                     r"--seed; .*--restart [^\n]*\n$")
    os.utime("in/b.txt")
    status, _, err = call("build", *words, "-o", "data")
    test.assertEqual(status, 1)
    test.assertIn("differs in the inputs;", err)
    with open("data.partial/progress.json") as file:
        test.assertEqual(file.read(), before)
    other = build(test, "other", *words)
    made = build(test, "data", *words, "--restart")
    test.assertNotIn("goes on", made.printed)
    test.assertEqual(made.files(), other.files())
    test.assertEqual((made.documents, made.splits), (Built("want").documents, Built("want").splits))
    test.assertNotEqual(made.files()["manifest.json"], want["manifest.json"])  # the key has times of the inputs


def two_builds_at_once(test, folder):
    words = prepare()

    def other():
        os._exit(call("build", *words, "-o", "data", "--workers", 1)[2].endswith(
            "/data.partial; wait for its end\n") and 42)

    test.assertEqual(os.WEXITSTATUS(ended_at(3, other, *words, "-o", "data", "--workers", 1)[0]), 42)


def no_space(test, folder):
    words = prepare()
    want = build(test, "want", *words).files()
    append, count = store.Store.append, 0

    def full(self, encoded):
        nonlocal count
        count += 1
        if count == 6:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        append(self, encoded)

    store.Store.append = full
    try:
        status, _, err = call("build", *words, "-o", "data", "--workers", 1)
    finally:
        store.Store.append = append
    test.assertEqual(status, 1)
    test.assertRegex(err, r"^tessera: error: no space is left for \S*data.partial; data.partial is kept, and the same command "
                     r"goes on from it\n$")
    made = build(test, "data", *words)
    test.assertIn("goes on from", made.printed)
    test.assertEqual(made.files(), want)


def changed_sources(test, folder):
    words = prepare()

    def change():
        with open("in/c.jsonl.gz", "ab") as file:
            file.write(b"\0")

    status, said = ended_at(2, change, *words, "-o", "data", "--workers", 1)
    test.assertEqual(os.WEXITSTATUS(status), 1)
    test.assertRegex(said, r"^tessera: error: \S*in/c.jsonl.gz was changed while it was read; [^\n]*\n$")
    test.assertFalse(os.path.exists("data.partial"))


if __name__ == "__main__":
    cases.run((workers_do_not_change_bytes, ended_builds_go_on, partial_folders, two_builds_at_once, no_space, changed_sources))
