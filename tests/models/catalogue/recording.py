"""Writes what the comparison of a row needs into a folder: what each exporter makes of the module, data for all steps, and
PyTorch's losses and gradients. Needs torch.

  torchscript.onnx, dynamo.onnx   as python -m tessera export writes them
  data.safetensors                inputs and targets of all steps
  gradients.safetensors           of the first step, before clipping
  gradients-2.safetensors         those with two micro-batches, if they are others (statistics of a batch)
  case.json                       flags, losses, what is rounding, why an exporter refuses
"""

import copy
import json
import os

import numpy
import onnx
import torch
from safetensors.torch import save_file
from tessera import training, twin
from tessera.dropout import without_dropout
from tessera.hyper import hyper_flags
from tessera.module_step import kept
from tessera.onnx import ExportError, export_proto

from .rows import SAMPLES, STEPS

EXPORTERS = ("torchscript", "dynamo")
MICRO = (1, 2)  # numbers of micro-batches


class Failed(Exception):
    """PyTorch itself does not train the module."""


def data_of(row, model):
    """({name: array of all steps}, example inputs, loss)."""
    generator = numpy.random.default_rng(1)
    data = {name: entry.make(SAMPLES * STEPS, generator) for name, entry in zip(row.names, row.inputs)}
    examples = tuple(torch.from_numpy(array[:SAMPLES].copy()) for array in data.values())
    loss = training.Loss("output:output" if row.loss == "output" else row.loss)
    with torch.no_grad(), without_dropout(model), kept(model):
        result = model(*examples)
    if row.loss == "mse":
        data["targets"] = generator.standard_normal((SAMPLES * STEPS, *result.shape[1:])).astype(numpy.float32)
    elif row.loss == "cross-entropy":
        shape = (SAMPLES * STEPS, *result.shape[1:-1])
        data["targets"] = generator.integers(0, result.shape[-1], shape).astype(numpy.int32)
        if len(shape) > 1:  # some do not count, but never all of a sample
            data["targets"][..., 1:][generator.random((*shape[:-1], shape[-1] - 1)) < 0.1] = loss.ignore_index
    return training.Samples(data), examples, loss


def save_arrays(arrays, path):
    """Writes {name: array} as safetensors, integers of 64 bits as 32."""
    save_file({name: torch.from_numpy(array.astype(numpy.int32) if array.dtype == numpy.int64 else array)
               for name, array in arrays.items()}, path)


def in_bf16(model, setting, want):
    """(relative difference of the first loss, {name: largest difference of a gradient}) of PyTorch with everything in bf16;
    None where it does not run so."""
    inputs, names, outputs, data, loss, steps = setting
    try:
        half = copy.deepcopy(model).bfloat16()
        rows = training.rows_of(data, inputs, names, 0, SAMPLES, torch.bfloat16)
        value = training.loss_of(half, rows, names, outputs, loss)
        value.backward()
    except (RuntimeError, NotImplementedError, TypeError, ValueError):  # or a module that cannot be copied
        return None
    found = {name: parameter.grad for name, parameter in half.named_parameters() if parameter.grad is not None}
    noise = {name: float((torch.from_numpy(gradient) - found[name].float()).abs().max())
             for name, gradient in want.gradients.items() if name in found and gradient.size}
    return abs(value.item() - want.losses[0]) / max(abs(want.losses[0]), 1e-6), noise


def reference(row, model, folder):
    """PyTorch's training: writes data and gradients, returns (example inputs, what case.json gets)."""
    data, examples, loss = data_of(row, model)
    setting = (examples, row.names, ["output"], data, loss, STEPS)
    case = {"steps": STEPS, "samples": SAMPLES, "flags": [str(flag) for flag in [*loss.flags(), *hyper_flags()]],
            "bf16": row.bf16, "covers": row.covers.split(), "losses": {}}
    first = None
    with without_dropout(model):
        for micro in MICRO:
            want = training.reference(model, *setting, micro)
            if not numpy.all(numpy.isfinite(want.losses)):
                raise Failed(f"PyTorch's own losses are {want.losses}")
            case["losses"][micro] = want.losses
            if first is None:
                first = want
                case["rounding"] = twin.rounding(model, *setting, want.gradients)
                noise = in_bf16(model, setting, want)
                if noise:
                    case["bf16_loss"], case["bf16_noise"] = noise
            elif numpy.allclose(first.losses, want.losses, rtol=1e-6) and all(numpy.allclose(
                    first.gradients[name], gradient, rtol=1e-5, atol=1e-5 * numpy.abs(gradient).max(initial=0))
                    for name, gradient in want.gradients.items()):
                del case["losses"][micro]
                continue
            save_arrays(want.gradients, os.path.join(folder, f"gradients{'' if micro == 1 else f'-{micro}'}.safetensors"))
    save_arrays(data, os.path.join(folder, "data.safetensors"))
    return examples, case


def record(row, folder, exporters=EXPORTERS):
    """Writes the folder of a row; returns what is in case.json. Exporters that the folder has already are left out."""
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(0)
    model = row.build().train()
    path = os.path.join(folder, "case.json")
    if os.path.exists(path):
        with open(path) as file:
            case = json.load(file)
        examples = data_of(row, model)[1]
    else:
        try:
            examples, case = reference(row, model, folder)
        except (RuntimeError, Failed, NotImplementedError) as why:
            case, examples = {"failed": " ".join(str(why).split())[:300], "covers": row.covers.split()}, None
        case["exporters"] = {}
    for exporter in exporters if examples else ():
        if exporter not in case["exporters"]:
            case["exporters"][exporter] = export_one(model, examples, row, os.path.join(folder, exporter + ".onnx"), exporter)
    with open(path, "w") as file:
        json.dump(case, file, indent=1, sort_keys=True)
        file.write("\n")
    return case


def export_one(model, examples, row, path, exporter):
    """{} after writing the file, or {"refused": reason}."""
    try:
        exported, _ = export_proto(model, examples, row.names, ["output"], exporter, [{0: "B"} for _ in examples],
                                          say=lambda text: None)
    except (ExportError, RuntimeError) as why:
        return {"refused": str(why)[:600]}
    onnx.save(exported, path)
    return {}
