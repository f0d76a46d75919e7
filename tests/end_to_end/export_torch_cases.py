"""Small modules, one per thing that exporters lose or keep; run as a program it exports them and prints what came of each.

usage: export_torch_cases.py FOLDER [case ...]     writes FOLDER/<case>.onnx; prints {case: {"record" or "error", "said"}} as JSON
"""

import json
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))
import torch_export  # noqa: E402

CASES = {}  # name -> (class, function that makes the inputs, options of export)


def floats():
    return (torch.randn(3, 4),)


def tokens():
    return (torch.randint(0, 10, (3, 5)),)


def images():
    return (torch.randn(2, 4, 6, 6),)


def sequences():
    return (torch.randn(3, 5, 8),)


def classified():
    return torch.randn(3, 4), torch.randint(0, 4, (3,))


def case(inputs=floats, **options):
    def keep(cls):
        name = "".join("_" + c.lower() if c.isupper() else c for c in cls.__name__).strip("_")
        CASES[name] = (cls, inputs, {"exporter": "torchscript", **options})
        return cls
    return keep


class Base(nn.Module):
    """Two layers and a batch of four features; `between` is what the case is about."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 6), nn.Linear(6, 4)

    def between(self, h):
        return h

    def forward(self, x):
        return self.b(self.between(self.a(x)))


class TokenBase(nn.Module):
    """A table of ten rows and a projection."""

    def __init__(self, **options):
        super().__init__()
        self.e, self.h = nn.Embedding(10, 8, **options), nn.Linear(8, 10)

    def forward(self, t):
        return self.h(self.e(t))


# Gradients that are cut.

@case()
class Detach(Base):
    def between(self, h):
        return h + (h.sign() - h).detach()


@case(exporter="dynamo")
class DetachDynamo(Detach):
    pass


@case()
class Data(Base):
    def between(self, h):
        return h.data * h


@case()
class NoGrad(Base):
    def forward(self, x):
        with torch.no_grad():
            h = self.a(x)
        return self.b(h)


@case(exporter="dynamo")
class NoGradDynamo(NoGrad):
    pass


@case()
class DetachedItem(Base):
    def between(self, h):
        return h / h.detach().abs().max().item()


@case()
class FloatOf(Base):
    def between(self, h):
        return h / float(h.abs().max())


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class NewRound(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.round()

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0]


straight_through = Round.apply  # kept under another name


@case()
class Straight(Base):
    def between(self, h):
        return straight_through(h)


@case()
class NewStraight(Base):
    def between(self, h):
        return NewRound.apply(h)


@case()
class TensorHook(Base):
    def between(self, h):
        h.register_hook(lambda gradient: 2 * gradient)
        return h.relu()


@case()
class ParameterHook(Base):
    def __init__(self):
        super().__init__()
        self.a.weight.register_hook(lambda gradient: gradient * 0.1)


@case()
class ModuleHook(Base):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 4)
        self.a.register_full_backward_hook(lambda module, inputs, outputs: tuple(2 * x for x in inputs))

    def forward(self, x):
        return super().forward(self.c(x))


@case()
class ZeroBehindDetach(nn.Module):
    """The cut shows only where b is not zero, as it is at the start."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        nn.init.zeros_(self.b.weight)
        nn.init.zeros_(self.b.bias)

    def forward(self, x):
        h = self.a(x)
        return x + self.b(h.detach()) + self.b(h)


@case()
class CheckpointWithoutGradient(Base):
    def forward(self, x):
        return self.b(checkpoint(lambda y: self.a(y).relu(), x, use_reentrant=True))


# Gradients that only look cut.

@case()
class Harmless(Base):
    def forward(self, x):
        with torch.no_grad():
            h = x.detach().sin()
        return super().forward(h.data)


@case()
class Honest(Base):
    def between(self, h):
        return Exponential.apply(h)


@case()
class Checkpoint(Base):
    def forward(self, x):
        return self.b(checkpoint(lambda y: self.a(y).relu(), x, use_reentrant=False))


@case(exporter="dynamo")
class OldCheckpoint(Base):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 4)

    def forward(self, x):
        return self.b(checkpoint(lambda y: self.a(y).relu(), self.c(x), use_reentrant=True))


# State that changes.

@case()
class Spectral(Base):
    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.spectral_norm(self.a)


@case()
class WeightNorm(Base):
    def __init__(self):
        super().__init__()
        self.a = nn.utils.parametrizations.weight_norm(self.a)


@case()
class MovingAverage(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))

    def between(self, h):
        with torch.no_grad():
            self.mean.mul_(0.9).add_(h.mean(0), alpha=0.1)
        return h - self.mean


@case()
class ClampedWeight(Base):
    def forward(self, x):
        with torch.no_grad():
            self.a.weight.clamp_(-0.1, 0.1)
        return super().forward(x)


@case()
class Noise(Base):
    def between(self, h):
        return h + 0.1 * torch.randn_like(h)


@case()
class SharedMemory(Base):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 6)
        self.c.weight = nn.Parameter(self.a.weight.data)

    def forward(self, x):
        return self.b(self.a(x) + self.c(x))


# Tables.

@case(tokens)
class Padded(TokenBase):
    def __init__(self):
        super().__init__(padding_idx=-1)


@case(tokens)
class TiedPadded(TokenBase):
    def __init__(self):
        super().__init__(padding_idx=0)
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(3))
        self.out = nn.Linear(8, 10, bias=False)
        self.out.weight = self.e.weight
        self.register_buffer("table", torch.arange(8.0))
        self.plain = torch.full((8,), 0.3)

    def forward(self, t):
        h = self.e(t) + self.table + self.plain + torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8])
        for norm in self.norms:
            h = norm(h)
        return self.out(h)


@case(tokens, exporter="dynamo")
class TiedPaddedDynamo(TiedPadded):
    pass


@case(tokens)
class PaddedAndNot(TokenBase):
    def __init__(self):
        super().__init__(padding_idx=0)

    def forward(self, t):
        return self.h(self.e(t) + F.embedding(t, self.e.weight))


@case(tokens)
class PaddedAndIndexed(TokenBase):
    def __init__(self):
        super().__init__(padding_idx=0)

    def forward(self, t):
        return self.h(self.e(t) + self.e.weight[t])


@case(tokens)
class PaddedTwice(TokenBase):
    def __init__(self):
        super().__init__(padding_idx=0)
        self.f = nn.Embedding(10, 8, padding_idx=2)
        self.f.weight = self.e.weight

    def forward(self, t):
        return self.h(self.e(t) + self.f(t))


@case(tokens)
class MaxNorm(TokenBase):
    def __init__(self):
        super().__init__(max_norm=1.0)


@case(tokens)
class ByFrequency(TokenBase):
    def __init__(self):
        super().__init__(scale_grad_by_freq=True)


@case(tokens)
class Sparse(TokenBase):
    def __init__(self):
        super().__init__(sparse=True)


@case(tokens)
class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.h = nn.EmbeddingBag(10, 8, mode="sum", padding_idx=1), nn.Linear(8, 10)

    def forward(self, t):
        return self.h(self.e(t))


# Dropout.

@case(sequences)
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.m, self.drop = nn.MultiheadAttention(8, 2, dropout=0.2, batch_first=True), nn.Dropout(0.1)

    def forward(self, x):
        return self.drop(self.drop(self.m(x, x, x, need_weights=False)[0]))


@case(sequences, keep_dropout=True)
class KeptAttention(Attention):
    pass


@case(sequences, keep_dropout=True, exporter="dynamo")
class KeptAttentionDynamo(Attention):
    pass


@case()
class DropoutInCode(Base):
    def between(self, h):
        return F.dropout(h, 0.25)


@case(images, keep_dropout=True)
class KeptDropout2d(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.drop = nn.Conv2d(4, 4, 3), nn.Dropout2d(0.1)

    def forward(self, x):
        return self.drop(self.c(x))


# Batch norm.

@case()
class BatchNorm(Base):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.BatchNorm1d(6), nn.BatchNorm1d(4)
        self.first.eval()

    def forward(self, x):
        return self.second(self.b(self.first(self.a(x))))


@case(exporter="dynamo")
class BatchNormDynamo(BatchNorm):
    pass


# Arguments that exporters drop.

@case(classified, exporter="dynamo")
class Smoothing(Base):
    def forward(self, x, y):
        return F.cross_entropy(super().forward(x), y, label_smoothing=0.1)


@case(classified, exporter="torchscript")
class SmoothingOfWeighted(Base):
    """Differs so little from what the exporters write by themselves that a comparison may not see it."""
    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss(torch.tensor([1.0, 2.0, 0.5, 1.0]), label_smoothing=0.1)

    def forward(self, x, y):
        return self.loss(super().forward(x), y)


@case(classified, exporter="dynamo")
class Probabilities(Base):
    def forward(self, x, y):
        return F.cross_entropy(super().forward(x), F.one_hot(y, 4) * 0.7 + 0.075, label_smoothing=0.1)


def probable():
    return torch.randn(3, 4), torch.rand(3, 4)


@case(probable)
class ProbableTargets(Base):
    """Exporters write an op whose targets are classes."""

    def forward(self, x, y):
        return F.cross_entropy(super().forward(x), y, weight=torch.tensor([0.5, 1.0, 2.0, 1.5]), label_smoothing=0.1)


@case(probable, exporter="dynamo")
class ProbableTargetsDynamo(ProbableTargets):
    pass


@case(probable)
class WideLogits(Base):
    """Log(Sigmoid(x)), which exporters write, is -inf where the loss is 1000."""

    def forward(self, x, y):
        return F.binary_cross_entropy_with_logits(super().forward(x) * 1000, y, pos_weight=torch.tensor([0.5, 1.0, 2.0, 1.5]))


@case(probable)
class WideSigmoid(Base):
    def forward(self, x, y):
        return F.logsigmoid(super().forward(x) * 1000) * y


@case(lambda: (torch.randn(3, 4), torch.randint(0, 4, (3, 2))))
class FewIndices(Base):
    """onnx's evaluator takes no fewer indices than there are elements."""

    def forward(self, x, y):
        return super().forward(x).unsqueeze(2).expand(-1, -1, 5).gather(1, y.unsqueeze(2))


@case(images)
class Divisor(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv2d(4, 4, 3)

    def forward(self, x):
        return F.avg_pool2d(self.c(x), 2, divisor_override=3)


@case(images, evaluate=False)
class UncheckedDivisor(Divisor):
    pass


@case()
class BakedNumber(Base):
    def forward(self, x):
        with torch.no_grad():
            scale = self.a.weight.detach().numpy().max()
        return super().forward(x) * scale


@case()
class BakedSize(Base):
    def between(self, h):
        return h / float(h.shape[0])


# What the record says.

@case()
class Unused(Base):
    def __init__(self):
        super().__init__()
        self.extra, self.cold = nn.Linear(2, 2), nn.Parameter(torch.ones(3), requires_grad=False)
        self.a.bias.requires_grad_(False)


@case()
class Named(Base):
    def forward(self, x):
        h = self.a(x)
        return {"hidden": h, "logits": self.b(h), "probe": h.detach()}


@case()
class Auto(Base):
    pass


@case(tokens)
class PaddedTableRead(nn.Module):
    """A table with a padding row whose rows are also selected: their gradient stays."""

    def __init__(self):
        super().__init__()
        self.e = nn.Embedding(10, 8, padding_idx=2)

    def forward(self, t):
        return self.e(t) + torch.select(self.e.weight, 0, 2)


@case()
class CopiedByTensor(Base):
    def between(self, h):
        return h * torch.tensor(self.a.bias)


@case()
class RequiresGradChanges(Base):
    def between(self, h):
        self.b.weight.requires_grad_(False)
        h = F.linear(F.linear(h, self.b.weight), self.b.weight.t())
        self.b.weight.requires_grad_(True)
        return h


@case()
class HookAfterAccumulation(Base):
    def __init__(self):
        super().__init__()
        self.a.bias.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.1))


@case()
class AttributeOfAParameter(Base):
    def __init__(self):
        super().__init__()
        self.copy = self.a.bias.data

    def between(self, h):
        return h * self.copy


def main():
    torch.set_num_threads(1)
    folder, chosen, results = sys.argv[1], sys.argv[2:] or list(CASES), {}
    for name in chosen:
        torch.manual_seed(0)
        cls, inputs, options = CASES[name]
        model, example, said = cls(), inputs(), []
        before = {key: value.clone() for key, value in model.state_dict().items()}
        names = ["x", "y"][:len(example)]
        result = results[name] = {"said": said}
        try:
            result["record"] = torch_export.export(model, example, names, os.path.join(folder, name + ".onnx"), say=said.append,
                                                   **options)
        except torch_export.ExportError as why:
            result["error"] = str(why)
        after = model.state_dict()
        result["restored"] = before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
