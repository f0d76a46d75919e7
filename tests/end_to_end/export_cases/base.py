"""How a case is registered, its inputs, and the two networks that most cases change in one place."""

import torch
import torch.nn as nn


CASES = {}  # name -> (class, function that makes the inputs, options of export)


def floats():
    return (torch.randn(3, 4),)


def tokens():
    return (torch.randint(0, 10, (3, 5)),)


def images():
    return (torch.randn(2, 4, 6, 6),)


def sequences():
    return (torch.randn(3, 5, 8),)


def classified():
    return torch.randn(3, 4), torch.randint(0, 4, (3,))


def case(inputs=floats, **options):
    def keep(cls):
        name = "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__).strip("_")
        CASES[name] = (cls, inputs, {"exporter": "torchscript", **options})
        return cls
    return keep


class Base(nn.Module):
    """Two layers and a batch of four features; `between` is what the case is about."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 4)

    def between(self, h):
        return h

    def forward(self, x):
        return self.b(self.between(self.a(x)))


class TokenBase(nn.Module):
    """A table of ten rows and a projection."""

    def __init__(self, **options):
        super().__init__()
        self.e, self.h = nn.Embedding(10, 8, **options), nn.Linear(8, 10)

    def forward(self, t):
        return self.h(self.e(t))
