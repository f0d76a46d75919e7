"""Losses: every one of torch.nn with its reductions, weights, targets of both kinds, and what is ignored."""

import torch
import torch.nn.functional as F
from torch import nn

from .rows import Chain, With, d, f, i, row
SATURATED = torch.tensor([0.0, 300.0, 0.0, -300.0, 0.0])  # logits whose sigmoid is exactly 0 or 1 in any arithmetic


def loss(name, covers, make, *inputs, **more):
    """A row whose module returns its loss."""
    return row(name, covers, make, *inputs, loss="output", **more)


def wide(module, factor):
    """The loss of inputs that many times as large."""
    return lambda: lambda x, t: module(x * factor, t)


def weights(count):
    return torch.linspace(0.5, 2.0, count)


def dpo(chosen, rejected):
    """Direct preference optimization, https://arxiv.org/abs/2305.18290 equation 7, without a reference model."""
    return -F.logsigmoid(6.0 * (chosen.sum(-1) - rejected.sum(-1))).mean()


def info_nce(a, b):
    """Contrastive loss of pairs within each sample, https://arxiv.org/abs/1807.03748."""
    scores = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).transpose(1, 2) / 0.2
    target = torch.arange(a.shape[1]).expand(a.shape[0], -1)
    return F.cross_entropy(scores.flatten(0, 1), target.flatten())


def focal(x, t):
    """Focal loss, https://arxiv.org/abs/1708.02002."""
    p = torch.sigmoid(x)
    return (F.binary_cross_entropy_with_logits(x, t, reduction="none") * (p * (1 - t) + (1 - p) * t) ** 2).mean()


def z_loss(x):
    """Mean squared log-normalizer, https://arxiv.org/abs/2204.02311."""
    return 1e-1 * torch.logsumexp(x, -1).square().mean()


ROWS = [
    loss("mse-loss", "nn.MSELoss F.mse_loss", lambda: nn.MSELoss(), f(3, 5), d(3, 5)),
    loss("mse-loss-sum", "nn.MSELoss F.mse_loss", lambda: nn.MSELoss(reduction="sum"), f(3, 5), d(3, 5)),
    loss("mse-loss-none", "F.mse_loss", lambda: lambda x, t: F.mse_loss(x, t, reduction="none").mean(), f(3, 5), d(3, 5)),
    loss("l1-loss", "nn.L1Loss F.l1_loss", lambda: nn.L1Loss(), f(3, 5), d(3, 5)),
    loss("l1-loss-at-0", "nn.L1Loss F.l1_loss", lambda: nn.L1Loss(), f(3, 5, kind="grid"), d(3, 5, kind="grid"),
         recorded=True),
    loss("smooth-l1", "nn.SmoothL1Loss F.smooth_l1_loss", lambda: nn.SmoothL1Loss(beta=0.5), f(3, 5), d(3, 5),
         recorded=True),
    loss("smooth-l1-at-0", "nn.SmoothL1Loss", lambda: nn.SmoothL1Loss(), f(3, 5, kind="grid"), d(3, 5, kind="grid")),
    loss("huber", "nn.HuberLoss F.huber_loss", lambda: nn.HuberLoss(delta=0.7), f(3, 5), d(3, 5)),
    loss("huber-at-0", "nn.HuberLoss", lambda: nn.HuberLoss(), f(3, 5, kind="grid"), d(3, 5, kind="grid")),
    loss("bce", "nn.BCELoss F.binary_cross_entropy", lambda: lambda x, t: F.binary_cross_entropy(torch.sigmoid(x), t),
         f(3, 5), d(3, 5, kind="unit"), recorded=True),
    loss("bce-module", "nn.BCELoss", lambda: With(lambda x, t, s: nn.BCELoss()(torch.sigmoid(x * s), t), s=(5,)), f(3, 5),
         d(3, 5, kind="bits")),
    loss("bce-saturated", "nn.BCELoss",
         lambda: With(lambda x, t, s: nn.BCELoss()(torch.sigmoid(x * s + SATURATED), t), s=(5,)), f(3, 5),
         d(3, 5, kind="bits")),
    loss("bce-logits", "nn.BCEWithLogitsLoss F.binary_cross_entropy_with_logits", lambda: nn.BCEWithLogitsLoss(), f(3, 5),
         d(3, 5, kind="unit"), recorded=True),
    loss("bce-logits-wide", "nn.BCEWithLogitsLoss", wide(nn.BCEWithLogitsLoss(), 30), f(3, 5), d(3, 5, kind="bits"),
         recorded=True),
    loss("bce-logits-weights", "nn.BCEWithLogitsLoss",
         lambda: nn.BCEWithLogitsLoss(weight=weights(5), pos_weight=weights(5)), f(3, 5), d(3, 5, kind="bits")),
    loss("bce-logits-sum", "nn.BCEWithLogitsLoss", lambda: nn.BCEWithLogitsLoss(reduction="sum"), f(3, 5),
         d(3, 5, kind="bits")),
    loss("soft-margin", "nn.SoftMarginLoss F.soft_margin_loss", lambda: nn.SoftMarginLoss(), f(3, 5),
         d(3, 5, kind="signs")),
    loss("soft-margin-wide", "nn.SoftMarginLoss", wide(nn.SoftMarginLoss(), 20), f(3, 5), d(3, 5, kind="signs")),
    loss("hinge-embedding", "nn.HingeEmbeddingLoss F.hinge_embedding_loss", lambda: nn.HingeEmbeddingLoss(0.8), f(3, 5),
         d(3, 5, kind="signs"), recorded=True),
    loss("hinge-embedding-at-0", "nn.HingeEmbeddingLoss", lambda: nn.HingeEmbeddingLoss(1.0), f(3, 5, kind="grid"),
         d(3, 5, kind="signs")),
    loss("margin-ranking", "nn.MarginRankingLoss F.margin_ranking_loss", lambda: nn.MarginRankingLoss(0.3), f(5), f(5),
         d(5, kind="signs"), recorded=True),
    loss("margin-ranking-at-0", "nn.MarginRankingLoss", lambda: nn.MarginRankingLoss(0.0), f(5, kind="grid"),
         f(5, kind="grid"), d(5, kind="signs")),
    loss("cosine-embedding", "nn.CosineEmbeddingLoss F.cosine_embedding_loss",
         lambda: lambda a, b, t: F.cosine_embedding_loss(a, b, t.reshape(-1), margin=-0.2), f(5), f(5), d(1, kind="signs"),
         recorded=True),
    loss("cosine-embedding-module", "nn.CosineEmbeddingLoss",
         lambda: lambda a, b, t: nn.CosineEmbeddingLoss(0.1)(a, b, t.reshape(-1)), f(7), f(7), d(1, kind="signs")),
    loss("kl-div", "nn.KLDivLoss F.kl_div", lambda: lambda x, t: F.kl_div(F.log_softmax(x, -1), t, reduction="batchmean"),
         f(3, 5), d(3, 5, kind="unit"), recorded=True),
    loss("kl-div-mean", "nn.KLDivLoss", lambda: lambda x, t: nn.KLDivLoss()(F.log_softmax(x, -1), t), f(3, 5),
         d(3, 5, kind="unit")),
    loss("kl-div-log-target", "nn.KLDivLoss F.kl_div",
         lambda: lambda x, t: nn.KLDivLoss(reduction="mean", log_target=True)(F.log_softmax(x, -1), F.log_softmax(t, -1)),
         f(3, 5), f(3, 5)),
    loss("kl-div-zeros", "F.kl_div", lambda: lambda x, t: F.kl_div(F.log_softmax(x, -1), t), f(3, 5),
         d(3, 5, kind="bits")),
    loss("poisson-nll", "nn.PoissonNLLLoss F.poisson_nll_loss", lambda: nn.PoissonNLLLoss(), f(3, 5),
         d(3, 5, kind="positive"), recorded=True),
    loss("poisson-nll-full", "nn.PoissonNLLLoss", lambda: nn.PoissonNLLLoss(log_input=False, full=True),
         f(3, 5, kind="positive"), d(3, 5, kind="positive")),
    loss("gaussian-nll", "nn.GaussianNLLLoss F.gaussian_nll_loss", lambda: nn.GaussianNLLLoss(), f(3, 5), d(3, 5),
         f(3, 5, kind="positive"), recorded=True),
    loss("gaussian-nll-one-variance", "nn.GaussianNLLLoss", lambda: nn.GaussianNLLLoss(full=True), f(3, 5), d(3, 5),
         f(3, 1, kind="positive")),
    loss("triplet", "nn.TripletMarginLoss F.triplet_margin_loss", lambda: nn.TripletMarginLoss(2.0), f(5), f(5), f(5),
         recorded=True),
    loss("triplet-p1", "nn.TripletMarginLoss", lambda: nn.TripletMarginLoss(1.0, p=1), f(5), f(5), f(5)),
    loss("triplet-swap", "nn.TripletMarginLoss", lambda: nn.TripletMarginLoss(1.0, swap=True), f(5), f(5), f(5)),
    loss("triplet-distance", "nn.TripletMarginWithDistanceLoss F.triplet_margin_with_distance_loss",
         lambda: nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: 1 - F.cosine_similarity(a, b), margin=0.5),
         f(5), f(5), f(5)),
    loss("triplet-distance-default", "nn.TripletMarginWithDistanceLoss",
         lambda: nn.TripletMarginWithDistanceLoss(margin=1.5), f(5), f(5), f(5)),
    loss("multi-margin", "nn.MultiMarginLoss F.multi_margin_loss",
         lambda: lambda x, t: nn.MultiMarginLoss(margin=0.7)(x, t.reshape(-1)), f(5), i(1, high=5)),
    loss("multi-label-margin", "nn.MultiLabelMarginLoss F.multilabel_margin_loss", lambda: nn.MultiLabelMarginLoss(), f(5),
         i(5, high=5)),
    loss("multi-label-soft-margin", "nn.MultiLabelSoftMarginLoss F.multilabel_soft_margin_loss",
         lambda: nn.MultiLabelSoftMarginLoss(), f(5), d(5, kind="bits")),
    loss("ctc", "nn.CTCLoss F.ctc_loss",
         lambda: lambda x, t: nn.CTCLoss()(
             x.transpose(0, 1).log_softmax(-1), t, (7,) * x.shape[0], (3,) * x.shape[0]), f(7, 5),
         i(3, high=5, low=1)),
    loss("adaptive-log-softmax", "nn.AdaptiveLogSoftmaxWithLoss",
         lambda: Adaptive(), f(6), i(1, high=10)),
    loss("linear-cross-entropy", "nn.LinearCrossEntropyLoss F.linear_cross_entropy",
         lambda: Fused(), f(6), i(1, high=7)),
    loss("dpo", "F.logsigmoid", lambda: dpo, f(5), f(5), recorded=True),
    loss("info-nce", "F.normalize F.cross_entropy", lambda: info_nce, f(3, 6), f(3, 6), recorded=True),
    loss("focal", "F.binary_cross_entropy_with_logits", lambda: focal, f(3, 5), d(3, 5, kind="bits")),
    loss("two-losses", "nn.MSELoss nn.L1Loss", lambda: lambda x, t: nn.MSELoss()(x, t) + 0.3 * nn.L1Loss()(x.tanh(), t),
         f(3, 5), d(3, 5), recorded=True),
    loss("loss-and-penalty", "nn.MSELoss", lambda: With(
        lambda x, t, w: F.mse_loss(F.linear(x, w), t) + 0.01 * w.square().sum(), w=(4, 5)), f(3, 5), d(3, 4)),
    loss("cross-entropy-and-z", "F.cross_entropy",
         lambda: lambda x, t: F.cross_entropy(x, t.reshape(-1)) + z_loss(x), f(5), i(1, high=5)),
]


class Adaptive(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 6])

    def forward(self, x, t):
        return self.inner(x, t.reshape(-1)).loss


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LinearCrossEntropyLoss(6, 7)

    def forward(self, x, t):
        return self.inner(x, t.reshape(-1))


def entropy(name, *shapes, high=5, low=0, **options):
    """Cross-entropy in the model, with options of nn.CrossEntropyLoss."""
    x, t = shapes
    return loss(name, "nn.CrossEntropyLoss F.cross_entropy", lambda: lambda x, t: nn.CrossEntropyLoss(**options)(
        x, t.reshape(-1) if x.dim() == 2 else t), f(*x), i(*t, high=high, low=low), recorded=name == "cross-entropy")


ROWS += [
    entropy("cross-entropy", (5,), (1,)),
    entropy("cross-entropy-positions", (5, 3), (3,)),
    entropy("cross-entropy-image", (5, 3, 2), (3, 2)),
    entropy("cross-entropy-sum", (5,), (1,), reduction="sum"),
    entropy("cross-entropy-weights", (5,), (1,), weight=weights(5)),
    entropy("cross-entropy-smoothing", (5,), (1,), label_smoothing=0.1),
    entropy("cross-entropy-ignore", (5, 7), (7,), low=-1, ignore_index=-1),
    entropy("cross-entropy-ignore-weights", (5, 7), (7,), low=-1, ignore_index=-1, weight=weights(5)),
    loss("cross-entropy-probabilities", "nn.CrossEntropyLoss F.cross_entropy",
         lambda: lambda x, t: F.cross_entropy(x, F.softmax(t, -1)), f(5), d(5), recorded=True),
    loss("cross-entropy-trained-target", "F.cross_entropy", lambda: lambda x, t: F.cross_entropy(x, F.softmax(t, -1)),
         f(5), f(5)),
    loss("cross-entropy-shifted", "F.cross_entropy", lambda: Chain(Shifted()), i(6, high=11)),
    loss("nll", "nn.NLLLoss F.nll_loss", lambda: lambda x, t: nn.NLLLoss()(F.log_softmax(x, -1), t.reshape(-1)), f(5),
         i(1, high=5), recorded=True),
    loss("nll-weights", "nn.NLLLoss F.nll_loss",
         lambda: lambda x, t: nn.NLLLoss(weights(5))(F.log_softmax(x, -1), t.reshape(-1)), f(5), i(1, high=5)),
    loss("nll-2d", "nn.NLLLoss nn.NLLLoss2d", lambda: lambda x, t: nn.NLLLoss()(F.log_softmax(x, 1), t), f(5, 2, 3),
         i(2, 3, high=5)),
    row("outside-cross-entropy", "nn.CrossEntropyLoss", lambda: nn.Linear(6, 7), f(3, 6), loss="cross-entropy",
        recorded=True),
    row("outside-mse", "nn.MSELoss", lambda: nn.Linear(6, 7), f(3, 6)),
]


class Shifted(nn.Module):
    """A language model that shifts its own labels."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 6), nn.Linear(6, 11)

    def forward(self, tokens):
        logits = self.head(self.embed(tokens))
        return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
