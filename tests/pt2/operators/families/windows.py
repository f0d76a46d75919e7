"""Rows: poolings, convolutions, padding, blocks of images."""

import torch
from rows import f, row

aten = torch.ops.aten


def pool(name, shape, *arguments, kind="normal", case=""):
    """The first result of an overload "….default", of an input of that shape."""
    overload = getattr(aten, name).default

    def function(x):
        made = overload(x, *arguments)
        return made if torch.is_tensor(made) else made[0]
    return row(name.lstrip("_") + case, f"aten.{name}.default", function, f(*shape, kind=kind))


def unpool(x):
    values, places = aten.max_pool2d_with_indices.default(x, [3, 3], [2, 2], [1, 1])
    return aten.max_unpool2d.default(values, places, [6, 6])


def places(x):
    return aten.max_pool2d_with_indices.default(x, [3, 2], [2, 2], [1, 1], [1, 1], True)[1].float()


POOLS = [
    pool("max_pool1d", (2, 3, 8), [2]), pool("max_pool1d", (3, 8), [3], [1], [1], case="_sample"),
    pool("max_pool2d", (2, 3, 7, 6), [3, 2], [2, 2], [1, 1], [2, 1]),
    pool("max_pool2d", (2, 3, 7, 6), [3, 3], [2, 2], [0, 0], [1, 1], True, kind="grid", case="_ties"),
    pool("max_pool3d", (2, 3, 4, 5, 4), [2, 3, 2], [2, 1, 2]),
    pool("max_pool1d_with_indices", (2, 3, 8), [2]), pool("max_pool2d_with_indices", (2, 3, 6, 6), [2, 2]),
    pool("max_pool3d_with_indices", (2, 3, 4, 4, 4), [2, 2, 2]),
    row("max_pool_places", "aten.max_pool2d_with_indices.default", places, f(2, 3, 7, 6, kind="grid")),
    row("max_unpool2d", "aten.max_unpool2d.default", unpool, f(2, 3, 6, 6)),
    pool("avg_pool1d", (2, 3, 8), [3], [2], [1], True, False), pool("avg_pool1d", (3, 8), [2], case="_sample"),
    pool("avg_pool2d", (2, 3, 7, 6), [3, 2], [2, 2], [1, 1], True), pool("avg_pool2d", (2, 3, 6, 6), [2, 2], case="_tiles"),
    pool("avg_pool2d", (2, 3, 7, 6), [3, 2], [2, 2], [1, 0], False, True, 5, case="_divisor"),
    pool("avg_pool3d", (2, 3, 4, 5, 4), [2, 2, 2], [2, 2, 2], [1, 1, 1], False, False),
    pool("adaptive_avg_pool1d", (2, 3, 7), [3]), pool("_adaptive_avg_pool2d", (2, 3, 7, 6), [3, 4]),
    pool("adaptive_avg_pool2d", (2, 3, 6, 6), [1, 1], case="_global"), pool("adaptive_avg_pool2d", (3, 5, 2), [2, 5], case="_sample"),
    pool("adaptive_avg_pool3d", (2, 3, 4, 5, 6), [2, 3, 4]), pool("_adaptive_avg_pool3d", (2, 3, 4, 5, 6), [3, 2, 1], case="_"),
    pool("adaptive_max_pool1d", (2, 3, 7), [3]), pool("adaptive_max_pool2d", (2, 3, 7, 6), [3, 4], kind="grid"),
    pool("adaptive_max_pool3d", (2, 3, 4, 5, 6), [2, 3, 4]),
    row("adaptive_max_pool_places", "aten.adaptive_max_pool2d.default",
        lambda x: aten.adaptive_max_pool2d.default(x, [2, 2])[1].float(), f(2, 3, 4, 4), refused="places of maxima"),
]


def convolution(name, overload, x, weight, *arguments, bias=True, case=""):
    function = getattr(getattr(aten, name), overload)
    made = (lambda x, w, b: function(x, w, b, *arguments)) if bias else (lambda x, w: function(x, w, None, *arguments))
    transposed = "transpose" in name or (name == "convolution" and arguments[3])
    groups = next((entry for entry in arguments if type(entry) is int), 1)
    channels = weight[1] * groups if transposed else weight[0]
    return row(name + case, f"aten.{name}.{overload}", made, f(*x), f(*weight), *([f(channels)] if bias else []))


CONVOLUTIONS = [
    convolution("conv1d", "default", (2, 4, 9), (6, 2, 3), [2], [1], [2], 2),
    convolution("conv1d", "padding", (2, 4, 9), (6, 4, 4), [1], "same", [1], 1, case="_same"),
    convolution("conv2d", "default", (4, 7, 6), (6, 4, 3, 3), [1, 1], [1, 1], case="_sample"),
    convolution("conv2d", "padding", (2, 4, 7, 6), (4, 1, 3, 2), [1, 1], "same", [2, 1], 4, case="_same"),
    convolution("conv2d", "padding", (2, 4, 7, 6), (4, 4, 3, 2), [2, 1], "valid", bias=False, case="_valid"),
    convolution("conv3d", "default", (2, 4, 5, 4, 5), (4, 2, 2, 3, 2), [1, 2, 1], [1, 1, 0], [2, 1, 1], 2),
    convolution("conv_transpose1d", "default", (2, 4, 5), (4, 3, 3), [2], [1], [1], 2, [1]),
    convolution("conv_transpose2d", "input", (2, 4, 4, 5), (4, 3, 3, 2), [2, 3], [1, 0], [1, 2], 2, [1, 2]),
    convolution("conv_transpose2d", "input", (4, 4, 5), (4, 3, 3, 2), bias=False, case="_sample"),
    convolution("conv_transpose3d", "input", (2, 2, 3, 3, 2), (2, 2, 2, 3, 2), [1, 2, 2], [0, 1, 0], [0, 1, 1]),
    convolution("convolution", "default", (2, 4, 7), (6, 2, 3), [2], [1], [1], False, [0], 2),
    convolution("convolution", "default", (2, 4, 4, 5), (4, 3, 3, 2), [2, 2], [1, 0], [1, 1], True, [1, 0], 1, case="_turned"),
]


def pad(name, shape, *arguments, case=""):
    return row(name.lstrip("_") + case, f"aten.{name}.default", lambda x: getattr(aten, name).default(x, *arguments), f(*shape))


PADS = [
    pad("constant_pad_nd", (2, 3, 4), [1, 2, 0, 1], 0.5), pad("constant_pad_nd", (2, 3, 4), [-1, 2, 0, -1], case="_cut"),
    pad("pad", (2, 3, 4), [2, 1], "reflect", case="_reflect"), pad("pad", (2, 3, 4), [2, 1], "replicate", case="_replicate"),
    pad("pad", (2, 3, 4), [2, 1], "circular", case="_wrap"), pad("_pad_circular", (2, 3, 4, 5), [2, 1, 3, 0]),
    pad("reflection_pad1d", (3, 4), [3, 2]), pad("reflection_pad2d", (2, 3, 4, 5), [1, 2, 3, 0]),
    pad("reflection_pad3d", (2, 3, 3, 4, 2), [1, 0, 2, 1, 0, 2]), pad("replication_pad1d", (2, 3, 4), [5, 2]),
    pad("replication_pad2d", (2, 3, 4, 5), [1, 2, 6, 0]), pad("replication_pad3d", (2, 3, 3, 2, 2), [1, 0, 2, 1, 3, 0]),
]

BLOCKS = [
    row("pixel_shuffle", "aten.pixel_shuffle.default", lambda x: aten.pixel_shuffle.default(x, 2), f(2, 2, 8, 3, 2)),
    row("pixel_unshuffle", "aten.pixel_unshuffle.default", lambda x: aten.pixel_unshuffle.default(x, 2), f(3, 4, 6)),
    row("channel_shuffle", "aten.channel_shuffle.default", lambda x: aten.channel_shuffle.default(x, 3), f(2, 6, 3, 2)),
    row("im2col", "aten.im2col.default", lambda x: aten.im2col.default(x, [2, 3], [2, 1], [1, 0], [1, 2]), f(2, 3, 5, 6)),
    row("im2col_sample", "aten.im2col.default", lambda x: aten.im2col.default(x, [2, 2], [1, 1], [0, 0], [2, 2]), f(3, 4, 6)),
    row("col2im", "aten.col2im.default", lambda x: aten.col2im.default(x, [5, 6], [2, 3], [2, 1], [1, 0], [1, 2]),
        f(2, 18, 10)),
]

ROWS = POOLS + CONVOLUTIONS + PADS + BLOCKS
