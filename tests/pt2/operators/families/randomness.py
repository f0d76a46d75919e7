"""Rows: random numbers, and dropout in place that is off. PyTorch draws those of Tessera (frontends/python/tessera/draws.py)."""

import torch
from rows import f, i, row

aten = torch.ops.aten
F = torch.nn.functional
OTHERS = "of this distribution"


def filled(name, *arguments, dtype=torch.float32, **more):
    """x times a tensor that an operator in place has written."""
    overload = getattr(aten, name.split(".")[0])
    overload = getattr(overload, name.split(".")[1])
    return lambda x: x * overload(torch.empty([3, 4], dtype=dtype), *arguments, **more)


def reparametrised(mean, logarithm):
    return mean + torch.exp(0.5 * logarithm) * torch.randn_like(logarithm)


def from_nothing_twice(x):
    return x * torch.rand(3, 4) + torch.rand(3, 4) + torch.randn(4)


def unread(x):
    torch.rand(2)
    return x * torch.rand(3, 4)


def without_gradient(x):
    with torch.no_grad():
        noise = torch.normal(x, 0.5)
    return x * noise


def permuted(x):
    return x[torch.randperm(5)] * torch.arange(20).reshape(5, 4)


def in_part(x):
    y = x * 2
    y[:, :3].normal_()
    return y * x


ROWS = [
    row("rand", "aten.rand.default", lambda x: x * aten.rand.default([3, 4]), f(3, 4)),
    row("rand_again", "aten.rand.default", from_nothing_twice, f(3, 4)),
    row("rand_unread", "aten.rand.default", unread, f(3, 4)),
    row("rand_empty", "aten.rand.default", lambda x: torch.cat([x, aten.rand.default([0, 4])]), f(3, 4)),
    row("rand_double", "aten.rand.default", lambda x: x * aten.rand.default([3, 4], dtype=torch.float64), f(3, 4)),
    row("rand_half", "aten.rand.default", lambda x: x * aten.rand.default([3, 40], dtype=torch.float16), f(3, 1)),
    row("rand_bfloat16", "aten.rand.default", lambda x: x * aten.rand.default([3, 40], dtype=torch.bfloat16), f(3, 1)),
    row("rand_like", "aten.rand_like.default", lambda x: x * aten.rand_like.default(x), f(3, 4)),
    row("rand_like_double", "aten.rand_like.default", lambda x: x * aten.rand_like.default(x, dtype=torch.float64), f(3, 4)),
    row("rand_mask", "aten.rand_like.default", lambda x: torch.where(torch.rand_like(x) < 0.5, x, -x), f(3, 40)),
    row("rand_dropout", "aten.rand_like.default", lambda x: torch.where(torch.rand_like(x) >= 0.5, x * 2, 0 * x), f(3, 40)),
    row("randn", "aten.randn.default", lambda x: x * aten.randn.default([3, 4]), f(3, 4)),
    row("randn_scalar", "aten.randn.default", lambda x: x * aten.randn.default([]), f(3, 4)),
    row("randn_double", "aten.randn.default", lambda x: x * aten.randn.default([3, 4], dtype=torch.float64), f(3, 4)),
    row("randn_like", "aten.randn_like.default", lambda x: x * aten.randn_like.default(x), f(3, 4)),
    row("randn_like_bfloat16", "aten.randn_like.default", lambda x: x * aten.randn_like.default(x, dtype=torch.bfloat16), f(3, 4)),
    row("randn_reparametrised", "aten.randn_like.default", reparametrised, f(3, 4), f(3, 4)),
    row("randint", "aten.randint.default", lambda x: x * aten.randint.default(10, [3, 4]), f(3, 4)),
    row("randint_power", "aten.randint.default", lambda x: x * aten.randint.default(8, [3, 4]), f(3, 4)),
    row("randint_float", "aten.randint.default", lambda x: x * aten.randint.default(10, [3, 4], dtype=torch.float32), f(3, 4)),
    row("randint_narrow", "aten.randint.default", lambda x: x * aten.randint.default(128, [3, 4], dtype=torch.int8), f(3, 4)),
    row("randint_low", "aten.randint.low", lambda x: x * aten.randint.low(-5, 6, [3, 4]), f(3, 4)),
    row("randint_wide", "aten.randint.low", lambda x: x * (aten.randint.low(-2**37, 2**37 + 5, [3, 4]) / 2**37), f(3, 4)),
    row("randint_all", "aten.randint.low", lambda x: x * (aten.randint.low(0, 2**62, [3, 4]) / 2**62), f(3, 4)),
    row("randint_steps", "aten.randint.low", lambda x: x[torch.randint(0, 5, (7,))], f(5, 4)),
    row("randint_like", "aten.randint_like.default", lambda x: x * aten.randint_like.default(x.detach(), 10), f(3, 4)),
    row("randint_like_low", "aten.randint_like.low_dtype", lambda x: x * aten.randint_like.low_dtype(x.detach(), 3, 7), f(3, 4)),
    row("randint_too_wide", "aten.randint.low", lambda x: x * aten.randint.low(0, 2**39 + 1, [3, 4]), f(3, 4),
        refused="more than 2\\^39 integers"),
    row("random", "aten.random_.default", lambda x: x * (aten.random_.default(torch.empty([3, 4])) / 2**24), f(3, 4)),
    row("random_bytes", "aten.random_.default", filled("random_.default", dtype=torch.uint8), f(3, 4)),
    row("random_longs", "aten.random_.default", lambda x: x * (aten.random_.default(torch.empty([3, 4], dtype=torch.int64)) / 2.0**63), f(3, 4)),
    row("random_to", "aten.random_.to", filled("random_.to", 5), f(3, 4)),
    row("uniform", "aten.uniform_.default", filled("uniform_.default"), f(3, 4)),
    row("uniform_bounds", "aten.uniform_.default", filled("uniform_.default", -2.0, 3.0), f(3, 4)),
    row("uniform_bfloat16", "aten.uniform_.default", lambda x: x * aten.uniform_.default(torch.empty([3, 400], dtype=torch.bfloat16), 1.0, 1.5), f(3, 1)),
    row("uniform_of", "aten.uniform_.default", lambda x: aten.uniform_.default(x * 2) + x, f(3, 4)),
    row("normal", "aten.normal_.default", filled("normal_.default"), f(3, 4)),
    row("normal_numbers", "aten.normal_.default", filled("normal_.default", 1.0, 0.5), f(3, 4)),
    row("normal_part", "aten.normal_.default", in_part, f(3, 6)),
    row("normal_functional", "aten.normal_functional.default", lambda x: x * aten.normal_functional.default(torch.zeros(3, 4), 1.0, 0.5), f(3, 4)),
    row("normal_float", "aten.normal.float_float", lambda x: x * aten.normal.float_float(1.0, 0.5, [3, 4]), f(3, 4)),
    row("normal_mean", "aten.normal.Tensor_float", lambda x: aten.normal.Tensor_float(x * 2, 0.5) * x, f(3, 4)),
    row("normal_deviation", "aten.normal.float_Tensor", lambda x: aten.normal.float_Tensor(0.5, x * 2) * x, f(3, 4, kind="positive")),
    row("normal_both", "aten.normal.Tensor_Tensor", lambda x, y: aten.normal.Tensor_Tensor(x * 2, y * 2) * x, f(3, 4), f(4, kind="positive")),
    row("normal_no_grad", "aten.mul.Tensor", without_gradient, f(3, 4)),
    row("bernoulli", "aten.bernoulli.default", lambda x: x * aten.bernoulli.default(x.sigmoid()), f(3, 40)),
    row("bernoulli_p", "aten.bernoulli.p", lambda x: x * aten.bernoulli.p(x.detach(), 0.3), f(3, 40)),
    row("bernoulli_tensor", "aten.bernoulli.Tensor", lambda x, y: x * aten.bernoulli.Tensor(x.detach(), y.detach()), f(3, 40), f(40, kind="unit")),
    row("bernoulli_in_place", "aten.bernoulli_.float", lambda x: x * x.new_empty(3, 1, 40).bernoulli_(0.4), f(3, 40)),
    row("bernoulli_in_place_tensor", "aten.bernoulli_.Tensor", lambda x, y: x * torch.empty_like(x).bernoulli_(y), f(3, 40), f(40, kind="unit")),
    row("bernoulli_sure", "aten.bernoulli_.float", lambda x: x * torch.empty_like(x).bernoulli_(1.0) + torch.empty_like(x).bernoulli_(0.0), f(3, 40)),
    row("bernoulli_bool", "aten.bernoulli_.float", filled("bernoulli_.float", 0.5, dtype=torch.bool), f(3, 4)),
    row("exponential", "aten.exponential_.default", filled("exponential_.default"), f(3, 4)),
    row("exponential_rate", "aten.exponential_.default", filled("exponential_.default", 2.5), f(3, 4)),
    row("exponential_half", "aten.exponential_.default", filled("exponential_.default", dtype=torch.float16), f(3, 4)),
    row("exponential_double", "aten.exponential_.default", filled("exponential_.default", dtype=torch.float64), f(3, 4)),
    row("exponential_gumbel", "aten.exponential_.default", lambda x: F.gumbel_softmax(x, tau=0.5), f(3, 4)),
    row("exponential_gumbel_hard", "aten.exponential_.default", lambda x: F.gumbel_softmax(x, hard=True), f(3, 4)),
    row("geometric", "aten.geometric_.default", filled("geometric_.default", 0.2), f(3, 4)),
    row("geometric_integers", "aten.geometric_.default", filled("geometric_.default", 0.2, dtype=torch.int64), f(3, 4)),
    row("cauchy", "aten.cauchy_.default", filled("cauchy_.default", 1.0, 0.5), f(3, 4)),
    row("log_normal", "aten.log_normal_.default", filled("log_normal_.default", 0.5, 0.25), f(3, 4)),
    row("randperm", "aten.randperm.default", permuted, f(5, 4)),
    row("randperm_type", "aten.randperm.default", lambda x: x * aten.randperm.default(4, dtype=torch.float32), f(3, 4)),
    row("randperm_one", "aten.randperm.default", lambda x: x * (aten.randperm.default(1) + 1), f(3, 4)),
    row("multinomial", "aten.multinomial.default", lambda x: x * aten.multinomial.default(x, 2).repeat(1, 2), f(3, 4, kind="positive")),
    row("multinomial_one", "aten.multinomial.default", lambda x: x * aten.multinomial.default(x, 1), f(3, 4, kind="positive")),
    row("multinomial_vector", "aten.multinomial.default", lambda x: x * aten.multinomial.default(x, 4), f(4, kind="positive")),
    row("multinomial_replaced", "aten.multinomial.default", lambda x: x * aten.multinomial.default(x, 8, True).reshape(2, 3, 4), f(3, 4, kind="positive")),
    row("multinomial_replaced_vector", "aten.multinomial.default", lambda x: x * aten.multinomial.default(x, 8, True).reshape(2, 4), f(4, kind="positive")),
    row("rrelu", "aten.rrelu.default", lambda x: F.rrelu(x, training=True), f(3, 4)),
    row("rrelu_bounds", "aten.rrelu.default", lambda x: F.rrelu(x, 0.25, 0.25, training=True), f(3, 4)),
    row("rrelu_zeros", "aten.rrelu.default", lambda x: F.rrelu(x, training=True), f(3, 4, kind="grid")),
    row("rrelu_off", "aten.rrelu.default", lambda x: F.rrelu(x, training=False), f(3, 4)),
    row("rrelu_in_place", "aten.rrelu_.default", lambda x: F.rrelu(x * 2, training=True, inplace=True), f(3, 4)),
    row("dropout_in_place", "aten.dropout_.default", lambda x: aten.dropout_.default(x * 2, 0.0, True), f(3, 4)),
    row("dropout_in_place_all", "aten.dropout_.default", lambda x: x * aten.dropout_.default(torch.ones(3, 4), 1.0, True), f(3, 4)),
    row("alpha_dropout_in_place", "aten.alpha_dropout_.default", lambda x: aten.alpha_dropout_.default(x * 2, 0.5, False), f(3, 4)),
    row("feature_dropout_in_place", "aten.feature_dropout_.default", lambda x: aten.feature_dropout_.default(x * 2, 0.5, False), f(3, 4)),
    row("rand_generator", "aten.rand.generator", lambda x: x * aten.rand.generator([3, 4], generator=None), f(3, 4)),
    row("rand_like_generator", "aten.rand_like.generator", lambda x: x * aten.rand_like.generator(x, generator=None), f(3, 4)),
    row("randn_generator", "aten.randn.generator", lambda x: x * torch.randn(3, 4, generator=None), f(3, 4)),
    row("randn_like_generator", "aten.randn_like.generator", lambda x: x * aten.randn_like.generator(x, generator=None), f(3, 4)),
    row("randint_generator", "aten.randint.generator", lambda x: x * aten.randint.generator(7, [3, 4], generator=None), f(3, 4)),
    row("randint_low_generator", "aten.randint.low_generator", lambda x: x * aten.randint.low_generator(2, 7, [3, 4], generator=None),
        f(3, 4)),
    row("randint_like_generator", "aten.randint_like.generator", lambda x: x * aten.randint_like.generator(x.detach(), 7, generator=None),
        f(3, 4)),
    row("randperm_generator", "aten.randperm.generator", lambda x: x * aten.randperm.generator(4, generator=None), f(3, 4)),
    row("poisson", "aten.poisson.default", lambda x: x * aten.poisson.default(x.exp()), f(3, 4), refused=OTHERS),
    row("binomial", "aten.binomial.default", lambda x, n: x * aten.binomial.default(n.float(), x.detach().sigmoid()), f(3, 4), i(3, 4), refused=OTHERS),
    row("standard_gamma", "aten._standard_gamma.default", lambda x: aten._standard_gamma.default(x.exp()), f(3, 4), refused=OTHERS),
    row("sample_dirichlet", "aten._sample_dirichlet.default", lambda x: x * aten._sample_dirichlet.default(x.detach().exp()), f(3, 4), refused=OTHERS),
]
