"""Elementwise functions, reductions, products and their shapes."""

import math

import torch
import torch.nn.functional as F

from .rows import With, d, f, row

JUMP = "a jump: values beside it fall on its other side"
UNARY = {  # name -> (kind of input, function, bf16)
    "exp": ("normal", torch.exp), "expm1": ("normal", torch.expm1), "exp2": ("normal", torch.exp2),
    "log": ("positive", torch.log), "log1p": ("positive", torch.log1p), "log2": ("positive", torch.log2),
    "log10": ("positive", torch.log10), "sqrt": ("positive", torch.sqrt), "rsqrt": ("positive", torch.rsqrt),
    "reciprocal": ("positive", torch.reciprocal), "square": ("normal", torch.square), "abs": ("normal", torch.abs),
    "abs-at-0": ("grid", torch.abs), "neg": ("normal", torch.neg), "sin": ("normal", torch.sin), "cos": ("normal", torch.cos),
    "tan": ("unit", torch.tan), "asin": ("unit", lambda x: torch.asin(x * 0.5)), "acos": ("unit", lambda x: torch.acos(x * 0.5)),
    "atan": ("normal", torch.atan), "sinh": ("normal", lambda x: torch.sinh(x * 0.5)), "cosh": ("normal", torch.cosh),
    "asinh": ("normal", torch.asinh), "acosh": ("positive", lambda x: torch.acosh(x + 1.5)),
    "atanh": ("unit", lambda x: torch.atanh(x * 0.5)), "erf": ("normal", torch.erf), "erfc": ("normal", torch.erfc),
    "erfinv": ("unit", lambda x: torch.erfinv(x * 0.5)), "lgamma": ("positive", torch.lgamma),
    "digamma": ("positive", torch.digamma), "sinc": ("normal", torch.sinc), "logit": ("unit", lambda x: torch.logit(x * 0.6)),
    "sign": ("normal", lambda x: x * torch.sign(x)), "floor": ("normal", lambda x: x * torch.floor(x)),
    "ceil": ("normal", lambda x: x * torch.ceil(x)), "round": ("normal", lambda x: x * torch.round(x)),
    "trunc": ("normal", lambda x: x * torch.trunc(x)), "frac": ("normal", torch.frac),
    "clamp": ("normal", lambda x: x.clamp(-0.5, 0.8)), "clamp-min": ("normal", lambda x: x.clamp(min=0.1)),
    "clamp-at-bounds": ("grid", lambda x: x.clamp(-1.0, 1.0)), "pow-2": ("normal", lambda x: x ** 2),
    "pow-3": ("normal", lambda x: x ** 3), "pow-half": ("positive", lambda x: x ** 0.5),
    "pow-negative": ("positive", lambda x: x ** -1.5), "two-to-x": ("normal", lambda x: 2 ** x),
    "nan-to-num": ("normal", lambda x: torch.nan_to_num(torch.where(x > 0, x, float("nan")), 0.5)), "isfinite": ("normal", lambda x: x * torch.isfinite(x)),
    "where": ("normal", lambda x: torch.where(x > 0.3, x * 2, x.exp())), "log-add": ("normal", lambda x: torch.logaddexp(x, -x)),
    "xlogy": ("positive", lambda x: torch.xlogy(x, x)), "polygamma": ("positive", lambda x: torch.polygamma(1, x)),
    "i0": ("normal", torch.i0), "sigmoid-log": ("normal", lambda x: torch.log(torch.sigmoid(x * 5))),
    "one-minus-sigmoid": ("normal", lambda x: torch.log(1 - torch.sigmoid(x * 1.5))), "hypot": ("normal", lambda x: x.hypot(x + 1)),
    "log-cosh": ("normal", lambda x: torch.log(torch.cosh(x))), "relu-sqrt": ("normal", lambda x: torch.sqrt(F.relu(x) + 1e-4)),
    "sqrt-at-0": ("bits", torch.sqrt),
}
JUMPS = {"sign", "floor", "ceil", "round", "trunc", "frac", "nan-to-num", "where"}
RECORDED = {"exp", "expm1", "log1p", "rsqrt", "asin", "acos", "atan", "erf", "round", "clamp-at-bounds", "pow-negative",
            "two-to-x", "nan-to-num", "where", "sigmoid-log"}
REDUCE = {
    "sum": lambda x: x.sum(1), "sum-all": lambda x: x.sum((1, 2)), "mean": lambda x: x.mean(-1, keepdim=True),
    "prod": lambda x: x.prod(-1), "logsumexp": lambda x: x.logsumexp(-1), "logsumexp-two": lambda x: x.logsumexp((1, 2)),
    "var": lambda x: x.var(-1), "std": lambda x: x.std(1), "max-all": lambda x: x.flatten(1).max(-1).values,
    "min": lambda x: x.min(1).values, "amax": lambda x: x.amax((1, 2)), "aminmax": lambda x: x.aminmax(dim=1)[0],
    "softmax-weighted": lambda x: (x.softmax(1) * x).sum(1), "mean-batch": lambda x: x - x.mean(0, keepdim=True),
    "count": lambda x: x * (x > 0).sum(1, keepdim=True), "any": lambda x: x * (x > 1.2).any(1, keepdim=True),
    "dot": lambda x: torch.einsum("btd,btd->bt", x, x.tanh()),
}
PRODUCTS = {
    "matmul": ("bij,bjk->bik", (3, 4), (4, 5)), "matmul-transposed": ("bij,bkj->bik", (3, 4), (5, 4)),
    "einsum-outer": ("bi,bj->bij", (3,), (4,)), "einsum-heads": ("bqhd,bkhd->bhqk", (3, 2, 4), (5, 2, 4)),
    "einsum-diagonal": ("bii,bij->bj", (3, 3), (3, 4)), "einsum-sum": ("bij,bk->bk", (3, 4), (5,)),
    "einsum-batch-last": ("bij,bjk->kib", (3, 4), (4, 5)), "einsum-mixed": ("bthd,bshe->bhde", (3, 2, 4), (3, 2, 5)),
}
WEIGHTED = {
    "einsum-weight": ("btd,de->bte", (3, 5), (5, 4)), "einsum-experts": ("btd,edf->btef", (3, 5), (2, 5, 4)),
    "einsum-heads-weight": ("btd,dhk->bhtk", (3, 6), (6, 2, 3)), "einsum-heads-out": ("bhtk,hkd->btd", (2, 3, 4), (2, 4, 6)),
    "einsum-per-position": ("btd,tde->bte", (3, 5), (3, 5, 4)), "einsum-scale": ("btd,d->btd", (3, 5), (5,)),
}


def binary():
    table = {
        "add": lambda x, y: x + y * 2, "sub": lambda x, y: x - y[:, :1], "mul": lambda x, y: x * y, "div": lambda x, y: x / (y.abs() + 0.5),
        "maximum": torch.maximum, "minimum": torch.minimum, "pow": lambda x, y: (x.abs() + 0.5) ** y, "atan2": torch.atan2,
        "fmod": lambda x, y: torch.fmod(x, 0.7), "remainder": lambda x, y: torch.remainder(x, 0.7), "lerp": lambda x, y: x.lerp(y, 0.3),
        "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5), "addcdiv": lambda x, y: torch.addcdiv(x, x, y.abs() + 1),
        "cross": lambda x, y: torch.linalg.cross(x[..., :3], y[..., :3]), "floor-divide": lambda x, y: x * torch.div(y.detach(), 0.5, rounding_mode="floor"),
        "comparisons": lambda x, y: x * (x > y) + y * (x <= y) * 2, "logaddexp": torch.logaddexp, "copysign": torch.copysign,
    }
    for name, function in table.items():
        yield row(f"binary-{name}", "", lambda function=function: function, f(3, 5), f(3, 5),
                  recorded=name == "pow",
                  bf16=JUMP if name in ("fmod", "remainder", "floor-divide", "comparisons", "copysign") else None)
    for name in ("maximum", "minimum"):
        yield row(f"binary-{name}-ties", "", lambda name=name: getattr(torch, name), f(3, 5, kind="grid"), f(3, 5, kind="grid"),
                  recorded=True)
        yield row(f"{name}-constant-ties", "", lambda name=name: lambda x: getattr(torch, name)(x, torch.tensor(1.0)),
                  f(3, 5, kind="grid"), recorded=True)


ROWS = [row(name, "", lambda function=function: function, f(3, 5, kind=kind), recorded=name in RECORDED,
            bf16=JUMP if name in JUMPS else None) for name, (kind, function) in UNARY.items()]
ROWS += [row(f"reduce-{name}", "", lambda function=function: function, f(4, 5), recorded=name in ("logsumexp", "prod", "var"),
             bf16=JUMP if name in ("count", "any") else None) for name, function in REDUCE.items()]
ROWS += [row(name, "", lambda form=form: lambda x, y: in_order(form, x, y), f(*left), f(*right),
             recorded=name in ("einsum-heads", "einsum-mixed")) for name, (form, left, right) in PRODUCTS.items()]
ROWS += [row(name, "", lambda form=form, shape=shape: With(lambda x, w: torch.einsum(form, x, w), w=shape), f(*left),
             recorded=name in ("einsum-experts", "einsum-heads-weight")) for name, (form, left, shape) in WEIGHTED.items()]
ROWS += [*binary()]
ROWS += [
    row("bmm", "", lambda: torch.bmm, f(3, 4), f(4, 5)),
    row("baddbmm", "", lambda: lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2.0), f(3, 5), f(3, 4), f(4, 5)),
    row("tensordot", "", lambda: With(lambda x, w: torch.tensordot(x, w, dims=([2, 1], [0, 1])), w=(5, 3, 4)), f(3, 5)),
    row("matvec", "", lambda: With(lambda x, w: x @ w, w=(5,)), f(3, 5)),
    row("addmm", "", lambda: With(lambda x, b, w: torch.addmm(b, x, w, beta=0.5, alpha=2.0), b=(4,), w=(5, 4)), f(5)),
    row("double", "", lambda: lambda x: (x.double() @ x.double().transpose(1, 2)).float(), f(3, 5)),
    row("half-inside", "", lambda: lambda x: x.bfloat16().float() * 2, f(3, 5), recorded=True),
    row("complex", "", lambda: lambda x: torch.fft.rfft(x).abs(), f(3, 6)),
    row("constant-input", "", lambda: lambda x, m: x * m.cumsum(1), f(3, 5), d(3, 5)),
    row("fourier-features", "", lambda: With(lambda x, w: torch.cat([(x @ w).sin(), (x @ w).cos()], -1) * math.sqrt(2), w=(3, 4)),
        f(5, 3)),
    row("determinant", "", lambda: lambda x: torch.linalg.det(x + 2 * torch.eye(3)), f(3, 3)),
    row("inverse", "", lambda: lambda x: torch.linalg.inv(x * 0.2 + torch.eye(3)), f(3, 3)),
    row("solve", "", lambda: lambda x, y: torch.linalg.solve(x * 0.2 + torch.eye(3), y), f(3, 3), f(3, 2)),
]


def in_order(form, x, y):
    """An einsum whose result has the batch first."""
    result = torch.einsum(form, x, y)
    return result.permute(2, 0, 1) if form.endswith("b") else result
