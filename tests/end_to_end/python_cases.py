"""Exports, saves, checks and trains modules with the package tessera; needs torch.

usage: python_cases.py FOLDER     prints {case: what went wrong, or null} as its last line, as JSON
"""

import contextlib
import os
import unittest
import unittest.mock
import warnings
import zipfile

import mode_cases  # noqa: F401: registers its cases
import number_cases  # noqa: F401
import numpy
import tessera
import torch
import torch.nn.utils.prune
import torch_cases
from program_cases import CASES, IS_OLD, case, example, refused
from torch.utils.checkpoint import checkpoint

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


class Shared(torch.nn.Module):
    """Reads what all samples share: positions, a mask, a number."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places, self.out = torch.nn.Embedding(11, 8), torch.nn.Embedding(6, 8), torch.nn.Linear(8, 11)

    def forward(self, tokens, places, mask, temperature):
        h = self.tokens(tokens) + self.places(places)
        h = torch.nn.functional.scaled_dot_product_attention(h, h, h, attn_mask=mask)
        return self.out(h) / temperature


class Pair(torch.nn.Module):
    """An encoder and a decoder, whose inputs have lengths of their own."""

    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(13, 8)
        self.both = torch.nn.Transformer(8, 2, 1, 1, 16, dropout=0.0, batch_first=True)
        self.out = torch.nn.Linear(8, 13)

    def forward(self, source, target):
        return self.out(self.both(self.tokens(source), self.tokens(target)))


@case
def inputs_that_samples_share_are_compared(test, folder):
    shared = torch.randint(11, (3, 6)), torch.arange(6), torch.ones(6, 6, dtype=torch.bool).tril(), torch.tensor(2.0)
    for via in ("pt2", "onnx"):
        for options in ({}, {"mesh": {"shard": 3}, "strategy": "zero3"}):
            test.assertTrue(tessera.verify(Shared(), shared, steps=2, via=via, **options).same, via)
    four = torch.randint(11, (4, 6)), *shared[1:]
    test.assertTrue(tessera.verify(Shared(), four, steps=2, accumulate=2).same)


class Recurrent(torch.nn.Module):
    """An LSTM fixes the positions of its input in a program."""

    def __init__(self):
        super().__init__()
        self.tokens, self.first = torch.nn.Embedding(13, 6), torch.nn.LSTM(6, 6, batch_first=True)
        self.second, self.out = torch.nn.LSTM(6, 6, batch_first=True), torch.nn.Linear(6, 13)

    def forward(self, source, target):
        _, state = self.first(self.tokens(source))
        return self.out(self.second(self.tokens(target), state)[0])


@case
def inputs_of_several_lengths_are_compared(test, folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the lengths that are fixed
        fixed = tessera.verify(Recurrent(), (torch.randint(13, (3, 6)), torch.randint(13, (3, 5))), steps=2)
    test.assertTrue(fixed.same)
    inputs = torch.randint(13, (3, 6)), torch.randint(13, (3, 5))
    for via in ("pt2", "onnx"):
        test.assertTrue(tessera.verify(Pair(), inputs, steps=2, via=via).same, via)


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


@case
def warnings_of_the_compiler(test, folder):
    """Are warnings of Python."""
    with test.assertWarnsRegex(UserWarning, "the last dimension counts classes"):
        tessera.compile(tessera.export(torch.nn.Conv2d(3, 6, 3, padding=1), (torch.randn(4, 3, 6, 6),)),
                        os.path.join(folder, "net.tessera"), batch=4)


@case
def gradients_of_the_user_stay(test, folder):
    net = torch.nn.Linear(6, 3)
    net.weight.grad = torch.ones(3, 6)
    grad = net.weight.grad
    test.assertTrue(tessera.verify(net, example(), loss="mse", steps=2).same)
    test.assertIs(net.weight.grad, grad)


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
            test.assertEqual({name.partition("/")[2] for name in archive.namelist()} - stored,
                             {"models/model.json", "extra/tessera.json"})
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


if __name__ == "__main__":
    torch_cases.run(CASES)
