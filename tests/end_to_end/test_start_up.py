"""How the processes of a run find each other, what may disturb them, and what signals do before the first step."""

import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from harness import BIN
from launchers import free_port, ranks_of
from test_launch import LaunchTest, needs_mpi

# Seconds: long for a busy machine, and short beside the 600 of --start-timeout, after which all would end anyway, and
# beside what dozens of connections would take that are waited for one by one.
SOON = 30


class StartUpTest(LaunchTest):
    def setUp(self):
        super().setUp()
        self.compile("a", "--mesh", "shard=2", "--strategy", "zero3")
        self.port = free_port()

    def rank(self, rank, *flags, ranks=2, host="127.0.0.1", out="run", steps=2, **more):
        return self.start(self.command("a", out, steps, *flags),
                          {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": host,
                           "MASTER_PORT": str(self.port), **more})

    def under(self, wrapper):
        """Rank 0 of 2, started by another program."""
        return self.start([*wrapper, *self.command("a", "run", 2)],
                          {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port)})

    def wait_for_port(self):
        """Until rank 0 listens."""
        for _ in range(500):
            with open("/proc/net/tcp") as v4, open("/proc/net/tcp6") as v6:
                listening = [line.split() for line in [*v4, *v6]]
            if any(fields[1].endswith(f":{self.port:04X}") and fields[3] == "0A" for fields in listening):
                return
            time.sleep(0.02)
        self.fail("rank 0 does not listen")

    def connect(self, text=b""):
        connection = socket.create_connection(("127.0.0.1", self.port))
        self.addCleanup(connection.close)
        connection.sendall(text)
        return connection

    def assert_ends_soon(self, process, status):
        return self.finish(process, status=status, timeout=SOON)

    def wait_for_line(self, process, pattern, seconds=30):
        """What the process has said up to the line."""
        lines, found = [], threading.Event()

        def read():
            for line in process.stdout:
                lines.append(line)
                if re.search(pattern, line):
                    found.set()
                    return

        threading.Thread(target=read, daemon=True).start()
        self.assertTrue(found.wait(seconds), f"no line like {pattern} in {lines}")
        return "".join(lines)


class Peers(StartUpTest):
    def test_late_ranks_are_waited_for_and_named(self):
        first = self.rank(0)
        self.assertRegex(self.wait_for_line(first, "waits for"),
                         rf"info: rank 0: waits for rank 1 of 2 at 127.0.0.1:{self.port} \(5 s of 600\)")
        second = self.rank(1)
        for run in (first, second):
            self.finish(run)

    def test_rank_0_may_be_the_late_one(self):
        second = self.rank(1, "--start-timeout", 0)
        self.assertRegex(self.wait_for_line(second, "waits for"),
                         rf"info: rank 1: waits for rank 0 at 127.0.0.1:{self.port}: Connection refused \(5 s\)")
        first = self.rank(0)
        for run in (first, second):
            self.finish(run)

    def test_the_wait_has_an_end(self):
        runs = [self.rank(rank, "--start-timeout", 2, ranks=5) for rank in (0, 1)]
        for rank, run in enumerate(runs):
            self.assertRegex(self.finish(run, status=1, timeout=20),
                             rf"error: rank {rank}: rank 2-4 of 5 did not come to 127.0.0.1:{self.port} within 2 s "
                             r"\(--start-timeout\)")
        alone = self.rank(1, "--start-timeout", 1)
        self.assertRegex(self.finish(alone, status=1, timeout=20),
                         rf"error: rank 1 cannot meet rank 0 at 127.0.0.1:{self.port} within 1 s \(--start-timeout\): "
                         "Connection refused")

    def test_a_host_without_an_address(self):
        run = self.rank(1, host="nohost.invalid")
        self.assertRegex(self.finish(run, status=1, timeout=60),
                         r"error: rank 1: cannot resolve 'nohost.invalid': (Name or service not known|Temporary failure)")

    def test_a_port_in_use(self):
        with socket.socket() as other:
            other.bind(("", 0))
            other.listen()
            self.port = other.getsockname()[1]
            output = self.assert_ends_soon(self.rank(0), 1)
            self.assertRegex(output, rf"error: rank 0: port {self.port} is in use by another program or run: end that "
                                     "one, or choose another port .*MASTER_PORT")

    def test_a_rank_of_another_run(self):
        runs = [self.rank(0, ranks=2), self.rank(1, ranks=3)]
        for rank, run in enumerate(runs):  # both say so
            self.assertRegex(self.assert_ends_soon(run, 1),
                             rf"error: rank {rank}: two runs meet at .* rank 1 of a run of 3 ranks")

    def test_a_rank_that_dies_and_comes_again(self):
        self.compile("a", "--mesh", "shard=4", "--strategy", "zero3")
        first = self.rank(0, ranks=4, TESSERA_LOG_LEVEL="info")
        lost = self.rank(1, ranks=4)
        time.sleep(1)
        lost.kill()
        self.wait_for_line(first, "rank 1 of 4 is gone, and may come again")
        others = [self.rank(rank, ranks=4) for rank in (1, 2, 3)]
        for run in (first, *others):
            self.finish(run)

    def test_two_processes_with_one_rank(self):
        self.compile("a", "--mesh", "shard=4", "--strategy", "zero3")
        runs = [self.rank(rank, ranks=4) for rank in (0, 1)]
        time.sleep(1)
        runs.append(self.rank(1, ranks=4))
        for rank, run in zip((0, 1, 1), runs):
            self.assertRegex(self.finish(run, status=1, timeout=20),
                             f"error: rank {rank}: two processes say that they are rank 1 of the run at ")


class Strangers(StartUpTest):
    def assert_starts_in_time(self):
        self.finish(self.rank(1), timeout=SOON)

    def test_connections_that_say_nothing(self):
        first = self.rank(0)
        self.wait_for_port()
        connections = [self.connect() for _ in range(50)]
        self.assert_starts_in_time()
        self.finish(first)
        self.assertEqual(len(connections), 50)

    def test_hundreds_of_them_and_few_descriptors(self):
        first = self.under(["prlimit", "--nofile=64:64"])
        self.wait_for_port()
        connections = [self.connect() for _ in range(300)]
        self.assert_starts_in_time()
        self.finish(first)
        self.assertEqual(len(connections), 300)

    def test_what_is_not_of_tessera(self):
        first = self.rank(0, TESSERA_LOG_LEVEL="debug")
        self.wait_for_port()
        for text in (b"GET / HTTP/1.1\r\nHost: node1\r\n\r\n", b"\0" * 100, b"tess", b"\xff", b"tessera1" + b"\0" * 24):
            self.connect(text)
        self.connect(b"GET /").close()
        self.assert_starts_in_time()
        self.assertRegex(self.finish(first), "debug: rank 0: drops a connection of 127.0.0.1: it is no tessera-run")

    def test_another_server_in_place_of_rank_0(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", self.port))
            server.listen()

            def answer():
                connection, _ = server.accept()
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                time.sleep(5)
                connection.close()

            threading.Thread(target=answer, daemon=True).start()
            self.assertRegex(self.finish(self.rank(1, "--start-timeout", 2), status=1, timeout=20),
                             "error: rank 1 cannot meet rank 0 at .* within 2 s .*: no answer")


class Signals(StartUpTest):
    def test_a_rank_that_waits_for_others(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
            for rank in (0, 1):
                with self.subTest(number=number, rank=rank):
                    run = self.rank(rank)
                    time.sleep(0.5)
                    run.send_signal(number)
                    self.assertIn("stopped before the first step\n", self.assert_ends_soon(run, 128 + number))

    def test_the_others_end_too_and_say_why(self):
        for asked in (0, 1, 2):
            with self.subTest(asked=asked):
                runs = [self.rank(rank, ranks=4) for rank in range(3)]
                time.sleep(1)
                runs[asked].send_signal(signal.SIGTERM)
                for rank, run in enumerate(runs):
                    output = self.assert_ends_soon(run, 128 + signal.SIGTERM)
                    why = "" if rank == asked else f": rank {asked} was asked to end by signal 15"
                    self.assertIn(f"stopped before the first step{why}\n", output)

    def test_a_name_service_does_not_hold_it_up(self):
        run = self.rank(1, "--start-timeout", 0, host="192.0.2.1")  # from which nothing is heard
        time.sleep(1)
        run.send_signal(signal.SIGTERM)
        self.assert_ends_soon(run, 128 + signal.SIGTERM)

    def test_what_is_ignored_stays_so(self):
        run = self.under(["sh", "-c", 'trap "" HUP; exec "$@"', "sh"])
        self.wait_for_port()
        run.send_signal(signal.SIGHUP)
        self.finish(self.rank(1))
        self.finish(run)

    def test_a_second_signal_ends_at_once(self):
        runs = [self.rank(rank, "--stall-timeout", 60, "--checkpoint-every", 2, steps=1000000) for rank in (0, 1)]
        self.wait_for_steps("run", 5)
        runs[1].send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        for _ in range(2):  # as timeout(1) sends them, to the process and to its group
            runs[0].send_signal(signal.SIGTERM)
            time.sleep(0.1)
        time.sleep(1)
        self.assertIsNone(runs[0].poll(), "one wish for an end, not two")
        runs[0].send_signal(signal.SIGTERM)
        output = self.assert_ends_soon(runs[0], 128 + signal.SIGTERM)
        self.assertRegex(output, "warning: rank 0: asked to end by signal 15, while it waits for rank 1 at")
        runs[1].kill()
        steps = self.metrics("run")[-1]["step"] + 2
        self.finish(self.start(self.command("a", "again", steps, "--comm", "local", "--resume", "run")))

    @needs_mpi
    def test_mpi_while_the_others_have_not_come(self):
        launcher = self.mpirun(1, [*self.command("a", "run", 2), ":", "-n", "1", "sleep", "60"])
        end = time.monotonic() + 20
        while not ranks_of(launcher.pid) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(1)
        os.kill(ranks_of(launcher.pid)[0], signal.SIGTERM)
        output = self.finish(launcher, status=None, timeout=20)
        self.assertIn("stopped before the first step", output)
        self.assertEqual(launcher.returncode, 128 + signal.SIGTERM, output)


class Output(StartUpTest):
    def local(self, *flags, shell):
        command = " ".join(self.command("a", "run", 40, "--comm", "local", "--log-every", 1, *flags))
        return subprocess.run(["bash", "-c", shell.replace("RUN", command)], cwd=self.folder, timeout=120, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_nobody_reads_the_progress(self):
        done = self.local(shell="RUN | head -1; exit ${PIPESTATUS[0]}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(self.metrics("run")), 40)
        self.assertEqual(done.stderr.count("cannot write progress to stdout: Broken pipe"), 1, done.stderr)

    def test_stdout_is_full(self):
        done = self.local(shell="RUN > /dev/full")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("cannot write progress to stdout: No space left on device"), 1, done.stderr)

    def test_closed_streams_are_no_files_of_the_run(self):
        done = self.local(shell="RUN <&- >&- 2>&-")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(self.metrics("run")), 40)

    def test_a_limit_of_file_sizes(self):
        self.succeed("tessera-run", *self.command("a", "run", 2, "--comm", "local", "--checkpoint-every", 2)[1:])
        size = max(os.path.getsize(self.path("run", "checkpoints", "ckpt-2", name))
                   for name in os.listdir(self.path("run", "checkpoints", "ckpt-2")))
        before = sorted(os.listdir(self.path("run", "checkpoints")))
        done = self.local("--resume", "run", "--checkpoint-every", 10,
                          shell=f"ulimit -f {max(size // 2 // 1024, 1)}; RUN")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, "error: checkpoint of step 10 is not written: .*: file size limit reached")
        self.assertEqual(sorted(os.listdir(self.path("run", "checkpoints"))), before)


class Prefix(StartUpTest):
    """The last line of a process says whose it is."""

    def test_errors_of_one_rank(self):
        runs = [self.rank(0), self.rank(1, "--resume", "absent")]
        for rank, told in ((0, "rank 0: rank 1"), (1, "rank 1")):
            output = self.finish(runs[rank], status=1)
            self.assertRegex(output, rf"(?m)^error: {told}: .*no checkpoint at 'absent'")

    def test_the_environment_is_wrong(self):
        run = self.start(self.command("a", "run", 2), {"RANK": "4", "WORLD_SIZE": "2"})
        self.assertRegex(self.finish(run, status=1), "(?m)^error: rank 4: RANK='4' and WORLD_SIZE='2' must be")

    @needs_mpi
    def test_mpi(self):
        output = self.finish(self.mpirun(3, self.command("a", "run", 3)), status=None)
        self.assertRegex(output, r"(?m)^error: rank \d: (rank \d: )?artifact 'a.tessera' is for 2 ranks, but 3 processes")

    def test_threads_have_none(self):
        run = self.start(self.command("a", "run", 2, "--comm", "local", "--resume", "absent"), {"RANK": "1", "WORLD_SIZE": "2"})
        self.assertRegex(self.finish(run, status=1), "(?m)^error: no checkpoint")


if __name__ == "__main__":
    unittest.main()
