"""The comparison of two trainings, what python -m tessera verify must not call different, and what it compares of a user's own
example. The commands need a Python with torch: python3, or the one that TESSERA_TORCH_PYTHON names."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "end_to_end"))
import numpy as np  # noqa: E402
from harness import TORCH_PYTHON, ToolTest, torch_has, with_package  # noqa: E402
from tessera import compare  # noqa: E402
from tessera.tools import Training  # noqa: E402

NET = '''
import torch
from torch.nn import functional as F


class Counted(torch.nn.Module):
    """Its loss reads a buffer that each micro-batch changes."""

    def __init__(self):
        super().__init__()
        self.line = torch.nn.Linear(6, 4)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return (self.line(x) ** 2).mean() / (1 + self.count)


def counted():
    return Counted(), torch.randn(8, 6)


class Words(torch.nn.Module):
    """kind: what its loss is."""

    def __init__(self, kind):
        super().__init__()
        self.word, self.head, self.kind = torch.nn.Embedding(11, 6), torch.nn.Linear(6, 11), kind

    def forward(self, tokens, other):
        words = self.word(tokens)
        if self.kind == "images":
            return self.head(words.masked_scatter((tokens == 10)[..., None].expand_as(words), other))
        if self.kind == "masked":
            keep = (other > 0)[:, None].expand(-1, tokens.shape[1], -1)
            return self.head(F.scaled_dot_product_attention(words, words, words, attn_mask=keep))
        if self.kind == "labels":
            return F.cross_entropy(self.head(words).flatten(0, 1), other.flatten())
        chosen = torch.gather(F.log_softmax(self.head(words), -1), -1, tokens[..., None])[..., 0]
        gain = (other - other.mean()) / (other.std() + 1e-4)
        return -(torch.exp(chosen - chosen.detach()) * gain[:, None]).mean()


def tokens():
    torch.manual_seed(0)
    return torch.randint(0, 9, (4, 8))


def ratio():
    return Words("ratio"), (tokens(), torch.randn(4))


def images():
    given = tokens()
    given[:, 1:3] = 10
    return Words("images"), (given, torch.randn(4, 2, 6))


def masked():
    keep = torch.ones(4, 8, dtype=torch.long)
    keep[1], keep[2, 3:] = 0, 0
    return Words("masked"), (tokens(), keep)


def labels():
    given = tokens()
    given[:, :3] = -100
    return Words("labels"), (tokens(), given)


def ignored():
    return Words("labels"), (tokens(), torch.full((4, 8), -100))


class Dropped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drop = torch.nn.Linear(6, 32), torch.nn.Linear(32, 3), torch.nn.Dropout(0.2)

    def forward(self, x):
        return self.second(self.drop(F.gelu(self.first(x))))


def dropped():
    torch.manual_seed(0)
    return Dropped(), torch.randn(4, 6)
'''


class Compare(unittest.TestCase):
    """The verdict on small trainings that are made up."""

    def verdict(self, losses=(2.0,), gradients=None, noise=None, **changed):
        want = {"a": np.array([1.0, -2.0]), "b": np.array([1e-9, 2e-9]), "c": np.zeros(2)}
        got = {**want, **(gradients or {})}
        got = {name: value for name, value in {**got, **changed}.items() if value is not None}
        return compare.compare(Training([2.0], want), Training(list(losses), got, list(got)), lambda: noise or {})

    def test_same(self):
        verdict = self.verdict()
        self.assertTrue(verdict.same)
        self.assertIn("same: loss 2.0000", verdict.line())

    def test_different(self):
        cases = {"loss of step 1": dict(losses=[2.0001]), "nan": dict(losses=[float("nan")]), "0 losses": dict(losses=[]),
                 "most that of a": dict(a=np.array([1.0, -2.001])), "most that of b": dict(b=np.array([1e-9, 3e-9])),
                 "most that of c": dict(c=np.array([0, 1e-3])), "1 of 3": dict(a=np.array([1.0, np.nan])),
                 "a: trained in PyTorch only": dict(a=None), "d: trained in Tessera only": dict(d=np.ones(2)),
                 "has shape": dict(a=np.ones(3))}
        for text, change in cases.items():
            with self.subTest(text):
                verdict = self.verdict(**change)
                self.assertFalse(verdict.same)
                self.assertIn(text, verdict.line())

    def test_rounding(self):
        """A gradient that is rounding in PyTorch may differ, unless it would matter beside the others."""
        self.assertEqual(self.verdict(b=np.array([1e-9, 3e-9]), noise={"b": 1e-9}).rounding, ["b"])
        self.assertFalse(self.verdict(b=np.array([1e-9, 1e-3]), noise={"b": 1e-3}).same)

    def test_rounding_of_later_losses(self):
        """May differ, not by much, if those of trainings that do not enlarge it agree; the first one must not."""
        def verdict(losses, again):
            gradients = {"a": np.ones(2)}
            return compare.compare(Training([2.0, 2.0], gradients, ["a"]), Training(losses, gradients, ["a"]),
                                   again=again and (lambda: ([2.0, 1.9], again, [0.0, 1e-5])))
        self.assertEqual(verdict([2.0, 2.0004], [2.0, 1.9]).loose, [2])
        self.assertEqual(verdict([2.0, 2.0004], [2.0, 1.9001]).loose, [2], "PyTorch's own is as wrong")
        self.assertIn("rounding moves the losses of steps 2", verdict([2.0, 2.0004], [2.0, 1.9]).line())
        for losses, again in (([2.0, 2.0004], [2.0, 1.901]), ([2.0, 2.0004], None), ([2.0, 2.1], [2.0, 1.9]),
                              ([2.0004, 2.0], [2.0, 1.9]), ([2.0, float("nan")], [2.0, 1.9]),
                              ([2.0, 2.0004], [2.0, float("nan")])):
            self.assertFalse(verdict(losses, again).same)

    def test_a_parameter_without_influence_may_be_missing(self):
        self.assertTrue(self.verdict(c=None).same)


class Judgement(unittest.TestCase):
    """Differences beside what rounding makes of PyTorch's own numbers."""

    def verdict(self, loss=2.0, gradient=(1.0, -2.0), wanted=2.0, noise=0.0, loss_noise=0.0):
        same = {"b": np.ones(2)}
        want, got = {"a": np.array([1.0, -2.0]), **same}, {"a": np.array(gradient), **same}
        return compare.compare(Training([wanted], want), Training([loss], got, list(got)), lambda: {"a": noise},
                               loss_noise=lambda: loss_noise)

    def test_enlarged_rounding(self):
        self.assertTrue(self.verdict(gradient=(1.0, -2.01), noise=1e-3).same)
        self.assertFalse(self.verdict(gradient=(1.0, -2.03), noise=1e-3).same)
        self.assertFalse(self.verdict(gradient=(1.0, -2.03), noise=1.0).same, "more than a part of the gradient is no rounding")

    def test_a_float64_that_is_not_finite_says_nothing(self):
        verdict = self.verdict(gradient=(1.0, -2.01), noise=np.nan)
        self.assertEqual((verdict.unknown, verdict.problems), (["a"], []))
        self.assertFalse(self.verdict(gradient=(1.0, np.nan), noise=np.nan).same)

    def test_a_loss_that_is_rounding(self):
        self.assertTrue(self.verdict(loss=-3e-9, wanted=1e-9, loss_noise=2e-9).same)
        self.assertIn("loss of step 1 is 1e-06, in PyTorch 1e-09", self.verdict(loss=1e-6, wanted=1e-9, loss_noise=2e-9).line())

    def test_bf16(self):
        want = Training([2.0], {"a": np.array([1.0, -2.0])})
        narrow = Training([2.01], {"a": np.array([1.0, -2.1])})
        tolerance, loss = compare.beside_bf16(want, narrow)
        self.assertAlmostEqual(tolerance["a"], compare.BF16_GRADIENT + compare.BF16_TIMES * 0.05)
        self.assertAlmostEqual(loss, compare.BF16_LOSS + compare.BF16_TIMES * 0.005)

    def test_what_bf16_cannot_excuse(self):
        """However wrong PyTorch's own numbers are, one that is missing is no rounding."""
        gradients = {"a": np.array([1.0, -2.0]), "bias": np.array([1e-7])}
        want, narrow = Training([2.0], gradients), Training([9.0], {"a": np.array([5.0, 4.0]), "bias": np.array([1e-3])})
        tolerance, loss = compare.beside_bf16(want, narrow)

        def verdict(loss_found=2.0, **found):
            return compare.compare(want, Training([loss_found], gradients | found, list(gradients)), None, tolerance, loss)
        self.assertTrue(verdict(bias=np.array([-1.5e-3])).same)
        for other in (verdict(a=np.zeros(2)), verdict(a=np.array([2.0, -4.0])), verdict(bias=np.array([0.1])), verdict(4.0)):
            self.assertFalse(other.same)


@unittest.skipUnless(torch_has("torch"), "no Python with torch (TESSERA_TORCH_PYTHON)")
class Command(ToolTest):
    def test_commands(self):
        """All in one process, which loads PyTorch once."""
        with open(self.path("net.py"), "w") as file:
            file.write(NET)
        own = ["--loss", "output:output"]
        cases = {"buffers that micro-batches change": (["net.py:counted", *own, "--", "--accumulate", "2"], 0, "same: "),
                 "a loss that is 0": (["net.py:ratio", *own], 0, "same: "), "counts of images": (["net.py:images"], 0, "same: "),
                 "a row without keys": (["net.py:masked"], 0, "same: "), "labels": (["net.py:labels", *own], 0, "same: "),
                 "bf16": (["net.py:dropped", "--", "--precision", "bf16"], 0,
                          "; bf16 against fp32; PyTorch's own under torch.autocast: loss "),
                 "a folder that cannot be": (["net.py:dropped", "--keep", "net.py/kept"], 2, ""),
                 "fp8": (["net.py:dropped", "--", "--precision=fp8"], 2, "fp8 has no counterpart"),
                 "no targets": (["net.py:ignored", *own], 2, "note: all targets of a step are ignored: other is -100 throughout"),
                 "evaluation mode": (["net.py:dropped", "--file", "evaluation.pt2"], 0, "was exported in evaluation mode")}
        code = """
import contextlib, io, json, sys, torch, net
from tessera import command_line
torch.set_num_threads(1)
module, x = net.dropped()
torch.export.save(torch.export.export(module.eval(), (x,)), "evaluation.pt2")
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        status = command_line.main(["verify", *words], "")
    print(json.dumps([status, output.getvalue()]))
"""
        done = subprocess.run([TORCH_PYTHON, "-c", code, json.dumps([words for words, _, _ in cases.values()])], cwd=self.folder,
                              capture_output=True, text=True, timeout=300, env=with_package())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for (name, (_, status, text)), line in zip(cases.items(), done.stdout.splitlines(), strict=True):
            with self.subTest(name):
                found, output = json.loads(line)
                self.assertEqual((found, output.count(text) if text else 1), (status, 1), output)


if __name__ == "__main__":
    unittest.main()
