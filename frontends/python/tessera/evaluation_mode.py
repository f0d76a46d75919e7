"""What a module computes otherwise in evaluation mode than in training mode, by its programs of both."""

import hashlib
import re
import traceback

import torch
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.utils import _pytree

from .errors import innermost
from .module_checks import has_values

# What an evaluation leaves out of a program of training (docs/runtime.md#evaluation). Of the others, what a mode sets.
DROPOUTS = {f"aten::{name}" for name in ("dropout", "dropout_", "alpha_dropout", "alpha_dropout_", "feature_dropout", "feature_dropout_",
                                         "feature_alpha_dropout", "feature_alpha_dropout_")}
SET_BY_MODE = {"aten::batch_norm": {"training", "momentum"}, "aten::scaled_dot_product_attention": {"dropout_p"},
               **{f"aten::{name}": {"dropout", "train"} for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")}}
# What programs have as the memory of a tensor is laid out, which a mode may change.
SAME_VALUES, VIEWS = {"aten::contiguous"}, {"aten::reshape", "aten::view", "aten::_unsafe_view"}


def find_difference(training, evaluation):
    """The line of the module's code, "file:line: code", from which on two ExportedPrograms of one module, in training and in
    evaluation mode, compute other outputs for another reason than dropout and the statistics of batch norms; the name of an
    operator where there is no line. None if they do not."""
    steps = [described(program.graph_module, inputs_of(program), is_training)
             for program, is_training in ((training, True), (evaluation, False))]
    for at, ((step, node), (other, added)) in enumerate(zip(*steps)):
        if step != other:
            is_added = [following.target for _, following in steps[1][at + 1:at + 2]] == [node.target]
            first, second = (added, node) if is_added else (node, added)
            return "its outputs" if node.op == added.op == "output" else line_of(first) or line_of(second) or str(first.target)
    return None  # the last of each is the output


def inputs_of(program):
    """{name of a placeholder: what it is, in any program of the module}."""
    found, users = {}, 0
    for spec in program.graph_signature.input_specs:
        key, value = spec.target, program.constants.get(spec.target)
        if spec.kind == InputKind.USER_INPUT:
            key, users = users, users + 1
        elif spec.kind == InputKind.CONSTANT_TENSOR and isinstance(value, torch.Tensor) and has_values(value):
            key = (value.dtype, value.shape, hashlib.sha256(bytes_of(value)).hexdigest())
        found[spec.arg.name] = (spec.kind.name, key)
    return found


def bytes_of(tensor):
    """The elements of a tensor, in their order."""
    return tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def described(module, inputs, is_training):
    """[(text of what a node computes, the node)] of the nodes of a GraphModule that its outputs depend on, and of those that change a
    tensor in place. inputs: see inputs_of; of a submodule none."""
    wanted, keys, steps = needed(module.graph), {}, []  # keys: {node: what its value is}

    def named(value):
        if isinstance(value, Node):
            return keys[value]
        return str(value) if isinstance(value, torch.SymInt) else value

    for node in module.graph.nodes:
        if node.op == "placeholder":
            keys[node] = ("input", inputs.get(node.name, len(keys)))
        elif node not in wanted:
            continue
        elif node.op == "get_attr":
            value = getattr(module, node.target, None)
            keys[node] = ("attribute", node.target)
            steps += described(value, {}, is_training) if isinstance(value, GraphModule) else []
        elif is_left_out(node, is_training):
            keys[node] = keys[node.args[0]]
        elif isinstance(node.meta.get("val"), (torch.SymInt, torch.SymFloat, torch.SymBool)):
            keys[node] = _pytree.tree_map(named, call_of(node))
        else:
            keys[node] = ("value", len(steps))
            call = node.args if node.op == "output" else call_of(node)
            steps.append((repr(_pytree.tree_map(named, call)), node))
    return steps


def needed(graph):
    """The nodes that the outputs of a graph depend on, or tensors that they may read after a change in place. What buffers are
    left with is no output."""
    wanted = set()
    for node in reversed(graph.nodes):
        if node.op == "output" or node in wanted or changes_tensor(node):
            wanted.update((node, *node.all_input_nodes))
    return wanted


def schema_of(node):
    return getattr(node.target, "_schema", None)


def changes_tensor(node):
    """Whether a node changes an intermediate tensor in place. Buffers, parameters and inputs are not intermediate."""
    schema = schema_of(node)
    if node.op != "call_function" or schema is None or not schema.is_mutable:
        return False
    given = dict(zip((argument.name for argument in schema.arguments), node.args)) | node.kwargs
    changed = [given.get(argument.name) for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
    return any(isinstance(value, Node) and value.op != "placeholder" for value in changed)


def is_left_out(node, is_training):
    """Whether it gives its input, or is a dropout that does in evaluations: in evaluation mode one that is on is there to stay."""
    schema = schema_of(node)
    if schema is None or schema.name not in DROPOUTS:
        return schema is not None and schema.name in SAME_VALUES
    _, rate, is_on = (*node.args, *node.kwargs.values())[:3]
    return is_training or not is_on or rate == 0


def call_of(node):
    """(operator, {name: argument}) of a node, with defaults, but for what the mode sets."""
    schema = schema_of(node)
    if schema is None:
        return str(node.target), {"args": list(node.args), **node.kwargs}
    if schema.name in VIEWS:
        return "view", {"args": [*node.args, *node.kwargs.values()]}
    given = {argument.name: argument.default_value for argument in schema.arguments if argument.has_default_value()}
    given |= dict(zip((argument.name for argument in schema.arguments), node.args)) | node.kwargs
    return str(node.target), {name: value for name, value in given.items() if name not in SET_BY_MODE.get(schema.name, ())}


def line_of(node):
    frames = re.findall(r'File "(.*)", line (\d+), in (.*)\n\s*(.*)', node.meta.get("stack_trace") or "")
    return innermost([traceback.FrameSummary(path, int(line), function, line=code) for path, line, function, code in frames])
