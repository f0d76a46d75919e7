"""Cases of python_cases.py: modules that do something else in training mode than after eval(), and state that is in no buffer."""

import os
import random
import subprocess
import sys

import numpy
import tessera
import torch
from program_cases import IS_OLD, case, example
from tessera.archive import read_note

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import safetensors  # noqa: E402


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
