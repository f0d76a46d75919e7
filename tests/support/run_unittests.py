#!/usr/bin/env python3
"""Runs the unittest files (test_*.py) of a directory; the last line is "N passed, N failed"."""

import os
import sys
import unittest


def main():
    directory = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    suite = unittest.defaultTestLoader.discover(directory, pattern="test_*.py", top_level_dir=directory)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(suite)
    bad = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    # A skipped or vanished test is not a passed one.
    passed = result.testsRun - bad - len(result.skipped)
    if result.testsRun == 0:
        bad = 1
    print(f"{passed} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
