"""Runs cases that need a Python with torch."""

import cases
import torch


def run(functions):
    """Calls each of {name: function(test, folder)}, on one thread and from the same seed."""
    torch.set_num_threads(1)
    cases.run(functions.values(), before=lambda: torch.manual_seed(0))
