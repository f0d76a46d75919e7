"""Rows: sums, extremes, norms, running sums, orders."""

import torch
from elementwise import same
from rows import f, i, row

aten = torch.ops.aten
bf16 = torch.bfloat16


def extremes():
    for name in ("max", "min"):
        both, one = getattr(aten, name), getattr(aten, "a" + name)
        yield row(f"{name}_dim", f"aten.{name}.dim", lambda x, both=both: both.dim(x, 1), f(3, 6, kind="grid"))
        yield row(f"{name}_dim_keep", f"aten.{name}.dim", lambda x, both=both: both.dim(x, -2, True), f(3, 4, 2, kind="grid"))
        yield row(f"{name}_dim_int", f"aten.{name}.dim", lambda x, both=both: both.dim(x, 1), i(4, 5))
        yield row(f"{name}_all", f"aten.{name}.default", both.default, f(3, 6, kind="grid"))
        yield row(f"a{name}", f"aten.a{name}.default", lambda x, one=one: one.default(x, [1]), f(3, 6, kind="grid"))
        yield row(f"a{name}_all", f"aten.a{name}.default", lambda x, one=one: one.default(x), f(3, 6, kind="grid"))
        yield row(f"a{name}_dims", f"aten.a{name}.default", lambda x, one=one: one.default(x, [0, -1], True),
                  f(3, 4, 2, kind="grid"))
        yield row(f"a{name}_int", f"aten.a{name}.default", lambda x, one=one: one.default(x, [1]), i(4, 5))
        arg = getattr(aten, "arg" + name)
        yield row(f"arg{name}", f"aten.arg{name}.default", lambda x, arg=arg: arg.default(x, 1), f(3, 6, kind="grid"))
        yield row(f"arg{name}_all", f"aten.arg{name}.default", lambda x, arg=arg: arg.default(x), f(3, 6, kind="grid"))
        yield row(f"arg{name}_keep", f"aten.arg{name}.default", lambda x, arg=arg: arg.default(x, -2, True), i(4, 5))


ROWS = [
    row("any", "aten.any.default", lambda x: aten.any.default(x > 1), f(3, 4)),
    row("any_dim", "aten.any.dim", lambda x: aten.any.dim(x > 1, 1), f(3, 4)),
    row("any_dim_keep", "aten.any.dim", lambda x: aten.any.dim(x, -1, True), f(3, 4, kind="grid")),
    row("any_dims", "aten.any.dims", lambda x: aten.any.dims(x > 1, [0, 2]), f(3, 4, 2)),
    row("any_dims_all", "aten.any.dims", lambda x: aten.any.dims(x > 1), f(3, 4, 2)),
    row("all", "aten.all.default", lambda x: aten.all.default(x > -1), f(3, 4)),
    row("all_dim", "aten.all.dim", lambda x: aten.all.dim(x, 1), i(4, 3, high=3)),
    row("all_dims", "aten.all.dims", lambda x: aten.all.dims(x > -1, [0, 2]), f(3, 4, 2)),
    *extremes(),
    same("mean", "mean.default", f(3, 4)),
    row("mean_dim", "aten.mean.dim", lambda x: aten.mean.dim(x, [0, -1], True), f(3, 4, 2)),
    row("mean_dtype", "aten.mean.dim", lambda x: aten.mean.dim(x, [1], dtype=torch.float32), i(4, 5)),
    row("sum_dim", "aten.sum.dim_IntList", lambda x: aten.sum.dim_IntList(x, [1]), f(3, 4)),
    row("sum_dim_none", "aten.sum.dim_IntList", lambda x: aten.sum.dim_IntList(x, None), f(3, 4)),
    row("sum_dim_int", "aten.sum.dim_IntList", lambda x: aten.sum.dim_IntList(x, [0], True), i(4, 3)),
    row("sum_bool", "aten.sum.dim_IntList", lambda x: aten.sum.dim_IntList(x > 0, [0]), f(4, 3)),
    same("sum", "sum.default", f(3, 4)),
    same("prod", "prod.default", f(2, 3)), same("prod_zero", "prod.default", f(2, 2, kind="grid")),
    row("prod_dim", "aten.prod.dim_int", lambda x: aten.prod.dim_int(x, -1, True), f(3, 4)),
    row("prod_dim_zero", "aten.prod.dim_int", lambda x: aten.prod.dim_int(x, 1), f(5, 3, kind="grid")),
    row("prod_int", "aten.prod.dim_int", lambda x: aten.prod.dim_int(x, 1), i(4, 3)),
    row("var_dim", "aten.var.dim", lambda x: aten.var.dim(x, [1], False, True), f(3, 4)),
    row("var_correction", "aten.var.correction", lambda x: aten.var.correction(x, [0, 1]), f(3, 4)),
    row("var_correction_0", "aten.var.correction", lambda x: aten.var.correction(x, None, correction=0), f(3, 4)),
    row("var_correction_2", "aten.var.correction", lambda x: aten.var.correction(x, [-1], correction=2.5, keepdim=True), f(3, 4)),
    row("std_correction", "aten.std.correction", lambda x: aten.std.correction(x, [1]), f(3, 4)),
    row("std_dim", "aten.std.dim", lambda x: aten.std.dim(x, [1], True, True), f(3, 4)),
    row("std_all", "aten.std.default", lambda x: aten.std.default(x), f(3, 4)),
    row("var_all", "aten.var.default", lambda x: aten.var.default(x, False), f(3, 4)),
    row("std_zero", "aten.std.correction", lambda x: aten.std.correction(torch.cat([x, x], 1), [1]), f(3, 1)),
    row("var_mean", "aten.var_mean.correction", lambda x: aten.var_mean.correction(x, [1], correction=0), f(3, 4)),
    row("std_mean", "aten.std_mean.correction", lambda x: aten.std_mean.correction(x, [1], keepdim=True), f(3, 4)),
    row("logsumexp", "aten.logsumexp.default", lambda x: aten.logsumexp.default(x, [1]), f(3, 4)),
    row("logsumexp_dims", "aten.logsumexp.default", lambda x: aten.logsumexp.default(x * 50, [0, -1], True), f(3, 4, 2)),
    row("vector_norm", "aten.linalg_vector_norm.default", lambda x: aten.linalg_vector_norm.default(x, 2, [1]), f(3, 4)),
    row("vector_norm_zero", "aten.linalg_vector_norm.default", lambda x: aten.linalg_vector_norm.default(x * 0, 2, [1]), f(3, 4)),
    row("vector_norm_1", "aten.linalg_vector_norm.default", lambda x: aten.linalg_vector_norm.default(x, 1, [-1], True),
        f(3, 4, kind="grid")),
    row("vector_norm_3", "aten.linalg_vector_norm.default", lambda x: aten.linalg_vector_norm.default(x, 3), f(3, 4)),
    row("vector_norm_inf", "aten.linalg_vector_norm.default", lambda x: aten.linalg_vector_norm.default(x, float("inf"), [1]),
        f(3, 4)),
    row("norm_scalar", "aten.norm.ScalarOpt_dim", lambda x: aten.norm.ScalarOpt_dim(x, 2, [1]), f(3, 4)),
    row("norm", "aten.norm.Scalar", lambda x: aten.norm.Scalar(x), f(3, 4)),
    row("cumsum", "aten.cumsum.default", lambda x: aten.cumsum.default(x, 1), f(3, 4)),
    row("cumsum_int", "aten.cumsum.default", lambda x: aten.cumsum.default(x, -2), i(4, 3)),
    row("cumsum_bool", "aten.cumsum.default", lambda x: aten.cumsum.default(x > 0, 0), f(5, 3)),
    row("cumprod", "aten.cumprod.default", lambda x: aten.cumprod.default(x, 1), f(3, 4)),
    row("cumprod_zero", "aten.cumprod.default", lambda x: aten.cumprod.default(x, 1), f(5, 4, kind="grid")),
    row("logcumsumexp", "aten.logcumsumexp.default", lambda x: aten.logcumsumexp.default(x, 1), f(3, 4)),
    row("sort", "aten.sort.default", lambda x: aten.sort.default(x), f(3, 6, kind="distinct")),
    row("sort_descending", "aten.sort.default", lambda x: aten.sort.default(x, 0, True), f(5, 2, kind="distinct")),
    row("sort_stable", "aten.sort.stable", lambda x: aten.sort.stable(x, stable=True, dim=1), f(3, 6, kind="grid")),
    row("sort_int", "aten.sort.default", lambda x: aten.sort.default(x, 1)[0], i(4, 6)),
    row("argsort", "aten.argsort.default", lambda x: aten.argsort.default(x, 1, True), f(3, 6, kind="distinct")),
    row("topk", "aten.topk.default", lambda x: aten.topk.default(x, 2), f(3, 6, kind="distinct")),
    row("topk_smallest", "aten.topk.default", lambda x: aten.topk.default(x, 3, 0, False), f(5, 2, kind="distinct")),
]
