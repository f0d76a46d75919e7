"""Tables of embeddings, and what PyTorch does beyond a lookup."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .base import TokenBase, case, tokens


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
