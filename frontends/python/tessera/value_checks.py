"""What functions of PyTorch ask of values, which torch.export cannot follow, answered without them."""

import contextlib

import torch
from torch.nn.modules import transformer


def causal_hint(mask, is_causal=None, size=None):
    """In place of transformer._detect_is_causal_mask: whether attention may take its own causal mask instead of the given one.
    Without is_causal PyTorch compares their values; the given mask has the same result."""
    return is_causal is True


@contextlib.contextmanager
def replaced(owner, name, function):
    """While it is open, the attribute `name` of a module or class is `function`."""
    before = getattr(owner, name)
    setattr(owner, name, function)
    try:
        yield
    finally:
        setattr(owner, name, before)


def masks_kept():
    """While it is open, torch.nn.TransformerEncoder and TransformerDecoder do not look into their masks."""
    return replaced(transformer, "_detect_is_causal_mask", causal_hint)


def without_variance_check(function, args, kwargs):
    """gaussian_nll_loss without its look for negative variances, for which it raises ValueError. It clamps them to eps under
    no_grad, so that the slope stays 1, which torch.export loses: what is below eps becomes eps here, with that slope."""
    given = dict(zip(("input", "target", "var", "full", "eps", "reduction"), args)) | kwargs
    var, eps = given["var"], given.get("eps", 1e-6)
    given["var"] = torch.where(var < eps, var - var.detach() + eps, var)
    with replaced(torch, "any", lambda *_: False), replaced(torch.Tensor, "clamp_", lambda tensor, min: tensor):
        return function(**given)
