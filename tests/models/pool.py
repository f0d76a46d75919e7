"""Runs cases, each in a forked process that has a time limit and a limit on memory."""

import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
import traceback


def child(run, case, memory, path):
    """Runs one case in a process of its own and writes its result to `path`."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (memory << 30, memory << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.stdout = sys.stderr = open(os.devnull, "w")
    start = time.time()
    with tempfile.TemporaryDirectory(prefix="tessera-case-") as folder:
        try:
            result = run(*case, folder)
        except BaseException as why:
            result = {"result": "failed", "stage": "check", "reason": f"{type(why).__name__}: {why}"[:300],
                      "message": traceback.format_exc()[-4000:]}
    result["seconds"] = round(time.time() - start, 1)
    with open(path, "w") as file:
        json.dump(result, file)


class Pool:
    """run(*case, folder) returns a dictionary; done(case, dictionary) takes it."""

    def __init__(self, jobs, limit, memory, run, done):
        self.jobs, self.limit, self.memory, self.running = jobs, limit, memory, {}
        self.run, self.done = run, done
        self.folder = tempfile.mkdtemp(prefix="tessera-pool-")

    def start(self, case):
        while len(self.running) >= self.jobs:
            self.wait()
        path = os.path.join(self.folder, "-".join(map(str, case)) + ".json")
        process = multiprocessing.get_context("fork").Process(target=child, args=(self.run, case, self.memory, path))
        process.start()
        self.running[case] = (process, path, time.time() + self.limit)

    def wait(self):
        """Collects what has ended or runs too long."""
        for case, (process, path, end) in list(self.running.items()):
            late = time.time() > end
            if process.is_alive() and not late:
                continue
            if process.is_alive():
                os.killpg(process.pid, signal.SIGKILL)
            process.join()
            del self.running[case]
            if os.path.exists(path):
                with open(path) as file:
                    result = json.load(file)
                os.remove(path)
            else:
                reason = f"took longer than {self.limit} s" if late else f"ended by signal {-process.exitcode}"
                result = {"result": "failed", "stage": "check", "reason": reason}
            self.done(case, result)
            return
        time.sleep(0.05)

    def finish(self):
        while self.running:
            self.wait()
        os.rmdir(self.folder)
