"""Rows: losses and distances."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten
WEIGHTS = [0.5, 1.0, 2.0, 0.25, 1.5]


def pairs(name, *arguments, kinds=("normal", "normal"), case="", trained=True, options=None):
    """trained: whether the second one has gradients in PyTorch."""
    overload = getattr(aten, name).default
    return row(name + case, f"aten.{name}.default",
               lambda x, y: overload(x, y if trained else y.detach(), *arguments, **(options or {})),
               f(3, 5, kind=kinds[0]), f(3, 5, kind=kinds[1]))


GRID = ("grid", "grid")
NUMBERS = [
    pairs("mse_loss"), pairs("mse_loss", 2, case="_sum"), pairs("mse_loss", 0, case="_none"),
    pairs("l1_loss", kinds=GRID), pairs("smooth_l1_loss", kinds=GRID), pairs("smooth_l1_loss", 0, 0.5, case="_none"),
    pairs("smooth_l1_loss", 1, 0.0, kinds=GRID, case="_l1"), pairs("huber_loss", kinds=GRID), pairs("huber_loss", 2, 0.7, case="_sum"),
    pairs("binary_cross_entropy", kinds=("unit", "unit")), pairs("binary_cross_entropy_with_logits", kinds=("normal", "unit")),
    row("binary_weight", "aten.binary_cross_entropy.default", lambda x, t, w: aten.binary_cross_entropy.default(x, t, w),
        f(3, 5, kind="unit"), f(3, 5, kind="unit"), k(WEIGHTS)),
    row("binary_saturated", "aten.binary_cross_entropy.default",
        lambda x, t: aten.binary_cross_entropy.default(x.clamp(0, 1), t.detach().clamp(0, 1)), f(3, 5, kind="grid"),
        f(3, 5, kind="unit")),
    row("binary_logits_weights", "aten.binary_cross_entropy_with_logits.default",
        lambda x, t, w: aten.binary_cross_entropy_with_logits.default(x * 20, t, w, w * 2, 2), f(3, 5), f(3, 5, kind="unit"),
        k(WEIGHTS)),
    pairs("kl_div", kinds=("normal", "positive")), pairs("kl_div", 2, case="_log", options={"log_target": True}),
    pairs("soft_margin_loss", trained=False), pairs("hinge_embedding_loss", 1.0, kinds=GRID), pairs("poisson_nll_loss", True, False, 1e-8, 1),
    pairs("poisson_nll_loss", False, True, 1e-8, 1, kinds=("positive", "positive"), case="_full"),
    row("margin_ranking_loss", "aten.margin_ranking_loss.default",
        lambda x, y, t: aten.margin_ranking_loss.default(x, y, t.detach(), 1.0), *[f(7, kind="grid")] * 3),
]

VECTORS = [
    pairs("cosine_similarity"), pairs("cosine_similarity", 0, kinds=GRID, case="_zeros"),
    pairs("pairwise_distance"), pairs("pairwise_distance", 1.0, 0.0, kinds=GRID, case="_1"),
    pairs("pairwise_distance", 2.0, 0.0, True, kinds=GRID, case="_zeros"), pairs("pairwise_distance", 3.0, case="_3"),
    pairs("pairwise_distance", float("inf"), case="_inf"), pairs("cdist"), pairs("cdist", 1.0, case="_1"),
    row("pdist", "aten.pdist.default", lambda x: aten.pdist.default(x), f(4, 5)),
    row("cosine_embedding_loss", "aten.cosine_embedding_loss.default",
        lambda x, y, t: aten.cosine_embedding_loss.default(x, y, t.detach().sign(), 0.1), f(4, 5), f(4, 5), f(4)),
    row("triplet_margin_loss", "aten.triplet_margin_loss.default", lambda x, y, z: aten.triplet_margin_loss.default(x, y, z),
        *[f(4, 5)] * 3),
    row("triplet_swap", "aten.triplet_margin_loss.default",
        lambda x, y, z: aten.triplet_margin_loss.default(x, y, z, 2.0, 1.0, 1e-6, True, 0), *[f(4, 5)] * 3),
]


def classes(name, *arguments, weight=False, case="", x=(4, 5), t=(4,), low=0, scores="normal"):
    overload = getattr(aten, name).default

    def function(x, t, w=None):
        made = overload(x, t, w, *arguments)
        return made if torch.is_tensor(made) else made[0]
    return row(name + case, f"aten.{name}.default", function, f(*x, kind=scores), i(*t, low=low),
               *([k(WEIGHTS)] if weight else []))


CLASSES = [
    classes("cross_entropy_loss"), classes("cross_entropy_loss", 1, -1, weight=True, low=-1, case="_weights"),
    classes("cross_entropy_loss", 2, -1, 0.1, weight=True, low=-1, case="_smooth_weights"),
    classes("cross_entropy_loss", 1, -1, 0.2, weight=True, low=-1, x=(4, 5, 3), t=(4, 3), case="_positions"),
    classes("cross_entropy_loss", 0, -1, 0.1, low=-1, case="_none"),
    row("cross_entropy_soft", "aten.cross_entropy_loss.default",
        lambda x, t, w: aten.cross_entropy_loss.default(x, torch.softmax(t, 1), w, 1, -100, 0.1), f(4, 5, 3), f(4, 5, 3),
        k(WEIGHTS)),
    classes("nll_loss_nd"), classes("nll_loss_nd", 1, -1, weight=True, low=-1, case="_weights"), classes("nll_loss", 2),
    classes("nll_loss2d", 0, x=(4, 5, 2, 3), t=(4, 2, 3)), classes("nll_loss_forward", 1, -100, weight=True),
    row("multi_margin_loss", "aten.multi_margin_loss.default",
        lambda x, t, w: aten.multi_margin_loss.default(x, t, 2, 0.7, w), f(4, 5, kind="grid"), i(4), k(WEIGHTS)),
    row("multilabel_margin_loss", "aten.multilabel_margin_loss.default",
        lambda x, t: aten.multilabel_margin_loss.default(x, t), f(4, 5), i(4, 5, low=-1)),
]

ROWS = NUMBERS + VECTORS + CLASSES
