"""Rows: products of matrices by other names, diagonals, triangles, matrices from nothing, norms."""

import torch
from elementwise import same
from rows import f, row

aten = torch.ops.aten


def of(name, overload, call, *inputs, refused=None):
    return row(name, f"aten.{overload}", call, *inputs, refused=refused)


ROWS = [
    same("inner", "inner.default", f(2, 3, 4), f(5, 4)), same("inner_scalar", "inner.default", f(), f(2, 3)),
    of("tensordot", "tensordot.default", lambda x, y: aten.tensordot.default(x, y, [1, -1], [2, 0]), f(2, 3, 4), f(4, 5, 3)),
    of("tensordot_none", "tensordot.default", lambda x, y: aten.tensordot.default(x, y, [], []), f(2, 3), f(4)),
    of("chain_matmul", "chain_matmul.default", lambda x, y, z: aten.chain_matmul.default([x, y, z]), f(2, 3), f(3, 4), f(4, 2)),
    of("multi_dot", "linalg_multi_dot.default", lambda x, y, z: aten.linalg_multi_dot.default([x, y, z]), f(3), f(3, 4), f(4)),
    same("linalg_matmul", "linalg_matmul.default", f(2, 3, 4), f(4, 5)), same("vdot", "vdot.default", f(4), f(4)),
    of("vecdot", "linalg_vecdot.default", lambda x, y: aten.linalg_vecdot.default(x, y, dim=0), f(3, 4), f(3, 1)),
    same("kron", "kron.default", f(2, 3), f(3)), same("kron_matrices", "kron.default", f(2, 3), f(3, 2)),
    of("linalg_cross", "linalg_cross.default", lambda x, y: aten.linalg_cross.default(x, y), f(2, 3), f(1, 3)),
    of("cross", "cross.default", lambda x, y: aten.cross.default(x, y), f(2, 3, 3), f(2, 3, 3)),
    of("cross_broadcast", "cross.default", lambda x, y: aten.cross.default(x, y), f(1, 3), f(3, 3)),
    of("cross_dim", "cross.default", lambda x, y: aten.cross.default(x, y, -1), f(3, 3), f(3, 3)),
    of("trace", "trace.default", lambda x: aten.trace.default(x), f(3, 4)),
    of("diag", "diag.default", lambda x: aten.diag.default(x, -1), f(3)), of("diag_of", "diag.default", lambda x: aten.diag.default(x, 1), f(3, 4)),
    of("diagflat", "diagflat.default", lambda x: aten.diagflat.default(x, 1), f(2, 2)),
    of("diag_embed", "diag_embed.default", lambda x: aten.diag_embed.default(x), f(2, 3)),
    of("diag_embed_off", "diag_embed.default", lambda x: aten.diag_embed.default(x, -1, 0, 2), f(2, 3)),
    of("diag_embed_up", "diag_embed.default", lambda x: aten.diag_embed.default(x, 2, -1, 0), f(2, 3)),
    of("diagonal_scatter", "diagonal_scatter.default", lambda x, y: aten.diagonal_scatter.default(x, y), f(4, 3), f(3)),
    of("diagonal_scatter_up", "diagonal_scatter.default", lambda x, y: aten.diagonal_scatter.default(x, y, 1, 2, 0), f(3, 2, 4), f(2, 2)),
    of("diagonal_scatter_down", "diagonal_scatter.default", lambda x, y: aten.diagonal_scatter.default(x, y, -2, -1, 1), f(2, 3, 4), f(2, 2)),
    of("linalg_diagonal", "linalg_diagonal.default", lambda x: aten.linalg_diagonal.default(x, offset=1), f(2, 3, 4)),
    of("eye", "eye.default", lambda x: x * aten.eye.default(4), f(4, 4)),
    of("eye_wide", "eye.m", lambda x: x + aten.eye.m(3, 4), f(3, 4)),
    of("eye_out", "eye.out", lambda x: x * aten.eye.out(4, out=torch.empty(4, 4)), f(4, 4)),
    of("eye_m_out", "eye.m_out", lambda x: x * aten.eye.m_out(3, 4, out=torch.empty(3, 4)), f(3, 4)),
    of("outer_types", "outer.default", lambda x, y: aten.outer.default(x, y), f(3), f(4, dtype=torch.float64)),
    of("eye_bool", "eye.default", lambda x: aten.masked_fill.Scalar(x, aten.eye.default(4, dtype=torch.bool), 0.5), f(4, 4)),
    of("tril_indices", "tril_indices.default",
       lambda x: aten.index.Tensor(x, list(aten.unbind.int(aten.tril_indices.default(3, 4, -1)))), f(3, 4)),
    of("triu_indices", "triu_indices.default",
       lambda x: aten.index.Tensor(x, list(aten.unbind.int(aten.triu_indices.default(3, 4, 1)))), f(3, 4)),
    of("linspace", "linspace.default", lambda x: x * aten.linspace.default(-1, 2, 7), f(7)),
    of("linspace_one", "linspace.default", lambda x: x * aten.linspace.default(0.5, 2, 1), f(7)),
    of("linalg_norm", "linalg_norm.default", lambda x: aten.linalg_norm.default(x), f(3, 4)),
    of("linalg_norm_dim", "linalg_norm.default", lambda x: aten.linalg_norm.default(x, 1, [1], True), f(3, 4)),
    of("linalg_norm_fro", "linalg_norm.ord_str", lambda x: aten.linalg_norm.ord_str(x, "fro"), f(3, 4)),
    of("linalg_norm_matrix", "linalg_norm.default", lambda x: aten.linalg_norm.default(x, 1), f(3, 4), refused="Frobenius"),
    of("matrix_norm", "linalg_matrix_norm.str_ord", lambda x: aten.linalg_matrix_norm.str_ord(x), f(2, 3, 4)),
    of("frobenius_norm", "frobenius_norm.dim", lambda x: aten.frobenius_norm.dim(x, [1], True), f(3, 4)),
    of("weight_norm", "_weight_norm.default", lambda v, g: aten._weight_norm.default(v, g, 0), f(3, 4, 2), f(3, 1, 1)),
    of("weight_norm_last", "_weight_norm.default", lambda v, g: aten._weight_norm.default(v, g, 2), f(3, 4, 2), f(1, 1, 2)),
    of("norm_except_dim", "norm_except_dim.default", lambda v: aten.norm_except_dim.default(v, 2, 1), f(3, 4, 2)),
    of("nansum", "nansum.default", lambda x: aten.nansum.default(aten.where.ScalarOther(aten.gt.Scalar(x, -1), x, float("nan")), [1]), f(3, 6)),
    of("nanmean", "nanmean.default", lambda x: aten.nanmean.default(aten.where.ScalarOther(aten.gt.Scalar(x, -1), x, float("nan")), [1], True),
       f(3, 6)),
    of("aminmax", "aminmax.default", lambda x: aten.aminmax.default(x, dim=1), f(3, 4, kind="distinct")),
]
