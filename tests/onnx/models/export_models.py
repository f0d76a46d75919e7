#!/usr/bin/env python3
"""Exports the models of models.py with both torch exporters, with the record of the package tessera and without weights.

usage: export_models.py [--out DIR] [model ...]      (torch 2.6, onnx, onnxscript: tools/setup.sh --oldest)

Writes <model>.ts17.onnx (TorchScript exporter, opset 17) and <model>.dynamo18.onnx (dynamo exporter, opset 18), both in
training mode, and with --eval for some models <model>.ts17eval.onnx: torch.onnx.export by hand in evaluation mode, a file
without a record. Weights keep their names and shapes and refer to an external file that is not kept, so that the files
stay small.
"""

import argparse
import io
import os
import sys

import onnx
import torch

import models

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "frontends", "python"))
from tessera.onnx import export_proto, graph  # noqa: E402

EXTERNAL = onnx.TensorProto.EXTERNAL


def export(exporter, name, seed=0):
    """An onnx.ModelProto with its weights and its record."""
    model, inputs, names, dims = models.build(name, seed)
    return export_proto(model, inputs, names, exporter=exporter, axes=dims)[0]


def export_torchscript(name, seed=0):
    return export("torchscript", name, seed)


def export_dynamo(name, seed=0):
    return export("dynamo", name, seed)


def export_torchscript_eval(name, seed=0):
    """As above without the package, in evaluation mode: transpositions are folded into weights, which lose their names,
    and initializers whose values are equal (all fresh LayerNorm weights, say) are merged."""
    model, inputs, names, dims = models.build(name, seed)
    buffer = io.BytesIO()
    torch.onnx.export(model, inputs, buffer, input_names=names, output_names=["output"], opset_version=17,
                      dynamic_axes=dict(zip(names, dims)), dynamo=False)
    return onnx.load_from_string(buffer.getvalue())


EXPORTERS = {"ts17": export_torchscript, "dynamo18": export_dynamo}
SKIP = {("cnn", "dynamo18")}  # torch 2.6's dynamo exporter fails on batch normalisation
EVALUATED = ("gpt", "llama", "cnn")


def strip_weights(model, buffers, location, keep_elements=256):
    """Replaces the data of parameters of more than `keep_elements` elements by a reference; `buffers` keep theirs."""
    offset = 0
    for tensor in model.graph.initializer:
        count = 1
        for size in tensor.dims:
            count *= size
        if tensor.data_type != onnx.TensorProto.FLOAT or count <= keep_elements or tensor.name in buffers:
            continue
        for field in ("raw_data", "float_data", "external_data"):
            tensor.ClearField(field)
        tensor.data_location = EXTERNAL
        for key, value in (("location", location), ("offset", str(offset)), ("length", str(4 * count))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        offset += 4 * count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--eval", action="store_true", help="also the files of evaluation mode")
    parser.add_argument("models", nargs="*", default=list(models.MODELS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name in arguments.models or models.MODELS:
        buffers = {buffer for buffer, _ in models.build(name)[0].named_buffers()}
        exporters = dict(EXPORTERS)
        if arguments.eval and name in EVALUATED:
            exporters["ts17eval"] = export_torchscript_eval
        for exporter, export in exporters.items():
            if (name, exporter) in SKIP:
                continue
            model = export(name)
            graph.strip_notes(model)
            strip_weights(model, buffers, name + ".weights")
            path = os.path.join(arguments.out, f"{name}.{exporter}.onnx")
            with open(path, "wb") as file:
                file.write(model.SerializeToString(deterministic=True))
            print(path, os.path.getsize(path), "bytes", len(model.graph.node), "nodes")


if __name__ == "__main__":
    main()
