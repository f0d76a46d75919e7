"""Rows: tensors that are changed in place, and their views."""

import torch
from rows import f, i, row

ADD, COPY, MUL, FILL = "aten.add_.Tensor", "aten.copy_.default", "aten.mul_.Tensor", "aten.masked_fill_.Scalar"


def made(change):
    """A row's function: changes a new tensor in place, which is the result unless the change returns another."""
    def function(x):
        y = x * 1.5
        result = change(y, x)
        return y if result is None else result
    return function


def slices(y, x):
    y[:, 1:3] = x[:, :2] * 2
    y[..., ::2].mul_(3)


def empty(y, x):
    y = x.new_empty(x.shape)
    y[:, :4], y[:, 4:] = x[:, 2:], x[:, :2] * 3
    return y


def view_before(y, x):
    view = y[:, :2]
    y.mul_(2)
    return y.sum() + view


def copy_before(y, x):
    copy = y[:, :2].clone()
    y.mul_(2)
    return y.sum() + copy


def view_of_view(y, x):
    view = y[:, 1:5]
    inner = view[:, 1:3]
    inner += view[:, :2].clone()
    return y.sum(1, keepdim=True) + view * y[:, 2][:, None]


def other_shape(y, x):
    view = y.view(-1, 2, 3)
    view[:, 0] = x[:, :3] * 2
    view.transpose(1, 2)[:, 1].mul_(3)


def two_names(y, x):
    other = y.add_(x)
    y.mul_(2)
    other.add_(x)
    return y * other


def one_after_the_other(y, x):
    for at in range(1, 6):
        y[:, at] = y[:, at] + y[:, at - 1] * 0.5


def logic(y, x):
    mask = x > 0
    mask &= x < 1
    mask |= x < -1
    return y * mask


def repeated(y, x):
    mean = y.mean(1, keepdim=True)
    view = mean.expand(-1, 6)
    mean *= 2
    return view * x


def other_type(y, x):
    copy = y.double()
    copy += 1
    return y + copy.float()


def reshaped(y, x):
    view = y.reshape(-1, 3, 2)
    view += x.view(-1, 3, 2)


def detached(y, x):
    view = y.detach()
    view += x


def view_by_einsum(y, x):
    view = torch.einsum("ij->ji", y)
    y.mul_(x)
    return view


def unsafe_view(y, x):
    view = torch.ops.aten._unsafe_view.default(y, [-1, 6])
    y.mul_(x)
    return view


def diagonals(y, x):
    """A diagonal is changed as a view; above it, one of a view."""
    y.diagonal().mul_(2)
    view = y[:, 1:]
    view.diagonal(1, -2, -1).copy_(x[:, 0][:3])


def random_part(y, x):
    y[:, :2].normal_()
    return y


def without_gradient(x):
    """The tensor itself, whose gradient goes on, and a new one of it, which has none."""
    with torch.no_grad():
        same, new = x.float(), (x * 2).exp()
    return torch.ops.aten.mul.Tensor(same, new)


def counted(x):
    with torch.no_grad():
        same, = torch.broadcast_tensors(x)
    return torch.ops.aten.mul.Tensor(same, x)


def buckets(x):
    with torch.no_grad():
        kinds = (x > 0).long() * 4
        kinds += (x > 1).long()
    return x * kinds


def own_without_gradient(x):
    """What a region without gradients makes may change in it, also by out=."""
    with torch.no_grad():
        scale = x.clone()
        scale[:, ::2] = 0.5
        scale[scale.abs() < 0.3] = 2
        torch.div(scale, 3, out=scale)
    return torch.ops.aten.mul.Tensor(scale, x)


def without_autocast(x, y):
    """A region with another in it, and one in another."""
    with torch.autocast("cuda", enabled=False):
        with torch.autocast("cpu", enabled=False):
            z = x * y
        same = z
    with torch.no_grad(), torch.autocast("cpu", enabled=False):
        scale = (z * 2).exp()
    return torch.ops.aten.mul.Tensor(same, scale)


def with_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.ops.aten.mul.Tensor(x, 2)
    return y.float()


def contiguous_copy(x):
    y = x.unflatten(1, (2, 3))
    z = y.permute(2, 0, 1).contiguous()
    z[..., 0] += 2
    return z * y.permute(2, 0, 1)


ROWS = [
    row("no_grad_own", "aten.mul.Tensor", own_without_gradient, f(3, 6)),
    row("autocast_off", "aten.mul.Tensor", without_autocast, f(3, 6), f(3, 6)),
    row("autocast_on", "aten.to.dtype", with_autocast, f(3, 6), refused="where it is enabled"),
    row("in_place_contiguous", "aten.add_.Tensor", contiguous_copy, f(3, 6)),
    row("in_place_dropout", "aten.dropout_.default aten.feature_dropout_.default",
        made(lambda y, x: torch.feature_dropout_(torch.dropout_(y, 0.0, True), 0.0, True)), f(3, 6)),
    row("no_grad", "aten.mul.Tensor", without_gradient, f(3, 6)),
    row("no_grad_integers", "aten.mul.Tensor", buckets, f(3, 6)),
    row("no_grad_unknown", "aten.mul.Tensor", counted, f(3, 6), refused="set_grad_enabled"),
    row("in_place_einsum", MUL, made(view_by_einsum), f(3, 6), refused="in place, which may be a copy"),
    row("in_place_unsafe_view", MUL, made(unsafe_view), f(3, 6), refused="in place"),
    row("in_place_random", "aten.normal_.default", made(random_part), f(3, 6)),
    row("in_place_add", ADD, made(lambda y, x: y.add_(x)), f(3, 6)),
    row("in_place_slices", f"{COPY} {MUL}", made(slices), f(3, 6)),
    row("in_place_empty", COPY, made(empty), f(3, 6)),
    row("in_place_view_before", MUL, made(view_before), f(3, 6)),
    row("in_place_copy_before", MUL, made(copy_before), f(3, 6)),
    row("in_place_view_of_view", ADD, made(view_of_view), f(3, 6)),
    row("in_place_other_shape", f"{COPY} {MUL}", made(other_shape), f(3, 6)),
    row("in_place_two_names", f"{ADD} {MUL}", made(two_names), f(3, 6)),
    row("in_place_one_after_the_other", COPY, made(one_after_the_other), f(3, 6)),
    row("in_place_masked", FILL, made(lambda y, x: y.masked_fill_(x > 0, 0.25).masked_fill_(y < -0.5, 0.125)), f(3, 6)),
    row("in_place_copy", COPY, made(lambda y, x: y.copy_(x.mean(1, keepdim=True)) * x), f(3, 6)),
    row("in_place_zero", f"aten.zero_.default {ADD}", made(lambda y, x: y.zero_().add_(x)), f(3, 6)),
    row("in_place_floor_divide", "aten.floor_divide_.Tensor", lambda x, n: x * (n * 5 - 7).floor_divide_(n + 2), f(3, 6), i(3, 6)),
    row("in_place_diagonals", f"aten.diagonal.default {MUL} {COPY}", made(diagonals), f(3, 6)),
    *(row("fill_diagonal" + case, "aten.fill_diagonal_.default", made(lambda y, x, wrap=wrap: y.fill_diagonal_(2.5, wrap)), f(*shape))
      for case, wrap, shape in (("", False, (3, 6)), ("_tall", False, (6, 2)), ("_wrap", True, (7, 2)), ("_cube", False, (3, 3, 3)))),
    row("in_place_relu", "aten.relu_.default", made(lambda y, x: torch.relu_(y)), f(3, 6)),
    row("in_place_logic", "aten.__iand__.Tensor aten.__ior__.Tensor", made(logic), f(3, 6)),
    row("in_place_repeated", MUL, made(repeated), f(3, 6)),
    row("in_place_other_type", ADD, made(other_type), f(3, 6)),
    row("in_place_reshaped", ADD, made(reshaped), f(3, 6), refused="it changes what may be a view of '.*' in place, which is read"),
    row("in_place_detached", ADD, made(detached), f(3, 6), refused="it changes what may be a view of '.*' in place, which is read"),
]
