"""Rows: arithmetic, comparisons, selection, conversion."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten
bf16, f16 = torch.bfloat16, torch.float16


def op(name):
    packet, overload = name.split(".")
    return getattr(getattr(aten, packet), overload)


def same(name, overload, *inputs, **more):
    """A row that calls an operator with the inputs only."""
    return row(name, f"aten.{overload}", op(overload), *inputs, **more)


def scalar(name, overload, value, *inputs, **keywords):
    return row(name, f"aten.{overload}", lambda x: op(overload)(x, value, **keywords), *inputs)


def comparisons():
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        yield same(name + "_tensor", name + ".Tensor", f(3, 4, kind="grid"), f(4, kind="grid"))
        yield scalar(name + "_scalar", name + ".Scalar", 1, f(3, 4, kind="grid"))
        yield scalar(name + "_int", name + ".Scalar", 0.5, i(4, 3, low=-2, high=3))


def bits():
    for name in ("and", "or", "xor"):
        yield row(f"bitwise_{name}", f"aten.bitwise_{name}.Tensor", lambda x, y, name=name:
                  op(f"bitwise_{name}.Tensor")(x > 0, y > 0), f(3, 4), f(4))
        yield row(f"bitwise_{name}_scalar", f"aten.bitwise_{name}.Scalar", lambda x, name=name:
                  op(f"bitwise_{name}.Scalar")(x > 0, True), f(3, 4))
        yield row(f"bitwise_{name}_known", f"aten.bitwise_{name}.Tensor aten.bitwise_{name}.Scalar", lambda x, y, name=name: (
            op(f"bitwise_{name}.Tensor")(x, y), op(f"bitwise_{name}.Scalar")(x, 12)), k([[5, -7, 9]]), k([[3], [-4]]))
        yield row(f"bitwise_{name}_mixed", f"aten.bitwise_{name}.Tensor aten.bitwise_{name}.Scalar", lambda x, y, name=name: (
            op(f"bitwise_{name}.Tensor")(x > 0, y), op(f"bitwise_{name}.Tensor")(y, x > 0), op(f"bitwise_{name}.Scalar")(x > 0, 6)),
            f(3, 4), k([[1], [-6], [0]]))
        yield row(f"bitwise_{name}_int", f"aten.bitwise_{name}.Tensor", op(f"bitwise_{name}.Tensor"), i(4, 3), i(4, 3),
                  refused="operands are neither boolean nor known")
        yield row(f"logical_{name}", f"aten.logical_{name}.default", op(f"logical_{name}.default"), f(3, 4, kind="grid"),
                  i(4, high=2))


ROWS = [
    row("add", "aten.add.Tensor", lambda x, y: aten.add.Tensor(x, y, alpha=2), f(3, 4), f(4)),
    scalar("add_scalar", "add.Scalar", 0.5, f(3, 4)),
    row("add_int_float", "aten.add.Tensor", aten.add.Tensor, i(4, 3), f(3)),
    row("add_bool", "aten.add.Tensor", lambda x, y: aten.add.Tensor(x > 0, y > 0), f(3, 4), f(4)),
    row("sub", "aten.sub.Tensor", lambda x, y: aten.sub.Tensor(x, y, alpha=3), f(3, 4), f(4)),
    row("sub_scalar", "aten.sub.Scalar", lambda x: aten.sub.Scalar(x, 0.5, 2), f(3, 4)),
    row("rsub_scalar", "aten.rsub.Scalar", lambda x: aten.rsub.Scalar(x, 0.5, 2), f(3, 4)),
    same("mul", "mul.Tensor", f(3, 4), f(3, 1)),
    scalar("mul_scalar", "mul.Scalar", 1.5, f(3, 4)),
    scalar("mul_int_scalar", "mul.Scalar", 1.5, i(4, 3)),
    row("mul_bool", "aten.mul.Tensor", lambda x, y: aten.mul.Tensor(x > 0, y > 0), f(3, 4), f(4)),
    row("mul_bool_float", "aten.mul.Tensor", lambda x, y: aten.mul.Tensor(x > 0, y), f(3, 4), f(4)),
    same("div", "div.Tensor", f(3, 4), f(4, kind="positive")),
    same("div_int", "div.Tensor", i(4, 3), i(4, 3, low=1, high=4)),
    scalar("div_scalar", "div.Scalar", 1.5, f(3, 4)),
    row("div_trunc", "aten.div.Tensor_mode", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="trunc"),
        i(4, 3, low=-7, high=8), i(4, 3, low=1, high=4)),
    row("div_floor", "aten.div.Tensor_mode", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="floor"),
        i(4, 3, low=-7, high=8), i(4, 3, low=1, high=4)),
    row("div_mode_none", "aten.div.Tensor_mode", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode=None), f(3, 4),
        f(4, kind="positive")),
    row("div_floor_float", "aten.div.Tensor_mode", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="floor"),
        f(3, 4), f(4, kind="positive")),
    row("div_floor_grid", "aten.div.Tensor_mode", lambda x: aten.div.Tensor_mode(x, torch.full_like(x, -0.1),
                                                                                  rounding_mode="floor"), f(3, 4, kind="grid")),
    row("div_trunc_float", "aten.div.Tensor_mode", lambda x, y: aten.div.Tensor_mode(x, y, rounding_mode="trunc"),
        f(3, 4), f(4, kind="positive")),
    row("div_scalar_floor", "aten.div.Scalar_mode", lambda x: aten.div.Scalar_mode(x, -3, rounding_mode="floor"),
        i(4, 3, low=-7, high=8)),
    row("div_scalar_trunc", "aten.div.Scalar_mode", lambda x: aten.div.Scalar_mode(x, -0.4, rounding_mode="trunc"), f(4, 3)),
    same("floor_divide", "floor_divide.default", i(4, 3, low=-7, high=8), k([-3, 2, 5])),
    row("floor_divide_float", "aten.floor_divide.default", lambda x, y: aten.floor_divide.default(x.detach(), y.detach()), f(4, 3),
        f(3, kind="positive")),
    same("fmod", "fmod.Tensor", f(3, 4), f(4, kind="positive")),
    scalar("fmod_scalar", "fmod.Scalar", -0.3, f(3, 4)),
    same("fmod_int", "fmod.Tensor", i(4, 3, low=-7, high=8), k([-3, 2, 5])),
    scalar("fmod_int_scalar", "fmod.Scalar", 3, i(4, 3, low=-7, high=8)),
    same("remainder", "remainder.Tensor", f(3, 4), f(4, kind="positive")),
    scalar("remainder_scalar", "remainder.Scalar", -0.3, f(3, 4)),
    scalar("remainder_near", "remainder.Scalar", 0.1, k([[0.3, 0.7, -0.1, 0.9, 1e-9, -1e-9, 5.0, 1e6 + 0.05]])),
    scalar("fmod_near", "fmod.Scalar", 0.1, k([[0.3, 0.7, -0.1, 0.9, 1e-9, -1e-9, 5.0, 1e6 + 0.05]])),
    scalar("remainder_whole", "remainder.Scalar", 0.1, k([[1.0, 0.3, 0.6, 0.9, 1.2, 2.1, -1.0, -0.3]])),
    scalar("fmod_whole", "fmod.Scalar", 0.1, k([[1.0, 0.3, 0.6, 0.9, 1.2, 2.1, -1.0, -0.3]])),
    scalar("floor_divide_whole", "floor_divide.Scalar", 0.1, k([[1.0, 0.3, 0.6, 0.9, 1.2, 2.1, -1.0, -0.3]])),
    same("remainder_int", "remainder.Tensor", i(4, 3, low=-7, high=8), k([-3, 2, 5])),
    scalar("remainder_int_scalar", "remainder.Scalar", 3, i(4, 3, low=-7, high=8)),
    scalar("pow_2", "pow.Tensor_Scalar", 2, f(3, 4)), scalar("pow_3", "pow.Tensor_Scalar", 3, f(3, 4)),
    scalar("pow_0", "pow.Tensor_Scalar", 0, f(3, 4)), scalar("pow_1", "pow.Tensor_Scalar", 1, f(3, 4)),
    scalar("pow_4", "pow.Tensor_Scalar", 4, f(3, 4, kind="grid")),
    scalar("pow_minus_2", "pow.Tensor_Scalar", -2, f(3, 4, kind="positive")),
    scalar("pow_minus_2_signed", "pow.Tensor_Scalar", -2, f(3, 4, kind="distinct")),
    scalar("pow_half", "pow.Tensor_Scalar", 0.5, f(3, 4, kind="positive")),
    scalar("pow_float", "pow.Tensor_Scalar", 1.7, f(3, 4, kind="positive")),
    scalar("pow_int", "pow.Tensor_Scalar", 3, i(4, 3, low=-3, high=4)),
    scalar("pow_int_float", "pow.Tensor_Scalar", 1.5, i(4, 3, high=4)),
    same("pow_tensor", "pow.Tensor_Tensor", f(3, 4, kind="positive"), f(4)),
    same("pow_int_tensor", "pow.Tensor_Tensor", f(3, 4, kind="distinct"), i(4, low=-2, high=4)),
    same("pow_ints", "pow.Tensor_Tensor", i(4, 3, low=-3, high=4), i(4, 3), refused="powers of integers"),
    row("pow_scalar", "aten.pow.Scalar", lambda x: aten.pow.Scalar(1.7, x), f(3, 4)),
    row("pow_scalar_int", "aten.pow.Scalar", lambda x: aten.pow.Scalar(2.5, x), i(4, 3, low=-2, high=4)),
    same("maximum", "maximum.default", f(3, 4, kind="grid"), f(4, kind="grid")),
    same("minimum", "minimum.default", f(3, 4, kind="grid"), f(4, kind="grid")),
    same("maximum_int", "maximum.default", i(4, 3), i(4, 3)), same("minimum_int", "minimum.default", i(4, 3), i(4, 3)),
    same("fmax", "fmax.default", f(3, 4, kind="grid"), f(4, kind="grid")),
    same("fmin", "fmin.default", f(3, 4, kind="grid"), f(4, kind="grid")),
    same("max_other", "max.other", f(3, 4, kind="grid"), f(4, kind="grid")),
    same("min_other", "min.other", f(3, 4, kind="grid"), f(4, kind="grid")),
    same("atan2", "atan2.default", f(4, 4), f(4)),
    row("atan2_zeros", "aten.atan2.default", lambda x, y: x + aten.atan2.default(x.detach() * 0, y.detach() * 0), f(4, 8), f(4, 8)),
    row("atan2_axes", "aten.atan2.default", lambda x, y: aten.atan2.default(x, y + (y == 0).float() * (x == 0).float()),
        f(5, 5, kind="grid"), f(5, kind="grid")),
    same("hypot", "hypot.default", f(3, 4), f(4)),
    row("addcmul", "aten.addcmul.default", lambda x, y, z: aten.addcmul.default(x, y, z, value=0.3), f(3, 4), f(4), f(3, 1)),
    row("addcdiv", "aten.addcdiv.default", lambda x, y, z: aten.addcdiv.default(x, y, z, value=0.3), f(3, 4), f(4),
        f(3, 1, kind="positive")),
    row("lerp_scalar", "aten.lerp.Scalar", lambda x, y: aten.lerp.Scalar(x, y, 0.3), f(3, 4), f(4)),
    row("lerp_far", "aten.lerp.Scalar", lambda x, y: aten.lerp.Scalar(x, y, 0.8), f(3, 4), f(4)),
    same("lerp_tensor", "lerp.Tensor", f(3, 4), f(4), f(3, 1, kind="unit")),
    same("logaddexp", "logaddexp.default", f(3, 4), f(4)),
    same("xlogy", "xlogy.Tensor", f(3, 4, kind="grid"), f(4, kind="positive")),
    same("where", "where.self", k([[True, False, True]]), f(4, 3), f(4, 1)),
    row("where_scalar_other", "aten.where.ScalarOther", lambda x: aten.where.ScalarOther(x > 0, x, 0.5), f(4, 3)),
    row("where_scalar_self", "aten.where.ScalarSelf", lambda x: aten.where.ScalarSelf(x > 0, 0.5, x), f(4, 3)),
    row("where_scalar", "aten.where.Scalar", lambda x: aten.where.Scalar(x > 0, 0.5, 2.0), f(4, 3)),
    row("where_mixed", "aten.where.self", lambda x, y: aten.where.self(x > 0, x, y), f(4, 3), i(4, 3)),
    row("masked_fill", "aten.masked_fill.Scalar", lambda x, y: aten.masked_fill.Scalar(x, y > 0, -2.0), f(4, 3), f(3)),
    row("masked_fill_tensor", "aten.masked_fill.Tensor", lambda x, y, z: aten.masked_fill.Tensor(x, y > 0, z), f(4, 3), f(3), f()),
    row("masked_fill_bool", "aten.masked_fill.Scalar", lambda x, y: aten.masked_fill.Scalar(x > 0, y > 0, True), f(4, 3), f(3)),
    same("clone", "clone.default", f(3, 4)), same("alias", "alias.default", f(3, 4)),
    row("copy", "aten.copy.default", lambda x, y: aten.copy.default(x.detach(), y), f(3, 4), i(4)),
    row("fill", "aten.fill.Scalar", lambda x: aten.fill.Scalar(x, 1.5), f(3, 4)),
    row("to_copy", "aten._to_copy.default", lambda x: aten._to_copy.default(x, dtype=bf16), f(3, 4)),
    row("to_int", "aten._to_copy.default", lambda x: aten._to_copy.default(x, dtype=torch.int64), f(3, 4, kind="distinct")),
    row("to_bool", "aten._to_copy.default", lambda x: aten._to_copy.default(x, dtype=torch.bool), f(3, 4, kind="grid")),
    row("bitwise_not", "aten.bitwise_not.default", aten.bitwise_not.default, i(4, 3, low=-3, high=4)),
    row("bitwise_not_bool", "aten.bitwise_not.default", lambda x: aten.bitwise_not.default(x > 0), f(4, 3)),
    same("logical_not", "logical_not.default", f(4, 3, kind="grid")),
    *comparisons(), *bits(),
]
