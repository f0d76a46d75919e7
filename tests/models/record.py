#!/usr/bin/env python3
"""Writes tests/models/recorded: small models as exporters write them, and their first training steps in PyTorch.

usage: record.py LABEL [model ...]        LABEL: newest or oldest, the torch that runs this

"newest" writes, for each model, a folder with
  model.json             the sizes and flags to compile it with, PyTorch's losses, versions
  weights.safetensors    parameters (and statistics of batch norms) before the first step, by name
  gradients.safetensors  the gradients of the first step, before clipping
  data.safetensors       inputs and targets of three steps
  newest-<exporter>.onnx what python -m tessera export makes of it, without the values of weights
"oldest", run afterwards, adds oldest-<exporter>.onnx of the same weights. For the models in PLAIN both add
plain-<label>.onnx: what torch.onnx.export(dynamo=True) writes by itself, which must be refused.

Needs torch, transformers, onnx, onnxscript, safetensors.
"""

import argparse
import json
import os
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "frontends", "python")]
import numpy  # noqa: E402
import onnx  # noqa: E402
import plain  # noqa: E402
import shrink  # noqa: E402
import torch  # noqa: E402
import zoo  # noqa: E402
from catalogue.recording import save_arrays  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from tessera import names as naming  # noqa: E402
from tessera import compare, targets, training, twin  # noqa: E402
from tessera.dimensions import axes_of  # noqa: E402
from tessera.dropout import without_dropout  # noqa: E402
from tessera.hyper import hyper_flags  # noqa: E402
from tessera.module_checks import parts_of  # noqa: E402
from tessera.module_step import kept  # noqa: E402
from tessera.onnx import ExportError, export_proto, exporters, graph, record  # noqa: E402

FOLDER = os.path.join(HERE, "recorded")
BATCH, SEQUENCE, STEPS = 4, 8, 3
KEEP = 64  # elements of an initializer that stay in the file if it is a parameter
# Causal language models of transformers: family and padding token.
FAMILIES = {"gpt2": None, "llama": None, "mistral": None, "gemma2": None, "gpt_neox": None, "olmo2": None, "phi": None,
            "phi3": None, "mixtral": None, "qwen2": 0, "qwen3": None, "opt": 1, "roberta": 1}
PROGRAMS = ("fno",)  # no exporter of ONNX knows complex numbers: record_pt2.py adds the only file
PLAIN = ("gpt2", "llama", "padded-tied")
SMALLER = {64: 16, 128: 32, 16: 8}  # sizes of shrink.py's -> those here


def build(name):
    """(module, inputs, names, kind of loss) of a model with new weights."""
    torch.manual_seed(7)
    if name in plain.MODELS:
        return plain.MODELS[name]()
    if name in zoo.SMALL:
        made = zoo.SMALL[name]()
        return made.model, made.inputs, made.names, made.loss
    settings = shrink.family_settings(name, FAMILIES[name])
    for key in shrink.SIZE:
        if settings.get(key) in SMALLER and "position" not in key:
            settings[key] = SMALLER[settings[key]]
    for key in settings:
        if key.endswith(("attention_heads", "key_value_heads", "n_head")) and settings[key]:
            settings[key] = min(settings[key], 2)
    model, inputs, names = targets.load_hugging_face(name, settings, BATCH, SEQUENCE, say=lambda text: None)
    return model, inputs, names, "cross-entropy"


def weights_of(model, found):
    """What a step needs from outside: parameters that the loss depends on, and the statistics of batch norms. Other
    buffers are in the exported file."""
    parameters = {entry["name"] for entry in found["parameters"] if not entry.get("unused")}
    norms = tuple(entry["running_mean"].removesuffix("mean") for entry in found["batch_norm"])
    tensors = {name: entry[0] for name, entry in naming.parameter_names(model).items() if name in parameters}
    tensors |= {name: entry[0] for name, entry in naming.buffer_names(model).items() if norms and name.startswith(norms)}
    return {name: parts_of(tensor.detach()).clone().contiguous() for name, tensor in tensors.items()}


def data_for(model, inputs, names, loss, padding):
    """Arrays for all steps: tokens or floats, and targets."""
    samples = BATCH * STEPS
    batch = {}
    for name, example in zip(names, inputs):
        entry = {"role": "input", "shape": list(
            example.shape), "dtype": "f32" if example.is_floating_point() else "i64"}
        if not example.is_floating_point():
            entry["index_bound"] = 32
        batch[name] = entry
    with torch.no_grad(), without_dropout(model), kept(model):
        shape = list(model(*inputs).shape)
    batch["targets"] = ({"role": "target", "shape": shape, "dtype": "f32"} if loss.kind == "mse" else
                        {"role": "target", "shape": shape[:-1], "dtype": "i32", "index_bound": shape[-1]})
    return training.make_data(batch, inputs, names, loss, samples, padding)


def write_training(folder, name, model, inputs, names, kind, found):
    """PyTorch's first steps."""
    os.makedirs(folder, exist_ok=True)
    loss = training.Loss(kind)
    padding = sorted({entry["padding_idx"] for entry in found["parameters"] if "padding_idx" in entry})
    data = data_for(model, inputs, names, loss, padding)
    with without_dropout(model):
        want = training.reference(model, inputs, names, found["outputs"], data, loss, STEPS)
        noise = twin.rounding(model, inputs, names, found["outputs"], data, loss, STEPS, want.gradients)
    save_file(weights_of(model, found), os.path.join(folder, "weights.safetensors"))
    save_arrays(want.gradients, os.path.join(folder, "gradients.safetensors"))
    save_arrays(data, os.path.join(folder, "data.safetensors"))
    flags = ["--batch", BATCH, *(["--seq", SEQUENCE] if not inputs[0].is_floating_point() else []), *loss.flags(),
             *hyper_flags()]
    versions = {"torch": torch.__version__.split("+")[0]}
    if name not in plain.MODELS:
        import transformers
        versions["transformers"] = transformers.__version__
    with open(os.path.join(folder, "model.json"), "w") as file:
        json.dump({"versions": versions, "flags": [str(flag) for flag in flags], "steps": STEPS, "losses": want.losses,
                   "rounding": compare.notable(noise, want.gradients)}, file, indent=1)
        file.write("\n")


def strip(exported):
    """Drops the values of parameters: they refer to a file that is not there. weights.safetensors has them."""
    found = record.read(exported)
    names = {entry["name"] for entry in found["parameters"]} if found else {
        tensor.name for tensor in exported.graph.initializer}
    for tensor in exported.graph.initializer:
        elements = int(numpy.prod(tensor.dims))
        if tensor.name in names and elements > KEEP and tensor.data_type == onnx.TensorProto.FLOAT:
            for field in ("raw_data", "float_data"):
                tensor.ClearField(field)
            tensor.data_location = onnx.TensorProto.EXTERNAL
            for key, value in (("location", "weights"), ("offset", "0"), ("length", str(4 * elements))):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, value


def plain_export(model, inputs, names):
    """What torch.onnx.export(dynamo=True) writes of the module."""
    dimensions = tuple({axis: torch.export.Dim.AUTO for axis in axes} for axes in axes_of(inputs))
    with tempfile.TemporaryDirectory() as place, exporters.quiet(), without_dropout(model):
        program = torch.onnx.export(model, inputs, input_names=names, dynamic_shapes=dimensions, dynamo=True)
        program.save(os.path.join(place, "model.onnx"))
        exported = onnx.load(os.path.join(place, "model.onnx"))
    return exported


def strip_traces(exported):
    """Drops the stack traces of nodes, which name files of this machine, and shapes of inner values. What the importer
    reads of an exporter's notes stays: scopes of nodes, kinds of initializers."""
    for table in [exported.graph, *exported.functions]:
        names = {tensor.name for tensor in getattr(table, "initializer", ())}
        kept = [value for value in table.value_info if value.name in names]
        del table.value_info[:]
        table.value_info.extend(kept)
        for node in graph.nodes_of(table):
            node.ClearField("doc_string")
            kept = [entry for entry in node.metadata_props if entry.key == "pkg.torch.onnx.name_scopes"]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)


def write(exported, path):
    strip(exported)
    strip_traces(exported)
    onnx.save(exported, path)
    print(f"{path}: {os.path.getsize(path)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("label", choices=["newest", "oldest"])
    parser.add_argument("models", nargs="*", default=[*FAMILIES, *plain.MODELS, *zoo.SMALL])
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    for name in options.models:
        folder = os.path.join(FOLDER, name)
        model, inputs, names, kind = build(name)
        model.train()
        if name in PROGRAMS:
            found = {"parameters": [{"name": each} for each, _ in model.named_parameters()], "batch_norm": [],
                     "outputs": ["output"]}
            if options.label == "newest" and not os.path.exists(os.path.join(folder, "model.json")):
                write_training(folder, name, model, inputs, names, kind, found)
            continue
        if options.label == "oldest":
            # Those that are not there are not used.
            training.set_weights(model, load_file(os.path.join(folder, "weights.safetensors")))
        for exporter in exporters.EXPORTERS if name in plain.MODELS else ["auto"]:
            try:
                exported, found = export_proto(model, inputs, names, exporter=exporter, say=lambda text: None)
            except ExportError as why:
                print(f"{name}, {options.label}, {exporter}: refused: {why}")
                continue
            if options.label == "newest" and not os.path.exists(os.path.join(folder, "model.json")):
                write_training(folder, name, model, inputs, names, kind, found)
            write(exported, os.path.join(folder, f"{options.label}-{found['exporter'].split(',')[0]}.onnx"))
        if name in PLAIN:
            write(plain_export(model, inputs, names), os.path.join(folder, f"plain-{options.label}.onnx"))


if __name__ == "__main__":
    main()
