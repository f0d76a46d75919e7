"""Modules that draw random numbers, of which make_programs.py writes programs."""

import torch
import torch.nn.functional as F
from torch import nn


class Drawn(nn.Module):
    """Random numbers of each distribution: the gradient of the parameter with its name is what was drawn. The rows of `table`
    that a batch looks up have those of its samples."""
    COUNT = 1 << 14

    def __init__(self):
        super().__init__()
        names = ["uniform", "again", "normal", "integers", "choices", "exponential", "tries", "cauchy", "bounded", "narrow", "bfloat",
                 "kinds", "dropped"]
        for name in names:
            self.register_parameter(name, nn.Parameter(torch.zeros(self.COUNT)))
        self.order, self.pair = nn.Parameter(torch.zeros(256)), nn.Parameter(torch.zeros(self.COUNT // 2))
        self.table = nn.Parameter(torch.zeros(64, 256))

    def forward(self, index):
        count, weights = self.COUNT, torch.arange(4.0) ** 2
        loss = (self.table[index] * torch.randn(index.shape[0], 256)).sum()
        drawn = [(self.uniform, torch.rand(count)), (self.again, torch.rand(count)), (self.normal, torch.randn(count)),
                 (self.integers, torch.randint(-3, 7, (count,))), (self.choices, torch.empty(count).bernoulli_(0.3)),
                 (self.exponential, torch.empty(count).exponential_(2.0)), (self.tries, torch.empty(count).geometric_(0.25)),
                 (self.cauchy, torch.empty(count).cauchy_()), (self.bounded, torch.empty(count).uniform_(-1.0, 3.0)),
                 (self.narrow, torch.rand(count, dtype=torch.float16)), (self.bfloat, torch.rand(count, dtype=torch.bfloat16)),
                 (self.kinds, torch.multinomial(weights, count, replacement=True)),
                 (self.order, torch.randperm(256)), (self.dropped, F.dropout(torch.ones(count), 0.5, inplace=True)),
                 (self.pair, torch.multinomial(weights[1:].expand(count // 2, 3), 2)[:, 0])]
        for parameter, numbers in drawn:
            loss = loss + (parameter * numbers).mean() * parameter.numel()
        return loss


class Vae(nn.Module):
    """A variational autoencoder: its loss, of numbers that are normal by the encoder's mean and variance."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
        self.decode = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 8))

    def forward(self, x):
        mean, logarithm = self.encode(x).chunk(2, dim=-1)
        z = mean + torch.exp(0.5 * logarithm) * torch.randn_like(logarithm)
        divergence = -0.5 * (1 + logarithm - mean * mean - logarithm.exp()).mean()
        return F.mse_loss(self.decode(z), x) + 0.02 * divergence


class Diffusion(nn.Module):
    """A step of a diffusion model: time steps and noise are random, and the network tells the noise."""

    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(10, 16)
        self.first, self.last = nn.Linear(8, 32), nn.Linear(32, 8)
        self.middle = nn.Linear(16, 32)
        self.register_buffer("kept", torch.linspace(0.95, 0.05, 10))

    def forward(self, x):
        step, noise = torch.randint(0, 10, (x.shape[0],)), torch.randn_like(x)
        kept = self.kept[step].unsqueeze(1)
        mixed = kept.sqrt() * x + (1 - kept).sqrt() * noise
        return F.mse_loss(self.last(F.silu(self.first(mixed) + self.middle(self.time(step)))), noise)


class WithGenerator(nn.Module):
    """A generator that is given."""

    def __init__(self):
        super().__init__()
        self.generator = torch.Generator()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.scale * torch.rand(3, generator=self.generator)
