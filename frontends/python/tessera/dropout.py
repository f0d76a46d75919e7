"""Turns dropout off for a while: by the rates that a module keeps, and in the calls that its code makes."""

import contextlib

import torch
from torch.overrides import TorchFunctionMode

from .calls import arguments

DROPOUTS = {"dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "dropout1d", "dropout2d", "dropout3d",
            "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout"}


@contextlib.contextmanager
def without_dropout(model, wanted=True):
    """Within the context dropout rates are 0: those of modules, and numbers that modules and their configurations keep under
    a name with "drop" in it. Yields how many were above 0. A rate that is written in the code stays (NoDropout)."""
    changed, configurations = [], set()
    for module in model.modules() if wanted else ():
        holders = [module]
        configuration = getattr(module, "config", None)
        if hasattr(configuration, "__dict__") and id(configuration) not in configurations:
            configurations.add(id(configuration))
            holders.append(configuration)
        for holder in holders:
            for name, value in list(vars(holder).items()):
                is_rate = "drop" in name or name == "p" and isinstance(holder, torch.nn.modules.dropout._DropoutNd)
                if is_rate and isinstance(value, float) and value > 0:
                    changed.append((holder, name, value))
    for holder, name, _ in changed:
        setattr(holder, name, 0.0)
    try:
        yield len(changed)
    finally:
        for holder, name, value in changed:
            setattr(holder, name, value)


class NoDropout(TorchFunctionMode):
    """Within it dropout is off, whatever rate the code gives."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in DROPOUTS:
            given = arguments(function, args, kwargs, ("input", "p", "training"))
            if given.get("train", given.get("training")) and given["p"] > 0:
                self.saw_dropout(name, given["p"])
                if name == "native_dropout":
                    return given["input"], torch.ones_like(given["input"], dtype=torch.bool)
                return given["input"]
        elif name == "scaled_dot_product_attention":
            given = arguments(function, args, kwargs, ("query", "key", "value", "attn_mask", "dropout_p"))
            if given.get("dropout_p", 0) > 0:
                self.saw_dropout("dropout", given["dropout_p"])
                if len(args) > 4:
                    args = (*args[:4], 0.0, *args[5:])
                else:
                    kwargs = {**kwargs, "dropout_p": 0.0}
        elif name == "multi_head_attention_forward":
            given = arguments(function, args, kwargs)
            if given["dropout_p"] > 0 and given["training"]:
                self.saw_dropout("dropout", given["dropout_p"])
                args, kwargs = (), {**given, "dropout_p": 0.0}
        return self.called(function, name, args, kwargs)

    def saw_dropout(self, kind, rate):
        """A dropout of the function `kind` was turned off."""

    def called(self, function, name, args, kwargs):
        """Calls any other function."""
        return function(*args, **kwargs)
