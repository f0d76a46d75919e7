"""python -m tessera verify: what must count as different does (the comparison under it: test_judgement.py). The command's own tests need a
Python with torch and onnx: python3, or the one that TESSERA_TORCH_PYTHON names."""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "end_to_end"))
from harness import TORCH_PYTHON, ToolTest, torch_has, with_package  # noqa: E402

NET = '''
import torch


class Net(torch.nn.Module):
    def __init__(self, cut):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)
        self.drop, self.cut = torch.nn.Dropout(0.2), cut

    def forward(self, x):
        h = self.first(x)
        return self.second(torch.relu(h) + (h.detach() if self.cut else self.drop(h)))


def good():
    return Net(False), torch.randn(4, 6), ["x"]


def cut():
    return Net(True), torch.randn(4, 6), ["x"]


class Pooled(torch.nn.Module):
    """The gradient of the score's bias is 0, and in PyTorch may come out as 0 by luck."""

    def __init__(self):
        super().__init__()
        self.score, self.head = torch.nn.Linear(6, 1), torch.nn.Linear(6, 3)

    def forward(self, x):
        return self.head((self.score(x).softmax(1) * x).sum(1))


def pooled(seed=0):
    torch.manual_seed(seed)
    return Pooled(), torch.randn(8, 40, 6), ["x"]


def pooled_again():
    return pooled(1)


class Filled(Pooled):
    """Makes a tensor of PyTorch's default type from a limit of its own type."""

    def forward(self, x):
        score = torch.max(self.score(x), torch.full((), torch.finfo(x.dtype).min))
        return self.head((score.softmax(1) * x).sum(1))


def filled():
    torch.manual_seed(0)
    return Filled(), torch.randn(8, 40, 6), ["x"]


class Diagonal(torch.nn.Module):
    """The kernel of the update computes the gradient itself."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        y = x.mean() * self.weight * torch.eye(4) + 0.5
        return (y * y).mean()


def diagonal():
    return Diagonal(), torch.randn(4), ["x"]


def narrow():
    module, x, names = good()
    return module.bfloat16(), x.bfloat16(), names


class Centred(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 3)

    def forward(self, x):
        h = self.first(x)
        return self.second(torch.tanh(h - h.mean(1, keepdim=True)))


def centred():
    module = Centred().double()
    with torch.no_grad():  # all alike: the gradient is 0 but for rounding
        module.first.weight.copy_(module.first.weight[:1].expand(8, 6))
        module.second.weight.copy_(module.second.weight[:, :1].expand(3, 8))
    return module, torch.randn(4, 5, 6).double(), ["x"]


def normed(seed=2):
    """Gradients of biases have elements that are only rounding, of which AdamW makes steps as large as others."""
    torch.manual_seed(seed)
    layers = torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 3)
    return torch.nn.Sequential(*layers), torch.randn(4, 6)


def decayed():
    """Of which PyTorch's training has another weight decay."""
    from tessera import training
    training.HYPER = training.HYPER | {"weight_decay": 0.0}
    return normed()


class Meeting(torch.nn.Module):
    """The samples of a batch meet."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 6)

    def forward(self, x):
        h = self.first(x)
        return h - h.mean(0, keepdim=True)


def meeting():
    return Meeting(), torch.randn(4, 6)


class Ratio(torch.nn.Module):
    """Two sums over ranks that become equal where gradients are known."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 4)

    def forward(self, x):
        mean = self.first(x).square().mean()
        return mean / mean.detach()


def ratio():
    return Ratio(), torch.randn(4, 6)


class Unsupported(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(17, 17)

    def forward(self, x):
        return torch.linalg.det(x[:, None] * self.first.weight)[:, None]


def unsupported():
    return Unsupported(), torch.randn(4, 17), ["x"]


class Random(torch.nn.Module):
    """Rates that only the code has; inputs as *args."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(6, 24), torch.nn.Linear(8, 3)

    def forward(self, *inputs):
        x, y = inputs
        h = torch.nn.functional.dropout(self.first(x), 0.3, self.training)
        q, k, v = h.view(-1, 5, 3, 2, 4).permute(2, 0, 3, 1, 4)
        h = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.1 if self.training else 0.0)
        return self.second(h.transpose(1, 2).flatten(2)) * y


def random():
    return Random(), (torch.randn(4, 5, 6), torch.randn(4, 5, 3))


class Drawing(torch.nn.Module):
    """Stochastic depth, noise on weights and in a buffer, a hard choice of one row; numbers within a checkpoint."""

    def __init__(self, within):
        super().__init__()
        self.first, self.second, self.within = torch.nn.Linear(6, 6), torch.nn.Linear(6, 5), within
        self.rows = torch.nn.Parameter(torch.randn(5, 3))
        self.register_buffer("noise", torch.zeros(3))

    def branch(self, x):
        return torch.tanh(self.first(x)) * torch.rand_like(x)

    def forward(self, x):
        if self.within:
            return self.second(torch.utils.checkpoint.checkpoint(self.branch, x, use_reentrant=False)) @ self.rows
        self.noise.normal_()
        x = x + self.branch(x) * x.new_empty(x.shape[0], 1).bernoulli_(0.5)
        rows = self.rows + 0.1 * torch.randn_like(self.rows)
        return torch.nn.functional.gumbel_softmax(self.second(x), hard=True) @ rows + self.noise


def drawing():
    return Drawing(False), torch.randn(4, 6)


def drawing_within():
    return Drawing(True), torch.randn(4, 6)


def hooked():
    module, x, names = good()
    module.first.weight.register_hook(lambda gradient: 2 * gradient)
    return module, x, names


class Packed(torch.nn.Module):
    """Ids of documents that are looked up, and mask attention."""

    def __init__(self):
        super().__init__()
        self.word, self.document = torch.nn.Embedding(13, 8), torch.nn.Embedding(5, 8)

    def forward(self, tokens, ids):
        x = self.word(tokens) + self.document(ids)
        mask = (ids[:, :, None] == ids[:, None, :])[:, None]
        return torch.nn.functional.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], attn_mask=mask)[:, 0]


def packed():
    return Packed(), (torch.randint(0, 13, (4, 12)), torch.tensor([[3] * 5 + [1] * 7] * 4)), ["tokens", "ids"]


if __name__ == "__main__":
    module, x, names = cut()
    torch.onnx.export(module, (x,), "cut.onnx", input_names=names, dynamo=False, opset_version=17,
                      do_constant_folding=False, training=torch.onnx.TrainingMode.TRAINING)
'''


ENTRANCES = {"pt2": ["--via", "pt2"], "torchscript": ["--via", "onnx", "--exporter", "torchscript"],
             "dynamo": ["--via", "onnx", "--exporter", "dynamo"]}


@unittest.skipUnless(torch_has("torch", "onnx", "onnxscript"), "no Python with torch and onnx (TESSERA_TORCH_PYTHON)")
class CheckModel(ToolTest):
    def check(self, *arguments):
        """(exit status, output, last line)."""
        done = subprocess.run([TORCH_PYTHON, "-m", "tessera", "verify", *arguments], cwd=self.folder, capture_output=True, text=True,
                              timeout=300, env=with_package())
        output = done.stdout + done.stderr
        return done.returncode, output, done.stdout.splitlines()[-1] if done.stdout else output

    def setUp(self):
        super().setUp()
        with open(self.path("net.py"), "w") as file:
            file.write(NET)

    def test_the_same(self):
        status, output, line = self.check("net.py:good", "--json", "good.json", "--", "--mesh", "shard=2",
                                          "--accumulate=2")
        self.assertEqual(status, 0, output)
        self.assertRegex(line, r"^same: loss .* 4 gradients within")
        self.assertIn("1 dropout rate", output)
        with open(self.path("good.json")) as file:
            self.assertEqual(json.load(file)["result"], "same")

    def test_rates_in_the_code_and_star_args(self):
        for entrance, flags in ENTRANCES.items():
            with self.subTest(entrance):
                status, output, line = self.check("net.py:random", "--loss", "mse", *flags, "--keep", entrance)
                self.assertEqual(status, 0, output)
                self.assertRegex(line, r"^same: loss .* 4 gradients within")
                self.assertIn("2 dropout rates 0", output)
        # A file that was exported before has them, too.
        status, output, line = self.check("net.py:random", "--loss", "mse", "--file", os.path.join("dynamo", "model.onnx"))
        self.assertEqual(status, 0, output)
        self.assertIn("2 dropout rates 0", output)

    def test_random_numbers(self):
        """PyTorch draws those of Tessera, also of micro-batches and on ranks."""
        for flags in ([], ["--", "--mesh", "shard=2", "--strategy", "zero3", "--accumulate=2"]):
            status, output, line = self.check("net.py:drawing", "--loss", "mse", *flags)
            self.assertEqual(status, 0, output)
            self.assertRegex(line, r"^same: loss .* 5 gradients within")

    def test_samples_that_meet(self):
        """On ranks as in PyTorch; in micro-batches they are refused, with the node and a way out."""
        status, output, line = self.check("net.py:meeting", "--loss", "mse", "--", "--mesh", "shard=2", "--strategy", "zero3")
        self.assertEqual(status, 0, output)
        status, output, line = self.check("net.py:meeting", "--loss", "mse", "--", "--accumulate", "2")
        self.assertEqual(status, 2, output)
        self.assertRegex(output, r"node 'sub': .*'train\.sub' lets the samples of a batch influence each other.*larger --batch")

    def test_the_reference_is_of_the_whole_batch(self):
        """But for what each micro-batch has of its own: statistics of batch normalisations, random numbers, buffers that change."""
        code = """
import torch, net
from torch import nn
from tessera import training
torch.manual_seed(0)
linear = nn.Linear(6, 6)
rows = {"x": torch.randn(4, 6), "targets": torch.randn(4, 6)}
with torch.no_grad():
    for module in (net.Meeting(), nn.Sequential(linear, nn.BatchNorm1d(6)), nn.Sequential(linear, nn.BatchNorm1d(6).eval()),
                   nn.Sequential(linear, nn.Unflatten(1, (2, 3)), nn.InstanceNorm1d(2), nn.Flatten()), nn.Sequential(linear, nn.RReLU()),
                   nn.utils.spectral_norm(nn.Linear(6, 6))):
        whole, parts = (training.loss_of(module, rows, ["x"], ["output"], training.Loss("mse"), count) for count in (1, 2))
        print(int(torch.allclose(whole, parts, rtol=1e-6)), end=" ")
"""
        done = subprocess.run([TORCH_PYTHON, "-c", code], cwd=self.folder, capture_output=True, text=True, timeout=300, env=with_package())
        self.assertEqual(done.stdout, "1 0 1 1 0 0 ", done.stderr)

    def test_collectives_that_become_equal(self):
        for flags in (["--mesh", "shard=2", "--strategy", "zero3"], ["--mesh", "replicate=2,shard=2", "--strategy", "hsdp"]):
            status, output, line = self.check("net.py:ratio", "--loss", "output:output", "--", *flags)
            self.assertEqual(status, 0, output)

    def test_cut_gradients(self):
        for entrance, flags in ENTRANCES.items():
            with self.subTest(entrance):
                status, output, line = self.check("net.py:cut", *flags)
                self.assertEqual(status, 0, output)
                self.assertRegex(line, r"^same: loss .* 4 gradients within")

    def test_ids_of_documents_lie_side_by_side(self):
        status, output, line = self.check("net.py:packed")
        self.assertEqual(status, 0, output)
        self.assertRegex(line, r"^same: loss .* 2 gradients within")

    def test_rounding_in_float64(self):
        status, output, line = self.check("net.py:centred", "--loss", "mse")
        self.assertEqual(status, 0, output)
        self.assertRegex(line, "^same: .*only rounding: .*first.bias")

    def test_steps_of_rounding(self):
        """They may move later losses; another weight decay still counts as different."""
        status, output, line = self.check("net.py:normed", "--loss", "mse")
        self.assertEqual(status, 0, output)
        self.assertRegex(line, "^same: .*rounding moves the losses of steps 2")
        status, output, line = self.check("net.py:decayed", "--loss", "mse")
        self.assertEqual(status, 1, output)
        self.assertRegex(line, "^DIFFERENT: loss of step 2")

    def test_a_gradient_that_is_0(self):
        for name in ("pooled", "pooled_again", "filled"):
            with self.subTest(name):
                status, output, line = self.check(f"net.py:{name}")
                self.assertEqual(status, 0, output)
                self.assertRegex(line, "^same: .* 3 gradients within .*only rounding: score.bias")

    def test_gradients_that_are_never_in_memory(self):
        status, output, line = self.check("net.py:diagonal", "--loss", "output:output", "--keep", "kept")
        self.assertEqual(status, 0, output)
        self.assertRegex(line, r"^same: loss .* 1 gradients within")
        self.assertTrue(os.path.exists(self.path("kept", "run-kept.tessera")), "nothing was compiled again")

    def test_different(self):
        subprocess.run([TORCH_PYTHON, "net.py"], cwd=self.folder, check=True, capture_output=True, timeout=300)
        status, output, line = self.check("net.py:cut", "--file", "cut.onnx", "--", "--parameters", ".")
        self.assertEqual(status, 1, output)
        self.assertRegex(line, "^DIFFERENT: .*2 of 4 gradients differ, most that of first")

    def test_not_compared(self):
        for arguments, text in ((["net.py:hooked"], "the exporter refuses it: first.weight has a hook on its gradient"),
                                (["net.py:hooked", "--via", "onnx"], "the exporter refuses it"), (["net.py:absent"], "absent"),
                                (["net.py:unsupported", "--loss", "mse"], "cannot be imported; node"),
                                (["net.py:unsupported", "--loss", "mse", "--via", "onnx"], "1 node cannot be imported; node"),
                                (["net.py:narrow"], "parameters of torch.bfloat16"),
                                (["net.py:drawing_within", "--loss", "mse"], "random numbers of a backward pass"),
                                (["net.py:good", "--", "--lr", "1"], "--lr is set by the check"),
                                (["net.py:good", "--", "--strategy", "none"], "strategy")):
            with self.subTest(" ".join(arguments)):
                status, output, line = self.check(*arguments)
                self.assertEqual(status, 2, output)
                self.assertRegex(line, "^not compared: ")
                self.assertIn(text, line)


if __name__ == "__main__":
    unittest.main()
