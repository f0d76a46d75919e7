#!/usr/bin/env python3
"""Runs the unittest files (test_*.py) of a directory; the last line is "N passed, N failed".

usage: run_unittests.py <directory> [-j N] [-k <part of a test's name, or a pattern with *>]...
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import unittest

COUNTS = re.compile(r"(\d+) passed, (\d+) failed\n\Z")


def run_file(directory, file, patterns):
    """Runs the tests of one file in this process; returns how many passed and how many did not."""
    loader = unittest.TestLoader()
    if patterns:
        loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*" for pattern in patterns]
    suite = loader.discover(directory, pattern=file, top_level_dir=directory)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    # A skipped test is not a passed one.
    return max(0, result.testsRun - bad - len(result.skipped)), bad


def start_file(directory, file, patterns):
    """Runs the tests of one file in a process of its own; returns what it printed, and the counts."""
    command = [sys.executable, os.path.abspath(__file__), directory, "--file", file]
    for pattern in patterns:
        command += ["-k", pattern]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    counts = COUNTS.search(run.stdout)
    if not counts:
        return f"{run.stdout}\n{file} ended with status {run.returncode}\n", 0, 1
    return run.stdout[: counts.start()], int(counts[1]), int(counts[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="files that run at the same time (1)")
    parser.add_argument("-k", action="append", default=[], metavar="PATTERN", help="only tests whose name contains or matches this")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    options = parser.parse_args()
    directory = os.path.abspath(options.directory)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if options.file:
        passed, failed = run_file(directory, options.file, options.k)
        print(f"{passed} passed, {failed} failed")
        return 1 if failed else 0

    files = [entry for entry in os.scandir(directory) if re.fullmatch(r"test_.*\.py", entry.name)]
    files.sort(key=lambda entry: -entry.stat().st_size)  # long ones first, so that all workers end together
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.j) as workers:
        runs = [workers.submit(start_file, directory, entry.name, options.k) for entry in files]
        for run in concurrent.futures.as_completed(runs):
            output, good, bad = run.result()
            print(output, end="", flush=True)
            passed, failed = passed + good, failed + bad
    if passed + failed == 0:
        failed = 1  # no test was found
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
