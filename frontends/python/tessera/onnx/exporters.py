"""Runs PyTorch's exporters so that parameters stay as they are: training mode, no optimization, no folding."""

import contextlib
import inspect
import os
import sys
import tempfile

import onnx
import torch

from ..dimensions import by_parameter
from ..errors import ExportError, first_line
from ..module_step import kept
from . import forms
from . import marks as marking
from .graph import nodes_of

LARGEST = 1 << 20  # of a symbolic dimension


@contextlib.contextmanager
def quiet():
    """What exporters print is not for the user: whole graphs, hints about torchvision. Also what they print from C++."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for target, old in zip((1, 2), saved):
                os.dup2(old, target)
                os.close(old)


def export_torchscript(model, inputs, names, outputs, axes, path, marked):
    """Writes the model at opset 17. PRESERVE leaves modules that are in evaluation mode (frozen batch norms) as they are;
    as the model itself is in training mode, equal initializers are not merged."""
    torch.onnx.export(model, inputs, path, input_names=names, output_names=outputs, opset_version=17, dynamo=False,
                      dynamic_axes={name: dict(axis) for name, axis in zip(names, axes)}, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.PRESERVE, custom_opsets={"tessera": 1} if marked else None)


def export_dynamo(model, inputs, names, outputs, axes, path, marked):
    """Writes the model at opset 18. Optimizing, the default since torch 2.7, would merge equal initializers and fold."""
    options = {"optimize": False} if "optimize" in inspect.signature(torch.onnx.export).parameters else {}
    if marked:
        options["custom_translation_table"] = marking.translations()
    symbols = {name: torch.export.Dim(name, min=2, max=LARGEST) for axis in axes for name in axis.values()}

    def attempt(shapes):
        return torch.onnx.export(model, inputs, input_names=names, output_names=outputs, opset_version=18,
                                 dynamic_shapes=shapes, dynamo=True, **options)

    try:
        program = attempt(by_parameter(model, [{axis: symbols[name] for axis, name in entry.items()} for entry in axes]))
    except Exception as why:  # torch has no common class for what exporters raise
        try:  # a dimension may have to be fixed: it decides
            program = attempt(by_parameter(model, [{axis: torch.export.Dim.AUTO for axis in entry} for entry in axes]))
        except Exception:
            raise why from None
    program.save(path)


EXPORTERS = {"torchscript": export_torchscript, "dynamo": export_dynamo}


def run(name, model, inputs, names, outputs, axes, marked=0):
    """(onnx.ModelProto with weights, doubtful symbols: see name_dimensions) that exporter `name` makes of a model in training
    mode. marked: in how many places it is to be marked that gradients are cut. The model's buffers are as before. Raises
    ExportError with the exporter's reason."""
    with tempfile.TemporaryDirectory() as folder, kept(model, with_parameters=False):
        path = os.path.join(folder, "model.onnx")
        try:
            with quiet(), forms.written_out(), marking.written(model, marked) as marks:
                EXPORTERS[name](model, inputs, names, outputs, axes, path, marked)
                exported = onnx.load(path)
        except Exception as why:
            raise ExportError(f"the {name} exporter failed: {reason(why)}") from why
    if marked:
        there = marks.found if any(node.domain == "tessera" for node in nodes_of(exported.graph)) else 0
        if there != marked:
            raise ExportError(f"the {name} exporter keeps {there} of the {marked} places where gradients are cut")
    return exported, name_dimensions(exported, axes)


def reason(why):
    """What an exporter's exception says, in one line: the dynamo exporter's own has it under "Exception summary"."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if "Exception summary" in line and at + 1 < len(lines):
            return lines[at + 1][:300]
    return first_line(why)


def name_dimensions(model, axes):
    """Names the symbolic dimensions of a ModelProto, given as {axis: name} per input; the dynamo exporter of torch 2.6
    invents its own names. Returns the names of which it is not known that the graph takes other sizes: that exporter
    also writes the example's size as the symbol's name, whether or not the graph depends on it."""
    renamed, doubtful = {}, set()
    for value, symbols in zip(model.graph.input, axes):
        for axis, symbol in symbols.items():
            dim = value.type.tensor_type.shape.dim[axis]
            if dim.dim_param.isdigit():
                doubtful.add(symbol)
                dim.dim_param = symbol
            elif dim.dim_param.isidentifier():
                renamed[dim.dim_param] = symbol
    for value in [*model.graph.input, *model.graph.output]:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.isdigit():
                dim.Clear()
            elif dim.dim_param in renamed:
                dim.dim_param = renamed[dim.dim_param]
    return doubtful


def fixed_symbols(model, axes):
    """The names of the dimensions that were to be symbolic and have a size in the file."""
    return sorted({name for value, symbols in zip(model.graph.input, axes) for axis, name in symbols.items()
                   if not value.type.tensor_type.shape.dim[axis].dim_param})


def fix_sizes(model, inputs, axes, names):
    """Gives the symbolic dimensions `names` of a ModelProto's inputs the sizes of the example; outputs lose their shapes."""
    for value, tensor, symbols in zip(model.graph.input, inputs, axes):
        for axis, name in symbols.items():
            if name in names:
                value.type.tensor_type.shape.dim[axis].dim_value = tensor.shape[axis]
    for value in model.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.Clear()


def shapes_of(model):
    """The inputs of a ModelProto and their shapes as text: "tokens[B, T]"."""
    texts = []
    for value in model.graph.input:
        dims = [dim.dim_param or str(dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        texts.append(f"{value.name}[{', '.join(dims)}]")
    return ", ".join(texts)
