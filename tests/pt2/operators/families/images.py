"""Rows: interpolation, images read at computed positions."""

import torch
from rows import f, row

aten = torch.ops.aten


def resize(name, shape, *arguments, case="", overload="vec"):
    function = getattr(getattr(aten, name), overload)
    return row(f"{name.lstrip('_')}_{overload}{case}", f"aten.{name}.{overload}", lambda x: function(x, *arguments), f(*shape))


def grid(name, mode, padding, corners, shape=(2, 3, 4, 5), result=(3, 3)):
    # Where all that a cubic sees is one element, its slope is rounding, which the optimizer makes as large as any.
    reach = 0.3 if mode == 2 else 0.9
    return row(f"{name}_{mode}{padding}{int(corners)}", f"aten.{name}.default",
               lambda x, g: getattr(aten, name).default(x, g * reach, mode, padding, corners),
               f(*shape), f(shape[0], *result, len(result)))


ROWS = [
    resize("upsample_nearest1d", (2, 3, 5), [8], None), resize("upsample_nearest2d", (2, 3, 4, 5), None, [2.0, 1.7]),
    resize("upsample_nearest3d", (2, 2, 3, 2, 3), [5, 4, 2], None),
    resize("upsample_nearest2d", (2, 3, 4, 5), [7, 3], overload="default"),
    resize("_upsample_nearest_exact1d", (2, 3, 5), [8], None), resize("_upsample_nearest_exact2d", (2, 3, 4, 5), None, [2.0, 0.6]),
    resize("_upsample_nearest_exact3d", (2, 2, 3, 2, 3), [5, 4, 2], None),
    resize("upsample_linear1d", (2, 3, 5), [8], False, None), resize("upsample_linear1d", (2, 3, 5), [8], True, None, case="_corners"),
    resize("upsample_bilinear2d", (2, 3, 4, 5), None, False, [2.0, 1.7]),
    resize("upsample_bilinear2d", (2, 3, 4, 5), [3, 8], True, None, case="_corners"),
    resize("upsample_bilinear2d", (2, 3, 4, 5), [7, 1], False, overload="default"),
    resize("upsample_trilinear3d", (2, 2, 3, 2, 3), [5, 4, 2], False, None),
    resize("upsample_bicubic2d", (2, 3, 4, 5), None, False, [2.0, 0.6]),
    resize("upsample_bicubic2d", (2, 3, 4, 5), [7, 9], True, None, case="_corners"),
    resize("_upsample_bilinear2d_aa", (2, 3, 9, 8), [4, 10], False, None),
    resize("_upsample_bicubic2d_aa", (2, 3, 9, 8), [4, 10], False, None),
    grid("grid_sampler", 0, 0, False), grid("grid_sampler", 0, 1, True), grid("grid_sampler_2d", 0, 2, False),
    grid("grid_sampler", 1, 0, False), grid("grid_sampler", 2, 1, False),
    grid("grid_sampler_3d", 0, 0, True, (2, 2, 3, 4, 3), (2, 2, 3)),
    row("affine_grid", "aten.affine_grid_generator.default",
        lambda t: aten.affine_grid_generator.default(t, [2, 3, 4, 5], False), f(2, 2, 3)),
    row("affine_grid_corners", "aten.affine_grid_generator.default",
        lambda t: aten.affine_grid_generator.default(t, [2, 3, 2, 3, 4], True), f(2, 3, 4)),
]
