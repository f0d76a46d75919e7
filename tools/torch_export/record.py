"""The record: what tessera-compile must know of a PyTorch module and an exported graph does not say, as JSON in the file.

The record is the entry "tessera" of the ModelProto's metadata: every parameter and buffer by name with its shape, whether it
is trained, its other names, its padding index; batch norms, dropouts and outputs. docs/onnx.md has the format.
"""

import hashlib
import json

import numpy
import onnx
import torch

from .errors import ExportError, listed

KEY = "tessera"
VERSION = 1
TYPES = {torch.float32: onnx.TensorProto.FLOAT, torch.float64: onnx.TensorProto.DOUBLE,
         torch.float16: onnx.TensorProto.FLOAT16, torch.bfloat16: onnx.TensorProto.BFLOAT16}


def parameter_names(model):
    """{first name in named_parameters(): [parameter, other names]}."""
    first, by_id = {}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if id(parameter) in by_id:
            first[by_id[id(parameter)]][1].append(name)
        else:
            by_id[id(parameter)] = name
            first[name] = [parameter, []]
    return first


def buffer_names(model):
    """{first name in named_buffers(): [buffer, other names]}."""
    first, by_id = {}, {}
    for name, buffer in model.named_buffers(remove_duplicate=False):
        if id(buffer) in by_id:
            first[by_id[id(buffer)]][1].append(name)
        else:
            by_id[id(buffer)] = name
            first[name] = [buffer, []]
    return first


def describe(model, exporter, outputs, observation):
    """The record of a module. exporter: text for messages; outputs: names in the file; observation: see observe.py."""
    parameters = []
    for name, (parameter, others) in parameter_names(model).items():
        entry = {"name": name, "shape": list(parameter.shape), "dtype": spelled(parameter.dtype),
                 "trained": parameter.requires_grad}
        if others:
            entry["tied"] = others
        if name in observation.padding:
            entry["padding_idx"] = observation.padding[name]
        if name in observation.unused:
            entry["unused"] = True
        parameters.append(entry)
    buffers = [{"name": name, "shape": list(buffer.shape), "dtype": spelled(buffer.dtype)}
               for name, (buffer, _) in buffer_names(model).items()]
    return {"version": VERSION, "exporter": f"{exporter}, torch {torch.__version__.split('+')[0]}",
            "parameters": parameters, "buffers": buffers, "batch_norm": observation.batch_norm,
            "dropout": observation.dropout, "outputs": list(outputs)}


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
    known = {entry["running_mean"]: entry["training"] for entry in record["batch_norm"]}
    seen = set()
    for node in nodes_of(exported.graph):
        if node.op_type == "BatchNormalization" and node.domain == "":
            training = any(a.name == "training_mode" and a.i for a in node.attribute)
            seen.add(node.input[3])
            if not known.get(node.input[3], training) == training and training:
                raise ExportError(f"batch norm {node.input[3]} is in training form in the file, but not in the module")
            if not training and node.input[3] not in known:
                raise ExportError(f"batch norm at node {node.name} is not one of the module's")


def nodes_of(graph):
    """All nodes of a graph and of the graphs in their attributes."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
                yield from nodes_of(inner)


def digest(array):
    """What tells tensors of different values, shapes or types apart."""
    return hashlib.sha1(array.tobytes()).digest(), array.shape, str(array.dtype)


def bits(tensor):
    """A torch tensor's elements as a contiguous array; bfloat16 as its 16 bits."""
    tensor = tensor.detach().cpu().contiguous()
    return (tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def stored_bits(tensor):
    """An initializer's elements, in the form of bits()."""
    array = onnx.numpy_helper.to_array(tensor)
    return array.view(numpy.int16) if tensor.data_type == onnx.TensorProto.BFLOAT16 else array


def unify(exported, model):
    """Gives every parameter and buffer of `model` in a ModelProto the module's first name for it and one initializer.

    The parameters' values must all be different (see distinct.py): a parameter that is there under a tied name, under
    the exporter's own, or several times, is found by its value. Raises ExportError for a parameter that is there under its
    name with other values, and for a tensor that was computed from a parameter.
    """
    tensors = {tensor.name: tensor for tensor in exported.graph.initializer}
    parameters = {name: entry for name, entry in parameter_names(model).items() if entry[0].numel()}
    wanted = {digest(bits(entry[0])): name for name, entry in parameters.items()}
    own = {other: name for names in (parameter_names(model), buffer_names(model)) for name, (_, others) in names.items()
           for other in others}
    sizes = {}
    for name, (parameter, _) in parameters.items():
        if parameter.is_floating_point() and parameter.numel() > 1:
            sizes.setdefault(parameter.numel(), []).append(name)
    renamed = {}
    for tensor in exported.graph.initializer:
        name = own.get(tensor.name, tensor.name)
        if name in parameters or tensor.data_type in TYPES.values():
            array = stored_bits(tensor)
            name = wanted.get(digest(array), name)
            if name in parameters and digest(array) != digest(bits(parameters[name][0])):
                raise ExportError(f"parameter {name} has other values in the file than in the module")
            if name not in parameters:
                for source in sizes.get(array.size, []):
                    if same_elements(array, bits(parameters[source][0])):
                        raise ExportError(f"the exporter folded parameter {source} into {tensor.name}")
        renamed[tensor.name] = name
    kept = {}
    for old, name in renamed.items():
        if name != old and name in tensors and renamed[name] != name:
            raise ExportError(f"the name {name} is both a parameter's and another tensor's in the file")
        kept.setdefault(name, tensors[old])
    taken = {output for node in nodes_of(exported.graph) for output in node.output}
    clash = [name for old, name in renamed.items() if name != old and name in taken]
    if clash:
        raise ExportError(f"the name {clash[0]} is both a parameter's and a value's in the file")
    for node in nodes_of(exported.graph):
        for at, name in enumerate(node.input):
            node.input[at] = renamed.get(name, name)
    for name, tensor in kept.items():
        tensor.name = name
    unified = list(kept.values())
    del exported.graph.initializer[:]
    exported.graph.initializer.extend(unified)


def same_elements(left, right):
    """Whether two arrays have the same elements in any order."""
    return left.dtype == right.dtype and numpy.array_equal(numpy.sort(left, axis=None), numpy.sort(right, axis=None))


def put_values(exported, model):
    """Sets the data of the initializers that are parameters of `model` to their values there."""
    parameters = parameter_names(model)
    for tensor in exported.graph.initializer:
        if tensor.name in parameters:
            for field in ("raw_data", "float_data", "double_data", "int32_data", "int64_data", "external_data"):
                tensor.ClearField(field)
            tensor.ClearField("data_location")
            tensor.raw_data = bits(parameters[tensor.name][0]).tobytes()


def strip_notes(exported):
    """Drops notes that name files of the machine that exported the model (stack traces), and shapes of inner values. The
    record stays."""
    kept = [entry for entry in exported.metadata_props if entry.key == KEY]
    del exported.metadata_props[:]
    exported.metadata_props.extend(kept)
    exported.ClearField("doc_string")
    for graph in [exported.graph, *exported.functions]:
        del graph.value_info[:]
        del graph.metadata_props[:]
        graph.ClearField("doc_string")
        for node in nodes_of(graph):
            node.ClearField("doc_string")
            del node.metadata_props[:]
    for value in [*exported.graph.input, *exported.graph.output, *exported.graph.initializer]:
        value.ClearField("doc_string")
        del value.metadata_props[:]
