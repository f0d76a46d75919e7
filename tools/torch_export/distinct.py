"""What is changed in the module while it is exported, and put back: weights become all different, dropout rates 0."""

import contextlib
import zlib

import torch


@contextlib.contextmanager
def distinct(model, seed=0):
    """Within the context every element of every floating parameter is changed by up to a tenth of itself, and zeros are small
    numbers instead, so that no two parameters are equal: exporters merge equal ones, and zeros hide what depends on them.
    Signs and magnitudes stay."""
    saved = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.is_floating_point():
                continue
            generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + seed)
            noise = torch.rand(parameter.shape, generator=generator).to(parameter)
            saved[name] = parameter.detach().clone()
            parameter.copy_(torch.where(parameter == 0, 0.02 * (noise - 0.5), parameter * (0.9 + 0.2 * noise)))
    try:
        yield
    finally:
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if name in saved:
                    parameter.copy_(saved[name])


@contextlib.contextmanager
def without_dropout(model, wanted=True):
    """Within the context dropout rates are 0: those of modules, and numbers that modules and their configurations keep under
    a name with "drop" in it. Yields how many were above 0. A rate that is written in the code stays."""
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
