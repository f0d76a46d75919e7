"""Compares the first steps of two trainings of one model: losses, names of what is trained, every gradient. NumPy
only."""

import dataclasses

import numpy

LOSS = 1e-5      # of the loss
GRADIENT = 1e-4  # of the gradient's largest element
# Where a gradient is 0 but for rounding (the bias of attention's keys), two programs agree in nothing. There the
# difference may be a few times that of PyTorch's own gradient in float32 from that in float64, and small beside the
# model's gradients.
ROUNDING, FLOOR = 16, 1e-5
# Where PyTorch's own gradient is far from that in float64 (batch norms of two samples), the difference may also be as many
# times that, as long as it is at most this part of the gradient's largest element.
AMPLIFIED = 1e-2
# An optimizer that divides by the size of a gradient makes steps of rounding as large as others, so that later losses of
# two programs may differ by more: by this part of the loss, if those of a training that does not do so agree.
LATER_LOSS = 1e-2
UNIT = 2.0**-24  # the rounding of a float32, as a part of it
# A loss that is 0 but for rounding is a sum of numbers about 1.
NO_LOSS = ROUNDING * UNIT
# bf16 keeps 8 bits: a value is wrong by 2^-9 of itself, and a gradient is a sum of products of a few such values, of which
# some cancel: 2^-5 of the largest element. How much cancels depends on the module, so that PyTorch's own gradient in bf16 is
# a second measure: Tessera may be wrong by twice as much besides. A loss is a mean of many such values: 2^-7 of it.
BF16_GRADIENT, BF16_LOSS, BF16_TIMES = 2.0**-5, 2.0**-7, 2.0
# Whatever PyTorch's own is: no more than these parts of a gradient's largest element and of a loss, so that a factor, a sign or
# a term that is missing is seen. A gradient that is small beside the model's others may be wrong by that part of the largest.
BF16_MOST, BF16_MOST_LOSS, BF16_FLOOR = 0.5, 0.25, 2.0**-7


@dataclasses.dataclass
class Verdict:
    """What a comparison found. problems: texts, none if the trainings are the same; errors: {name: relative
    difference}."""
    problems: list
    losses: list           # [(wanted, got), …]
    loss_difference: float  # largest, relative
    errors: dict
    rounding: list = dataclasses.field(default_factory=list)  # gradients that are rounding, and were not compared
    loose: list = dataclasses.field(default_factory=list)  # steps whose losses differ by what an optimizer made of rounding
    unknown: list = dataclasses.field(default_factory=list)  # gradients that differ, and are not finite in float64
    beside: str = ""  # what PyTorch computed besides, for the verdict

    @property
    def same(self):
        return not self.problems

    @property
    def largest(self):
        """(name, relative difference) of the gradient that differs most."""
        return max(self.errors.items(), key=lambda item: nan_last(item[1]), default=("none", 0.0))

    def line(self):
        """The verdict in one line."""
        if not self.same:
            return "DIFFERENT: " + "; ".join(self.problems)
        name, error = self.largest
        return (f"same: loss {self.losses[0][0]:.4f} (difference {self.loss_difference:.0e}), {len(self.errors)} "
                f"gradients within {error:.0e}, largest {name}"
                + (f"; {len(self.rounding)} only rounding: {', '.join(self.rounding[:3])}" if self.rounding else "")
                + (f"; rounding moves the losses of steps {', '.join(map(str, self.loose))}" if self.loose else "")
                + (f"; {self.beside}" if self.beside else ""))

    def summary(self):
        """The same for a JSON file."""
        name, error = self.largest
        return {"result": "same" if self.same else "DIFFERENT", "problems": self.problems, "losses": self.losses,
                "loss_difference": self.loss_difference, "gradients": len(self.errors), "largest": name,
                "rounding": self.rounding, "loose_losses": self.loose, "unknown": self.unknown,
                "gradient_difference": error, "gradient_differences": self.errors}


def nan_last(value):
    return numpy.inf if numpy.isnan(value) else value


def compare(want, got, noise=None, tolerance=GRADIENT, loss_tolerance=LOSS, again=None, loss_noise=None):
    """The Verdict on training `got` (Tessera's) against `want` (PyTorch's), two tools.Training.

    noise: a function that returns {name: by how much `want`'s gradient is wrong from rounding}, nan where that is not known;
    called only if gradients differ by more than the tolerance, which is one number, or one per name. loss_noise: a function that
    returns the same of the loss of step 1. again: a function that returns the losses (wanted, got, errors of the wanted ones) of
    two trainings that do not enlarge rounding; called only if later losses differ, and none by much.
    """
    problems = []
    if len(want.losses) != len(got.losses):
        problems.append(f"{len(got.losses)} losses, not {len(want.losses)}")
    distant = far_losses(want.losses, got.losses, loss_tolerance)
    rounded, loose = set(), []  # steps
    if 0 in distant and loss_noise and abs(got.losses[0] - want.losses[0]) <= loss_allowance(want.losses[0], loss_noise()):
        distant, rounded = distant[1:], {0}
    if again and distant and distant[0] > 0 and not set(distant) & set(far_losses(want.losses, got.losses, LATER_LOSS, NO_LOSS)):
        wanted, found, wrong = again()
        if all(abs(found[step] - wanted[step]) <= loss_allowance(wanted[step], wrong[step])
               for step in far_losses(wanted, found, loss_tolerance)):
            loose = [step + 1 for step in distant]
            rounded |= {step for step in distant if abs(want.losses[step] - got.losses[step]) <= NO_LOSS}
    for step in distant:
        if step + 1 not in loose:
            problems.append(f"loss of step {step + 1} is {shown(got.losses[step])}, in PyTorch {shown(want.losses[step])}")
    problems += compare_names(want, got)
    errors, far = {}, {}
    for name in sorted(set(want.gradients) & set(got.gradients)):
        wanted, found = want.gradients[name].astype(numpy.float64), got.gradients[name].astype(numpy.float64)
        if wanted.shape != found.shape:
            problems.append(f"gradient of {name} has shape {list(found.shape)}, in PyTorch {list(wanted.shape)}")
            continue
        size, difference = (float(numpy.abs(x).max(initial=0)) for x in (wanted, found - wanted))
        errors[name] = difference / size if size else 0.0 if difference == 0 else numpy.inf
        if not errors[name] <= (tolerance[name] if isinstance(tolerance, dict) else tolerance):
            far[name] = difference
    rounding, unknown = [], []
    if far:
        allowed = allowance(want, noise() if noise else {})
        unknown = sorted(name for name, difference in far.items() if numpy.isnan(allowed.get(name, 0)) and numpy.isfinite(difference))
        wrong = {name: errors[name] for name, difference in far.items() if name not in unknown and not difference <= allowed.get(name, 0)}
        rounding = sorted(set(far) - set(wrong) - set(unknown))
        for name in rounding + unknown:
            del errors[name]
        if wrong:
            name = max(wrong, key=lambda key: nan_last(wrong[key]))
            problems.append(f"{len(wrong)} of {len(want.gradients)} gradients differ, most that of {name}, by "
                            f"{wrong[name]:.1e} of its largest element")
    if not errors and not unknown:
        problems.append("no gradient could be compared")
    apart = [abs(got - want) / max(abs(want), 1e-6) for step, (want, got) in enumerate(zip(want.losses, got.losses)) if step not in rounded]
    return Verdict(problems, list(zip(want.losses, got.losses)), max(apart, key=nan_last, default=0.0), errors, rounding, loose, unknown)


def shown(loss):
    """A loss as text, with digits where it is small, too."""
    return f"{loss:.6f}" if not abs(loss) < 1e-3 else f"{loss:.3g}"


def compare_names(want, got):
    """Texts on what one of the two trains and the other does not."""
    problems = []
    moved = {name for name, gradient in want.gradients.items() if numpy.any(gradient)}
    trained = set(got.gradients) | set(got.parameters)
    for names, text in ((moved - trained, "trained in PyTorch only"),
                        (trained - set(want.gradients), "trained in Tessera only"),
                        (trained - set(got.gradients), "without a gradient from Tessera")):
        if names:
            names = sorted(names)
            problems.append(f"{', '.join(names[:3])}{f', … ({len(names)} in all)' if len(names) > 3 else ''}: {text}")
    return problems


def far_losses(wanted, found, tolerance, least=0.0):
    """The steps, from 0, whose losses differ by more than a part of the wanted one, and by more than `least`."""
    return [step for step, (want, got) in enumerate(zip(wanted, found))
            if not abs(got - want) <= max(tolerance * max(abs(want), 1e-6), least)]


def notable(noise, gradients):
    """What of {name: error from rounding} may matter where a gradient is compared: errors that are not far below its tolerance."""
    return {name: value for name, value in noise.items()
            if value > 0.1 * GRADIENT * float(numpy.abs(gradients[name]).max(initial=0))}


def allowance(want, noise):
    """{name: largest difference of a gradient that is rounding}, nan where that is not known."""
    sizes = {name: float(numpy.abs(gradient).max(initial=0)) for name, gradient in want.gradients.items()}
    largest = max(sizes.values(), default=0.0)
    return {name: float(numpy.minimum(ROUNDING * value, max(FLOOR * largest, AMPLIFIED * sizes.get(name, 0.0))))
            for name, value in noise.items()}


def loss_allowance(wanted, noise):
    """The largest difference of a loss that is rounding, of which PyTorch's has `noise`; nan where that is."""
    return numpy.minimum(ROUNDING * noise, max(LATER_LOSS * abs(wanted), NO_LOSS))


def beside_bf16(want, narrow):
    """(tolerances of the gradients, of losses) of a training in bf16 against PyTorch's `want` in float32: `narrow` is
    PyTorch's under autocast."""
    sizes = {name: float(numpy.abs(gradient).max(initial=0)) for name, gradient in want.gradients.items()}
    largest, tolerance = max(sizes.values(), default=0.0), {}
    for name, size in sizes.items():
        error = float(numpy.abs(narrow.gradients.get(name, want.gradients[name]) - want.gradients[name]).max(initial=0))
        most = max(BF16_MOST * size, BF16_FLOOR * largest)
        tolerance[name] = min(BF16_GRADIENT * size + BF16_TIMES * error, most) / size if size else 0.0
    apart = max((abs(other - loss) / max(abs(loss), 1e-6) for loss, other in zip(want.losses, narrow.losses)), default=0.0)
    return tolerance, min(BF16_LOSS + BF16_TIMES * apart, BF16_MOST_LOSS)
