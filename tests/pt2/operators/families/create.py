"""Rows: tensors from nothing, sizes."""

import torch
from rows import f, i, row

aten = torch.ops.aten
DATA = "depends on data"


def checked(x, y):
    """Numbers of data that are only checked."""
    torch._check(y.max().item() * 2 <= 10)
    return x * 2


def read(x, y):
    largest = y.max().item()
    torch._check(largest <= 5)
    return x * largest


ROWS = [
    row("assert_item", "aten._assert_scalar.default", checked, f(3, 4), i(4)),
    row("item", "aten.item.default", read, f(3, 4), i(4), refused=DATA),
    row("arange", "aten.arange.start_step", lambda x: x * aten.arange.start_step(1, 9, 2), f(3, 4)),
    row("arange_float", "aten.arange.start_step", lambda x: x * aten.arange.start_step(0.5, 2.4, 0.5), f(3, 4)),
    row("arange_down", "aten.arange.start_step", lambda x: x * aten.arange.start_step(3, -1, -1), f(3, 4)),
    row("arange_default", "aten.arange.default", lambda x: x * aten.arange.default(4, dtype=torch.float32), f(3, 4)),
    row("full", "aten.full.default", lambda x: x * aten.full.default([3, 1], 1.5), f(3, 4)),
    row("full_int", "aten.full.default", lambda x: x * aten.full.default([3, 1], 2), f(3, 4)),
    row("full_bool", "aten.full.default", lambda x: x * aten.full.default([3, 1], True), f(3, 4)),
    row("full_like", "aten.full_like.default", lambda x: x * aten.full_like.default(x, 1.5, dtype=torch.bfloat16), f(3, 4)),
    row("scalar_tensor", "aten.scalar_tensor.default", lambda x: x * aten.scalar_tensor.default(1.5, dtype=torch.float64), f(3, 4)),
    row("ones", "aten.ones.default", lambda x: x * aten.ones.default([2, 3, 4]), f(3, 4)),
    row("zeros_like", "aten.zeros_like.default", lambda x: x + aten.zeros_like.default(x), f(3, 4)),
    row("new_full", "aten.new_full.default", lambda x: x * aten.new_full.default(x, [3, 1], 1.5), f(3, 4)),
    row("empty", "aten.empty.memory_format", lambda x: x + aten.empty.memory_format([3, 4]).zero_(), f(3, 4)),
    row("unsigned", "aten.to.dtype", lambda x: x * torch.ops.aten.to.dtype(x.detach().abs() * 9, torch.uint16).float(), f(3, 4),
        refused="type that is not supported: uint16"),
    row("empty_strided", "aten.empty_strided.default", lambda x: x + aten.empty_strided.default([3, 4], [4, 1]) * 0, f(3, 4),
        refused="not set"),
]
