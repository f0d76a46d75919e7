"""PyTorch leaves open which of equal numbers `topk` takes; here it takes the first, as Tessera does, so that two trainings
can be compared."""

import torch
from torch.overrides import TorchFunctionMode

from .calls import arguments

ORDER = ("input", "k", "dim", "largest", "sorted")


class FirstOfEqual(TorchFunctionMode):
    """While it is active, `torch.topk` is the begin of a stable sort."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function not in (torch.topk, torch.Tensor.topk) or "out" in kwargs:
            return function(*args, **kwargs)
        given = arguments(function, args, kwargs, ORDER)
        numbers = given.get("input", given.get("self"))
        dim = given.get("dim", -1)
        values, places = torch.sort(numbers, dim=dim, descending=given.get("largest", True), stable=True)
        if numbers.dim() == 0:
            return torch.return_types.topk((values, places))
        return torch.return_types.topk((values.narrow(dim, 0, given["k"]), places.narrow(dim, 0, given["k"])))
