"""Cases of python_cases.py: numbers far apart, and corners of functions, as in PyTorch."""

import importlib.util
import os

import numpy
import tessera
import torch
from program_cases import case, example


@case
def sums_of_exponentials(test, folder):
    """Of numbers far apart, such as the log of zero that dynamic programs write as -1e9."""
    class Sums(torch.nn.Module):
        def __init__(self, far, swapped):
            super().__init__()
            self.layer, self.far, self.swapped = torch.nn.Linear(6, 3), far, swapped

        def forward(self, x):
            y = self.layer(x)
            pair = (torch.full_like(y, self.far), y) if self.swapped else (y, torch.full_like(y, self.far))
            return torch.logaddexp(*pair).mean() + torch.logaddexp2(*pair).mean() + torch.stack(pair, -1).logcumsumexp(-1)[..., 1].mean()
    for far in (-1e9, -1e4, float("-inf")):
        for swapped in (False, True):
            with test.subTest(far=far, swapped=swapped):
                test.assertTrue(tessera.verify(Sums(far, swapped), example(), loss="output:output", steps=2).same)


@case
def distances_of_equal_points(test, folder):
    """Have the gradient 0 in PyTorch, also in files that write cdist as a root of a product."""
    class Distances(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(6, 8)

        def forward(self, x):
            h = self.layer(x)
            return torch.cdist(h, h).mean() + torch.cdist(h, h, p=1).mean()
    for via in ("pt2", "onnx"):
        if via == "pt2" or importlib.util.find_spec("onnx"):
            with test.subTest(via):
                test.assertTrue(tessera.verify(Distances(), example(), loss="output:output", steps=2, via=via).same)


@case
def norms_of_long_batches(test, folder):
    """Their sums are made in two steps, which are no statistics of their own."""
    model = torch.nn.Sequential(torch.nn.Linear(6, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 3))
    test.assertTrue(tessera.verify(model, (torch.randn(600, 6),), loss="mse", steps=2).same)


@case
def nearest_pixels_of_uneven_sizes(test, folder):
    """Along two dimensions whose elements are repeated now so often, now otherwise."""
    class Resized(torch.nn.Module):
        def __init__(self, size):
            super().__init__()
            self.layer, self.size = torch.nn.Conv2d(2, 3, 1), size

        def forward(self, x):
            return torch.nn.functional.interpolate(self.layer(x), size=self.size, mode="nearest").square().mean()
    for before, after in (((33, 33), (100, 100)), ((30, 40), (99, 130)), ((65, 33), (20, 31)), ((7, 5), (16, 12))):
        with test.subTest(before=before, after=after):
            test.assertTrue(tessera.verify(Resized(after), (torch.randn(2, 2, *before),), loss="output:output", steps=1).same)


@case
def inputs_of_half_precision(test, folder):
    class Halves(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 3)

        def forward(self, v):
            return self.layer(v.float()).square().mean()
    for dtype in (torch.float16, torch.bfloat16):
        x = (torch.arange(64.0).reshape(8, 8) / 7)
        model = Halves()
        path = os.path.join(folder, "halves.tessera")
        tessera.compile(tessera.export(model, (x.to(dtype),)), path, batch=8, loss="output:output")
        for given in (x.numpy(), x.double().numpy(), x.half().numpy(), x.int().numpy()):
            with test.subTest(str(dtype), given=given.dtype):
                out = os.path.join(folder, f"{dtype}-{given.dtype}")
                run = tessera.train(path, {"v": given}, steps=1, out=out, weights=tessera.export(model, (x.to(dtype),)), show=False)
                want = model(torch.from_numpy(given).to(dtype)).item()
                test.assertLess(abs(run.losses[0] - want), 1e-5 * want)


@case
def factors_before_sums(test, folder):
    """Are multiplied in their order: their product may be 0, or infinite."""
    class Factors(torch.nn.Module):
        def __init__(self, factors):
            super().__init__()
            self.scale, self.factors = torch.nn.Parameter(torch.ones(9)), factors

        def forward(self, x):
            y = x * self.scale
            for factor in self.factors[:-1]:
                y = y * factor
            return y.mean() * self.factors[-1] + (y.sum(0) * self.factors[-1]).mean()
    x = torch.rand(40, 9) + 0.5
    for factors in ((1e37, 1e-25, 1e-25, 1e13), (1e-30, 1e20, 1e20, 1e-10), (1e-19, 1e-18, 1e19, 1e20)):
        with test.subTest(factors):
            test.assertTrue(tessera.verify(Factors(factors), (x,), loss="output:output", steps=2).same)


@case
def corners_of_functions(test, folder):
    class Corners(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.y, self.x = torch.nn.Parameter(torch.tensor([0.0, 0.0, 1.0])), torch.nn.Parameter(torch.tensor([0.0, -1.0, 0.0]))

        def forward(self, x):
            return (torch.atan2(self.y, self.x) * x).mean()
    test.assertTrue(tessera.verify(Corners(), (torch.randn(4, 3),), loss="output:output", steps=3).same)

    class Shrunk(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, x):
            return torch.nn.functional.softshrink(self.layer(x)).mean()
    artifact = tessera.compile(tessera.export(Shrunk(), (torch.randn(4, 3),)), os.path.join(folder, "net.tessera"), batch=4, loss="output:output")
    run = tessera.train(artifact, {"x": numpy.full((4, 3), numpy.nan, numpy.float32)}, steps=1, out=os.path.join(folder, "run"))
    test.assertTrue(run.losses[0] is None or numpy.isnan(run.losses[0]))
