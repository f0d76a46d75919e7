"""State that the forward pass changes, random numbers, and parameters in one memory."""

import torch
import torch.nn as nn

from .base import Base, case


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
