"""Rows: determinants, inverses, powers and exponentials of small matrices."""

import torch
from rows import f, i, row

aten = torch.ops.aten


def of(name, call, *inputs, case="", refused=None):
    return row(name + case, f"aten.{name}.default", call, *inputs, refused=refused)


ROWS = [
    of("det", lambda x: aten.det.default(x), f(4, 4)), of("linalg_det", lambda x: aten.linalg_det.default(x), f(2, 3, 3)),
    of("det", lambda x: aten.det.default(x), f(1, 1), case="_one"),
    of("det", lambda x: aten.det.default(x), f(17, 17), case="_large", refused="matrices of 17 rows are not supported"),
    of("slogdet", lambda x: aten.slogdet.default(x), f(4, 4)),
    of("linalg_slogdet", lambda x: aten.linalg_slogdet.default(x), f(2, 3, 3)),
    of("logdet", lambda x: aten.logdet.default(x @ x.mT + torch.eye(3)), f(2, 3, 3)),
    of("inverse", lambda x: aten.inverse.default(x), f(3, 3)), of("linalg_inv", lambda x: aten.linalg_inv.default(x), f(2, 3, 3)),
    # The largest element of a column, which is not the first one, depends on data.
    of("linalg_inv", lambda x, y: aten.linalg_inv.default(torch.roll(torch.eye(4), 1, 0) * 3 + x * y.float()[:, None] * 0.25), f(4, 4),
       i(4), case="_data"),
    of("linalg_solve", lambda x, y: aten.linalg_solve.default(x, y), f(2, 4, 4), f(2, 4, 3)),
    of("linalg_solve", lambda x, y: aten.linalg_solve.default(x, y), f(3, 3), f(3), case="_vector"),
    of("linalg_solve", lambda x, y: aten.linalg_solve.default(x, y), f(2, 3, 3), f(2, 3), case="_vectors"),
    of("linalg_solve", lambda x, y: aten.linalg_solve.default(x, y, left=False), f(3, 3), f(2, 3), case="_right"),
    of("linalg_solve", lambda x, y: aten.linalg_solve.default(x, y), f(2, 3, 3), f(3, 2), case="_broadcast", refused="without broadcasting"),
    of("matrix_exp", lambda x: aten.matrix_exp.default(x), f(3, 3)),
    of("linalg_matrix_exp", lambda x: aten.linalg_matrix_exp.default(x * 4 - x.mT * 4), f(2, 4, 4)),
    of("matrix_power", lambda x: aten.matrix_power.default(x, 3), f(2, 3, 3)),
    of("linalg_matrix_power", lambda x: aten.linalg_matrix_power.default(x, -2), f(3, 3)),
    of("linalg_cholesky", lambda x: aten.linalg_cholesky.default(x @ x.mT), f(3, 3), refused="decompositions of matrices"),
]
