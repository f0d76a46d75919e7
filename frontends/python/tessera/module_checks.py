"""Refuses parameters and buffers that no exported file can keep as they are."""

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .errors import ExportError


def has_values(tensor):
    """Whether a tensor has elements in memory: it is neither a fake tensor nor on the device "meta"."""
    return not isinstance(tensor, FakeTensor) and not tensor.is_meta


def memory_of(tensor):
    """What two tensors have in common if they share memory."""
    storage = tensor.untyped_storage()
    return storage.data_ptr() if has_values(tensor) else ("no values", storage._cdata)


def check_parameters(model):
    """Raises ExportError for parameters that no file can keep as they are."""
    places = {}
    for name, parameter in model.named_parameters():
        if isinstance(parameter, torch.nn.parameter.UninitializedTensorMixin):
            raise ExportError(f"{name} has no shape yet: run the module once before exporting it")
        if parameter.is_complex() or parameter.layout != torch.strided:
            kind = parameter.dtype if parameter.is_complex() else parameter.layout
            raise ExportError(f"{name} is {kind}, which is not supported")
        if parameter.numel():
            twin = places.setdefault(memory_of(parameter), name)
            if twin != name:
                raise ExportError(f"{twin} and {name} are two parameters in the same memory")
        if getattr(parameter, "_post_accumulate_grad_hooks", None):
            raise ExportError(f"{name} has a hook that changes its gradient after the backward pass")
    for place, module in model.named_modules():
        for name, tensor in [*vars(module).items(), *module._buffers.items()]:
            if isinstance(tensor, torch.Tensor) and not isinstance(tensor, torch.nn.Parameter) and tensor.numel():
                twin = places.get(memory_of(tensor)) if tensor.layout == torch.strided else None
                if twin:
                    raise ExportError(f"{place}.{name}".lstrip(".") + f" shares the memory of the parameter {twin}")
        if isinstance(module, torch.jit.ScriptModule):
            raise ExportError(f"{place or 'the module'} is a script module: what it does to gradients cannot be seen")
