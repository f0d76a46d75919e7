"""Runs the module for a training step and sees what exporters lose. (skeleton)"""

import dataclasses

import torch


@dataclasses.dataclass
class Observation:
    padding: dict = dataclasses.field(default_factory=dict)
    unused: set = dataclasses.field(default_factory=set)
    batch_norm: list = dataclasses.field(default_factory=list)
    dropout: list = dataclasses.field(default_factory=list)
    outputs: list = dataclasses.field(default_factory=list)


def observe(model, inputs, say=print):
    o = Observation(outputs=["output"])
    names = {id(m): n for n, m in model.named_modules()}
    for n, m in model.named_modules():
        if isinstance(m, torch.nn.Embedding) and m.padding_idx is not None:
            for pn, p in model.named_parameters():
                if p is m.weight:
                    o.padding[pn] = m.padding_idx
        if isinstance(m, torch.nn.modules.batchnorm._BatchNorm) and m.running_mean is not None:
            o.batch_norm.append({"running_mean": n + ".running_mean" if n else "running_mean", "training": m.training})
        if isinstance(m, torch.nn.Dropout) and m.p > 0 and m.training:
            o.dropout.append({"module": n, "p": m.p, "count": 1})
    return o
