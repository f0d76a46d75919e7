"""Rows: functions of one tensor."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten


def unary(name, kind="normal", **more):
    return row(name, f"aten.{name}.default", getattr(aten, name).default, f(3, 4, kind=kind), **more)


ROWS = [
    unary("abs"), unary("acos", "unit"), unary("asin", "unit"), unary("atan"), unary("asinh"), unary("cos"), unary("cosh"),
    unary("atanh", "unit"), unary("sin"), unary("sinh"), unary("tan", "unit"), unary("tanh"),
    row("acosh", "aten.acosh.default", lambda x: aten.acosh.default(x + 1), f(3, 4, kind="positive")),
    unary("exp"), unary("expm1"), unary("log", "positive"), unary("log1p", "positive"), unary("log2", "positive"),
    unary("log10", "positive"), unary("sqrt", "positive"), unary("rsqrt", "positive"), unary("reciprocal", "positive"),
    unary("erf"), unary("sigmoid"), unary("neg"), unary("relu"), unary("silu"), unary("square"),
    unary("ceil"), unary("floor"), unary("round"), unary("trunc"), unary("sign"),
    # Beside the zeros at 1 and 2, of both signs, and far from 0.
    row("lgamma", "aten.lgamma.default", lambda x, y: (aten.lgamma.default(torch.cat([x * 4, y, x * 1e-3 + 1, x * 1e-6 + 2])),
                                                        aten.lgamma.default(y * 1e9) * 1e-11), f(12), f(12, kind="positive")),
    row("digamma", "aten.digamma.default", lambda x: aten.digamma.default(torch.cat([x * 4, x * 0.01 + 1.4616])), f(12)),
    row("lgamma_double", "aten.lgamma.default", lambda x: aten.lgamma.default(x.double()), f(3), refused="torch.float32"),
    row("abs_int", "aten.abs.default", aten.abs.default, i(4, 3, low=-5, high=6)),
    row("relu_int", "aten.relu.default", aten.relu.default, i(4, 3, low=-5, high=6)),
    row("exp_int", "aten.exp.default", aten.exp.default, i(4, 3, low=-2, high=3)),
    row("relu_zero", "aten.relu.default", aten.relu.default, f(3, 5, kind="grid")),
    row("abs_zero", "aten.abs.default", aten.abs.default, f(3, 5, kind="grid")),
    row("sign_zero", "aten.sign.default", aten.sign.default, f(3, 5, kind="grid")),
    row("round_half", "aten.round.default", lambda x: aten.round.default(x * 0.5), f(3, 5, kind="grid")),
    row("isnan", "aten.isnan.default", lambda x: aten.isnan.default(x / x), f(3, 5, kind="grid")),
    row("isinf", "aten.isinf.default", lambda x: aten.isinf.default(1 / x), f(3, 5, kind="grid")),
    row("elu", "aten.elu.default", lambda x: aten.elu.default(x, 0.7, 1.2, 0.9), f(3, 4)),
    row("elu_plain", "aten.elu.default", aten.elu.default, f(3, 5, kind="grid")),
    row("gelu", "aten.gelu.default", aten.gelu.default, f(3, 4)),
    row("gelu_tanh", "aten.gelu.default", lambda x: aten.gelu.default(x, approximate="tanh"), f(3, 4)),
    row("hardtanh", "aten.hardtanh.default", aten.hardtanh.default, f(3, 5, kind="grid")),
    row("hardtanh_limits", "aten.hardtanh.default", lambda x: aten.hardtanh.default(x, -0.5, 0.7), f(3, 4)),
    row("leaky_relu", "aten.leaky_relu.default", aten.leaky_relu.default, f(3, 5, kind="grid")),
    row("leaky_relu_slope", "aten.leaky_relu.default", lambda x: aten.leaky_relu.default(x, 0.3), f(3, 4)),
    row("clamp", "aten.clamp.default", lambda x: aten.clamp.default(x, -1, 1), f(3, 5, kind="grid")),
    row("clamp_int_limit", "aten.clamp.default", lambda x: aten.clamp.default(x, min=0.5), i(4, 3, low=-3, high=4)),
    row("clamp_max", "aten.clamp.default", lambda x: aten.clamp.default(x, None, 0.5), f(3, 4)),
    row("clamp_tensor", "aten.clamp.Tensor", aten.clamp.Tensor, f(3, 4, kind="grid"), f(4, kind="grid"), f(3, 1, kind="grid")),
    row("clamp_tensor_min", "aten.clamp.Tensor", lambda x, y: aten.clamp.Tensor(x, min=y), f(3, 4), f(4)),
]
