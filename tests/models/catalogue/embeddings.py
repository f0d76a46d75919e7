"""Embeddings, linear layers, and parameters that are shared, packed, sliced or computed."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

from .rows import Call, Chain, With, f, i, row


class Tied(nn.Module):
    """An embedding whose table is the head."""

    def __init__(self, padding=None):
        super().__init__()
        self.embed = nn.Embedding(11, 6, padding_idx=padding)
        self.mix, self.head = nn.Linear(6, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(torch.tanh(self.mix(self.embed(tokens))))


class Factorized(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.up, self.positions = nn.Embedding(11, 3), nn.Linear(3, 6), nn.Parameter(torch.randn(7, 6))

    def forward(self, tokens):
        return self.up(self.embed(tokens)) + self.positions[:tokens.shape[1]]


class Low(nn.Module):
    """A frozen layer with a trained low-rank change, https://arxiv.org/abs/2106.09685."""

    def __init__(self):
        super().__init__()
        self.base, self.a, self.b = nn.Linear(6, 7), nn.Linear(6, 2, bias=False), nn.Linear(2, 7, bias=False)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + 0.5 * self.b(self.a(x))


class Twice(nn.Module):
    """One layer at two depths."""

    def __init__(self):
        super().__init__()
        self.layer, self.norm = nn.Linear(6, 6), nn.LayerNorm(6)

    def forward(self, x):
        return self.layer(self.norm(torch.relu(self.layer(self.norm(x)))))


class Dicts(nn.Module):
    """Parameters and modules in containers."""

    def __init__(self):
        super().__init__()
        self.p = nn.ParameterDict({"a": nn.Parameter(torch.randn(5)), "b": nn.Parameter(torch.randn(5))})
        self.l = nn.ParameterList([nn.Parameter(torch.randn(5)) for _ in range(2)])
        self.m = nn.ModuleDict({"x": nn.Linear(5, 5), "y": nn.Linear(5, 5)})
        self.s = nn.ModuleList([nn.Linear(5, 5), nn.Tanh()])

    def forward(self, x):
        x = self.m["y"](torch.relu(self.m["x"](x * self.p["a"] + self.p["b"])))
        for module in self.s:
            x = module(x)
        return x * self.l[0] + self.l[1]


def bag(mode, weights=False):
    """An embedding bag of a matrix of tokens."""
    inner = nn.EmbeddingBag(11, 6, mode=mode)
    return Chain(inner)


def normed(module, dim=0):
    return parametrizations.weight_norm(module, dim=dim)


ROWS = [
    row("linear", "nn.Linear F.linear", lambda: nn.Linear(5, 7), f(3, 5)),
    row("linear-no-bias", "nn.Linear", lambda: nn.Linear(5, 7, bias=False), f(5)),
    row("linear-four-dimensions", "nn.Linear", lambda: nn.Linear(5, 7), f(2, 3, 5)),
    row("linear-width-1", "nn.Linear", lambda: Chain(nn.Linear(5, 1), nn.Tanh(), nn.Linear(1, 3)), f(3, 5)),
    row("mlp", "nn.Sequential nn.Linear", lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), f(5),
        recorded=True),
    row("mlp-gelu", "nn.Linear nn.GELU", lambda: Chain(nn.Linear(5, 8), nn.GELU("tanh"), nn.Linear(8, 5)), f(3, 5)),
    row("containers", "nn.ModuleDict nn.ModuleList nn.ParameterDict nn.ParameterList", lambda: Dicts(), f(3, 5)),
    row("embedding", "nn.Embedding F.embedding", lambda: nn.Embedding(11, 6), i(5, high=11), recorded=True),
    row("embedding-padding", "nn.Embedding", lambda: nn.Embedding(11, 6, padding_idx=2), i(5, high=11)),
    row("embedding-max-norm", "nn.Embedding", lambda: nn.Embedding(11, 6, max_norm=1.0), i(5, high=11)),
    row("embedding-tied", "nn.Embedding", lambda: Tied(), i(5, high=11), loss="cross-entropy", recorded=True),
    row("embedding-tied-padding", "nn.Embedding", lambda: Tied(2), i(5, high=11), loss="cross-entropy"),
    row("embedding-factorized", "nn.Embedding", lambda: Factorized(), i(7, high=11)),
    row("embedding-function", "F.embedding", lambda: With(lambda t, w: F.embedding(t, w), w=(11, 6)), i(5, high=11)),
    row("embedding-indexed", "", lambda: With(lambda t, w: w[t], w=(11, 6)), i(5, high=11)),
    row("embedding-one-hot", "F.one_hot", lambda: With(lambda t, w: F.one_hot(t, 11).float() @ w, w=(11, 6)), i(5, high=11),
        recorded=True),
    row("embedding-bag-sum", "nn.EmbeddingBag F.embedding_bag", lambda: bag("sum"), i(5, high=11), recorded=True),
    row("embedding-bag-mean", "nn.EmbeddingBag", lambda: bag("mean"), i(5, high=11)),
    row("embedding-bag-max", "nn.EmbeddingBag", lambda: bag("max"), i(5, high=11)),
    row("weight-norm", "nn.Linear", lambda: normed(nn.Linear(5, 7)), f(3, 5), recorded=True),
    row("weight-norm-conv", "nn.Conv1d", lambda: normed(nn.Conv1d(3, 4, 3)), f(3, 7)),
    row("weight-norm-whole", "nn.Linear", lambda: normed(nn.Linear(5, 7), None), f(3, 5)),
    row("weight-norm-old", "nn.Linear", lambda: nn.utils.weight_norm(nn.Linear(5, 7)), f(3, 5)),
    row("weight-norm-stacked", "nn.Linear", lambda: Chain(normed(nn.Linear(5, 7)), nn.Tanh(), normed(nn.Linear(7, 5))),
        f(3, 5)),
    row("spectral-norm", "nn.Linear", lambda: parametrizations.spectral_norm(nn.Linear(5, 7)), f(3, 5)),
    row("orthogonal", "nn.Linear", lambda: parametrizations.orthogonal(nn.Linear(5, 5)), f(3, 5)),
    row("low-rank", "nn.Linear", lambda: Low(), f(3, 6), recorded=True),
    row("shared-layer", "nn.Linear", lambda: Twice(), f(3, 6), recorded=True),
    row("shared-parameter", "", lambda: With(lambda x, w: (x * w).tanh() @ w.diag() + w, w=(5,)), f(3, 5)),
    row("packed-slices", "F.linear", lambda: With(lambda x, w: F.linear(x, w[:5]) + F.linear(x.tanh(), w[5:]), w=(10, 5)),
        f(3, 5), recorded=True),
    row("packed-chunks", "F.linear", lambda: With(
        lambda x, w: torch.sigmoid(F.linear(x, w.chunk(3)[0])) * F.linear(x.tanh(), w.chunk(3)[1]) + F.linear(x, w.chunk(3)[2]),
        w=(15, 5)), f(3, 5)),
    row("packed-vector", "", lambda: With(lambda x, p: x * p[:5] + p[5:10] * p[10], p=(11,)), f(3, 5), recorded=True),
    row("weight-with-its-sum", "", lambda: With(lambda x, w: x + w * w.sum(), w=(5,)), f(3, 5), recorded=True),
    row("weight-transposed", "F.linear", lambda: With(lambda x, w: F.linear(F.linear(x, w).relu(), w.t()), w=(7, 5)), f(3, 5)),
    row("weight-softmax", "", lambda: With(lambda x, w: x @ w.softmax(-1), w=(5, 4)), f(3, 5)),
    row("weight-triangle", "", lambda: With(lambda x, w: x @ w.tril(), w=(5, 5)), f(3, 5)),
    row("weight-exponential", "", lambda: With(lambda x, w: x @ torch.linalg.matrix_exp(w * 0.1), w=(5, 5)), f(3, 5)),
    row("weight-outer", "", lambda: With(lambda x, u, v: x @ torch.outer(u, v), u=(5,), v=(4,)), f(3, 5)),
    row("weight-kronecker", "", lambda: With(lambda x, a, b: x @ torch.kron(a, b), a=(2, 3), b=(3, 2)), f(3, 6)),
    row("scalar-parameter", "", lambda: With(lambda x, s: x * s + s * s, s=()), f(3, 5)),
    row("unused-parameter", "", lambda: With(lambda x, a, b: x * a, a=(5,), b=(5,)), f(3, 5)),
    row("expanded-parameter", "", lambda: With(
        lambda x, c: torch.cat([c.expand(x.shape[0], -1, -1), x], 1), c=(1, 1, 5)), f(3, 5), recorded=True),
    row("moved-batch", "nn.Linear", lambda: Chain(lambda x: x.transpose(0, 1), Flat(), lambda x: x.transpose(0, 1)), f(3, 5),
        recorded=True),
    row("flatten", "nn.Flatten nn.Linear", lambda: nn.Sequential(nn.Flatten(), nn.Linear(15, 4)), f(3, 5)),
    row("flatten-middle", "nn.Flatten", lambda: nn.Flatten(1, 2), f(2, 3, 5)),
    row("unflatten", "nn.Unflatten", lambda: nn.Unflatten(1, (2, 3)), f(6, 5), recorded=True),
    row("bias-only", "", lambda: With(lambda x, b: x + b, b=(3, 5)), f(3, 5)),
    row("call", "F.linear", lambda: Call(lambda x: x * 2), f(3, 5)),
]


class Flat(nn.Module):
    """[T, B, D] as [T·B, D] through a layer and back."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(5, 7)

    def forward(self, x):
        return self.inner(x.reshape(-1, x.shape[-1])).reshape(x.shape[0], x.shape[1], 7)
