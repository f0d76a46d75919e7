"""Rows: products of matrices."""

import torch
from elementwise import same
from rows import f, i, row

aten = torch.ops.aten
bf16 = torch.bfloat16

ROWS = [
    same("mm", "mm.default", f(3, 4), f(4, 2)), same("bmm", "bmm.default", f(2, 3, 4), f(2, 4, 2)),
    same("mv", "mv.default", f(3, 4), f(4)), same("dot", "dot.default", f(4), f(4)), same("outer", "outer.default", f(3), f(4)),
    same("mm_int", "mm.default", i(4, 3, low=-3), i(3, 2, low=-3)),
    same("matmul", "matmul.default", f(2, 1, 3, 4), f(5, 4, 2)), same("matmul_vector", "matmul.default", f(4), f(2, 4, 3)),
    same("addmm", "addmm.default", f(2), f(3, 4), f(4, 2)),
    row("addmm_scaled", "aten.addmm.default", lambda x, y, z: aten.addmm.default(x, y, z, beta=0.5, alpha=2), f(3, 2), f(3, 4), f(4, 2)),
    row("addmm_beta_0", "aten.addmm.default", lambda x, y, z: aten.addmm.default(x, y, z, beta=0), f(3, 2), f(3, 4), f(4, 2)),
    row("addmv", "aten.addmv.default", lambda x, y, z: aten.addmv.default(x, y, z, beta=0.5, alpha=2), f(3), f(3, 4), f(4)),
    row("addbmm", "aten.addbmm.default", lambda x, y, z: aten.addbmm.default(x, y, z, beta=0.5, alpha=2), f(3, 2), f(2, 3, 4), f(2, 4, 2)),
    row("baddbmm", "aten.baddbmm.default", lambda x, y, z: aten.baddbmm.default(x, y, z, beta=0.5, alpha=2), f(2, 3, 1), f(2, 3, 4),
        f(2, 4, 2)),
    row("addr", "aten.addr.default", lambda x, y, z: aten.addr.default(x, y, z, beta=0.5, alpha=2), f(3, 4), f(3), f(4)),
    same("linear", "linear.default", f(2, 3, 4), f(5, 4), f(5)), same("linear_no_bias", "linear.default", f(4), f(5, 4)),
    row("einsum", "aten.einsum.default", lambda x, y: aten.einsum.default("bij,bjk->bik", [x, y]), f(2, 3, 4), f(2, 4, 2)),
    row("einsum_dots", "aten.einsum.default", lambda x, y: aten.einsum.default("...d,d", [x, y]), f(2, 3, 4), f(4)),
    row("einsum_three", "aten.einsum.default", lambda x, y, z: aten.einsum.default("ij,jk,ik->i", [x, y, z]), f(2, 3), f(3, 4), f(2, 4)),
    row("einsum_diagonal", "aten.einsum.default", lambda x: aten.einsum.default("ii->i", [x]), f(3, 3)),
    row("cdist", "aten._cdist_forward.default", lambda x, y: aten._cdist_forward.default(x, y, 2.0, None), f(3, 4), f(2, 4)),
    row("grouped_mm", "aten._grouped_mm.default", lambda x, y, z: aten._grouped_mm.default(x, y, z.cumsum(0, dtype=torch.int32)),
        f(16, 8), f(4, 8, 8), i(4, low=4), refused="sizes of its groups depend on data.*tessera_dense"),
]
