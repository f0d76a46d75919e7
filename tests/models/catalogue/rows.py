"""What a row of the catalogue is: a module, what it covers, its inputs, its loss; and the small modules that rows are made
of."""

import dataclasses

import numpy
import torch
from torch import nn

SAMPLES, STEPS = 4, 3  # 4: two ranks and two micro-batches divide it


@dataclasses.dataclass
class Input:
    """An input of a module: its shape without the batch, and what its values are. kind: "normal"; "grid" (small whole
    numbers: zeros and ties), "positive" (0.2 to 2), "unit" (0.05 to 0.95), "signs" (-1 or 1), "bits" (0 or 1),
    "integers" (below high). trained: a scale and a shift of its shape come between it and the module."""
    shape: tuple
    kind: str = "normal"
    high: int = 0
    low: int = 0
    trained: bool = True

    def make(self, samples, generator):
        """An array of that many samples."""
        shape = (samples, *self.shape)
        if self.kind == "integers":
            return generator.integers(self.low, self.high, shape).astype(numpy.int64)
        made = {"normal": lambda: generator.standard_normal(shape), "grid": lambda: generator.integers(-2, 3, shape),
                "positive": lambda: generator.uniform(0.2, 2, shape), "unit": lambda: generator.uniform(0.05, 0.95, shape),
                "signs": lambda: generator.integers(0, 2, shape) * 2 - 1, "bits": lambda: generator.integers(0, 2, shape)}
        return made[self.kind]().astype(numpy.float32)


def f(*shape, kind="normal"):
    """A float input that gradients reach."""
    return Input(shape, kind)


def d(*shape, kind="normal"):
    """A float input without parameters before it: a target, a mask."""
    return Input(shape, kind, trained=False)


def i(*shape, high, low=0):
    """An integer input."""
    return Input(shape, "integers", high, low, trained=False)


@dataclasses.dataclass
class Row:
    """name: of the case; covers: what it covers of torch.nn ("nn.GELU") and torch.nn.functional ("F.gelu"), separated by
    blanks; make: returns a module or a function of the inputs; loss: "mse", "cross-entropy" or "output" (the module
    returns it); classes: of cross-entropy; recorded: whether the goldens have it; bf16: None, or why bf16 cannot be
    compared."""
    name: str
    covers: str
    make: object
    inputs: tuple
    loss: str = "mse"
    recorded: bool = False
    bf16: str = None
    family: str = ""

    def build(self):
        """The module."""
        return FRONTS[len(self.inputs)](self.make(), self.inputs)

    @property
    def names(self):
        return [f"x{at}" if at else "x" for at in range(len(self.inputs))]


def row(name, covers, make, *inputs, **more):
    return Row(name, covers, make, inputs, **more)


class Front(nn.Module):
    """A scale and a shift per trained input, then the module or function. On a grid they are 1 and 0, so that zeros and
    ties stay."""

    def __init__(self, inner, inputs):
        super().__init__()
        self.inner = inner
        for at, entry in enumerate(inputs):
            if entry.trained:
                noise = 0.0 if entry.kind == "grid" else 1.0
                # not below 0: a positive input stays so
                self.register_parameter(f"scale{at}", nn.Parameter(1 + 0.3 * noise * torch.rand(entry.shape)))
                self.register_parameter(f"shift{at}", nn.Parameter(0.1 * noise * torch.rand(entry.shape)))

    def front(self, at, x):
        scale = getattr(self, f"scale{at}", None)
        return x if scale is None else x * scale + getattr(self, f"shift{at}")


class Front1(Front):
    def forward(self, x):
        return self.inner(self.front(0, x))


class Front2(Front):
    def forward(self, x, x1):
        return self.inner(self.front(0, x), self.front(1, x1))


class Front3(Front):
    def forward(self, x, x1, x2):
        return self.inner(self.front(0, x), self.front(1, x1), self.front(2, x2))


FRONTS = {1: Front1, 2: Front2, 3: Front3}  # exporters want a signature with as many arguments as inputs


class With(nn.Module):
    """A function of the inputs and of parameters of the given shapes, which are its keyword arguments."""

    def __init__(self, function, **shapes):
        super().__init__()
        self.function, self.names = function, list(shapes)
        for name, shape in shapes.items():
            shape = shape if isinstance(shape, tuple) else (shape,)
            fan = shape[-1] if len(shape) > 1 else 4
            self.register_parameter(name, nn.Parameter(torch.randn(shape) / fan ** 0.5))

    def forward(self, *inputs):
        return self.function(*inputs, **{name: getattr(self, name) for name in self.names})


class Chain(nn.Sequential):
    """A Sequential that takes functions, too."""

    def __init__(self, *parts):
        super().__init__(*(part if isinstance(part, nn.Module) else Call(part) for part in parts))


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


class First(nn.Module):
    """The first of a module's results; of nested ones the first of the first."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, *inputs):
        result = self.inner(*inputs)
        while isinstance(result, (tuple, list)):
            result = result[0]
        return result
