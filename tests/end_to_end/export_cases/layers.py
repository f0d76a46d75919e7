"""Dropout, batch norm, choices among equal numbers."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .base import Base, case, images, sequences


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


# Choices among equal numbers, which PyTorch makes in another order than ONNX.

@case()
class EqualNumbers(Base):
    def between(self, h):
        return torch.gather(h, 1, (h > 0).float().topk(6, 1).indices)
