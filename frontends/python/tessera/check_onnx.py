"""The side of a check that is of ONNX: exports the model, or takes a file and its weights."""

import numpy
import onnx

from . import training
from .errors import CannotCompare, listed
from .onnx import export, graph, record
from .onnx.export import write


def export_onnx(check, exporter, say):
    """Exports a Check's model. Raises ExportError."""
    found = export(check.model, check.inputs, check.names, check.path("model.onnx"), exporter=exporter, say=say)
    check.file, check.outputs, check.exporter = check.path("model.onnx"), found["outputs"], found["exporter"]
    check.padding = paddings(found)
    if found["dropout"]:
        leave_out_dropouts(check, onnx.load(check.file))


def use_onnx(check, path):
    """Takes a file that was exported before, and its weights into the model. Raises CannotCompare."""
    exported = onnx.load(path)
    tensors = {tensor.name: tensor for tensor in exported.graph.initializer}
    found = record.read(exported)
    check.file, check.outputs = path, [output.name for output in exported.graph.output]
    producer = f"{exported.producer_name} {exported.producer_version}"
    check.exporter = found["exporter"] if found else f"{producer}, no record"
    check.padding = paddings(found)
    missing = training.set_weights(check.model, {
        name: numpy.array(onnx.numpy_helper.to_array(tensor)) for name, tensor in tensors.items()})
    unused = {entry["name"] for entry in found["parameters"] if entry.get("unused")} if found else set()
    if set(missing) - unused:
        raise CannotCompare("file", f"{path} has no weights for {listed(sorted(set(missing) - unused))}")
    if graph.active_dropouts(exported):
        leave_out_dropouts(check, exported)


def leave_out_dropouts(check, exported):
    """Goes on with a file that has none, as random numbers are not compared: rates that the code gives are left."""
    found = record.read(exported)
    check.dropout_in_code = len(graph.active_dropouts(exported))
    graph.leave_out_dropouts(exported)
    if found:
        record.attach(exported, found | {"dropout": []})
    check.file = check.path("without-dropout.onnx")
    write(exported, check.file)


def paddings(found):
    """The padding indices of a record."""
    return sorted({entry["padding_idx"] for entry in (found or {}).get("parameters", ()) if "padding_idx" in entry})
