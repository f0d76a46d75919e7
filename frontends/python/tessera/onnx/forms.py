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


def binary_cross_entropy(real):
    """F.binary_cross_entropy, whose logarithms are at least -100: exporters leave that out, and a probability of exactly 0 or
    1 is no number. There the gradient is 0 here and very large in PyTorch; a sigmoid before it makes both 0."""
    def logarithm(x):
        some = x > 0
        return torch.where(some, torch.log(torch.where(some, x, torch.ones_like(x))), torch.full_like(x, -100.0))

    def written(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
        if size_average is not None or reduce is not None:
            return real(input, target, weight, size_average, reduce, reduction)
        loss = (target - 1) * logarithm(1 - input) - target * logarithm(input)
        loss = loss if weight is None else loss * weight
        return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss

    return written


def embedding_bag(real):
    """F.embedding_bag of bags of one size, which exporters write as a loop over the bags."""
    def written(input, weight, offsets=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, mode="mean", sparse=False,
                per_sample_weights=None, include_last_offset=False, padding_idx=None):
        if input.dim() != 2 or offsets is not None or padding_idx is not None or max_norm is not None:
            return real(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights,
                        include_last_offset, padding_idx)
        rows = F.embedding(input, weight)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(-1)
        return rows.sum(1) if mode == "sum" else rows.mean(1) if mode == "mean" else rows.max(1).values

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


def extreme(real):
    """amax or amin. Over one dimension exporters write what they write for max(dim) and min(dim), whose gradient goes to the
    first of equal elements, while that of these is shared; over two, of which one has size 1, there is only one meaning."""
    def written(input, dim=(), keepdim=False, *, out=None):
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dims) != 1 or input.dim() == 0 or out is not None:
            return real(input, dim, keepdim, **({} if out is None else {"out": out}))
        result = real(input.unsqueeze(-1), (dims[0] % input.dim(), input.dim()), keepdim)
        return result.squeeze(-1) if keepdim else result

    return written


def extremes(input, *, dim=None, keepdim=False, out=None):
    """aminmax, as amin and amax."""
    dims = () if dim is None else (dim,)
    return torch.return_types.aminmax((torch.amin(input, dims, keepdim), torch.amax(input, dims, keepdim)))


def cdist(x1, x2, p=2.0, compute_mode=None):
    """torch.cdist, which exporters write for p = 2 as a root of a matrix product: its gradient at equal points is no number, where
    PyTorch's is 0, as that of a norm. Other p they write wrongly, or not at all."""
    return torch.linalg.vector_norm(x1.unsqueeze(-2) - x2.unsqueeze(-3), ord=p, dim=-1)


@contextlib.contextmanager
def written_out():
    """Within the context those functions are written out."""
    reductions = [(holder, name, extreme(getattr(torch, name))) for holder in (torch, torch.Tensor) for name in ("amax", "amin")]
    reductions += [(holder, "aminmax", extremes) for holder in (torch, torch.Tensor)]
    with cuts.replaced([*reductions, (torch, "cdist", cdist), (F, "cross_entropy", cross_entropy(F.cross_entropy)), (F, "logsigmoid", logsigmoid),
                        (F, "binary_cross_entropy", binary_cross_entropy(F.binary_cross_entropy)),
                        (F, "embedding_bag", embedding_bag(F.embedding_bag)),
                        (F, "binary_cross_entropy_with_logits",
                         binary_cross_entropy_with_logits(F.binary_cross_entropy_with_logits))]):
        yield
