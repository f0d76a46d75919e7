"""Modules whose parameters have shapes and no values, so that a model of any size becomes a program of kilobytes."""

import contextlib

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from .errors import ExportError
from .module_checks import has_values


@contextlib.contextmanager
def no_weights():
    """Within the context every parameter that a new module gets loses its values at once: it moves to the device "meta".
    Buffers keep theirs, which code computes (tables of rotary positions, masks)."""
    real = torch.nn.Module.register_parameter

    def register(module, name, parameter):
        real(module, name, parameter)
        if parameter is not None and not parameter.is_meta:
            made = torch.nn.Parameter(parameter.to("meta"), requires_grad=parameter.requires_grad)
            module._parameters[name] = made

    torch.nn.Module.register_parameter = register
    try:
        yield
    finally:
        torch.nn.Module.register_parameter = real


def mode_of(model):
    """None if all parameters and buffers have values, else the FakeTensorMode of those that have none. Raises
    ExportError if they are of several modes."""
    modes = {id(tensor.fake_mode): tensor.fake_mode for tensor in [*model.parameters(), *model.buffers()]
             if isinstance(tensor, FakeTensor)}
    if len(modes) > 1:
        raise ExportError("the module has tensors of several FakeTensorModes")
    if all(has_values(tensor) for tensor in [*model.parameters(), *model.buffers()]):
        return None
    mode = next(iter(modes.values()), None) or FakeTensorMode(shape_env=ShapeEnv())
    mode.allow_non_fake_inputs = True
    if mode.shape_env is None:
        mode.shape_env = ShapeEnv()
    return mode


@contextlib.contextmanager
def as_fake(model, mode):
    """Within the context what lies on the device "meta" is a fake tensor on the CPU, beside which buffers may have values.
    Tied parameters stay tied."""
    made, before = {}, []
    if mode is not None:
        for module in model.modules():
            for table in (module._parameters, module._buffers):
                for name, tensor in table.items():
                    if tensor is not None and tensor.is_meta and not isinstance(tensor, FakeTensor):
                        if id(tensor) not in made:
                            made[id(tensor)] = fake_of(tensor, mode)
                        before.append((table, name, tensor))
                        table[name] = made[id(tensor)]
    try:
        yield
    finally:
        for table, name, tensor in before:
            table[name] = tensor


def fake_of(tensor, mode):
    """A fake tensor on the CPU like `tensor`; a parameter if that is one."""
    with mode:
        made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
        if isinstance(tensor, torch.nn.Parameter):
            made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
    return made
