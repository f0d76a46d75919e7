#!/usr/bin/env python3
"""Runs the unittest files (test_*.py) of a directory; the last line is "N passed, N failed".

usage: run_unittests.py <directory> [-k <part of a test's name, or a pattern with *>]...
"""

import argparse
import os
import sys
import unittest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("-k", action="append", metavar="PATTERN", help="only tests whose name contains or matches this")
    options = parser.parse_args()
    directory = os.path.abspath(options.directory)
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    loader = unittest.TestLoader()
    if options.k:
        loader.testNamePatterns = [pattern if "*" in pattern else f"*{pattern}*" for pattern in options.k]
    suite = loader.discover(directory, pattern="test_*.py", top_level_dir=directory)
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
