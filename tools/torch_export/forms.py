"""Functions of torch that exporters write wrongly, written out while a module is exported."""

import contextlib

import torch
import torch.nn.functional as F

from . import cuts


def cross_entropy(real):
    """F.cross_entropy; with targets that are probabilities, or with label smoothing, by its formula, for which ONNX has no op:
    exporters write SoftmaxCrossEntropyLoss, whose targets are classes, and leave the smoothing out."""
    def written(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean",
                label_smoothing=0.0):
        if size_average is not None or reduce is not None or not (torch.is_floating_point(target) or label_smoothing > 0):
            return real(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
        classes = 1 if input.dim() > 1 else 0
        if not torch.is_floating_point(target):
            return smoothed(input, target, weight, ignore_index, reduction, label_smoothing, classes)
        if label_smoothing > 0:
            target = target * (1 - label_smoothing) + label_smoothing / input.shape[classes]
        terms = target * torch.log_softmax(input, classes)
        if weight is not None:
            terms = terms * weight.reshape([-1] + [1] * (input.dim() - classes - 1))
        loss = -terms.sum(classes)
        return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss

    return written


def logsigmoid(input):
    """F.logsigmoid, which exporters write as Log(Sigmoid(x)): that is -inf from -104 on."""
    return -F.softplus(-input)


def binary_cross_entropy_with_logits(real):
    """F.binary_cross_entropy_with_logits, which exporters write with Log(Sigmoid(x)) and Log(1 - Sigmoid(x)). The formula is
    that of PyTorch's documentation, with log(1 - s(x)) = log s(x) - x."""
    def written(input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None):
        if size_average is not None or reduce is not None:
            return real(input, target, weight, size_average, reduce, reduction, pos_weight)
        positive = 1 if pos_weight is None else 1 + (pos_weight - 1) * target
        loss = (1 - target) * input - positive * logsigmoid(input)
        loss = loss if weight is None else loss * weight
        return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss

    return written


def smoothed(scores, target, weight, ignore_index, reduction, smoothing, classes):
    """(1 - s) times the loss of the target, and s times its mean over the classes; a mean divides by the targets' weights."""
    rows = torch.log_softmax(scores, classes)
    if weight is not None:
        rows = rows * weight.reshape([-1] + [1] * (scores.dim() - classes - 1))
    counts = target != ignore_index
    counted = torch.where(counts, target, torch.zeros_like(target))
    picked = rows.gather(classes, counted.unsqueeze(classes)).squeeze(classes)
    loss = -(1 - smoothing) * picked - smoothing / scores.shape[classes] * rows.sum(classes)
    loss = torch.where(counts, loss, torch.zeros_like(loss))
    if reduction != "mean":
        return loss.sum() if reduction == "sum" else loss
    weights = counts.to(loss.dtype) if weight is None else weight[counted] * counts.to(loss.dtype)
    return loss.sum() / weights.sum()


@contextlib.contextmanager
def written_out():
    """Within the context those functions are written out."""
    with cuts.replaced([(F, "cross_entropy", cross_entropy(F.cross_entropy)), (F, "logsigmoid", logsigmoid),
                        (F, "binary_cross_entropy_with_logits",
                         binary_cross_entropy_with_logits(F.binary_cross_entropy_with_logits))]):
        yield
