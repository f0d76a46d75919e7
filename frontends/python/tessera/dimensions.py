"""Which dimensions of a module's example inputs stay open when it is exported."""

import inspect

import torch

from .errors import ExportError

LEAST = 2  # of an open dimension: torch.export makes a constant of the sizes 0 and 1


def axes_of(tensors):
    """The symbolic dimensions of the example inputs: [{axis: name}, …]. B is the batch, of the inputs with as many samples as
    the first; T the positions, where there are several lengths T, T2, T3, …. An integer input of samples and positions has
    them; one with a third dimension only beside such an input of as many positions: images and maps of labels are no sequences."""
    samples = next((len(tensor) for tensor in tensors if tensor.dim()), 0)
    has_samples = [tensor.dim() > 0 and len(tensor) == samples for tensor in tensors]
    integers = [mine and not tensor.is_floating_point() and not tensor.is_complex() for mine, tensor in zip(has_samples, tensors)]
    lengths = list(dict.fromkeys(tensor.shape[1] for tensor, is_integer in zip(tensors, integers) if is_integer and tensor.dim() == 2))
    names = {length: f"T{at + 1}" if at else "T" for at, length in enumerate(lengths)}

    def is_sequence(tensor):
        return tensor.dim() == 2 or tensor.dim() == 3 and tensor.dtype != torch.uint8 and tensor.shape[1] in names
    return [{0: "B", 1: names[tensor.shape[1]]} if is_integer and is_sequence(tensor) else {0: "B"} if mine else {}
            for tensor, is_integer, mine in zip(tensors, integers, has_samples)]


def by_parameter(model, entries):
    """What there is for each input, as torch.export wants it for each parameter of forward: *args is one of them."""
    for at, parameter in enumerate(inspect.signature(model.forward).parameters.values()):
        if parameter.kind is parameter.VAR_POSITIONAL and at < len(entries):
            return (*entries[:at], tuple(entries[at:]))
    return tuple(entries)


def input_names(model, count):
    """The names of forward's first parameters, one per input; args_0, args_1, … for what it takes as *args."""
    names = []
    for parameter in inspect.signature(model.forward).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            return names + [f"{parameter.name}_{at}" for at in range(count - len(names))]
        if len(names) < count:
            names.append(parameter.name)
    return names


def batch_open(inputs):
    """{input: {0: "batch"}} of the inputs, {name: tensor}, that have as many samples as the first; of a single sample, which
    torch.export makes a constant, {input: {}}."""
    samples = next((len(tensor) for tensor in inputs.values() if tensor.dim()), 0)
    return {name: {0: "batch"} if samples >= LEAST else {} for name, tensor in inputs.items() if tensor.dim() and len(tensor) == samples}


def positions_open(inputs):
    """Those of batch_open, and dimension 1 of the integer inputs among them. torch.export finds out which sizes they may have, and
    whether they are equal."""
    from torch.export import Dim
    opened, axes = batch_open(inputs), dict(zip(inputs, axes_of(list(inputs.values()))))
    return {name: {**entry, **({1: Dim.DYNAMIC} if 1 in axes[name] and inputs[name].shape[1] >= LEAST else {})}
            for name, entry in opened.items()}


def wanted_dimensions(dynamic, inputs):
    """What to try of what `tessera.export` was given, best first: [{input: {dimension: name or torch.export.Dim}}, …].
    Raises ExportError for inputs and dimensions that are not there."""
    if dynamic is None:
        return [positions_open(inputs), batch_open(inputs), {}]
    if dynamic == "auto":
        from torch.export import Dim
        return [{name: {axis: Dim.AUTO for axis in range(tensor.dim())} for name, tensor in inputs.items()}, {}]
    if not isinstance(dynamic, dict) or not all(isinstance(entry, dict) for entry in dynamic.values()):
        raise ExportError(f'dynamic is {dynamic!r}, expected {{input: {{dimension: name}}}}, "auto" or None')
    for name, entry in dynamic.items():
        if name not in inputs:
            raise ExportError(f"dynamic names the input {name}, the module has {', '.join(inputs)}")
        shape = list(inputs[name].shape)
        for axis in entry:
            if not isinstance(axis, int) or not 0 <= axis < len(shape):
                raise ExportError(f"dynamic opens dimension {axis} of {name}, which has shape {shape}")
            if shape[axis] < LEAST:
                raise ExportError(f"dynamic opens dimension {axis} of {name}, which is {shape[axis]} in the example: "
                                  f"torch.export needs {LEAST} or more there")
    return [dynamic]


def shapes_for(model, inputs, positional, wanted):
    """The dynamic_shapes of torch.export. inputs: {name: tensor}, of which the first `positional` are not keywords."""
    from torch.export import Dim
    dims = {}

    def made(entry):
        return {axis: dims.setdefault(dim, Dim(dim, min=LEAST)) if isinstance(dim, str) else dim
                for axis, dim in entry.items()}

    entries = {name: made(wanted.get(name, {})) for name in inputs}
    if positional == len(inputs):
        return by_parameter(model, list(entries.values()))
    names = list(inspect.signature(model.forward).parameters)
    if set(entries) <= set(names):  # torch wants them in the order of forward
        return {name: entries[name] for name in sorted(entries, key=names.index)}
    return entries


def narrowed(shapes, problem):
    """The dynamic_shapes with the ranges that torch.export's exception suggests (time = Dim('time', min=3)); None if it suggests
    none, or to fix a size."""
    from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes
    from torch.utils import _pytree
    heading, _, fixes = problem.partition("Suggested fixes:")
    if not fixes:
        return None
    fixes = fixes.strip().split("\n\n")[0]  # what follows an empty line is no fix
    try:
        found = refine_dynamic_shapes_from_suggested_fixes(heading + "Suggested fixes:\n" + fixes, shapes)
    except Exception:  # hints that are not names (Dim.AUTO), or a text that torch itself does not understand
        return None
    same = any(isinstance(size, int) for size in _pytree.tree_leaves(found)) or repr(found) == repr(shapes)
    return None if same else found


def fixed_dimensions(wanted, inputs, found):
    """Texts of the dimensions that were to be open and have a size in the program. found: {input: shape with symbols}"""
    return [f"dimension {axis} of {name} is {inputs[name].shape[axis]}" for name, entry in wanted.items()
            for axis in entry if isinstance(found[name][axis], int)]
