"""The arguments of a call that a TorchFunctionMode sees, by name."""

import inspect


def arguments(function, args, kwargs, order=None):
    """A call's arguments by name: by the function's signature, or for built-in ones by the `order` of the first."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)
    except (TypeError, ValueError):
        return {**dict(zip(order or (), args)), **kwargs}
