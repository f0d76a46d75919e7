"""Which dimensions of a module's example inputs stay open when it is exported."""

import inspect


def axes_of(tensor):
    """The symbolic dimensions of an example input: {axis: name}. B is the batch, T the time of integer inputs."""
    return {0: "B", 1: "T"} if not tensor.is_floating_point() and tensor.dim() > 1 else {0: "B"} if tensor.dim() else {}


def by_parameter(model, entries):
    """What there is for each input, as torch.export wants it for each parameter of forward: *args is one of them."""
    for at, parameter in enumerate(inspect.signature(model.forward).parameters.values()):
        if parameter.kind is parameter.VAR_POSITIONAL and at < len(entries):
            return (*entries[:at], tuple(entries[at:]))
    return tuple(entries)
