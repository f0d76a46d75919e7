"""The record: what tessera-compile must know of a PyTorch module and an exported graph does not say, as JSON in the file.

The record is the entry "tessera" of the ModelProto's metadata: every parameter and buffer by name with its shape, whether it
is trained, its other names, its padding index; batch norms, dropouts and outputs. docs/onnx.md has the format.
"""

import json

import torch

from ..errors import ExportError, listed
from ..names import buffer_names, parameter_names
from .graph import KEY, TYPES, active_dropouts, attribute, nodes_of

VERSION = 1


def describe(model, exporter, outputs, observation):
    """The record of a module. exporter: text for messages; outputs: names in the file; observation: see observe.py."""
    parameters = []
    for name, (parameter, others) in parameter_names(model).items():
        entry = {"name": name, "shape": list(parameter.shape), "dtype": spelled(parameter.dtype),
                 "trained": parameter.requires_grad and name not in observation.still}
        if others:
            entry["tied"] = others
        if name in observation.padding:
            entry["padding_idx"] = observation.padding[name]
            entry["lookups"] = observation.lookups[name]
        if name in observation.unused:
            entry["unused"] = True
        parameters.append(entry)
    buffers = [{"name": name, "shape": list(buffer.shape), "dtype": spelled(buffer.dtype)}
               for name, (buffer, _) in buffer_names(model).items()]
    differs = {"evaluation_differs": observation.evaluation_differs} if observation.evaluation_differs else {}
    return {"version": VERSION, "exporter": f"{exporter}, torch {torch.__version__.split('+')[0]}",
            "parameters": parameters, "buffers": buffers, "batch_norm": observation.batch_norm,
            "dropout": observation.dropout, "dropout_cleared": observation.cleared, "outputs": list(outputs), **differs}


def spelled(dtype):
    """torch.float32 as "float32"."""
    return str(dtype).removeprefix("torch.")


def attach(exported, record):
    """Puts a record into a ModelProto, in place of one that is there."""
    kept = [entry for entry in exported.metadata_props if entry.key != KEY]
    del exported.metadata_props[:]
    exported.metadata_props.extend(kept)
    entry = exported.metadata_props.add()
    entry.key, entry.value = KEY, json.dumps(record)


def read(exported):
    """The record of a ModelProto, or None."""
    for entry in exported.metadata_props:
        if entry.key == KEY:
            return json.loads(entry.value)
    return None


def check(exported, record):
    """Raises ExportError unless every parameter that a loss needs is an initializer of its shape and type, and every
    batch norm of the graph is known."""
    tensors = {tensor.name: tensor for tensor in exported.graph.initializer}
    entries = [*record["parameters"], *record["buffers"]]
    missing = [entry["name"] for entry in record["parameters"] if entry["name"] not in tensors and not entry.get("unused")]
    if missing:
        raise ExportError(f"the exporter merged, folded or left out parameters: {listed(missing)}")
    for entry in entries:
        tensor = tensors.get(entry["name"])
        if tensor is not None and list(tensor.dims) != entry["shape"]:
            raise ExportError(f"{entry['name']} has shape {list(tensor.dims)} in the file, {entry['shape']} in the module")
        wanted = TYPES.get(getattr(torch, entry["dtype"]))
        if tensor is not None and wanted and tensor.data_type != wanted:
            raise ExportError(f"{entry['name']} has another element type in the file than in the module, {entry['dtype']}")
    names = [output.name for output in exported.graph.output]
    if names != record["outputs"]:
        raise ExportError(f"the outputs are {listed(names)} in the file, {listed(record['outputs'])} in the module")
    for entry in record["parameters"]:
        there = sum(node.op_type == "Gather" and node.input[0] == entry["name"] for node in nodes_of(exported.graph))
        if "padding_idx" in entry and there != entry["lookups"]:
            raise ExportError(f"{entry['name']}, which has a padding_idx, is looked up {entry['lookups']} times as an "
                              f"embedding and read by {there} Gather nodes: other reads would lose their gradient")
    check_batch_norms(exported, record)
    check_dropouts(exported, record)


def check_batch_norms(exported, record):
    """Raises ExportError for a batch norm of the graph that the record does not know, or that contradicts it."""
    known = {entry["running_mean"]: entry["training"] for entry in record["batch_norm"]}
    for node in nodes_of(exported.graph):
        if node.op_type == "BatchNormalization" and node.domain == "":
            mean, training = node.input[3], bool(attribute(node, "training_mode", 0))
            if mean not in known and not training:
                raise ExportError(f"batch norm {node.name} is in inference form in the file, and its mean is no buffer of the module")
            if training and not known.get(mean, True):
                raise ExportError(f"batch norm {node.name} is in training form in the file, but not in the module")
        else:
            for name in node.input:
                if known.get(name):
                    raise ExportError(f"the exporter wrote the batch norm of {name} in inference form, as {node.op_type}")


def check_dropouts(exported, record):
    """Raises ExportError unless the graph has the record's dropouts: as many of every rate."""
    wanted = sorted(round(entry["p"], 6) for entry in record["dropout"] for _ in range(entry["count"]))
    there = sorted(round(rate, 6) for rate in active_dropouts(exported))
    if wanted != there:
        raise ExportError(f"the file has dropouts of rates {listed(map(str, there)) or 'none'}, "
                          f"the module {listed(map(str, wanted)) or 'none'}")
