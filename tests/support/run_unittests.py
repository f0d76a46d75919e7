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
import tempfile
import unittest

LONGEST = 3600  # seconds of one file


class Counted(unittest.TextTestResult):
    """Counts the tests that passed: a skipped test is not one."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1


def run_file(directory, file, patterns):
    """Runs the tests of one file in this process; returns how many passed and how many did not."""
    loader = unittest.TestLoader()
    if patterns:
        loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*" for pattern in patterns]
    suite = loader.discover(directory, pattern=file, top_level_dir=directory)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Counted).run(suite)
    bad = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    if not patterns and not result.testsRun and not result.skipped and not bad:
        print(f"{file} has no tests")
        bad = 1
    return result.passed, bad


def start_file(directory, file, patterns):
    """Runs the tests of one file in a process of its own; returns what it printed, and the counts."""
    with tempfile.TemporaryFile() as printed, tempfile.NamedTemporaryFile("r") as counts:
        command = [sys.executable, os.path.abspath(__file__), directory, "--file", file, "--counts", counts.name]
        for pattern in patterns:
            command += ["-k", pattern]
        try:
            status = subprocess.run(command, stdout=printed, stderr=subprocess.STDOUT, timeout=LONGEST).returncode
        except subprocess.TimeoutExpired:
            status = f"nothing in {LONGEST} s"
        printed.seek(0)
        output = printed.read().decode(errors="replace")
        passed, failed = map(int, counts.read().split() or (0, 0))
    if status != (1 if failed else 0):
        output += f"{file} ended with {status}, after {passed} passed and {failed} failed\n"
        failed += 1
    return output, passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("-j", type=int, default=1, metavar="N", help="files that run at the same time (1)")
    parser.add_argument("-k", action="append", default=[], metavar="PATTERN", help="only tests whose name contains or matches this")
    parser.add_argument("--file", help=argparse.SUPPRESS)
    parser.add_argument("--counts", help=argparse.SUPPRESS)
    options = parser.parse_args()
    directory = os.path.abspath(options.directory)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    if options.file:
        passed, failed = run_file(directory, options.file, options.k)
        with open(options.counts, "w") as counts:
            print(passed, failed, file=counts)
        return 1 if failed else 0

    files = [entry for entry in os.scandir(directory) if re.fullmatch(r"test_.*\.py", entry.name)]
    files.sort(key=lambda entry: -entry.stat().st_size)
    passed = failed = 0
    bad_files = []
    with concurrent.futures.ThreadPoolExecutor(options.j) as workers:
        runs = [workers.submit(start_file, directory, entry.name, options.k) for entry in files]
        try:
            for run in concurrent.futures.as_completed(runs):
                output, good, bad = run.result()
                print(output, end="", flush=True)
                passed, failed = passed + good, failed + bad
                if bad:
                    bad_files.append(output)
        except BaseException:
            workers.shutdown(wait=False, cancel_futures=True)
            raise
    if bad_files:
        print("\n== once more, the files with failures", *bad_files, sep="\n")
    if passed + failed == 0:
        failed = 1
        print("no test was found")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
