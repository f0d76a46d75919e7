"""Runs cases: their files are programs, which tests start in a Python that has what they import (harness.check_cases)."""

import json
import os
import sys
import traceback
import unittest


def run(functions, before=lambda: None):
    """Calls each function(test, folder) after `before`, in a folder of its own below the one that the command line names; prints
    {name: what went wrong, or null} as the last line, as JSON."""
    results = {}
    for function in functions:
        name = function.__name__
        results[name] = None
        folder = os.path.join(sys.argv[1], name)
        os.mkdir(folder)
        os.chdir(folder)
        before()
        try:
            function(unittest.TestCase(), folder)
        except unittest.SkipTest as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
        except Exception:  # the test says what
            results[name] = traceback.format_exc()
    print(json.dumps(results))
