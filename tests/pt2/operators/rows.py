"""What a row of the operators' table is: a small function that calls overloads of operators, and the tensors that it gets;
and the module that trains all rows of a family at once. Needs torch.

A program of many rows costs one compilation. Each row has parameters of its own, so that its gradients, by name, say which
row is wrong; a row's share of the loss is a mean of squares of its results, so that elements do not cancel.
"""

import dataclasses
import math
import zlib

import numpy
import torch
from torch import nn

BATCH, STEPS = 4, 3
SCALES = (1.0, 1.25, 0.75)  # of all float tensors in each step: powers of two keep ties


@dataclasses.dataclass
class Floats:
    """A float tensor that is a parameter. kind: "normal"; "grid" (small whole numbers: zeros and ties), "positive" (0.2 to
    2), "unit" (0.05 to 0.75), "distinct" (no two are near each other)."""
    shape: tuple
    kind: str = "normal"
    dtype: torch.dtype = torch.float32

    def make(self, generator):
        count = math.prod(self.shape)
        made = {"normal": lambda: generator.standard_normal(count), "grid": lambda: generator.integers(-2, 3, count),
                "positive": lambda: generator.uniform(0.2, 2, count), "unit": lambda: generator.uniform(0.05, 0.75, count),
                "distinct": lambda: generator.permutation(count) * 0.3 - 0.15 * count + 0.05}
        return torch.from_numpy(made[self.kind]().astype(numpy.float32).reshape(self.shape))


@dataclasses.dataclass
class Integers:
    """An integer tensor that is an input of the step: low to high - 1. Its values are not known when the step is
    compiled."""
    shape: tuple
    high: int
    low: int = 0
    dtype: torch.dtype = torch.int64

    def make(self, generator):
        """Those of all steps: a first dimension of BATCH for each, whatever the shape is."""
        inner = -(-math.prod(self.shape) // BATCH)
        shape = self.shape[1:] if self.isBatched else (inner,)
        return generator.integers(self.low, self.high, (BATCH * STEPS, *shape)).astype(numpy.int64)

    @property
    def isBatched(self):
        return len(self.shape) > 0 and self.shape[0] == BATCH

    def of(self, data):
        """The tensor of one step's data."""
        if not self.isBatched:
            data = data.flatten()[:math.prod(self.shape)].reshape(self.shape)
        return data.to(self.dtype)


@dataclasses.dataclass
class Known:
    """A tensor that is a constant of the program."""
    values: object
    dtype: torch.dtype = None


def f(*shape, kind="normal", dtype=torch.float32):
    return Floats(shape, kind, dtype)


def i(*shape, high=5, low=0, dtype=torch.int64):
    return Integers(shape, high, low, dtype)


def k(values, dtype=None):
    return Known(values, dtype)


@dataclasses.dataclass
class Row:
    """name: unique; overloads: those that the exported graph must have, by blanks ("aten.amax.default"); function: of the
    inputs' tensors, returns a tensor or several; refused: None, or a regular expression that the refusal must match."""
    name: str
    overloads: str
    function: object
    inputs: tuple
    refused: str = None


def row(name, overloads, function, *inputs, refused=None):
    return Row(name, overloads, function, inputs, refused)


def generator_of(name):
    return numpy.random.default_rng(zlib.crc32(name.encode()))


class RowModule(nn.Module):
    """The share of one row in the loss."""

    def __init__(self, row):
        super().__init__()
        self.row = row
        generator = generator_of(row.name)
        for at, entry in enumerate(row.inputs):
            if isinstance(entry, Floats):
                self.register_parameter(f"x{at}", nn.Parameter(entry.make(generator)))
            elif isinstance(entry, Known):
                self.register_buffer(f"x{at}", torch.as_tensor(entry.values, dtype=entry.dtype))
        # What has no gradient counts times a parameter. The shapes of results are found by running the function.
        one, data = torch.tensor(1.0), data_of([row], 1)
        for at, result in enumerate(self.results(one, data)):
            if not result.requires_grad:
                self.register_parameter(f"gate{at}", nn.Parameter(
                    torch.from_numpy(generator.uniform(0.5, 1.5, tuple(result.shape)).astype(numpy.float32))))
        # A parameter to which no gradient flows has one of its own, so that any other would be seen.
        self.anchored = []
        self(one, data).backward()
        self.anchored = [name for name, value in self.named_parameters() if value.grad is None or not value.grad.any()]
        self.zero_grad()

    def results(self, scale, data):
        tensors = []
        for at, entry in enumerate(self.row.inputs):
            if isinstance(entry, Integers):
                tensors.append(entry.of(data[f"{self.row.name}_{at}"]))
            else:
                x = getattr(self, f"x{at}")
                x = x * scale if isinstance(entry, Floats) else x
                tensors.append(x if getattr(entry, "dtype", None) in (None, torch.float32) else x.to(entry.dtype))
        made = self.row.function(*tensors)
        return [made] if torch.is_tensor(made) else list(made)

    def forward(self, scale, data):
        loss = 0
        for at, result in enumerate(self.results(scale, data)):
            gate = getattr(self, f"gate{at}", None)
            result = (result if result.dtype in (torch.float32, torch.float64) else result.float()) + 0.3
            result = result if gate is None else result * gate
            loss = loss + (result * result).mean()
        for name in self.anchored:
            x = getattr(self, name)
            loss = loss + (x * x).mean() * 0.1
        return loss


class Family(nn.Module):
    """The sum of all rows' shares."""

    def __init__(self, rows):
        super().__init__()
        self.rows = nn.ModuleDict({row.name: RowModule(row) for row in rows})
        self.names = list(data_of(rows))

    def forward(self, x, *integers):
        scale, data = x.mean(), dict(zip(self.names, integers))
        return sum(module(scale, data) for module in self.rows.values())


def data_of(rows, steps=STEPS):
    """{name: tensor} of what integers the rows read."""
    made = {}
    for row in rows:
        generator = generator_of(row.name + " data")
        for at, entry in enumerate(row.inputs):
            if isinstance(entry, Integers):
                made[f"{row.name}_{at}"] = torch.from_numpy(entry.make(generator)[:BATCH * steps])
    return made
