"""Compares the gradients of one step of a module in PyTorch with those of what is exported of it."""

import torch

TOLERANCE = 1e-3   # of a gradient's norm: a custom backward rounds otherwise than the derivative of its forward
FLOOR = 1e-6       # of the largest gradient's norm: gradients that are zero but for rounding


def largest_difference(model, true, exported):
    """(largest difference of a gradient, of its norm; the parameter, or None if none is too large)."""
    norms = [gradient.norm().item() for gradient in true.values() if gradient is not None]
    largest, worst = max(norms, default=0.0), (0.0, None)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            zero = torch.zeros(())
            a, b = (zero if g is None else g.to_dense() if g.is_sparse else g for g in (true[name], exported[name]))
            difference, size = (a - b).norm().item(), max(a.norm().item(), b.norm().item())
            if not difference <= TOLERANCE * size + FLOOR * largest:
                worst = max(worst, (difference / size if size else float("inf"), name))
    return worst
