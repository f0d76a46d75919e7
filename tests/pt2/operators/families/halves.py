"""Rows: 16-bit floats. PyTorch's CPU rounds them at other places than its GPUs, whose way the importer takes, so that these
rows have a tolerance of their own (tests/models/test_operators.py)."""

import torch
from elementwise import same
from rows import f, i, row

aten = torch.ops.aten
bf16, f16 = torch.bfloat16, torch.float16

ROWS = [
    row("add_half", "aten.add.Tensor", lambda x, y: aten.add.Tensor(x, y, alpha=0.3), f(3, 4, dtype=bf16), f(4, dtype=bf16)),
    row("add_zero_rank", "aten.add.Tensor", aten.add.Tensor, f(3, 4, dtype=f16), f()),
    same("mul_types", "mul.Tensor", f(3, 4, dtype=bf16), f(4)),
    row("var_half", "aten.var.correction", lambda x: aten.var.correction(x, [-1]), f(3, 16, dtype=bf16)),
    row("mean_half", "aten.mean.dim", lambda x: aten.mean.dim(x, [1]), f(3, 64, dtype=bf16)),
    row("sum_half", "aten.sum.dim_IntList", lambda x: aten.sum.dim_IntList(x, [1]), f(3, 64, dtype=bf16)),
    row("prod_half", "aten.prod.dim_int", lambda x: aten.prod.dim_int(x, 1), f(3, 4, dtype=bf16, kind="positive")),
    row("amax_half", "aten.amax.default", lambda x: aten.amax.default(x, [1]), f(3, 6, dtype=f16)),
    row("norm_half", "aten.linalg_vector_norm.default", lambda x: aten.linalg_vector_norm.default(x, 2, [1]), f(3, 6, dtype=bf16)),
    row("softmax_dtype", "aten.softmax.int", lambda x: aten.softmax.int(x, 1, torch.float32), f(3, 4, dtype=bf16)),
    row("log_softmax_half", "aten.log_softmax.int", lambda x: aten.log_softmax.int(x, 1), f(3, 16, dtype=bf16)),
    same("mm_half", "mm.default", f(3, 4, dtype=bf16), f(4, 2, dtype=bf16)),
    same("gelu_half", "gelu.default", f(3, 4, dtype=bf16)), same("tanh_half", "tanh.default", f(3, 4, dtype=f16)),
    same("pow_tensor_half", "pow.Tensor_Tensor", f(3, 4, dtype=bf16, kind="positive"), f(4, dtype=bf16)),
    same("remainder_half", "remainder.Tensor", f(3, 4, dtype=bf16, kind="positive"), f(4, dtype=bf16, kind="positive")),
    row("where_half", "aten.where.self", lambda x, y: aten.where.self(x > 0, x, y), f(3, 4, dtype=bf16), f(4)),
    row("clamp_half", "aten.clamp.default", lambda x: aten.clamp.default(x, -0.3, 0.7), f(3, 4, dtype=bf16)),
    row("rms_norm_half", "aten.rms_norm.default", lambda x, y: aten.rms_norm.default(x, [4], y), f(3, 4, dtype=bf16), f(4, dtype=bf16)),
]
