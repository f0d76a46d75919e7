"""Rows: complex numbers between real ones."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten
COMPLEX = "complex numbers are not supported"
TABLE = torch.polar(torch.tensor([[0.5], [1.0], [2.0]]), torch.arange(12.0).reshape(3, 4))
TURNED = TABLE.t().contiguous().t()  # the same values, by columns


def real(z):
    """All of a complex tensor, as a real one."""
    return aten.view_as_real.default(z)


def moved(name, overload, function, *shape, **options):
    """A row of an operator that moves elements of z."""
    return row(name, f"aten.{overload}", lambda x, y: real(function(torch.complex(x, y))), f(*shape), f(*shape), **options)


def rotary(x, angle):
    """As DeepSeek-V2 and Llama 4 have it."""
    rotation = torch.polar(torch.ones_like(angle), angle) * 1.25
    turned = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2)) * rotation[:, None, :].to(x.device)
    return torch.view_as_real(turned).flatten(2).type_as(x)


def cached(positions, x, table):
    """As Llama's first code has it: a buffer of complex numbers, of which rows are read."""
    return rotary_by(x, table[positions])


def rotary_by(x, rotation):
    return torch.view_as_real(torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * rotation).flatten(-2)


def without_gradient(x, y):
    with torch.no_grad():
        z = torch.view_as_complex(torch.stack([x, y], -1))
    return real(z * torch.complex(y, x))


def changed(x, y):
    """In place, with a view that is read before and after."""
    z = torch.complex(x, y) * 2
    parts = torch.view_as_real(z)
    first = parts * 1.0
    z.mul_(torch.complex(y, x))
    return first + parts


def reshaped(z):
    """Many views of one tensor (3, 4)."""
    z = aten.swapaxes.default(aten.movedim.int(aten.t.default(z), 0, 1), 0, 1).mT
    z = aten.unflatten.int(z, -1, [2, 2])
    z = aten.squeeze.dims(z.unsqueeze(0), [0])
    z = aten.view_as.default(z, aten.expand_as.default(z, z.real))
    return aten.squeeze.default(aten.concat.default(aten.chunk.default(z, 2, -1), -2))


def repeated(z):
    """Copies of a tensor (3, 4), in another order."""
    z = aten.roll.default(aten.repeat.default(z, [2, 1]), [1], [0])
    return aten.sub.Scalar(aten.add.Scalar(aten.mul.Scalar(aten.split_with_sizes.default(z, [2, 4])[1], 1.5), 2.0), 0.5)


def k0():
    return torch.zeros(())


def filled(z):
    """In place, as filters of frequencies have it."""
    z = z * 1.0
    z[:, 2:] = 0
    z[0] = 1.5
    return z


def written(z):
    """In place, as Fourier neural operators have it."""
    made = torch.zeros(4, 6, dtype=torch.cfloat)
    made[:2, :3] = z[:2, :3] * z[2:, 1:]
    made[-2:, 3] = z[:2, 0]
    made[0, 4:] = z[1, :2].real
    return made



def nothing(x):
    """Zeros, of which PyTorch has no gradient of a root."""
    return torch.complex(x * 0, x * 0).detach()


ROWS = [
    row("rotary", "aten.polar.default aten.view_as_complex.default", rotary, f(3, 2, 8), f(3, 4)),
    row("rotary_table", "aten.index.Tensor aten.mul.Tensor", cached, i(4, 3, high=3), f(4, 3, 8), k(TABLE)),
    row("rotary_rows", "aten.embedding.default", lambda at, x, table: rotary_by(x, aten.embedding.default(table, at)),
        i(4, 3, high=3), f(4, 3, 8), k(TABLE)),
    row("rotary_start", "aten.slice.Tensor aten.view.default", lambda x, table: rotary_by(x, table[:2].view(2, 1, 4)),
        f(2, 3, 8), k(TABLE)),
    row("rotary_turned", "aten.slice.Tensor", lambda x, table: rotary_by(x, table[1:]), f(2, 8), k(TURNED)),
    row("rotary_wide", "aten.mul.Tensor", lambda x, table: rotary_by(x.double(), table), f(3, 8), k(TABLE.to(torch.complex128))),
    row("rotary_known", "aten.exp.default", lambda x: rotary_by(x, torch.exp(1j * torch.arange(4.0))), f(2, 8)),
    row("polar", "aten.polar.default", lambda x, y: real(aten.polar.default(x, y)), f(3, 4, kind="positive"), f(4)),
    row("polar_corner", "aten.polar.default", lambda x, y: real(aten.polar.default(x, y)), f(3, 4, kind="grid"), f(3, 4)),
    row("complex", "aten.complex.default", lambda x, y: real(aten.complex.default(x, y)), f(3, 1), f(4)),
    row("complex_scalar", "aten.complex.default", lambda x, y: real(aten.complex.default(x, y)), f(), f()),
    row("view_as_complex", "aten.view_as_complex.default", lambda x: aten.view_as_complex.default(x).abs(), f(3, 4, 2)),
    row("mul", "aten.mul.Tensor", lambda x, y, z: real(torch.complex(x, y) * torch.complex(z, x[0])), f(3, 4), f(3, 4), f(4)),
    row("mul_real", "aten.mul.Tensor", lambda x, y, z: real(torch.complex(x, y) * z), f(3, 4), f(3, 4), f(2, 1, 4)),
    row("mul_by_real", "aten.mul.Tensor", lambda x, y, z: real(z * torch.complex(x, y)), f(3, 4), f(3, 4), f(4)),
    row("mul_integers", "aten.mul.Tensor", lambda x, y, z: real(torch.complex(x, y) * z), f(4, 3), f(4, 3), i(4, 3)),
    row("mul_number", "aten.mul.Tensor", lambda x, y: real(torch.complex(x, y) * 1.5), f(3, 4), f(3, 4)),
    row("mul_complex_number", "aten.mul.Tensor", lambda x, y: real(torch.complex(x, y) * (1 + 2j)), f(3, 4), f(3, 4)),
    row("mul_real_complex_number", "aten.mul.Tensor", lambda x: real(x * (0.5 - 2j)), f(3, 4)),
    row("mul_in_place", "aten.mul_.Tensor", changed, f(3, 4), f(3, 4)),
    row("add", "aten.add.Tensor", lambda x, y, z: real(torch.add(torch.complex(x, y), torch.complex(z, y[0]), alpha=0.5)),
        f(3, 4), f(3, 4), f(4)),
    row("add_real", "aten.add.Tensor", lambda x, y, z: real(z + torch.complex(x, y) + 2j), f(3, 4), f(3, 4), f(4)),
    row("sub", "aten.sub.Tensor", lambda x, y, z: real(torch.sub(z, torch.complex(x, y), alpha=2)), f(3, 4), f(3, 4), f(4)),
    row("sub_number", "aten.sub.Tensor", lambda x, y: real(torch.complex(x, y) - (1 - 1j)), f(3, 4), f(3, 4)),
    row("rsub", "aten.rsub.Scalar", lambda x, y: real(aten.rsub.Scalar(torch.complex(x, y), 1.5)), f(3, 4), f(3, 4)),
    row("div_real", "aten.div.Tensor", lambda x, y, z: real(torch.complex(x, y) / z / 3), f(3, 4), f(3, 4),
        f(4, kind="positive")),
    row("abs", "aten.abs.default", lambda x, y: torch.complex(x, y).abs(), f(3, 4), f(3, 4)),
    row("abs_corner", "aten.abs.default", lambda x, y: torch.complex(x, y).abs(), f(3, 8, kind="grid"), f(3, 8, kind="grid")),
    row("exp", "aten.exp.default", lambda x, y: real(torch.complex(x, y).exp()), f(3, 4), f(3, 4)),
    row("neg", "aten.neg.default", lambda x, y: real(-torch.complex(x, y)), f(3, 4), f(3, 4)),
    row("real", "aten.real.default", lambda x, y: torch.complex(x, y * x).real, f(3, 4), f(3, 4)),
    row("imag", "aten.imag.default", lambda x, y: torch.complex(x * y, y).imag, f(3, 4), f(3, 4)),
    row("real_of_real", "aten.real.default", lambda x: aten.real.default(x), f(3, 4)),
    row("conj", "aten._conj.default", lambda x, y: real(torch.complex(x, y).conj() * torch.complex(y, y)), f(3, 4), f(3, 4)),
    row("conj_resolved", "aten.resolve_conj.default", lambda x, y: real(torch.complex(x, y).conj().resolve_conj()),
        f(3, 4), f(3, 4)),
    row("conj_physical", "aten.conj_physical.default", lambda x, y: real(torch.complex(x, y).conj_physical()), f(3, 4), f(3, 4)),
    row("to_complex", "aten.to.dtype", lambda x, y: real(x.to(torch.complex64) * torch.complex(x, y)), f(3, 4), f(3, 4)),
    row("to_wide", "aten.to.dtype", lambda x, y: real(torch.complex(x, y).to(torch.complex128)), f(3, 4), f(3, 4)),
    row("to_real", "aten.to.dtype", lambda x, y: torch.complex(x, x * y).to(torch.float32), f(3, 4), f(3, 4)),
    row("type_as", "aten.type_as.default", lambda x, y: real(x.type_as(torch.complex(x, y)) + torch.complex(x, y)), f(3, 4),
        f(3, 4)),
    row("detach", "aten.detach.default", lambda x, y: real(torch.complex(x, y).detach() * torch.complex(x, y)), f(3, 4), f(3, 4)),
    row("no_grad", "aten.view_as_real.default", without_gradient, f(3, 4), f(3, 4)),
    row("number", "aten.lift_fresh_copy.default", lambda x: real(x * torch.tensor([1j, 2 - 1j])), f(3, 2)),
    moved("cat", "cat.default", lambda z: torch.cat([z, z * 1j], -1), 3, 4),
    moved("stack", "stack.default", lambda z: torch.stack([z, z * 1j], 1), 3, 4),
    moved("clone", "clone.default", lambda z: z.clone(), 3, 4),
    moved("expand", "expand.default", lambda z: z.expand(2, -1, 4), 3, 1),
    moved("flatten", "flatten.using_ints", lambda z: z.flatten(1), 3, 4, 2),
    moved("flip", "flip.default", lambda z: z.flip(-1), 3, 4),
    moved("index_select", "index_select.default", lambda z: torch.index_select(z, -1, torch.tensor([2, 0, 2])), 3, 4),
    moved("permute", "permute.default", lambda z: z.permute(2, 0, -2), 3, 4, 2),
    moved("reshape", "reshape.default", lambda z: z.transpose(0, 1).reshape(2, -1), 3, 4),
    moved("select", "select.int", lambda z: z[:, -2], 3, 4),
    moved("slice", "slice.Tensor", lambda z: z[:, 1::2], 3, 4),
    moved("split", "split.Tensor", lambda z: z.split(2, -1)[1], 3, 4),
    moved("squeeze", "squeeze.dim", lambda z: z.squeeze(-1), 3, 1),
    moved("sum", "sum.dim_IntList", lambda z: z.sum(-1), 3, 4),
    moved("mean", "mean.default", lambda z: z.mean(), 3, 4),
    moved("transpose", "transpose.int", lambda z: z.transpose(-1, 0), 3, 4, 2),
    moved("unbind", "unbind.int", lambda z: z.unbind(-1)[1], 3, 4),
    moved("unsqueeze", "unsqueeze.default", lambda z: z.unsqueeze(-1), 3, 4),
    moved("reshaped", "concat.default", reshaped, 3, 4),
    moved("repeated", "roll.default", repeated, 3, 4),
    moved("copies", "_to_copy.default", lambda z: aten.resolve_neg.default(aten._to_copy.default(z, dtype=torch.complex128)),
          3, 4),
    moved("sum_all", "sum.default", lambda z: z.sum(), 3, 4),
    moved("mean_dim", "mean.dim", lambda z: z.mean(0, True), 3, 4),
    moved("div_number", "div.Scalar", lambda z: aten.div.Scalar(z, 3.0), 3, 4),
    moved("rsub_tensor", "rsub.Tensor", lambda z: aten.rsub.Tensor(z, z.real, alpha=2), 3, 4),
    moved("view", "view.default", lambda z: z.view(2, -1), 3, 4),
    row("angle", "aten.angle.default", lambda x, y: torch.complex(x, y).angle(), f(3, 4), f(3, 4)),
    row("angle_zeros", "aten.angle.default", lambda x, y: x + torch.complex(x.detach() * 0, y.detach() * 0).angle(), f(4, 8), f(4, 8)),
    row("angle_corner", "aten.angle.default", lambda x, y: torch.complex(x, y).angle(), f(4, 8, kind="grid"), f(4, 8, kind="grid")),
    row("sgn", "aten.sgn.default", lambda x, y: real(torch.complex(x, y).sgn()), f(3, 4), f(3, 4)),
    row("sgn_corner", "aten.sgn.default", lambda x, y: real(torch.complex(x, y).sgn()), f(4, 8, kind="grid"), f(4, 8, kind="grid")),
    row("log", "aten.log.default", lambda x, y: real(torch.complex(x, y).log()), f(3, 4), f(3, 4)),
    row("sqrt", "aten.sqrt.default", lambda x, y: real(torch.complex(x, y).sqrt()), f(3, 4), f(3, 4)),
    row("sqrt_axes", "aten.sqrt.default", lambda x: real(torch.complex(x, x * k0()).sqrt() + torch.complex(x * k0(), x).sqrt()),
        f(3, 4)),
    row("sqrt_zero", "aten.sqrt.default aten.pow.Tensor_Scalar", lambda x, y: real(torch.complex(x, y) + nothing(x).sqrt() + nothing(y) ** 0.5),
        f(3, 4), f(3, 4)),
    row("rsqrt", "aten.rsqrt.default", lambda x, y: real(torch.complex(x, y).rsqrt()), f(3, 4), f(3, 4)),
    row("reciprocal", "aten.reciprocal.default", lambda x, y: real(torch.complex(x, y).reciprocal()), f(3, 4), f(3, 4)),
    row("sin", "aten.sin.default", lambda x, y: real(torch.complex(x, y).sin()), f(3, 4), f(3, 4)),
    row("cos", "aten.cos.default", lambda x, y: real(torch.complex(x, y).cos()), f(3, 4), f(3, 4)),
    row("square", "aten.square.default", lambda x, y: real(torch.complex(x, y).square()), f(3, 4), f(3, 4)),
    row("pow", "aten.pow.Tensor_Scalar", lambda x, y: real(torch.complex(x, y) ** 2 + torch.complex(y, x) ** 5), f(3, 4), f(3, 4)),
    row("pow_negative", "aten.pow.Tensor_Scalar", lambda x, y: real(torch.complex(x, y) ** -3), f(3, 4, kind="positive"), f(3, 4)),
    row("pow_half", "aten.pow.Tensor_Scalar", lambda x, y: real(torch.complex(x, y) ** 0.5 + torch.complex(x, y) ** -0.5), f(3, 4),
        f(3, 4)),
    row("div", "aten.div.Tensor", lambda x, y, z: real(torch.complex(x, y) / torch.complex(y, z)), f(3, 4), f(3, 4), f(4)),
    row("div_of_real", "aten.div.Tensor", lambda x, y, z: real(z / torch.complex(x, y) + 2 / torch.complex(y, x)), f(3, 4), f(3, 4),
        f(4)),
    row("matmul", "aten.matmul.default", lambda x, y, z, w: real(torch.complex(x, y) @ torch.complex(z, w)), f(2, 3, 4),
        f(2, 3, 4), f(4, 5), f(4, 5)),
    row("matmul_vector", "aten.matmul.default", lambda x, y, z, w: real(torch.complex(x, y) @ torch.complex(z, w)), f(3, 4),
        f(3, 4), f(4), f(4)),
    row("mm", "aten.mm.default", lambda x, y: real(aten.mm.default(torch.complex(x, y), torch.complex(y, x).mT)), f(3, 4), f(3, 4)),
    row("mv", "aten.mv.default", lambda x, y: real(aten.mv.default(torch.complex(x, y), torch.complex(y, x)[0])), f(3, 4), f(3, 4)),
    row("bmm", "aten.bmm.default", lambda x, y: real(torch.bmm(torch.complex(x, y), torch.complex(y, x).mT)), f(2, 3, 4), f(2, 3, 4)),
    row("dot", "aten.dot.default", lambda x, y: real(aten.dot.default(torch.complex(x, y), torch.complex(y, y))), f(5), f(5)),
    row("outer", "aten.outer.default", lambda x, y: real(aten.outer.default(torch.complex(x, y), torch.complex(y, y))), f(5), f(5)),
    row("inner", "aten.inner.default", lambda x, y: real(aten.inner.default(torch.complex(x, y), torch.complex(y, y))), f(3, 4),
        f(3, 4)),
    row("linalg_matmul", "aten.linalg_matmul.default",
        lambda x, y: real(aten.linalg_matmul.default(torch.complex(x, y), torch.complex(y, y))), f(4, 4), f(4, 4)),
    row("tensordot", "aten.tensordot.default",
        lambda x, y: real(aten.tensordot.default(torch.complex(x, y), torch.complex(y, x), [1, 2], [1, 2])), f(2, 3, 4), f(2, 3, 4)),
    row("linear", "aten.linear.default",
        lambda x, y, z: real(torch.nn.functional.linear(torch.complex(x, y), torch.complex(z, y[:2]), torch.complex(y, x)[0, :2])),
        f(3, 4), f(3, 4), f(2, 4)),
    row("linear_without_bias", "aten.linear.default",
        lambda x, y: real(torch.nn.functional.linear(torch.complex(x, y), torch.complex(y, x))), f(3, 4), f(3, 4)),
    row("einsum", "aten.einsum.default",
        lambda x, y, z, w: real(torch.einsum("bixy,ioxy->boxy", torch.complex(x, y), torch.complex(z, w))), f(2, 3, 4, 2),
        f(2, 3, 4, 2), f(3, 2, 4, 2), f(3, 2, 4, 2)),
    row("einsum_three", "aten.einsum.default",
        lambda x, y: real(torch.einsum("ij,jk,kl->il", torch.complex(x, y), torch.complex(y, x).mT, torch.complex(x, x))),
        f(3, 4), f(3, 4)),
    row("einsum_one", "aten.einsum.default", lambda x, y: real(torch.einsum("ij->ji", torch.complex(x, y))), f(3, 4), f(3, 4)),
    row("l1_loss", "aten.l1_loss.default",
        lambda x, y: torch.nn.functional.l1_loss(torch.complex(x, y), torch.complex(y, x[0].expand(3, 4))), f(3, 4), f(3, 4)),
    row("l1_loss_none", "aten.l1_loss.default",
        lambda x, y: torch.nn.functional.l1_loss(torch.complex(x, y), torch.complex(y, x), reduction="none"),
        f(3, 8, kind="grid"), f(3, 8, kind="grid")),
    row("vector_norm", "aten.linalg_vector_norm.default",
        lambda x, y: torch.linalg.vector_norm(torch.complex(x, y), dim=-1) + torch.linalg.vector_norm(torch.complex(x, y), 3), f(3, 4),
        f(3, 4)),
    row("norm", "aten.norm.Scalar aten.norm.ScalarOpt_dim",
        lambda x, y: aten.norm.Scalar(torch.complex(x, y)) + aten.norm.ScalarOpt_dim(torch.complex(x, y), 1, [0]), f(3, 4), f(3, 4)),
    row("broadcast_tensors", "aten.broadcast_tensors.default",
        lambda x, y: [real(z) for z in torch.broadcast_tensors(torch.complex(x, y), torch.complex(y, x)[:, :1])], f(3, 4), f(3, 4)),
    row("where", "aten.where.self", lambda x, y: real(torch.where(x > 0, torch.complex(x, y), torch.complex(y, x))), f(3, 4), f(3, 4)),
    row("masked_fill", "aten.masked_fill.Scalar", lambda x, y: real(torch.complex(x, y).masked_fill(x > 0, 2.0)), f(3, 4), f(3, 4)),
    row("masked_fill_tensor", "aten.masked_fill.Tensor",
        lambda x, y: real(aten.masked_fill.Tensor(torch.complex(x, y), x > 0, torch.tensor(2.0))), f(3, 4), f(3, 4)),
    moved("constant_pad", "constant_pad_nd.default", lambda z: aten.constant_pad_nd.default(z, [1, 2]), 3, 4),
    moved("pad", "pad.default", lambda z: torch.nn.functional.pad(z, (1, 0, -1, 2)), 3, 4),
    moved("zeros", "zeros.default", lambda z: torch.cat([z, torch.zeros(2, 4, dtype=z.dtype)]), 3, 4),
    moved("ones", "ones.default", lambda z: z * z + torch.ones(3, 4, dtype=z.dtype), 3, 4),
    moved("full", "full.default", lambda z: z * z + torch.full((3, 4), 0.5, dtype=z.dtype), 3, 4),
    moved("zeros_like", "zeros_like.default", lambda z: z + torch.zeros_like(z), 3, 4),
    moved("ones_like", "ones_like.default", lambda z: z * z + torch.ones_like(z), 3, 4),
    moved("new_zeros", "new_zeros.default", lambda z: torch.cat([z, z.new_zeros(1, 4)]), 3, 4),
    moved("written", "copy_.default", written, 4, 4),
    moved("index_put", "index_put.default", lambda z: z.index_put((torch.tensor([2, 0]),), z[:2] * 1j), 3, 4),
    moved("narrow", "narrow.default", lambda z: aten.narrow.default(z, 1, 1, 2), 3, 4),
    moved("cumsum", "cumsum.default", lambda z: z.cumsum(1), 3, 4),
    moved("gather", "gather.default", lambda z: z.gather(1, torch.tensor([[0, 3], [1, 1], [2, 0]])), 3, 4),
    moved("repeat_interleave", "repeat_interleave.self_int", lambda z: z.repeat_interleave(2, 1), 3, 4),
    moved("numpy_T", "numpy_T.default", lambda z: z.T, 3, 4),
    moved("adjoint", "adjoint.default", lambda z: aten.adjoint.default(z).resolve_conj(), 2, 3, 4),
    moved("mH", "mH.default", lambda z: z.mH.resolve_conj(), 2, 3, 4),
    moved("matrix_H", "matrix_H.default", lambda z: aten.matrix_H.default(z).resolve_conj(), 3, 4),
    moved("scatter", "scatter.src", lambda z: z.scatter(1, torch.tensor([[0, 3], [1, 2], [2, 0]]), z[:, :2] * 1j), 3, 4),
    moved("scatter_add", "scatter_add.default", lambda z: z.scatter_add(1, torch.tensor([[0, 3], [1, 1], [2, 0]]), z[:, :2] * 1j), 3, 4),
    moved("fill", "fill_.Scalar", filled, 3, 4),
    moved("fill_tensor", "fill.Tensor", lambda z: z * aten.fill.Tensor(z, torch.tensor(2.0)), 3, 4),
    moved("where_number", "where.ScalarOther where.ScalarSelf",
          lambda z: torch.where(z.real > 0, z, 0) + torch.where(z.imag > 0, 2.0, z), 3, 4),
    moved("tril", "tril.default", lambda z: z.tril(), 3, 4),
    moved("triu", "triu.default", lambda z: z.triu(1), 3, 4),
    moved("vdot", "vdot.default", lambda z: torch.vdot(z[0], z[1]), 3, 4),
    row("linalg_norm", "aten.linalg_norm.default", lambda x, y: torch.linalg.norm(torch.complex(x, y)), f(3, 4), f(3, 4)),
    moved("diagonal", "diagonal.default", lambda z: z.diagonal(1), 3, 4),
    # --- Refused ---
    moved("pow_other", "pow.Tensor_Scalar", lambda z: z ** 1.5, 3, 4, refused="whole exponents"),
    moved("pad_number", "pad.default", lambda z: torch.nn.functional.pad(z, (1, 0), value=2.0), 3, 4, refused="padded only with 0"),
    moved("pad_complex", "constant_pad_nd.default", lambda z: aten.constant_pad_nd.default(z, [1, 0], 1 + 2j), 3, 4,
          refused="padded only with 0"),
    moved("full_complex", "full.default", lambda z: z + torch.full((3, 4), 1j), 3, 4, refused="expected a known"),
    moved("einsum_five", "einsum.default", lambda z: torch.einsum("ij,ij,ij,ij,ij->ij", z, z, z, z, z), 3, 4,
          refused="more than 4 complex matrices"),
    moved("tanh", "tanh.default", lambda z: z.tanh(), 3, 4, refused=COMPLEX),
    moved("prod", "prod.dim_int", lambda z: z.prod(-1), 3, 4, refused=COMPLEX),
    moved("cat_real", "cat.default", lambda z: torch.cat([z, z.real]), 3, 4, refused=COMPLEX),
    moved("view_dtype", "view.dtype", lambda z: torch.view_as_complex(z.view(torch.float32).reshape(3, 4, 2)), 3, 4,
          refused=COMPLEX),
    row("equal", "aten.eq.Tensor", lambda x, y: (torch.complex(x, y) == torch.complex(y, x)).float() * x, f(3, 4), f(3, 4),
        refused=COMPLEX),
    row("complex_half", "aten.complex.default", lambda x, y: real(torch.complex(x.half(), y.half())), f(3, 4), f(3, 4),
        refused=COMPLEX),
]
