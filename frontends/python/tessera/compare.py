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
# An optimizer that divides by the size of a gradient makes steps of rounding as large as others, so that later losses of
# two programs may differ by more: by this part of the loss, if those of a training that does not do so agree.
LATER_LOSS = 1e-2


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
                + (f"; rounding moves the losses of steps {', '.join(map(str, self.loose))}" if self.loose else ""))

    def summary(self):
        """The same for a JSON file."""
        name, error = self.largest
        return {"result": "same" if self.same else "DIFFERENT", "problems": self.problems, "losses": self.losses,
                "loss_difference": self.loss_difference, "gradients": len(self.errors), "largest": name,
                "rounding": self.rounding, "loose_losses": self.loose,
                "gradient_difference": error, "gradient_differences": self.errors}


def nan_last(value):
    return numpy.inf if numpy.isnan(value) else value


def compare(want, got, noise=None, tolerance=GRADIENT, loss_tolerance=LOSS, again=None):
    """The Verdict on training `got` (Tessera's) against `want` (PyTorch's), two tools.Training.

    noise: a function that returns {name: by how much `want`'s gradient is wrong from rounding}; called only if
    gradients differ by more than the tolerance, which is one number, or one per name. again: a function that returns the
    losses (wanted, got) of two trainings that do not enlarge rounding; called only if losses differ, not that of step 1, and
    none by much.
    """
    problems = []
    if len(want.losses) != len(got.losses):
        problems.append(f"{len(got.losses)} losses, not {len(want.losses)}")
    differences = apart(want.losses, got.losses)
    distant = [step for step, difference in enumerate(differences) if not difference <= loss_tolerance]
    loose = []
    if again and distant and distant[0] > 0 and all(differences[step] <= LATER_LOSS for step in distant):
        if all(difference <= loss_tolerance for difference in apart(*again())):
            loose = [step + 1 for step in distant]
    for step in distant:
        if step + 1 not in loose:
            problems.append(f"loss of step {step + 1} is {got.losses[step]:.6f}, in PyTorch {want.losses[step]:.6f}")
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
    rounding = []
    if far:
        allowed = allowance(want, noise() if noise else {})
        wrong = {name: errors[name] for name, difference in far.items() if not difference <= allowed.get(name, 0)}
        rounding = sorted(set(far) - set(wrong))
        for name in rounding:
            del errors[name]
        if wrong:
            name = max(wrong, key=lambda key: nan_last(wrong[key]))
            problems.append(f"{len(wrong)} of {len(want.gradients)} gradients differ, most that of {name}, by "
                            f"{wrong[name]:.1e} of its largest element")
    if not errors:
        problems.append("no gradient could be compared")
    return Verdict(problems, list(zip(want.losses, got.losses)), max(differences, key=nan_last, default=0.0), errors,
                   rounding, loose)


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


def apart(wanted, found):
    """Relative differences of losses."""
    return [abs(got - want) / max(abs(want), 1e-6) for want, got in zip(wanted, found)]


def notable(noise, gradients):
    """What of {name: error from rounding} may matter where a gradient is compared: errors that are not far below its tolerance."""
    return {name: value for name, value in noise.items()
            if value > 0.1 * GRADIENT * float(numpy.abs(gradients[name]).max(initial=0))}


def allowance(want, noise):
    """{name: largest difference of a gradient that is rounding}."""
    largest = max((float(numpy.abs(x).max(initial=0)) for x in want.gradients.values()), default=0.0)
    return {name: min(ROUNDING * value, FLOOR * largest) for name, value in noise.items()}
