"""A training's twin in the other type, float64 of a float32 one: how far PyTorch's own numbers are from exact ones."""

import copy
import dataclasses

import numpy
import torch

from .compare import UNIT
from .draws import TesseraRandom
from .module_step import computed_weights_kept
from .names import parameter_names
from .ties import FirstOfEqual
from .training import loss_of, reference, rows_of

ZERO = 2.0**-40  # of the largest gradient, and a loss below it: what is smaller in float64 is 0 but for rounding


@dataclasses.dataclass
class Twin:
    """What step 1 is in the other type. errors: {name: largest error of PyTorch's gradient from rounding}, nan where the twin's
    is not finite and PyTorch's is; {} if the model does not run in that type. loss_error: of PyTorch's loss."""
    errors: dict = dataclasses.field(default_factory=dict)
    loss_error: float = 0.0


def other_type(is_wide):
    """(type of the twin, error of a number as a part of its difference from the twin's, rounding of 1) of a training in float32,
    or (is_wide) in float64, which has 29 bits more."""
    return (torch.float32, 2.0**-29, 2.0**-29 * UNIT) if is_wide else (torch.float64, 1.0, UNIT)


def rounding(model, inputs, names, outputs, data, loss, steps, gradients, accumulate=1, kinds=None):
    """{name: largest error of a gradient of step 1 from rounding}; {} if the model does not run in the other type. kinds: those
    of the reference's TesseraRandom."""
    return twin_of(model, inputs, names, outputs, data, loss, steps, gradients, accumulate, kinds).errors


def twin_of(model, inputs, names, outputs, data, loss, steps, gradients, accumulate=1, kinds=None, value=None):
    """The Twin of step 1. value: PyTorch's loss of it.

    The error of a float32 gradient is its difference from the one in float64, that of a float64 gradient is 2^-29 of the
    difference from the one in float32, which has 29 bits less. PyTorch may have come near by luck: in float64 the same step from
    weights and inputs that are wrong by up to one rounding of float32 is a second measure. Where the gradient in float64 is 0
    but for rounding, the error is one rounding of the largest gradient at least, and that of a loss that is 0 one of the number 1."""
    size = data.count // steps
    is_wide = any(gradient.dtype == numpy.float64 for gradient in gradients.values())
    other, share, unit = other_type(is_wide)

    def step(roundings):
        """(loss, gradients) of the twin, its weights and inputs perturbed by up to `roundings` units in the last place."""
        rows = rows_of(data, inputs, names, 0, size, other)
        generator = torch.Generator().manual_seed(0)

        def moved(tensor):
            return tensor * (1 + roundings * unit * (2 * torch.rand(tensor.shape, generator=generator) - 1).to(tensor.dtype))

        def run(twin):
            with torch.no_grad():
                for parameter in twin.parameters() if roundings else ():
                    if parameter.is_floating_point():
                        parameter.copy_(moved(parameter))
            given = rows.mapped(lambda _, row: moved(row) if roundings and row.is_floating_point() else row)
            with FirstOfEqual():
                total = loss_of(twin, given, names, outputs, loss, accumulate, TesseraRandom(list(kinds or [])))
                total.backward()
            found = {name: entry[0].grad for name, entry in parameter_names(twin).items()}
            return total.item(), {name: grad.double() for name, grad in found.items()
                                  if grad is not None and grad.numel() and name in gradients}
        return in_type(model, other, run)

    exact = step(0)
    if exact is None:
        return Twin()
    near = None if is_wide else step(1)
    given = {name: torch.from_numpy(gradients[name]).double() for name in exact[1]}
    largest_of = {name: float(grad.abs().max()) for name, grad in (given if is_wide else exact[1]).items()}
    largest = max((value for value in largest_of.values() if numpy.isfinite(value)), default=0.0)
    errors = {}
    for name, grad in exact[1].items():
        found = [share * float((given[name] - grad).abs().max()),
                 float((near[1][name] - grad).abs().max()) if near and name in near[1] else 0.0,
                 unit * largest if largest_of[name] <= ZERO * largest else 0.0]
        errors[name] = float(numpy.max(found))  # nan if one of them is
    if value is None:
        return Twin(errors)
    found = [share * abs(value - exact[0]), abs(near[0] - exact[0]) if near else 0.0, unit if abs(exact[0]) <= ZERO else 0.0]
    return Twin(errors, float(numpy.max(found)))


def loss_errors(wanted, model, inputs, names, outputs, data, loss, steps, accumulate, kinds, epsilon):
    """How wrong each of PyTorch's losses is from rounding: by its distance from that of the same training in the other type, and
    for one that is 0 there, by one rounding of the number 1; 0 if the model does not run so."""
    other, share, unit = other_type(any(parameter.dtype == torch.float64 for parameter in model.parameters()))
    exact = in_type(model, other, lambda made: reference(
        made, inputs, names, outputs, data, loss, steps, accumulate, TesseraRandom(list(kinds or [])), epsilon, dtype=other).losses)
    if exact is None:
        return [0.0] * len(wanted)
    return [max(share * abs(want - value), unit if abs(value) <= ZERO else 0.0) for want, value in zip(wanted, exact)]


def in_type(model, dtype, run):
    """What run returns of a copy of the model in another type; None if it does not run so, or has complex numbers, of
    which Module.to would drop a part. Where a module makes tensors of PyTorch's default type and of limits of its own
    type, both must be the same."""
    if any(tensor.is_complex() for tensor in (*model.parameters(), *model.buffers())):
        return None
    before = torch.get_default_dtype()
    for default in (before, dtype):
        try:
            torch.set_default_dtype(default)
            return run(copied(model).to(dtype))
        except Exception:  # a module that cannot be copied or converted, for whatever reason
            continue
        finally:
            torch.set_default_dtype(before)
    return None


def copied(model):
    """A copy, also of a model with weights that hooks computed in a pass before, which PyTorch does not copy."""
    with computed_weights_kept(model) as computed:
        for module, name, tensor in computed:
            setattr(module, name, tensor.detach())
        return copy.deepcopy(model)
