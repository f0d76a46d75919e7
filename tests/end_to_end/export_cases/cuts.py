"""Gradients that are cut, and some that only look cut."""

import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

from .base import Base, case


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
