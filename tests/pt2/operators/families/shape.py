"""Rows: views, slices, joins, repetitions, orders of elements."""

import torch
from elementwise import same
from rows import f, i, k, row

aten = torch.ops.aten

ROWS = [
    row("cat", "aten.cat.default", lambda x, y: aten.cat.default([x, y], -1), f(3, 4), f(3, 2)),
    row("cat_types", "aten.cat.default", lambda x, y, z: aten.cat.default([x, y, z]), f(3, 4), i(4, 4), f(1, 4, dtype=torch.bfloat16)),
    row("cat_empty", "aten.cat.default", lambda x: aten.cat.default([torch.zeros(0), x], 1), f(3, 4)),
    row("stack", "aten.stack.default", lambda x, y: aten.stack.default([x, y], -1), f(3, 4), f(3, 4)),
    row("expand", "aten.expand.default", lambda x: aten.expand.default(x, [2, 3, -1]), f(1, 4)),
    row("flip", "aten.flip.default", lambda x: aten.flip.default(x, [0, -1]), f(3, 4, 2)),
    row("permute", "aten.permute.default", lambda x: aten.permute.default(x, [2, 0, -2]), f(3, 4, 2)),
    row("repeat", "aten.repeat.default", lambda x: aten.repeat.default(x, [2, 1, 3]), f(3, 4)),
    row("select", "aten.select.int", lambda x: aten.select.int(x, 1, -2), f(3, 4)),
    row("slice", "aten.slice.Tensor", lambda x: aten.slice.Tensor(x, 1, 1, 9223372036854775807, 2), f(3, 6)),
    row("slice_back", "aten.slice.Tensor", lambda x: aten.slice.Tensor(x, 0, -2, -1), f(5, 2)),
    row("slice_all", "aten.slice.Tensor", lambda x: aten.slice.Tensor(x), f(5, 2)),
    row("split_with_sizes", "aten.split_with_sizes.default", lambda x: aten.split_with_sizes.default(x, [1, 3, 2], 1), f(3, 6)),
    row("split", "aten.split.Tensor", lambda x: aten.split.Tensor(x, 4, -1), f(3, 6)),
    row("chunk", "aten.chunk.default", lambda x: aten.chunk.default(x, 4, 1), f(3, 6)),
    row("unbind", "aten.unbind.int", lambda x: aten.unbind.int(x, -1), f(3, 2)),
    row("squeeze_dim", "aten.squeeze.dim", lambda x: aten.squeeze.dim(x, -2) + aten.squeeze.dim(x, 0).sum(), f(3, 1, 4)),
    row("squeeze_dims", "aten.squeeze.dims", lambda x: aten.squeeze.dims(x, [0, 1, -1]), f(3, 1, 4, 1)),
    row("unsqueeze", "aten.unsqueeze.default", lambda x: aten.unsqueeze.default(x, -2), f(3, 4)),
    row("view", "aten.view.default", lambda x: aten.view.default(x, [2, -1]), f(3, 4)),
    row("diagonal", "aten.diagonal.default", lambda x: aten.diagonal.default(x), f(3, 4)),
    row("diagonal_off", "aten.diagonal.default", lambda x: aten.diagonal.default(x, -1, -1, 0), f(3, 2, 4)),
    row("diagonal_far", "aten.diagonal.default", lambda x: aten.diagonal.default(x, 1, 1, 2), f(2, 5, 3)),
    row("slice_scatter", "aten.slice_scatter.default", lambda x, y: aten.slice_scatter.default(x, y, 1, 1, 6, 2), f(3, 6), f(3, 3)),
    row("slice_scatter_all", "aten.slice_scatter.default", lambda x, y: aten.slice_scatter.default(x, y, 0, -2), f(5, 2), f(2, 2)),
    row("select_scatter", "aten.select_scatter.default", lambda x, y: aten.select_scatter.default(x, y, -1, -2), f(3, 4), f(3)),
    row("constant_pad", "aten.constant_pad_nd.default", lambda x: aten.constant_pad_nd.default(x, [1, 2, 0, 1], 0.5), f(3, 4)),
    row("roll", "aten.roll.default", lambda x: aten.roll.default(x, [1, -5], [0, 1]), f(3, 4)),
    row("roll_flat", "aten.roll.default", lambda x: aten.roll.default(x, [5]), f(3, 4)),
    row("unfold", "aten.unfold.default", lambda x: aten.unfold.default(x, 1, 3, 2), f(2, 8, 2)),
    row("tril", "aten.tril.default", lambda x: aten.tril.default(x, -1), f(3, 4)),
    row("triu", "aten.triu.default", lambda x: aten.triu.default(x), f(2, 3, 4)),
    row("repeat_interleave", "aten.repeat_interleave.self_int", lambda x: aten.repeat_interleave.self_int(x, 2, 1), f(3, 4)),
    row("repeat_interleave_flat", "aten.repeat_interleave.self_int", lambda x: aten.repeat_interleave.self_int(x, 3), f(3, 2)),
    row("movedim", "aten.movedim.int", lambda x: aten.movedim.int(x, 0, -1), f(3, 4, 2)),
    row("movedims", "aten.movedim.intlist", lambda x: aten.movedim.intlist(x, [0, 2], [1, 0]), f(3, 4, 2)),
    row("swapaxes", "aten.swapaxes.default", lambda x: aten.swapaxes.default(x, 0, -1), f(3, 4, 2)),
    row("numpy_t", "aten.numpy_T.default", lambda x: aten.numpy_T.default(x), f(3, 4, 2)),
    row("m_t", "aten.mT.default", lambda x: aten.mT.default(x), f(3, 4, 2)),
    row("glu", "aten.glu.default", lambda x: aten.glu.default(x), f(3, 6)),
    row("glu_dim", "aten.glu.default", lambda x: aten.glu.default(x, 0), f(4, 3)),
]
