"""Compares a module's gradients with those that it has as exporters see it, and decides whether marks are needed."""

import torch

from . import cuts
from .errors import ExportError, listed
from .marks import Marks

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


def check_cuts(model, true, run):
    """(gradients, number of marks, calls that are marked) where everything that cuts gradients is left out or, if gradients
    would not be PyTorch's then, marked. run(marks or None) returns gradients and calls, or raises ExportError; true: the
    module's own gradients. Raises ExportError if marks do not help."""
    exported, found = run(None)
    difference, name = largest_difference(model, true, exported)
    if not name:
        return exported, 0, []
    calls = sorted(found, key=lambda text: text.startswith(("no_grad", "inference_mode")))
    reason = ExportError(f"exporters leave out what cuts or changes gradients: that of {name} would differ from PyTorch's by "
                         f"{difference:.2g} of its norm; {listed(calls) if calls else 'nothing was seen that does it'}")
    marks = Marks(cuts.detach)
    try:
        exported, _ = run(marks)
    except ExportError:
        raise reason from None
    if largest_difference(model, true, exported)[1] or not marks.found:
        raise reason
    return exported, marks.found, calls
