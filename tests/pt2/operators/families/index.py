"""Rows: lookups and writes by index."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten

ROWS = [
    row("embedding", "aten.embedding.default", lambda x, y: aten.embedding.default(x, y), f(7, 3), i(4, 2, high=7)),
    row("embedding_padding", "aten.embedding.default", lambda x, y: aten.embedding.default(x, y, 2), f(4, 3), i(4, 2, high=4)),
    row("embedding_known", "aten.embedding.default", lambda x, y: aten.embedding.default(x, y), f(7, 3), k([[3, 1], [0, 3]])),
    row("gather", "aten.gather.default", lambda x, y: aten.gather.default(x, 1, y), f(4, 5), i(4, 3, high=5)),
    row("gather_part", "aten.gather.default", lambda x, y: aten.gather.default(x, 0, y), f(5, 3), i(4, 2, high=5)),
    row("gather_known", "aten.gather.default", lambda x, y: aten.gather.default(x, -1, y), f(3, 5), k([[4, 0], [1, 1], [3, 2]])),
    row("index_select", "aten.index_select.default", lambda x, y: aten.index_select.default(x, -1, y), f(3, 5), i(4, high=5)),
    row("index_select_known", "aten.index_select.default", lambda x, y: aten.index_select.default(x, 0, y), f(5, 3), k([4, 0, 4])),
    row("index", "aten.index.Tensor", lambda x, y: aten.index.Tensor(x, [y]), f(5, 3), i(4, 2, high=5)),
    row("index_two", "aten.index.Tensor", lambda x, y, z: aten.index.Tensor(x, [y, z]), f(5, 3, 2), i(4, high=5), i(4, high=3)),
    row("index_own", "aten.index.Tensor", lambda x: x[torch.arange(3)[:, None, None], torch.arange(-5, 0)], f(3, 5, 2)),
    row("index_run", "aten.index.Tensor", lambda x: x[:, torch.arange(1, 4)] * x[:, torch.tensor([[2, 3], [4, 5]])].sum(), f(3, 6)),
    row("index_inner", "aten.index.Tensor", lambda x, y: aten.index.Tensor(x, [None, y]), f(3, 5), i(4, high=5)),
    row("index_apart", "aten.index.Tensor", lambda x, y, z: aten.index.Tensor(x, [y, None, z]), f(5, 2, 3), i(4, high=5), i(4, high=3)),
    row("index_known", "aten.index.Tensor", lambda x, y: aten.index.Tensor(x, [None, y]), f(3, 5), k([-1, 0, 2])),
    row("index_mask", "aten.index.Tensor", lambda x, y: aten.index.Tensor(x, [y]).sum(0) * x[0], f(4, 3), k([True, False, True, True])),
    row("index_mask_inner", "aten.index.Tensor", lambda x, y, z: aten.index.Tensor(x, [z, y]).sum(), f(3, 2, 2),
        k([[True, False], [True, True]]), k(2)),
    row("index_bool", "aten.index.Tensor", lambda x: aten.index.Tensor(x, [x > 0]).sum(), f(4)),
    row("index_put", "aten.index_put.default", lambda x, y, z: aten.index_put.default(x, [y], z), f(5, 3), k([3, 1]), f(2, 3)),
    row("index_put_add", "aten.index_put.default", lambda x, y, z: aten.index_put.default(x, [y], z, True), f(5, 3), i(4, high=5), f(4, 3)),
    row("index_put_two", "aten.index_put.default", lambda x, y, z, v: aten.index_put.default(x, [y, z], v, True), f(5, 3), i(4, high=5),
        i(4, high=3), f()),
    row("index_put_mask", "aten.index_put.default", lambda x, y, z: aten.index_put.default(x, [y > 0], z), f(4, 3), f(4, 3), f()),
    row("index_put_known_mask", "aten.index_put.default", lambda x, y, z: aten.index_put.default(x, [y], z), f(3, 2),
        k([[True, False], [False, False], [True, True]]), f(3)),
    row("index_put_rows", "aten.index.Tensor aten.index_put.default", lambda x, y: aten.index_put.default(x, [y], aten.index.Tensor(x, [y]) * 2),
        f(4, 3), k([True, False, True, True])),
    row("index_add", "aten.index_add.default", lambda x, y, z: aten.index_add.default(x, 0, y, z, alpha=0.5), f(5, 3), i(4, high=5), f(4, 3)),
    row("index_copy", "aten.index_copy.default", lambda x, y, z: aten.index_copy.default(x, 1, y, z), f(3, 5), k([3, 1]), f(3, 2)),
    row("scatter_src", "aten.scatter.src", lambda x, y, z: aten.scatter.src(x, 1, y, z), f(3, 5), k([[3, 1], [0, 2], [4, 3]]), f(3, 2)),
    row("scatter_src_data", "aten.scatter.src", lambda x, y, z: aten.scatter.src(x, 1, y, z), f(4, 5), i(4, 1, high=5), f(4, 1)),
    row("scatter_src_part", "aten.scatter.src", lambda x, y, z: aten.scatter.src(x, 1, y, z), f(4, 5), k([[3, 1]]), f(1, 2)),
    row("scatter_value", "aten.scatter.value", lambda x, y: aten.scatter.value(x, 1, y, 0.5), f(4, 5), i(4, 2, high=5)),
    row("scatter_add", "aten.scatter_add.default", lambda x, y, z: aten.scatter_add.default(x, 1, y, z), f(4, 5), i(4, 3, high=5), f(4, 3)),
    row("scatter_add_outer", "aten.scatter_add.default", lambda x, y, z: aten.scatter_add.default(x, 0, y, z), f(5, 3), i(4, 3, high=5), f(4, 3)),
    *(row(f"scatter_reduce_{how}", "aten.scatter_reduce.two", lambda x, y, z, how=how: aten.scatter_reduce.two(x, 1, y, z, how),
          f(4, 5, kind="positive"), i(4, 3, high=5), f(4, 3, kind="positive"))
      for how in ("sum", "prod", "amax", "amin")),
    *(row(f"scatter_reduce_{how}_mean", "aten.scatter_reduce.two",
          lambda x, y, z, include=include: aten.scatter_reduce.two(x, 1, y, z, "mean", include_self=include), f(4, 5), i(4, 3, high=5), f(4, 3))
      for how, include in (("with", True), ("without", False))),
    *(row(f"scatter_reduce_new_{how}", "aten.scatter_reduce.two",
          lambda x, y, z, how=how: aten.scatter_reduce.two(x, 1, y, z, how, include_self=False),
          f(4, 5, kind="positive"), i(4, 3, high=5), f(4, 3, kind="positive"))
      for how in ("sum", "prod", "amax", "amin")),
    row("scatter_reduce_new_known", "aten.scatter_reduce.two",
        lambda x, y, z: aten.scatter_reduce.two(x, 0, y, z, "amax", include_self=False), f(5), k([3, 1, 3]), f(3)),
    row("scatter_reduce_new_integers", "aten.scatter_reduce.two",
        lambda x, y: aten.scatter_reduce.two(x, 1, y, x, "amax", include_self=False), i(4, 5), i(4, 3, high=5), refused="of integers"),
    row("nonzero", "aten.nonzero.default", lambda x: aten.nonzero.default(x).sum(), f(4, 3), refused="depends on data"),
]
