"""Arguments that exporters drop, and forms that they write badly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

from .base import Base, case, images, classified


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
