"""Compares the gradients of one step of a module in PyTorch with those of what is exported of it."""

import torch

TOLERANCE = 1e-3   # of a gradient's norm: a custom backward rounds otherwise than the derivative of its forward
FLOOR = 1e-6       # of the largest gradient's norm: gradients that are zero but for rounding


def differing(model, true, exported):
    """{parameter: difference of its gradient, of its norm} of those that differ by too much, largest first. true,
    exported: {parameter: gradient or None}."""
    norms = [gradient.nan_to_num().norm().item() for gradient in true.values() if gradient is not None]
    largest, found = max(norms, default=0.0), {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            zero = torch.zeros(())
            a, b = (zero if g is None else g.to_dense() if g.is_sparse else g for g in (true[name], exported[name]))
            if torch.equal(a.isnan(), b.isnan()):  # where both are NaN they agree
                a, b = a.nan_to_num(), b.nan_to_num()
            difference, size = (a - b).norm().item(), max(a.norm().item(), b.norm().item())
            if not difference <= TOLERANCE * size + FLOOR * largest:
                found[name] = difference / size if size else float("inf")
    return dict(sorted(found.items(), key=lambda item: item[1], reverse=True))
