"""Rows: what masks and counts that depend on data name."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten


def scattered(name, function, *inputs, **more):
    return row("masked_scatter" + name, "aten.masked_scatter.default", function, *inputs, **more)


def two_of(x):
    """Two of a vector's elements are true: which ones depends on data."""
    return aten.argsort.stable(x, stable=True) < 2


def put(name, function, *inputs, **more):
    return row("index_put" + name, "aten.index_put.default", function, *inputs, **more)


def masked(name, overloads, function, *inputs, **more):
    """What reads x[mask] or masked_select, of x and a mask from data."""
    return row("masked_" + name, " ".join(f"aten.{overload}" for overload in overloads.split()), function, *inputs, **more)


def of_two(loss, x, mask, y, **more):
    return getattr(torch.nn.functional, loss)(x[mask], y[mask], **more)


def of_logarithms(x, y):
    """Of numbers that the mask leaves out, it is none."""
    kept = torch.where(y > 1, x, torch.tensor(-1.0))[y > 1]
    return (torch.log(kept) / kept.sqrt()).mean(), (kept ** 2).sum(), (kept - kept.detach().exp()).abs().mean(0, keepdim=True)


def of_head(x, y, w, b, scale, labels):
    """A head of masked words, and its loss."""
    kept = torch.nn.functional.gelu(torch.nn.functional.linear(x[y > 1], w, b))
    kept = torch.nn.functional.layer_norm(kept, (5,), scale)
    return torch.nn.functional.cross_entropy(kept.view(-1, 5), labels[y > 1].view(-1)), kept.softmax(-1).square().sum(1).mean()


def count(name, overload, function, *inputs, **more):
    return row(name, f"aten.{overload}.default", function, *inputs, **more)


ROWS = [
    scattered("", lambda x, y, z: aten.masked_scatter.default(x, y > 0, z), f(4, 3), i(4, 3, high=2), f(12)),
    scattered("_rows", lambda x, y, z: aten.masked_scatter.default(x, (y > 1)[..., None].expand_as(x), z), f(4, 3, 2), i(4, 3, high=3),
              f(2, 6, 2)),
    scattered("_broadcast", lambda x, y, z: aten.masked_scatter.default(x, (y > 1)[..., None], z), f(4, 3, 2), i(4, 3, high=3), f(5, 5)),
    scattered("_wide", lambda x, y, z: aten.masked_scatter.default(x, y > 0, z), f(3), i(4, 1, high=2), f(12)),
    scattered("_vector", lambda x, y, z: aten.masked_scatter.default(x, y > 0, z), f(4), i(4, high=2), f(4)),
    scattered("_weights", lambda x, y, z: aten.masked_scatter.default(x, y > 0, z), f(3, 4), f(3, 4), f(12)),
    scattered("_known", lambda x, y, z: aten.masked_scatter.default(x, y, z), f(2, 3), k([[True, False, True], [False, True, True]]), f(5)),
    put("_mask_rows", lambda x, y, z: aten.index_put.default(x, [two_of(y)], z), f(4, 3), i(4), f(2, 3)),
    put("_mask_row", lambda x, y, z: aten.index_put.default(x, [y > 1], z), f(4, 3), i(4), f(1, 3)),
    put("_mask_add", lambda x, y, z: aten.index_put.default(x, [two_of(y)], z, True), f(4, 3), i(4), f(2, 3)),
    put("_mask_numbers", lambda x, y, z: aten.index_put.default(x, [two_of(y)], z), f(4, 3), i(4), f(2, 1)),
    masked("mean", "index.Tensor mean.default", lambda x, y: aten.index.Tensor(x, [y > 1]).mean(), f(4, 3, 2), i(4, 3)),
    masked("mean_rows", "index.Tensor mean.dim sum.dim_IntList", lambda x, y: (aten.index.Tensor(x, [y > 1]).mean(0), x[y > 2].sum([0, 1]),
                                                                             x[y > 1].mean(1).sum()), f(4, 3, 2), i(4, 3)),
    masked("select", "masked_select.default sum.default", lambda x, y: aten.masked_select.default(x, y[:, None] > 1).square().sum(),
           f(4, 3), i(4)),
    masked("functions", "index.Tensor log.default", of_logarithms, f(4, 6, kind="positive"), i(4, 6)),
    masked("mse", "index.Tensor mse_loss.default", lambda x, y, z: of_two("mse_loss", x, y > 1, z * 2), f(4, 3), i(4, 3), f(4, 3)),
    masked("bce", "index.Tensor binary_cross_entropy_with_logits.default", lambda x, y: of_two(
        "binary_cross_entropy_with_logits", x, y > 1, (y > 3).float(), reduction="sum"), f(4, 3), i(4, 3)),
    masked("head", "linear.default layer_norm.default cross_entropy_loss.default softmax.int", of_head, f(4, 3, 2), i(4, 3), f(5, 2), f(5), f(5),
           i(4, 3)),
    masked("broadcast", "index.Tensor mul.Tensor", lambda x, y, z: (x[y > 1] * z + 1).mean(), f(4, 3, 2), i(4, 3), f(2)),
    masked("sorted", "index.Tensor sort.default", lambda x, y: x[y > 1].sort()[0].sum(), f(4, 3), i(4, 3),
           refused="elements that a mask from data names .*torch.where"),
    masked("two_masks", "index.Tensor mul.Tensor", lambda x, y: (x[y > 1] * x[y[:] > torch.ones((), dtype=y.dtype)]).sum(), f(4), i(4),
           refused="two masks from data"),
    count("histc", "histc", lambda x: x * aten.histc.default(x.detach(), 5, -1, 1), f(5)),
    count("histc_integers", "histc", lambda x: aten.histc.default(x.float(), 4, 0, 3), i(4, 3, high=4)),
    count("histc_own", "histc", lambda x: x * aten.histc.default(x.detach(), 6), f(6)),
    count("histc_same", "histc", lambda x: aten.histc.default(x * 0.0, 3), i(4)),
    count("bincount", "bincount", lambda x: aten.bincount.default(x.flatten(), None, 6), i(4, 3)),
    count("bincount_weights", "bincount", lambda x, y: aten.bincount.default(x, y.detach(), 5), i(4), f(4)),
    count("bincount_known", "bincount", lambda x, y: x * aten.bincount.default(y, None, 2), f(4), k([0, 3, 3])),
    count("bincount_open", "bincount", lambda x: aten.bincount.default(x).sum(), i(4), refused="minlength"),
]
