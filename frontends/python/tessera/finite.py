"""Conditions that only ask whether numbers are finite, `if not torch.isfinite(x).all(): …`, which torch.export cannot follow
since they depend on data: they are decided as for finite numbers."""

import operator

import torch
from torch.nn.functional import gaussian_nll_loss
from torch.overrides import TorchFunctionMode

from .errors import outside_line
from .value_checks import without_variance_check

Tensor = torch.Tensor
CHECKS = {torch.isfinite: True, Tensor.isfinite: True,
          **{check: False for name in ("isnan", "isinf", "isposinf", "isneginf") for check in (getattr(torch, name), getattr(Tensor, name))}}
SAME = {getattr(Tensor, name) for name in ("all", "any", "bool", "clone", "contiguous", "cpu", "cuda", "detach", "flatten", "reshape", "to", "view")}
SAME |= {torch.all, torch.any}
NOT = {torch.logical_not, Tensor.logical_not, torch.bitwise_not, Tensor.bitwise_not, Tensor.__invert__}
SUMS = {torch.sum, Tensor.sum, torch.count_nonzero, Tensor.count_nonzero}
PAIRS = {function: combine for name, combine in (("and", operator.and_), ("or", operator.or_), ("xor", operator.xor))
         for function in (getattr(torch, f"logical_{name}"), getattr(Tensor, f"logical_{name}"), getattr(torch, f"bitwise_{name}"),
                          getattr(Tensor, f"bitwise_{name}"), getattr(Tensor, f"__{name}__"))}
PAIRS |= {function: getattr(operator, name) for name in ("gt", "lt", "ge", "le", "eq", "ne")
          for function in (getattr(torch, name), getattr(Tensor, name), getattr(Tensor, f"__{name}__"))}
ENDS = {Tensor.__bool__, Tensor.item, Tensor.tolist}


class FiniteAssumed(TorchFunctionMode):
    """While it is active, a condition that follows from such checks of what is trained alone is what it is for finite numbers; any
    other one is as before: infinite numbers of inputs, such as masks, are meant. lines: where conditions were decided,
    "file:line: code". variances: where gaussian_nll_loss did not check its variances."""

    def __init__(self):
        super().__init__()
        self.lines, self.variances = [], []
        self.known = {}  # by id: (tensor, so that the id stays its own; its version; what all its elements are)

    def of(self, value):
        """What all elements of a tensor are, or a number itself; None if that is not known."""
        if isinstance(value, (bool, int, float)):
            return value
        tensor, version, known = self.known.get(id(value), (None, None, None))
        return known if tensor is not None and tensor._version == version else None  # it may have been changed in place

    def result_of(self, function, args):
        """What all elements of a function's result are; None if that is not known."""
        if function in CHECKS:
            return CHECKS[function] if args[0].requires_grad and args[0].numel() else None
        values = [self.of(value) for value in args[:2]]
        if not any(isinstance(value, Tensor) and self.of(value) is not None for value in args[:2]):
            return None
        if function in SAME:
            return values[0]
        if function in NOT:
            return not values[0]
        if function in SUMS:
            return 0 if not values[0] else None
        if function in PAIRS and len(values) == 2 and None not in values:
            return PAIRS[function](*values)
        return None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in ENDS and args and self.of(args[0]) is not None and args[0].numel() == 1:
            self.lines.append(outside_line())
            return self.of(args[0])
        if function is gaussian_nll_loss and isinstance(args[2] if len(args) > 2 else (kwargs or {}).get("var"), Tensor):
            self.variances.append(outside_line())
            return without_variance_check(function, args, kwargs or {})
        result = function(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            value = self.result_of(function, args) if args and isinstance(args[0], Tensor) else None
            if value is not None:
                self.known[id(result)] = result, result._version, value
        return result
