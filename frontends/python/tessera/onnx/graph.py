"""Changes what exporters wrote: one initializer per parameter under its own name, true values, dropouts on, no notes."""

import hashlib

import numpy
import onnx
import torch

from ..errors import ExportError
from ..names import buffer_names, parameter_names

KEY = "tessera"  # of the record among the metadata
TYPES = {torch.float32: onnx.TensorProto.FLOAT, torch.float64: onnx.TensorProto.DOUBLE,
         torch.float16: onnx.TensorProto.FLOAT16, torch.bfloat16: onnx.TensorProto.BFLOAT16}


def nodes_of(graph):
    """All nodes of a graph and of the graphs in their attributes."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs:
                yield from nodes_of(inner)


def attribute(node, name, default):
    """A node's attribute as Python value, or the default."""
    for entry in node.attribute:
        if entry.name == name:
            return onnx.helper.get_attribute_value(entry)
    return default


def scalars(exported):
    """{name: value} of the constants of one element."""
    tensors = {tensor.name: tensor for tensor in exported.graph.initializer if numpy.prod(tensor.dims) == 1}
    found = {name: onnx.numpy_helper.to_array(tensor).item() for name, tensor in tensors.items()
             if tensor.data_location != onnx.TensorProto.EXTERNAL}
    for node in nodes_of(exported.graph):
        if node.op_type == "Constant":
            value = attribute(node, "value", None)
            if value is not None and numpy.prod(value.dims) == 1:
                found[node.output[0]] = onnx.numpy_helper.to_array(value).item()
            for kind in ("value_float", "value_int"):
                if attribute(node, kind, None) is not None:
                    found[node.output[0]] = attribute(node, kind, None)
        elif node.op_type in ("Cast", "CastLike", "Identity") and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    return found


def dropouts(exported):
    """[(node, rate, whether it is on)] of a graph; a rate that is not known counts as 0.5, the operation's default."""
    values, found = scalars(exported), []
    for node in nodes_of(exported.graph):
        if node.op_type == "Dropout" and node.domain == "":
            rate = values.get(node.input[1], 0.5) if len(node.input) > 1 and node.input[1] else 0.5
            found.append((node, rate, bool(len(node.input) > 2 and values.get(node.input[2]))))
    return found


def active_dropouts(exported):
    """The rates of the dropouts that are on."""
    return [rate for _, rate, on in dropouts(exported) if on and rate > 0]


def leave_out_dropouts(exported):
    """Makes every dropout hand on its operand."""
    for node, _, _ in dropouts(exported):
        del node.input[1:]
        del node.output[1:]
        node.op_type = "Identity"


def turn_on(exported):
    """Turns on the dropout of attention, which exporters write in inference form from a module in training mode."""
    nodes = [node for node, rate, on in dropouts(exported) if rate > 0 and not on]
    if nodes:
        flag = "tessera_training_mode"
        exported.graph.initializer.append(onnx.numpy_helper.from_array(numpy.array(True), flag))
        for node in nodes:
            rate = list(node.input[1:2]) or [""]
            del node.input[1:]
            node.input.extend([*rate, flag])


def batch_norms_in_training_form(exported, names):
    """Sets training_mode of the batch norms whose running means are `names`."""
    for node in nodes_of(exported.graph):
        if node.op_type == "BatchNormalization" and node.input[3] in names:
            kept = [entry for entry in node.attribute if entry.name != "training_mode"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("training_mode", 1)])


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
