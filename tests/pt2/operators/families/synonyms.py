"""Rows: functions by PyTorch's other names of them, and a few more functions."""

import torch
from elementwise import same
from rows import f, row

aten = torch.ops.aten


def of(name, overload, call, *inputs):
    return row(name, f"aten.{overload}", call, *inputs)


ROWS = [
    *(same(name, f"{name}.default", f(3, 4)) for name in
      ("absolute", "arcsinh", "arctan", "fix", "negative", "positive", "special_erf", "special_erfc", "special_exp2", "special_expit",
       "special_expm1", "deg2rad", "rad2deg", "sinc", "conj", "conj_physical", "resolve_conj", "resolve_neg", "real")),
    *(same(name, f"{name}.default", f(3, 4, kind="unit")) for name in
      ("arccos", "arcsin", "arctanh", "logit", "special_logit", "special_log1p", "special_gammaln", "special_psi")),
    of("arccosh", "arccosh.default", lambda x: aten.arccosh.default(x + 1), f(3, 4, kind="positive")),
    of("sinc_zero", "special_sinc.default", lambda x: aten.special_sinc.default(x), f(3, 4, kind="grid")),
    of("logit_eps", "logit.default", lambda x: aten.logit.default(x, 0.1), f(3, 4, kind="unit")),
    of("logit_edge", "logit.default", lambda x: aten.logit.default(x * 0.25 + 0.5, 0.25), f(3, 6, kind="grid")),
    of("clip", "clip.default", lambda x: aten.clip.default(x, -0.5, 0.5), f(3, 4)),
    of("clip_tensor", "clip.Tensor", lambda x, y: aten.clip.Tensor(x, y), f(3, 4), f(4)),
    *(of(name, f"{name}.Tensor", lambda x, y, call=getattr(aten, name).Tensor: aten.where.self(call(x, y), x, y), f(3, 4), f(4))
      for name in ("greater", "greater_equal", "less", "less_equal", "not_equal")),
    *(of(f"{name}_scalar", f"{name}.Scalar", lambda x, call=getattr(aten, name).Scalar: aten.where.ScalarOther(call(x, 0), x, 0.5),
         f(3, 4)) for name in ("greater", "greater_equal", "less", "less_equal", "not_equal")),
    of("subtract_scalar", "subtract.Scalar", lambda x: aten.subtract.Scalar(x, 2, 3), f(3, 4)),
    of("true_divide_scalar", "true_divide.Scalar", lambda x: aten.true_divide.Scalar(x, 3), f(3, 4)),
    of("divide_floor", "divide.Scalar_mode", lambda x: x + aten.divide.Scalar_mode(x, 0.3, rounding_mode="floor"), f(3, 4)),
    same("logaddexp2", "logaddexp2.default", f(3, 4), f(4)),
    same("special_xlogy", "special_xlogy.default", f(3, 4), f(4, kind="positive")),
    of("xlogy_scalar", "xlogy.Scalar_Self", lambda x: aten.xlogy.Scalar_Self(2, x), f(3, 4, kind="positive")),
    of("special_xlogy_scalar", "special_xlogy.other_scalar", lambda x: aten.special_xlogy.other_scalar(x, 2), f(3, 4)),
    of("special_softmax", "special_softmax.default", lambda x: aten.special_softmax.default(x, 1), f(3, 4)),
    of("special_log_softmax", "special_log_softmax.default", lambda x: aten.special_log_softmax.default(x, 1), f(3, 4)),
    of("special_logsumexp", "special_logsumexp.default", lambda x: aten.special_logsumexp.default(x, [1]), f(3, 4)),
    of("isposinf", "isposinf.default", lambda x: aten.where.ScalarSelf(aten.isposinf.default(1 / aten.relu.default(x)), 2, x), f(3, 4, kind="grid")),
    of("isneginf", "isneginf.default", lambda x: aten.where.ScalarSelf(aten.isneginf.default(-1 / aten.relu.default(x)), 2, x),
       f(3, 4, kind="grid")),
    of("to_other", "to.other", lambda x, y: aten.to.other(x, y) * y, f(3, 4), f(4, dtype=torch.bfloat16)),
    of("pow_zero", "pow.Tensor_Scalar", lambda x: aten.pow.Tensor_Scalar(x, 0), f(3, 4)),
    of("dropout_features_off", "feature_dropout.default", lambda x: aten.feature_dropout.default(x, 0.5, False), f(2, 3, 4)),
    of("alpha_dropout_off", "alpha_dropout.default", lambda x: aten.alpha_dropout.default(x, 0.0, True), f(2, 3, 4)),
]
