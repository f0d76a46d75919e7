"""Refuses parameters and buffers that no exported file can keep as they are."""

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm

from .errors import ExportError


def has_values(tensor):
    """Whether a tensor has elements in memory: it is neither a fake tensor nor on the device "meta"."""
    return not isinstance(tensor, FakeTensor) and not tensor.is_meta


def parts_of(tensor):
    """The tensor itself; of complex numbers their parts, as a last dimension of size 2."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


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
        if parameter.dtype == torch.complex32 or parameter.layout != torch.strided:
            kind = parameter.dtype if parameter.layout == torch.strided else parameter.layout
            raise ExportError(f"{name} is {kind}, which is not supported")
        if parameter.numel():
            twin = places.setdefault(memory_of(parameter), name)
            if twin != name:
                raise ExportError(f"{twin} and {name} are two parameters in the same memory")
        if getattr(parameter, "_post_accumulate_grad_hooks", None) or parameter._backward_hooks:
            raise ExportError(f"{name} has a hook on its gradient, which a file does not have")
    for place, module in model.named_modules():
        for name, tensor in [*vars(module).items(), *module._buffers.items()]:
            if isinstance(tensor, torch.Tensor) and not isinstance(tensor, torch.nn.Parameter) and tensor.numel():
                twin = places.get(memory_of(tensor)) if tensor.layout == torch.strided else None
                if twin and name not in computed_names(module):
                    raise ExportError(f"{place}.{name}".lstrip(".") + f" shares the memory of the parameter {twin}")
        if module._backward_hooks or module._backward_pre_hooks:
            raise ExportError(f"{place or 'the module'} has a hook on its backward pass, which a file does not have")
        if isinstance(module, torch.jit.ScriptModule):
            raise ExportError(f"{place or 'the module'} is a script module: what it does to gradients cannot be seen")


def computed_names(module):
    """Names of the attributes that hooks of torch.nn.utils (weight_norm, spectral_norm, prune) compute before each forward pass, so
    that what they were before does not matter."""
    return {hook.name if hasattr(hook, "name") else hook._tensor_name for hook in module._forward_pre_hooks.values()
            if isinstance(hook, (WeightNorm, SpectralNorm, BasePruningMethod))}


OF_EVERY_MODULE = frozenset(vars(torch.nn.Module()))
PLAIN = (bool, int, float, complex, str, bytes, type(None))


def python_state(model):
    """{name: what identifies the value} of the attributes of all modules, and of the classes of the user's modules, that are plain
    numbers, texts, tensors, arrays, or lists, tuples, sets, dictionaries and objects of them: a file holds what they were when it was
    exported. What hooks compute is not among them."""
    found, known = {}, {}
    for place, module in model.named_modules():
        for kind in type(module).__mro__:
            if kind.__module__.split(".")[0] not in ("torch", "builtins"):
                found |= {f"{place}.{name}".lstrip("."): identity(value, known) for name, value in vars(kind).items()
                          if not name.startswith("__")}
        found |= {f"{place}.{name}".lstrip("."): identity(value, known) for name, value in vars(module).items()
                  if name not in OF_EVERY_MODULE and name not in computed_names(module)}
    return found


def identity(value, known):
    """Equal for a value that is as it was. known: {id: identity} of the objects that were met."""
    if isinstance(value, torch.nn.Parameter):
        return id(value)
    if isinstance(value, torch.Tensor):
        return id(value), value._version
    if isinstance(value, PLAIN):
        return value if value == value else "nan"  # which differs from itself
    if id(value) in known:
        return known[id(value)]
    known[id(value)] = None  # meanwhile, where it holds itself
    if isinstance(value, (list, tuple)):
        result = tuple(identity(entry, known) for entry in value)
    elif isinstance(value, dict):
        result = tuple((key if isinstance(key, (str, int)) else id(key), identity(entry, known)) for key, entry in value.items())
    elif isinstance(value, (set, frozenset)):
        result = len(value)
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        result = hash(value.tobytes())
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.nn.Module, type)) and not callable(value):
        result = identity(vars(value), known)
    else:
        result = None
    known[id(value)] = result
    return result
