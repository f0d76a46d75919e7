"""Modules of make_programs.py: regions in another mode that cannot become part of a program, and dropout of a buffer."""

import torch
import torch.nn.functional as F
from torch import nn


class WithRegion(nn.Module):
    """A region that `what` keeps from being part of the program."""

    def __init__(self, what):
        super().__init__()
        self.what = what
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        y = self.line(x)
        if self.what == "autocast_size":
            with torch.autocast("cpu", enabled=False):
                scale, size = y * 2, x.shape[0] * 2
            return y * scale + size
        with torch.no_grad():
            scale, size = y * 2, x.shape[0]
            if self.what == "maybe":
                scale, = torch.broadcast_tensors(y)
            else:
                size = size * 2
        return (y * scale).add_(size)


class DropsBuffer(nn.Module):
    """A buffer of which dropout in place leaves half of the elements, twice as large."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.register_buffer("kept", torch.ones(4))

    def forward(self, x):
        F.dropout(self.kept, 0.5, True, inplace=True)
        return self.line(x) * self.kept
