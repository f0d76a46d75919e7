"""Decides whether an exported graph needs marks where gradients are cut: it does if gradients would differ without."""

from ..differences import differing
from ..errors import ExportError, listed
from . import cuts
from .marks import Marks


def check_cuts(model, true, run):
    """(gradients, number of marks, calls that are marked) where everything that cuts gradients is left out or, if gradients
    would not be PyTorch's then, marked. run(marks or None) returns gradients and calls, or raises ExportError; true: the
    module's own gradients. Raises ExportError if marks do not help."""
    exported, found = run(None)
    different = differing(model, true, exported)
    if not different:
        return exported, 0, []
    name, difference = next(iter(different.items()))
    calls = sorted(found, key=lambda text: text.startswith(("no_grad", "inference_mode")))
    reason = ExportError(f"exporters leave out what cuts or changes gradients: that of {name} would differ from PyTorch's by "
                         f"{difference:.2g} of its norm; {listed(calls) if calls else 'nothing was seen that does it'}")
    marks = Marks(cuts.detach)
    try:
        exported, _ = run(marks)
    except ExportError:
        raise reason from None
    if differing(model, true, exported) or not marks.found:
        raise reason
    return exported, marks.found, calls
