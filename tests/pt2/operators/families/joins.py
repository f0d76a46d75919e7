"""Rows: parts and joins by other names, dimensions that are added, repetitions to a shape."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten


def of(name, overload, call, *inputs, refused=None):
    return row(name, f"aten.{overload}", call, *inputs, refused=refused)


ROWS = [
    of("concatenate", "concatenate.default", lambda x, y: aten.concatenate.default([x, y], -1), f(3, 4), f(3, 2)),
    of("hstack", "hstack.default", lambda x, y: aten.hstack.default([x, y]), f(3, 4), f(3, 2)),
    of("hstack_vectors", "hstack.default", lambda x, y: aten.hstack.default([x, y]), f(3), f()),
    of("vstack", "vstack.default", lambda x, y: aten.vstack.default([x, y]), f(3, 4), f(4)),
    of("row_stack", "row_stack.default", lambda x, y: aten.row_stack.default([x, y]), f(4), f(4)),
    of("dstack", "dstack.default", lambda x, y: aten.dstack.default([x, y]), f(4), f(1, 4)),
    of("column_stack", "column_stack.default", lambda x, y: aten.column_stack.default([x, y]), f(3), f(3, 2)),
    of("atleast_1d", "atleast_1d.default", lambda x: aten.atleast_1d.default(x), f()),
    of("atleast_2d", "atleast_2d.default", lambda x: aten.atleast_2d.default(x), f(3)),
    of("atleast_3d", "atleast_3d.default", lambda x: aten.atleast_3d.default(x), f(3)),
    of("atleast_3d_matrix", "atleast_3d.default", lambda x: aten.atleast_3d.default(x), f(3, 2)),
    of("atleast_list", "atleast_2d.Sequence", lambda x, y: aten.atleast_2d.Sequence([x, y]), f(3), f()),
    of("tensor_split", "tensor_split.sections", lambda x: aten.tensor_split.sections(x, 4, 1), f(2, 6)),
    of("tensor_split_at", "tensor_split.indices", lambda x: aten.tensor_split.indices(x, [1, -2], -1), f(2, 6)),
    of("hsplit", "hsplit.int", lambda x: aten.hsplit.int(x, 2), f(4)),
    of("hsplit_at", "hsplit.array", lambda x: aten.hsplit.array(x, [1, 3]), f(2, 4)),
    of("vsplit", "vsplit.int", lambda x: aten.vsplit.int(x, 2), f(4, 2)),
    of("dsplit_at", "dsplit.array", lambda x: aten.dsplit.array(x, [1]), f(2, 2, 3)),
    of("unsafe_chunk", "unsafe_chunk.default", lambda x: aten.unsafe_chunk.default(x, 2, 1), f(2, 5)),
    of("unsafe_split", "unsafe_split.Tensor", lambda x: aten.unsafe_split.Tensor(x, 2, 1), f(2, 5)),
    of("unsafe_split_sizes", "unsafe_split_with_sizes.default", lambda x: aten.unsafe_split_with_sizes.default(x, [2, 3], 1), f(2, 5)),
    of("narrow", "narrow.default", lambda x: aten.narrow.default(x, 1, -4, 2), f(3, 6)),
    of("meshgrid", "meshgrid.default", lambda x, y: aten.meshgrid.default([x, y]), f(3), f(4)),
    of("meshgrid_xy", "meshgrid.indexing", lambda x, y, z: aten.meshgrid.indexing([x, y, z], indexing="xy"), f(3), f(4), f(2)),
    of("moveaxis", "moveaxis.int", lambda x: aten.moveaxis.int(x, 0, -1), f(3, 4, 2)),
    of("moveaxes", "moveaxis.intlist", lambda x: aten.moveaxis.intlist(x, [0, 2], [1, 0]), f(3, 4, 2)),
    of("reshape_as", "reshape_as.default", lambda x, y: aten.reshape_as.default(x, y) * y, f(3, 4), f(2, 6)),
    of("ravel", "ravel.default", lambda x: aten.ravel.default(x), f(3, 4)),
    of("broadcast_to", "broadcast_to.default", lambda x: aten.broadcast_to.default(x, [2, 3, 4]), f(3, 1)),
    of("tile", "tile.default", lambda x: aten.tile.default(x, [3]), f(3, 4)),
    of("tile_more", "tile.default", lambda x: aten.tile.default(x, [2, 1, 2]), f(3, 4)),
    of("sum_to_size", "sum_to_size.default", lambda x: aten.sum_to_size.default(x, [1, 4]), f(2, 3, 4)),
    of("fliplr", "fliplr.default", lambda x: aten.fliplr.default(x), f(3, 4)),
    of("flipud", "flipud.default", lambda x: aten.flipud.default(x), f(3, 4)),
    of("adjoint", "adjoint.default", lambda x: aten.adjoint.default(x), f(2, 3, 4)),
    of("m_h", "mH.default", lambda x: aten.mH.default(x), f(2, 3, 4)),
    of("matrix_h", "matrix_H.default", lambda x: aten.matrix_H.default(x), f(3, 4)),
    of("index_second", "index.Tensor", lambda x, j: aten.index.Tensor(x, [None, j]), f(3, 5, 2), i(4)),
    of("index_last", "index.Tensor", lambda x, j: aten.index.Tensor(x, [None, None, j]), f(3, 2, 5), i(4, 2)),
    of("index_pair", "index.Tensor", lambda x, j, l: aten.index.Tensor(x, [None, j, l]), f(2, 5, 3, 2), i(4, 1), i(4, 2, high=3)),
    of("index_apart", "index.Tensor", lambda x, j, l: aten.index.Tensor(x, [None, j, None, l]), f(2, 5, 3, 4), i(4), i(4, high=4)),
    of("index_known", "index.Tensor", lambda x, j: aten.index.Tensor(x, [None, None, j]), f(3, 2, 5), k([-2])),
    of("index_put_second", "index_put.default", lambda x, j, y: aten.index_put.default(x, [None, j], y, True), f(3, 5, 2), i(4), f(3, 4, 2)),
    of("index_put_apart", "index_put.default", lambda x, j, l, y: aten.index_put.default(x, [j, None, l], y, True), f(5, 3, 4), i(4),
       i(4, high=4), f(4, 1)),
    of("take_along_dim", "take_along_dim.default", lambda x, j: aten.take_along_dim.default(x, j, 1), f(4, 5), i(4, 3)),
    of("index_fill", "index_fill.int_Scalar", lambda x, j: aten.index_fill.int_Scalar(x, 1, j, 0.5), f(3, 5), i(4)),
    of("one_hot", "one_hot.default", lambda x, j: x * aten.one_hot.default(j, 5), f(5), i(4, 2)),
]
