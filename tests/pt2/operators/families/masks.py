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
    count("histc", "histc", lambda x: x * aten.histc.default(x.detach(), 5, -1, 1), f(5)),
    count("histc_integers", "histc", lambda x: aten.histc.default(x.float(), 4, 0, 3), i(4, 3, high=4)),
    count("histc_own", "histc", lambda x: x * aten.histc.default(x.detach(), 6), f(6)),
    count("histc_same", "histc", lambda x: aten.histc.default(x * 0.0, 3), i(4)),
    count("bincount", "bincount", lambda x: aten.bincount.default(x.flatten(), None, 6), i(4, 3)),
    count("bincount_weights", "bincount", lambda x, y: aten.bincount.default(x, y.detach(), 5), i(4), f(4)),
    count("bincount_known", "bincount", lambda x, y: x * aten.bincount.default(y, None, 2), f(4), k([0, 3, 3])),
    count("bincount_open", "bincount", lambda x: aten.bincount.default(x).sum(), i(4), refused="minlength"),
]
