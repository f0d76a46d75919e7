#!/usr/bin/env python3
"""Exports the models of models.py with both torch exporters, without their weights.

usage: export_models.py [--out DIR] [model ...]      (torch 2.6, onnx 1.17, onnxscript)

Writes <model>.ts17.onnx (TorchScript exporter in training mode, opset 17), for some models also <model>.ts17eval.onnx (the
same in evaluation mode), and <model>.dynamo18.onnx (dynamo exporter, opset 18). Weights keep their names and shapes and refer to an external file that is not kept, so that the files stay small.
"""

import argparse
import io
import os
import tempfile

import onnx
import torch

import models

EXTERNAL = onnx.TensorProto.EXTERNAL


def export_torchscript(name, seed=0, mode=torch.onnx.TrainingMode.TRAINING):
    """An onnx.ModelProto with its weights, from the TorchScript exporter at opset 17.

    In evaluation mode that exporter folds transpositions into weights, which lose their names, and merges initializers
    whose values are equal (all fresh LayerNorm weights, say). Training mode keeps every parameter as it is.
    """
    model, inputs, names, dims = models.build(name, seed)
    buffer = io.BytesIO()
    torch.onnx.export(model, inputs, buffer, input_names=names, output_names=["output"], opset_version=17,
                      dynamic_axes=dict(zip(names, dims)), dynamo=False,
                      training=mode)
    return onnx.load_from_string(buffer.getvalue())


def export_torchscript_eval(name, seed=0):
    return export_torchscript(name, seed, torch.onnx.TrainingMode.EVAL)


def export_dynamo(name, seed=0):
    """An onnx.ModelProto with its weights, from the dynamo exporter at opset 18."""
    model, inputs, names, dims = models.build(name, seed)
    symbols = {symbol: torch.export.Dim(symbol, min=2, max=64) for d in dims for symbol in d.values()}
    shapes = tuple({axis: symbols[symbol] for axis, symbol in d.items()} for d in dims)
    model.eval()
    program = torch.onnx.export(model, inputs, input_names=names, output_names=["output"], opset_version=18,
                                dynamic_shapes=shapes, dynamo=True, external_data=False)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        program.save(path)
        return onnx.load(path)


EXPORTERS = {"ts17": export_torchscript, "ts17eval": export_torchscript_eval, "dynamo18": export_dynamo}
# torch 2.6's dynamo exporter fails on batch normalisation in inference form. Evaluation mode matters for few models.
SKIP = {("cnn", "dynamo18")} | {(name, "ts17eval") for name in models.MODELS if name not in ("gpt", "llama", "cnn")}


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


def strip_notes(model):
    """Drops notes that name files of the machine that exported the model, and shapes of inner values."""
    del model.metadata_props[:]
    graphs = [model.graph, *model.functions]
    for graph in graphs:
        for node in graph.node:
            node.ClearField("doc_string")
            del node.metadata_props[:]
        for value in [*graph.value_info]:
            del value.metadata_props[:]
    del model.graph.metadata_props[:]
    for value in [*model.graph.input, *model.graph.output, *model.graph.initializer]:
        del value.metadata_props[:]


def name_dimensions(model, dims):
    """Names the symbolic dimensions, given as {axis: name} per input; the dynamo exporter invents its own names."""
    renamed = {}
    for value, symbols in zip(model.graph.input, dims):
        for axis, symbol in symbols.items():
            renamed[value.type.tensor_type.shape.dim[axis].dim_param] = symbol
    for value in [*model.graph.input, *model.graph.output, *model.graph.value_info]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in renamed:
                dim.dim_param = renamed[dim.dim_param]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("models", nargs="*", default=list(models.MODELS))
    arguments = parser.parse_args()
    for name in arguments.models or models.MODELS:
        buffers = {buffer for buffer, _ in models.build(name)[0].named_buffers()}
        for exporter, export in EXPORTERS.items():
            if (name, exporter) in SKIP:
                continue
            model = export(name)
            strip_weights(model, buffers, name + ".weights")
            strip_notes(model)
            name_dimensions(model, models.MODELS[name][3])
            path = os.path.join(arguments.out, f"{name}.{exporter}.onnx")
            with open(path, "wb") as file:
                file.write(model.SerializeToString(deterministic=True))
            print(path, os.path.getsize(path), "bytes", len(model.graph.node), "nodes")


if __name__ == "__main__":
    main()
