"""Rows: how tensors lie in memory."""

import torch
from rows import f, i, k, row

strided = torch.ops.aten.as_strided.default


def as_strided(name, function, *inputs, **more):
    return row("as_strided" + name, "aten.as_strided.default", function, *inputs, **more)


def chunks(x):
    """Windows as Longformer has them: each shares half of its positions with the next one."""
    n, count, width, size = x.shape
    return strided(x, [n, 2 * count - 1, width, size], [x.stride(0), x.stride(1) // 2, *x.stride()[2:]])


ROWS = [
    as_strided("", lambda x: strided(x, [2, 2], [4, 1], 1), f(3, 4)),
    as_strided("_chunks", chunks, f(2, 3, 4, 5)),
    as_strided("_windows", lambda x: strided(x, [4, 5], [1, 2]), f(3, 5)),
    as_strided("_many_windows", lambda x: strided(x, [9, 40], [1, 1], 2), f(10, 6)),
    as_strided("_gaps", lambda x: strided(x, [2, 3, 2], [10, 3, 1], 1), f(4, 5)),
    as_strided("_diagonal", lambda x: strided(x, [4], [5]), f(4, 4)),
    as_strided("_turned", lambda x: strided(x, [4, 3], [1, 4]), f(3, 4)),
    as_strided("_repeated", lambda x: strided(x, [2, 3, 1, 2], [0, 4, 7, 0]), f(3, 4)),
    as_strided("_number", lambda x: strided(x, [], [], 5), f(3, 4)),
    as_strided("_of_transposed", lambda x: strided(x.transpose(0, 2), [3, 4], [6, 1], 2), f(2, 3, 5)),
    as_strided("_of_part", lambda x: strided(x[1:], [2, 3], [4, 1]) + strided(x[1:], [2, 3], [4, 1], 5), f(4, 4)),
    as_strided("_integers", lambda x: strided(x, [5, 2], [2, 1]), i(4, 3)),
    as_strided("_known", lambda x, y: x * strided(y, [2, 3], [1, 1]), f(2, 3), k([1.5, 2.0, 0.5, 3.0])),
    as_strided("_of_gaps", lambda x: strided(x[:, 1:], [2, 2], [4, 1], 1), f(3, 4), refused="a view that .* has gaps"),
    as_strided("_of_repeated", lambda x: strided(x.expand(3, 4), [2, 2], [0, 1]), f(4), refused="shares elements"),
    as_strided("_outside", lambda x: strided(x[1:], [2, 3], [4, 1], 0), f(4, 4), refused="memory that is not the tensor's own"),
]
