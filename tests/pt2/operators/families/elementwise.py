"""Rows: arithmetic, comparisons, selection, conversion."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten

ROWS = [
    row("add", "aten.add.Tensor", lambda x, y: aten.add.Tensor(x, y, alpha=2), f(3, 4), f(4)),
    row("mul", "aten.mul.Tensor", aten.mul.Tensor, f(3, 4), f(3, 1)),
    row("div_mode", "aten.div.Tensor_mode", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="floor"),
        i(4, 3, low=-7, high=8), i(4, 3, low=1, high=4)),
]
