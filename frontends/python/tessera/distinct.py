"""What is changed in the module while it is exported, and put back: weights become all different."""

import contextlib
import zlib

import torch

from .module_checks import parts_of


@contextlib.contextmanager
def distinct(model, seed=0):
    """Within the context every element of every floating parameter is changed by up to a tenth of itself, and zeros are small
    numbers instead, so that no two parameters are equal: exporters merge equal ones, and zeros hide what depends on them.
    Signs and magnitudes stay."""
    saved = {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter = parts_of(parameter)
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
                    parts_of(parameter).copy_(saved[name])
