"""Exports, saves, checks and trains modules with the package tessera; needs torch.

usage: python_cases.py FOLDER     prints {case: what went wrong, or null} as its last line, as JSON
"""

import contextlib
import json
import os
import random
import subprocess
import sys
import traceback
import unittest
import unittest.mock
import warnings
import zipfile

import numpy
import tessera
import torch
import torch.nn.utils.prune
from program_cases import CASES, IS_OLD, case, example, refused
from tessera.archive import read_note
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import safetensors  # noqa: E402

SEEDING = {"seed": lambda: torch.manual_seed(0), "seed of random": lambda: torch.random.manual_seed(3), "new seed": torch.seed,
           "seed of a generator": lambda: torch.default_generator.manual_seed(3),
           "state": lambda: torch.set_rng_state(torch.Generator().manual_seed(3).get_state()),
           "forked seed": lambda: torch.manual_seed(0), "later seed": lambda: torch.manual_seed(0)}


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        return 5 * gradient


class Clipped(torch.autograd.Function):
    """Its backward pass is another one for large numbers only."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(-1e3, 1e3)

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Net(torch.nn.Module):
    """Two layers; `kind` says what is odd about it."""

    def __init__(self, kind=""):
        super().__init__()
        self.first, self.second, self.kind = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3), kind
        self.norm, self.drop = torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2)
        self.register_buffer("table", torch.rand(8) + 1)
        self.calls = 0
        if kind == "hook":
            self.first.weight.register_hook(lambda gradient: 2 * gradient)
        elif kind == "module hook":
            self.second.register_full_backward_hook(lambda module, into, out: tuple(3 * x for x in into))
        elif kind == "later hook":
            self.first.weight.register_post_accumulate_grad_hook(lambda parameter: None)
        elif kind == "view":
            self.copy = self.first.weight.detach()
        elif kind == "shared":
            self.other = torch.nn.Linear(6, 8)
            self.other.weight = torch.nn.Parameter(self.first.weight.detach().view(8, 6))
        elif kind == "conjugate":
            self.table = torch.polar(self.table, self.table).conj().imag
        elif kind == "old weight norm":
            torch.nn.utils.weight_norm(self.first)
        elif kind == "old spectral norm":
            torch.nn.utils.spectral_norm(self.first)
        elif kind == "spectral norm":
            torch.nn.utils.parametrizations.spectral_norm(self.first)
        elif kind == "pruned":
            torch.nn.utils.prune.l1_unstructured(self.first, "weight", 0.5)

    def forward(self, x):
        if self.kind == "input":
            x.mul_(2)
        if "checkpoint" in self.kind:
            h = checkpoint(self.first, x, use_reentrant=self.kind != "checkpoint")
        else:
            h = self.first(x)
        if self.kind == "function":
            h = Scaled.apply(h)
        elif self.kind == "fixed":
            h = h.reshape(4, 8)
        elif self.kind == "cut":
            h = h + h.detach()
        elif self.kind == "number":
            h = h * float(self.first.weight.detach()[0, 0].item())
        elif self.kind == "rare function":
            h = Clipped.apply(h)
        elif self.kind == "attribute":
            self.calls += 1
            h = h * self.calls
        elif self.kind in SEEDING:
            with torch.random.fork_rng() if "forked" in self.kind else contextlib.nullcontext():
                if "later" not in self.kind:
                    SEEDING[self.kind]()
                h = h + torch.randn_like(h)
            if "later" in self.kind:
                SEEDING[self.kind]()
        elif self.kind == "changed":
            with torch.no_grad():
                self.first.weight.mul_(0.9)
        return self.second(self.norm(self.drop(torch.relu(h * self.table))))


class Words(torch.nn.Module):
    """An embedding with positions: at most 9 of them, or exactly `length`. Its buffer is expanded: elements share memory."""

    def __init__(self, length=0):
        super().__init__()
        self.word, self.place, self.length = torch.nn.Embedding(7, 3), torch.nn.Parameter(torch.randn(9, 3)), length
        self.register_buffer("table", torch.rand(1, 3).expand(3, 3))

    def forward(self, tokens):
        place = self.place[:self.length or tokens.shape[1]]
        return (self.word(tokens) + place) @ self.table


def tokens():
    return torch.arange(20).reshape(4, 5) % 7


@case
def what_is_refused(test, folder):
    for kind, words in (("hook", "first.weight has a hook"), ("module hook", "second has a hook on its backward pass"),
                        ("later hook", "first.weight has a hook"), ("function", "first.weight"),
                        ("view", "copy shares the memory of the parameter first.weight"),
                        ("shared", "first.weight and other.weight are two parameters in the same memory"),
                        ("number", "torch.export: "), ("number", "python_cases.py:"),
                        ("input", "changes its inputs in place: x"), ("reentrant checkpoint", "use_reentrant=False"),
                        *((seeding, "calls torch.manual_seed") for seeding in SEEDING),
                        ("attribute", "changes attributes that are no buffers: calls")):
        with test.subTest(kind):
            refused(test, words, Net(kind), example())
    refused(test, "expected tensors", Net(), [1])
    with test.assertWarnsRegex(UserWarning, "compared for the example only: Clipped"):
        tessera.export(Net("rare function"), example())
    with test.assertRaises(tessera.ExportError):
        tessera.export(Net("changed"), example())


@case
def what_hooks_compute(test, folder):
    """torch.nn.utils keeps weights that it computes before each forward pass as attributes."""
    spectral = () if IS_OLD else ("old spectral norm", "spectral norm")  # that PyTorch does not export these in training mode
    for kind in ("old weight norm", "pruned", *spectral):
        with test.subTest(kind), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are deprecated
            net = Net(kind)
            before = {name: value for name, value in vars(net.first).items() if isinstance(value, torch.Tensor)}
            found = tessera.verify(net, example(), loss="mse", steps=1)
            test.assertTrue(found.same, found.line())
            for name, value in before.items():
                test.assertIs(getattr(net.first, name), value)


@case
def the_module_is_as_before(test, folder):
    net = Net()
    for modes in ([True, True, False], [False, False, False]):
        net.train(modes[0])
        net.norm.eval()
        before = {name: value.clone() for name, value in net.state_dict().items()}
        tessera.export(net, example())
        test.assertEqual([net.training, net.first.training, net.norm.training], modes)
        after = net.state_dict()
        test.assertTrue(all(torch.equal(before[name], after[name]) for name in before))
        test.assertTrue(all(parameter.grad is None for parameter in net.parameters()))


class Neighbours(Words):
    """Its loss needs three positions at least."""

    def forward(self, tokens):
        words = self.word(tokens)
        return torch.nn.functional.cross_entropy(words[:, :-1].flatten(0, 1), tokens[:, 1:].flatten() % 3)


class Windows(Words):
    """It fills positions up to whole windows of 4."""

    def forward(self, tokens):
        filled = torch.nn.functional.pad(self.word(tokens), (0, 0, 0, -tokens.shape[1] % 4))
        return (filled.unflatten(1, (-1, 4)).mean(2) ** 2).mean()


@case
def ranges_of_dimensions(test, folder):
    """torch.export says which ranges they have; that of PyTorch 2.6 says less."""
    if IS_OLD:
        return
    program = tessera.export(Neighbours(), (tokens(),), dynamic={"tokens": {0: "batch", 1: "time"}})
    test.assertFalse([size for size in program.inputs["tokens"].shape if isinstance(size, int)])
    program = tessera.export(Windows(), (tokens(),))
    tessera.compile(program, os.path.join(folder, "net.tessera"), batch=4, seq=7, loss="output:output")


@case
def dimensions(test, folder):
    program = tessera.export(Net(), example())
    test.assertIsInstance(program.inputs["x"].shape[0], str)
    test.assertEqual(program.inputs["x"].shape[1], 6)
    test.assertEqual(list(program.inputs), ["x"])
    test.assertEqual(program.parameters["first.weight"].shape, (8, 6))
    test.assertTrue(program.parameters["first.weight"].trained)
    test.assertIsInstance(tessera.export(Net(), example(), dynamic={"x": {0: "samples"}}).inputs["x"].shape[0], str)
    test.assertIsInstance(tessera.export(Net(), example(), dynamic="auto").inputs["x"].shape[0], str)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        test.assertEqual(tessera.export(Net(), example(), dynamic={}).inputs["x"].shape, (4, 6))
    opened = tessera.export(Words(), tokens()).inputs["tokens"].shape
    test.assertEqual([type(size) for size in opened], [str, str])
    with test.assertWarnsRegex(UserWarning, "the module fixes sizes that were to be open: dimension 1 of tokens is 5 in the"):
        test.assertEqual(tessera.export(Words(5), tokens()).inputs["tokens"].shape[1], 5)
    test.assertIsInstance(tessera.export(Net(), (), kwargs={"x": example()}).inputs["x"].shape[0], str)
    for net, shape in ((Net("fixed"), (4, 6)), (Net(), (1, 6))):
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            if shape[0] == 1:
                net.norm.eval()
            found = tessera.export(net, torch.randn(shape)).inputs["x"].shape
        test.assertEqual(found, shape)
        test.assertTrue([note for note in notes if "batch" in str(note.message) or "samples" in str(note.message)])
    refused(test, "", Net("fixed"), example(), dynamic={"x": {0: "samples"}})
    refused(test, "dynamic names the input y", Net(), example(), dynamic={"y": {0: "samples"}})
    refused(test, "dynamic opens dimension 2 of x", Net(), example(), dynamic={"x": {2: "samples"}})


class Pixels(torch.nn.Module):
    """A head of images of bytes, with the channels last."""

    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(3, 5)

    def forward(self, image):
        return self.head(image.float().mean((1, 2)))


@case
def images_are_no_sequences(test, folder):
    for dtype in (torch.uint8, torch.int64, torch.float32):
        program = tessera.export(Pixels(), torch.ones((4, 6, 7, 3), dtype=dtype))
        test.assertEqual(program.inputs["image"].shape[1:], (6, 7, 3))
        test.assertIsInstance(program.inputs["image"].shape[0], str)
    report = tessera.report(program, batch=4)
    test.assertIn("samples/s", str(report))
    test.assertNotIn("tokens", str(report))
    artifact = tessera.compile(program, os.path.join(folder, "net.tessera"), batch=4)
    with test.assertRaises(tessera.ToolError) as caught:
        tessera.train(artifact, {"pixels": numpy.ones((4, 6, 7, 3)), "targets": numpy.zeros(4, int)}, steps=1,
                      out=os.path.join(folder, "run"))
    test.assertIn("array 'image' is missing; it has 'pixels', 'targets'", caught.exception.reason)


class DynamicCache:
    """What language models of transformers return besides their logits."""


class Caching(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.head(x), DynamicCache()


@case
def caches_in_outputs(test, folder):
    refused(test, "DynamicCache'> in output; a program returns tensors: of a language model set model.config.use_cache = False",
            Caching(), example())


@case
def files(test, folder):
    program, path = tessera.export(Net(), example()), os.path.join(folder, "net.pt2")
    with test.assertRaises(tessera.ExportError):
        program.save(os.path.join(folder, "net.bin"))
    with test.assertRaises(tessera.ExportError):
        program.save(os.path.join(folder, "absent", "net.pt2"))
    with test.assertRaises(tessera.ExportError) as caught:
        tessera.export(Net("conjugate"), example()).save(path)
    test.assertIn("table is a conjugate", str(caught.exception))
    with open(path, "w") as file:
        file.write("before")
    with unittest.mock.patch("os.replace", side_effect=OSError(28, "No space left on device")):
        with test.assertRaises(tessera.ExportError) as caught:
            program.save(path)
    test.assertIn("No space left", str(caught.exception))
    with open(path) as file:
        test.assertEqual(file.read(), "before")
    test.assertEqual(os.listdir(folder), ["net.pt2"])
    program.save(path)
    test.assertEqual(os.listdir(folder), ["net.pt2"])
    if not IS_OLD:  # older ones read their own format only
        test.assertEqual(list(tessera.Program.load(path).inputs), ["x"])
        test.assertEqual(tessera.Program.load(path).mode, "training")


@case
def a_training(test, folder):
    net = Net("cut")
    net.drop.p = 0.0
    program = tessera.export(net, example())
    artifact = tessera.compile(program, os.path.join(folder, "net.tessera"), batch=4, loss="mse", optimizer="sgd", lr=0.1,
                               weight_decay=0.0)
    data = {"x": torch.randn(12, 6).numpy(), "targets": torch.randn(12, 3).numpy()}
    run = tessera.train(artifact, data, steps=3, weights=program, out=os.path.join(folder, "run"), order="sequential")
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.1), []
    for rows in torch.arange(12).split(4):
        loss = torch.nn.functional.mse_loss(net(torch.from_numpy(data["x"])[rows]), torch.from_numpy(data["targets"])[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    numpy.testing.assert_allclose(run.losses, losses, rtol=1e-5)


class FrozenNorm(torch.nn.Module):
    """Its batch norm stays in evaluation mode, which only a call of train() says."""

    def __init__(self):
        super().__init__()
        self.norm, self.layer = torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 3)

    def train(self, mode=True):
        super().train(mode)
        self.norm.eval()
        return self

    def forward(self, x):
        return self.layer(self.norm(x))


@case
def modes_that_are_not_clear(test, folder):
    with test.assertRaisesRegex(tessera.ExportError, "train.. of the module puts parts of it into another mode than they are in, or changes them .norm.: call train"):
        tessera.export(FrozenNorm(), example())
    net = FrozenNorm().train()
    tessera.export(net, example())
    test.assertEqual((net.training, net.norm.training, net.layer.training), (True, False, True))
    net.eval().layer.train()
    with test.assertRaisesRegex(tessera.ExportError, "in evaluation mode, and parts of it are in training mode .layer.: call"):
        tessera.export(net, example())
    tessera.export(net.eval(), example())
    test.assertFalse(net.layer.training)


class ByMode(torch.nn.Module):
    """Does in training mode what `branch` names. Dropout, the statistics of batch norms and counters are what evaluation leaves out."""

    def __init__(self, branch):
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(6, 3), torch.nn.BatchNorm1d(3)
        self.branch, self.attention = branch, torch.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True)
        self.recurrent = torch.nn.GRU(6, 6, 2, dropout=0.1, batch_first=True)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        x = self.recurrent(self.attention(x[:, None]))[0][:, 0]
        if self.training:
            self.calls += 1
        y = self.norm(torch.nn.functional.dropout(self.layer(x), 0.1, self.training))
        if self.training and self.branch == "factor":
            y = y * 2
        if self.training and self.branch == "in place":
            y[:, :1] = 0
        if self.branch == "number":
            y = y + torch.tensor([1.0, 2.0, 3.0] if self.training else [1.0, 2.0, 4.0])
        if self.branch == "without gradients":
            with torch.no_grad():
                shift = (2 if self.training else 3) * y
            y = y + shift
        if self.branch == "dropout that stays":
            y = torch.nn.functional.dropout(y, 0.2)
        if not self.training and self.branch == "values":
            self.found = int(y.argmax())
            return {"loss": y.abs().mean() * self.found}
        return {"loss": y.abs().mean()}


@case
def evaluation_of_what_depends_on_the_mode(test, folder):
    """A branch of the training that eval() has not is no part of an evaluation, in either kind of file; the line is named."""
    evaluated = {"batch": 4, "loss": "output:loss", "evaluate": True}
    artifact = os.path.join(folder, "net.tessera")
    net, inputs = ByMode("none"), (torch.randn(4, 6),)
    program = tessera.export(net, inputs)
    test.assertEqual((program.mode, program.evaluation_differs), ("training", None))
    tessera.compile(program, artifact, **evaluated)
    for branch, line in (("factor", "y = y * 2"), ("in place", "y[:, :1] = 0"), ("number", "y = y + torch.tensor("),
                         ("without gradients", "shift = (2 if self.training else 3) * y"),
                         ("dropout that stays", "y = torch.nn.functional.dropout(y, 0.2)"), ("values", "it cannot be exported (torch.export: ")):
        with test.subTest(branch):
            net = ByMode(branch)
            attributes = [set(vars(module)) for module in net.modules()]
            program = tessera.export(net, inputs)
            test.assertIn(line, program.evaluation_differs)
            test.assertEqual((attributes, {module.training for module in net.modules()}),
                             ([set(vars(module)) for module in net.modules()], {True}))
            path = os.path.join(folder, "net.pt2")
            program.save(path)
            test.assertEqual(read_note(path), {"mode": "training", "evaluation_differs": program.evaluation_differs})
            if IS_OLD and branch == "without gradients":
                continue  # whose programs have it in a form that is refused
            with test.assertRaises(tessera.CompileError) as caught:
                tessera.compile(path, artifact, **evaluated)
            test.assertIn("after eval() the module computes something else: ", str(caught.exception))
            test.assertIn(line, str(caught.exception))
    program = tessera.export(ByMode("dropout that stays"), inputs, evaluation=True)
    test.assertEqual(program.mode, "evaluation")
    with test.assertRaisesRegex(tessera.CompileError, "it draws random numbers in evaluation mode, too"):
        tessera.compile(program, artifact, **evaluated)
    tessera.compile(program, artifact, batch=4, loss="output:loss")
    numpy.savez(os.path.join(folder, "x.npz"), x=numpy.zeros((4, 6), numpy.float32))
    done = subprocess.run([tessera.tools.find_tool("tessera-run"), artifact, "--data", "x.npz", "--weights", "fresh", "--steps", "1", "--out", "run"],
                          cwd=folder, capture_output=True, text=True)
    test.assertIn("is of a module in evaluation mode, and trains without dropout", done.stderr)


class Merged(torch.nn.Linear):
    """An adapter that eval() merges into its weight."""

    def __init__(self):
        super().__init__(6, 6)
        self.down, self.up = torch.nn.Parameter(torch.randn(2, 6)), torch.nn.Parameter(torch.randn(6, 2))
        self.weight.requires_grad_(False)

    def train(self, mode=True):
        if mode != self.training:
            with torch.no_grad():
                self.weight += (self.up @ self.down) * (-1 if mode else 1)
        return super().train(mode)

    def forward(self, x):
        y = super().forward(x)
        return y + x @ self.down.T @ self.up.T if self.training else y


@case
def modes_that_change_more(test, folder):
    """A train() that changes parameters is never called on the user's module."""
    net = Merged()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    test.assertEqual(tessera.export(net, example()).evaluation_differs, "eval() changes weight")
    for mode, wanted in ((True, "eval"), (False, "train")):
        with test.assertRaisesRegex(tessera.ExportError, f"{wanted}.. of the module changes more than the mode .weight.: call {wanted}.. before"):
            tessera.export(net, example(), evaluation=mode)
        net = net.eval()
    with test.assertRaisesRegex(tessera.CannotCompare, "train.. of the module changes more than the mode"):
        tessera.verify(net, example(), loss="mse")
    test.assertEqual(tessera.export(net, example(), evaluation=True).mode, "evaluation")
    for name, value in net.train().state_dict().items():
        torch.testing.assert_close(value, before[name])


class Hidden(torch.nn.Module):
    """State that is in no buffer."""

    count = 0

    def __init__(self, place):
        super().__init__()
        self.layer, self.place, self._mean, self.table = torch.nn.Linear(6, 6), place, torch.zeros(6), numpy.zeros(1)
        self.object = type("Plain", (), {})()
        self.object.n = 0

    def forward(self, x):
        y = self.layer(x)
        if self.place == "_mean":
            self._mean = 0.9 * self._mean + 0.1 * y.detach().mean(0)
            return y - self._mean
        if self.place == "object":
            self.object.n += 1
        if self.place == "table":
            self.table[0] += 1
        if self.place == "count":
            Hidden.count += 1
        if self.place == "random":
            return y * random.random()
        return y * float(numpy.random.rand()) if self.place == "numpy" else y


@case
def state_that_is_no_buffer(test, folder):
    for place in ("_mean", "object", "table", "count"):
        with test.subTest(place):
            net = Hidden(place)
            mean = net._mean
            with test.assertRaisesRegex(tessera.ExportError, f"{place}|self.{place}"):
                tessera.export(net, example())
            test.assertIs(net._mean, mean)
    for place in ("random", "numpy"):
        with test.subTest(place), test.assertRaisesRegex(tessera.ExportError, "draws random numbers of Python or NumPy"):
            tessera.export(Hidden(place), example())


@case
def warnings_of_the_compiler(test, folder):
    """Are warnings of Python."""
    with test.assertWarnsRegex(UserWarning, "the last dimension counts classes"):
        tessera.compile(tessera.export(torch.nn.Conv2d(3, 6, 3, padding=1), (torch.randn(4, 3, 6, 6),)), os.path.join(folder, "net.tessera"), batch=4)


@case
def gradients_of_the_user_stay(test, folder):
    net = torch.nn.Linear(6, 3)
    net.weight.grad = torch.ones(3, 6)
    grad = net.weight.grad
    test.assertTrue(tessera.verify(net, example(), loss="mse", steps=2).same)
    test.assertIs(net.weight.grad, grad)


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


class Noisy(torch.nn.Module):
    """Noise and a batch norm, which evaluation does without."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = torch.nn.Linear(6, 3), torch.nn.BatchNorm1d(3)

    def forward(self, x):
        if self.training:
            x = x + 0.1 * torch.randn_like(x)
        return {"loss": self.norm(self.layer(x)).abs().mean()}


@case
def evaluation_of_what_draws(test, folder):
    """Is refused beside the training, and the way out that the refusal names gives PyTorch's loss."""
    settings = {"batch": 4, "loss": "output:loss"}
    net, x = Noisy(), torch.randn(12, 6)
    program = tessera.export(net, example())
    with test.assertRaises(tessera.CompileError) as caught:
        tessera.compile(program, os.path.join(folder, "net.tessera"), evaluate=True, **settings)
    test.assertIn("load <out>/model.safetensors into the module, export it after eval()", str(caught.exception))
    test.assertIn("x = x + 0.1 * torch.randn_like(x)", str(caught.exception))
    artifact = tessera.compile(program, os.path.join(folder, "net.tessera"), **settings)
    run = tessera.train(artifact, {"x": x.numpy()}, steps=3, out=os.path.join(folder, "run"), lr=0.1)
    net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in safetensors.load(run.weights).items()})
    trained = os.path.join(folder, "trained.tessera")
    program = tessera.export(net, example(), evaluation=True)
    test.assertTrue(net.training)
    net.eval()
    program.save(os.path.join(folder, "trained.pt2"))
    tessera.compile(program, trained, evaluate=True, **settings)
    numpy.savez(os.path.join(folder, "x.npz"), x=x.numpy())
    done = subprocess.run([tessera.tools.find_tool("tessera-run"), trained, "--eval-only", "--eval-data", "x.npz", "--model-file",
                           os.path.join(folder, "trained.pt2")], cwd=folder, capture_output=True, text=True)
    test.assertEqual(done.returncode, 0, done.stderr)
    test.assertAlmostEqual(float(done.stdout.split("eval loss ")[1].split()[0]), net(x)["loss"].item(), places=5)


@case
def verdicts(test, folder):
    for kind in ("", "cut", "checkpoint"):
        verdict = tessera.verify(Net(kind), torch.randn(32, 6), loss="mse", mesh={"shard": 2}, strategy="zero3")
        test.assertTrue(verdict.same, verdict.line())
        test.assertEqual(len(verdict.errors) + len(verdict.rounding), 6)
    with test.assertRaises(tessera.CannotCompare):
        tessera.verify(Net("hook"), example(), loss="mse")
    with test.assertRaises(tessera.CannotCompare) as caught:
        tessera.verify(Net(), example(), loss="mse", strategy="none")
    test.assertEqual(caught.exception.stage, "compile")


@case
def without_weights(test, folder):
    path = os.path.join(folder, "wide.pt2")
    with tessera.no_weights():
        net = Net()
    made = [net]
    with torch.device("meta"):
        made.append(Net())
    for net in made:
        program = tessera.export(net, example())
        test.assertTrue(net.first.weight.is_meta)
        test.assertFalse(program.has_weights)
        program.save(path)
        with zipfile.ZipFile(path) as archive:
            stored = {name.partition("/")[2] for name in archive.namelist()
                      if archive.getinfo(name).compress_type == zipfile.ZIP_STORED}
            test.assertEqual({name.partition("/")[2] for name in archive.namelist()} - stored, {"models/model.json"})
        test.assertLess(os.path.getsize(path), 10_000)
        if not IS_OLD:
            test.assertEqual(str(tessera.Program.load(path)), str(program))
        with open(path, "rb") as file:
            before = file.read()
        program.save(path)
        with open(path, "rb") as file:
            test.assertEqual(file.read(), before, "equal programs are equal files")
        tessera.compile(path, batch=4)
        test.assertIn("memory of one rank", str(tessera.report(path, batch=4)))


def main():
    torch.set_num_threads(1)
    results = {}
    for name, function in CASES.items():
        folder = os.path.join(sys.argv[1], name)
        os.mkdir(folder)
        torch.manual_seed(0)
        try:
            function(unittest.TestCase(), folder)
            results[name] = None
        except Exception:  # the test says what
            results[name] = traceback.format_exc()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
