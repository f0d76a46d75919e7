"""Runs cases that need a Python with torch: their files are programs, which tests start (harness.check_cases)."""

import json
import os
import sys
import traceback
import unittest

import torch


def run(cases):
    """Calls each of {name: function(test, folder)} in a folder of its own below the one that the command line names; prints
    {name: what went wrong, or null} as the last line, as JSON."""
    torch.set_num_threads(1)
    results = {}
    for name, function in cases.items():
        folder = os.path.join(sys.argv[1], name)
        os.mkdir(folder)
        torch.manual_seed(0)
        try:
            function(unittest.TestCase(), folder)
            results[name] = None
        except unittest.SkipTest as why:
            print(f"{name} is left out: {why}", file=sys.stderr)
            results[name] = None
        except Exception:  # the test says what
            results[name] = traceback.format_exc()
    print(json.dumps(results))
