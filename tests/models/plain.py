"""Plain modules with what exporters tend to lose: batch norms, padding, tied weights, numbers as parameters,
buffers."""

import torch
import torch.nn.functional as F
from torch import nn


class Cnn(nn.Module):
    """Convolutions with batch normalization in training form; equal norms, a frozen layer, dropout."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(4), nn.BatchNorm2d(6)
        self.drop, self.head = nn.Dropout(0.1), nn.Linear(6, 5)
        self.first.bias.requires_grad_(False)

    def forward(self, x):
        h = F.relu(self.bn1(self.first(x)))
        h = F.relu(self.bn2(self.second(h)))
        return self.head(self.drop(h.mean((2, 3))))


class PaddedTied(nn.Module):
    """An embedding whose padding row takes no gradient from the lookup, but one from the head that is tied to it."""

    def __init__(self, vocabulary=32, width=16):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width, padding_idx=3)
        self.positions = nn.Embedding(8, width)
        self.norm, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        h = self.embed(tokens) + self.positions(torch.arange(tokens.shape[1]))
        return self.head(self.second(h + F.gelu(self.mix(self.norm(h)))))


class Scalars(nn.Module):
    """Parameters of rank 0, buffers that are and are not saved and look like weights, frozen and unused parameters."""

    def __init__(self, width=8):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.tensor(1.0)), nn.Parameter(torch.tensor(0.0))
        self.first, self.second, self.frozen = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.frozen.requires_grad_(False)
        self.unused = nn.Linear(width, width)
        self.register_buffer("mean", torch.linspace(-1, 1, width))
        self.register_buffer("mask", torch.tril(torch.ones(width, width)), persistent=False)
        self.mixing = nn.Parameter(torch.tril(torch.ones(width, width)))  # looks like a mask and is a weight
        # looks like rotary frequencies and is a weight
        self.decay = nn.Parameter(0.5 ** torch.arange(width).float())

    def forward(self, x):
        h = (x - self.mean) * self.scale + self.shift
        h = torch.tanh(self.first(h)) @ (self.mixing * self.mask) * self.decay
        return self.second(h + self.frozen(x))


MODELS = {  # name -> (module, example inputs, names, loss)
    "cnn": lambda: (Cnn(), (torch.randn(4, 1, 6, 6),), ["x"], "cross-entropy"),
    "padded-tied": lambda: (PaddedTied(), (torch.randint(4, 32, (4, 8)),), ["tokens"], "cross-entropy"),
    "scalars": lambda: (Scalars(), (torch.randn(4, 8),), ["x"], "mse"),
}
