"""Rows: medians, quantiles, running extremes, and searches in sorted numbers."""

import torch
from rows import f, k, row

aten = torch.ops.aten
EDGES = k([-1.0, -0.25, 0.5, 0.5, 1.5])

ROWS = [
    row("median", "aten.median.default", lambda x: aten.median.default(x), f(3, 4)),
    row("median_odd", "aten.median.default", lambda x: aten.median.default(x), f(5, 3)),
    row("median_ties", "aten.median.default", lambda x: aten.median.default(x), f(4, 6, kind="grid")),
    row("median_dim", "aten.median.dim", lambda x: aten.median.dim(x, 1), f(3, 4, kind="distinct")),
    row("median_first", "aten.median.dim", lambda x: aten.median.dim(x, 0, True), f(5, 3, kind="distinct")),
    row("median_nan", "aten.median.dim", lambda x: aten.nan_to_num.default(aten.median.dim(aten.where.ScalarOther(
        aten.gt.Scalar(x, -0.8), x, float("nan")), 1)[0], 0.5), f(6, 4, kind="distinct")),
    row("quantile", "aten.quantile.scalar", lambda x: aten.quantile.scalar(x, 0.3), f(3, 4)),
    row("quantile_dim", "aten.quantile.scalar", lambda x: aten.quantile.scalar(x, 0.9, 1, True), f(3, 4)),
    row("quantile_known", "aten.quantile.default", lambda x, q: aten.quantile.default(x, q, -1), f(3, 6), k([0.0, 0.25, 0.7, 1.0])),
    *(row(f"quantile_{how}", "aten.quantile.default", lambda x, q, how=how: aten.quantile.default(x, q, 0, True, interpolation=how), f(6, 3),
          k([0.1, 0.2, 0.3, 0.5]))  # of 6 elements 0.1 and 0.2 in f32 are a little beyond 0.5 and 1
      for how in ("lower", "higher", "nearest", "midpoint")),
    row("quantile_data", "aten.quantile.default", lambda x, q: aten.quantile.default(x, aten.sigmoid.default(q)), f(6), f(),
        refused="which quantiles are meant depends on data"),
    row("cummax", "aten.cummax.default", lambda x: aten.cummax.default(x, 1), f(3, 7)),
    row("cummax_ties", "aten.cummax.default", lambda x: aten.cummax.default(x, 0), f(8, 3, kind="grid")),
    row("cummin", "aten.cummin.default", lambda x: aten.cummin.default(x, -1), f(3, 7)),
    row("cummin_ties", "aten.cummin.default", lambda x: aten.cummin.default(x, 0), f(8, 3, kind="grid")),
    row("cummax_nan", "aten.cummax.default", lambda x: aten.nan_to_num.default(aten.cummax.default(aten.where.ScalarOther(
        aten.lt.Scalar(x, 1), x, float("nan")), 1)[0], 0.5), f(4, 9)),
    row("bucketize", "aten.bucketize.Tensor", lambda x, b: x * aten.bucketize.Tensor(x, b), f(3, 4), EDGES),
    row("bucketize_right", "aten.bucketize.Tensor", lambda x, b: x * aten.bucketize.Tensor(x, b, right=True, out_int32=True),
        f(3, 4, kind="grid"), k([-1.0, 0.0, 1.0])),
    row("searchsorted", "aten.searchsorted.Tensor", lambda x, b: x * aten.searchsorted.Tensor(b, x), f(3, 4), EDGES),
    row("searchsorted_nan", "aten.searchsorted.Tensor", lambda x, b: x * aten.searchsorted.Tensor(b, x), f(3, 4),
        k([-1.0, 0.0, 0.5, float("nan"), float("nan")]), refused="NaN"),
    row("searchsorted_rows", "aten.searchsorted.Tensor",
        lambda x, y: x * aten.searchsorted.Tensor(aten.sort.default(y)[0], x, side="right"), f(3, 4), f(3, 5)),
]
