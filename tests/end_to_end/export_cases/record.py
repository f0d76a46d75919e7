"""What the record says of a model, and what it cannot say."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .base import Base, case, tokens


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
class ByMode(Base):
    """What it does in training mode alone."""

    def forward(self, x):
        y = self.b(self.a(x))
        return y * 2 if self.training else y


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
