"""Modules that torch.export alone does not take as they are: cases of python_cases.py."""

import os
import sys
import warnings

import tessera
import torch

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pt2"))
from sharing import Counter  # noqa: E402

CASES = {}
IS_OLD = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9)


def case(function):
    CASES[function.__name__] = function
    return function


def example():
    return torch.randn(4, 6)


def refused(test, words, *arguments, **options):
    with test.assertRaises(tessera.ExportError) as caught:
        tessera.export(*arguments, **options)
    test.assertIn(words, str(caught.exception))


class Named(torch.nn.Module):
    """A module called as what torch.fx generates, one buffer under two names, a frozen teacher whose output is a view, and a check
    whether numbers are finite."""

    def __init__(self):
        super().__init__()
        seen = torch.ones(())
        self.code, self.before, self.after = torch.nn.Linear(6, 8), Counter(seen), Counter(seen)
        self.teacher, self.other = torch.nn.Linear(6, 8).requires_grad_(False), torch.nn.Linear(6, 8)

    def forward(self, x):
        h = self.after(self.code(self.before(x)))
        if not torch.isfinite(h).all():
            h = h.clamp(-1e3, 1e3)
        with torch.no_grad():
            wanted = self.teacher(x).reshape(-1, 2, 4).transpose(1, 2).flatten(1)
            own, _ = self.other(x).split(8, -1)[0].reshape(-1, 2, 4).unbind(1)
        return ((h - wanted) ** 2).mean() + (self.other(x)[:, :4] * own).mean()


@case
def weights_that_changed_after_the_export(test, folder):
    """Are the module's own: said where the program is written."""
    model = torch.nn.Linear(6, 3)
    program = tessera.export(model, example())
    program.save(os.path.join(folder, "before.pt2"))
    with torch.no_grad():
        model.weight.mul_(2)
    with test.assertWarnsRegex(UserWarning, "the module has changed since its export.*weight"):
        program.save(os.path.join(folder, "after.pt2"))


@case
def names_views_and_checks(test, folder):
    with test.assertWarnsRegex(UserWarning, r"left out, .* not finite: \S*program_cases.py:\d+: if not torch.isfinite\(h\).all\(\):"):
        tessera.export(Named(), example())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = tessera.verify(Named(), example(), loss="output:output", steps=3)
    test.assertTrue(found.same, found.line())


class Rotary(torch.nn.Module):
    """Several functions of one buffer, a region with one result, and two multiples of the size of a batch."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(6, 6)
        self.register_buffer("angle", torch.arange(6.0))

    def forward(self, x):
        h = self.line(x) * self.angle.cos() + x * self.angle.sin()
        with torch.no_grad():
            scale = (h * 0.1).exp()
        h = h * scale
        return h.reshape(2 * x.shape[0], 3).square().reshape(6 * x.shape[0]).mean() * self.angle[1:3].sum()


@case
def functions_of_one_constant(test, folder):
    found = tessera.verify(Rotary(), example(), loss="output:output", steps=3)
    test.assertTrue(found.same, found.line())


class Hidden(torch.nn.Module):
    """A TransformerEncoder and TransformerDecoder whose masks hide what is `behind` or more later, and the loss of a Gaussian."""

    def __init__(self, behind):
        super().__init__()
        options = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0, "batch_first": True}
        self.encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(**options), 2)
        self.decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(**options), 1)
        self.register_buffer("hidden", torch.ones(6, 6, dtype=torch.bool).triu(behind))
        self.register_buffer("causal", torch.nn.Transformer.generate_square_subsequent_mask(6))

    def forward(self, x):
        h = self.decoder(x, self.encoder(x, mask=self.hidden), tgt_mask=self.causal, memory_mask=self.hidden)
        variance = torch.nn.functional.softplus(h[..., :4])  # half of them are below eps
        return torch.nn.functional.gaussian_nll_loss(h[..., 4:], x[..., :4], variance, full=True, eps=0.7)


@case
def masks_and_variances_that_pytorch_looks_into(test, folder):
    """TransformerEncoder compares a mask with the causal one, and gaussian_nll_loss its variances with 0."""
    torch.manual_seed(0)
    for behind in 1, 2:
        with test.assertWarnsRegex(UserWarning, r"negative variances is left out: .*ValueError: \S*program_cases.py:\d+: return"):
            found = tessera.verify(Hidden(behind), (torch.randn(4, 6, 8),), loss="output:output", steps=3)
        test.assertTrue(found.same, found.line())


class Branches(torch.nn.Module):
    """Branches on values; `kind` says which."""

    def __init__(self, kind):
        super().__init__()
        self.line, self.kind = torch.nn.Linear(6, 8), kind

    def forward(self, x):
        h = self.line(x)
        bad = torch.isnan(h if self.kind != "input" else x)
        if self.kind == "changed":
            bad[0].fill_(True)
        if self.kind == "finite":
            return h.relu() if (bad | h.isinf()).any() or bad.sum() > 0 else h
        return h.relu() if ((h > 3) if self.kind == "values" else bad).any() else h


@case
def branches_on_values(test, folder):
    """Of conditions those alone are decided that ask whether what is trained is finite."""
    with test.assertWarnsRegex(UserWarning, "checks whether numbers are finite are left out"):
        tessera.export(Branches("finite"), example())
    for kind in ("values", "input", "changed"):
        with test.subTest(kind):
            refused(test, "torch.where chooses by them", Branches(kind), example())


@case
def quantised_training(test, folder):
    """What prepare_qat makes: ranges that are observed are buffers that change."""
    if IS_OLD:
        return
    from torch.ao import quantization
    net = torch.nn.Sequential(quantization.QuantStub(), torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3),
                              quantization.DeQuantStub())
    for backend in ("x86", "qnnpack"):
        with test.subTest(backend), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is deprecated
            net.qconfig = quantization.get_default_qat_qconfig(backend)
            made = quantization.prepare_qat(net.train())
            if backend == "x86":
                with test.assertRaises(tessera.CannotCompare) as caught:
                    tessera.verify(made, example(), loss="mse", steps=1)
                test.assertIn("run the module once before it is exported", str(caught.exception))
            made(example())
            found = tessera.verify(made, example(), loss="mse", steps=3)
            test.assertTrue(found.same, found.line())


class Placed(torch.nn.Module):
    """Embeddings of images among those of words, with a check of their number, and means over what masks name."""

    def __init__(self):
        super().__init__()
        self.word, self.image, self.head = torch.nn.Embedding(7, 6), torch.nn.Linear(3, 6), torch.nn.Linear(6, 4)

    def forward(self, tokens, images):
        is_image = tokens < 2
        torch._check_tensor_all(is_image.sum() <= tokens.numel())
        mixed = self.word(tokens).masked_scatter(is_image.unsqueeze(-1), self.image(images))
        words = tokens[~is_image]
        scores = torch.nn.functional.gelu(self.head(mixed[~is_image]))
        per_sample = scores.square().sum() / torch.sym_float(tokens.shape[0])
        return per_sample + torch.nn.functional.cross_entropy(scores, words % 4) + mixed[is_image].mean()


@case
def images_among_words(test, folder):
    if IS_OLD:  # its exporter does not follow sizes that depend on data so far
        return
    inputs = torch.arange(20).reshape(4, 5) % 7, torch.randn(4, 5, 3)
    for flags in ({}, {"mesh": {"shard": 2}, "strategy": "zero3"}):
        with test.subTest(str(flags)), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = tessera.verify(Placed(), inputs, loss="output:output", steps=2, **flags)
            test.assertTrue(found.same, found.line())


class Masked(torch.nn.Module):
    """The mean of what a mask names."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(4, 3)

    def forward(self, x, keep):
        mask = keep > 0
        return torch.nn.functional.mse_loss(self.line(x)[mask], x[..., :3][mask])


@case
def masked_means_in_micro_batches(test, folder):
    """As of the whole batch, whatever each micro-batch has of it."""
    if IS_OLD:
        return
    net, x, keep = Masked(), torch.randn(8, 5, 4), torch.ones(8, 5, dtype=torch.int64)
    keep[:4, 1:] = 0
    program = tessera.export(net, (x, keep))
    for accumulate in (1, 2):
        artifact = tessera.compile(program, os.path.join(folder, "net.tessera"), batch=8 // accumulate, accumulate=accumulate,
                                   loss="output:output")
        run = tessera.train(artifact, {"x": x.numpy(), "keep": keep.numpy()}, steps=1, weights=program, order="sequential",
                            out=os.path.join(folder, str(accumulate)))
        test.assertAlmostEqual(run.losses[0], net(x, keep).item(), places=5)


@case
def one_sample_of_any_length(test, folder):
    """A program for batches of one, as long contexts need them, keeps its positions open."""
    model = torch.nn.Sequential(torch.nn.Embedding(50, 8), torch.nn.Linear(8, 50))
    with test.assertWarnsRegex(UserWarning, "the program is for that many samples only"):
        program = tessera.export(model, torch.randint(50, (1, 16)))
    for length in (16, 96):
        tokens, targets = torch.randint(50, (2, length)), torch.randint(50, (2, length))
        artifact = tessera.compile(program, os.path.join(folder, "long.tessera"), batch=1, seq=length, accumulate=2)
        run = tessera.train(artifact, {"input": tokens.numpy(), "targets": targets.numpy()}, steps=1, weights=program, order="sequential",
                            out=os.path.join(folder, str(length)))
        wanted = torch.nn.functional.cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).item()
        test.assertAlmostEqual(run.losses[0], wanted, places=5)
