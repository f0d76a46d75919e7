"""Runs the exported graph in ONNX's reference evaluator and compares its outputs with the module's."""

import contextlib

import numpy
import onnx
import torch
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from torch.utils.flop_counter import FlopCounterMode

from .. import module_step, twin
from ..compare import ROUNDING, UNIT
from ..errors import ExportError, first_line
from ..ties import FirstOfEqual
from . import cuts, evaluator_ops, graph, observe

# Of the largest element of an output. Another order of float32 sums changes a deep model's outputs by 1e-6 to 1e-5 of it;
# a dropped argument or a folded parameter by far more.
TOLERANCE = 1e-4
HALF_TOLERANCE = 2e-2  # of outputs in bfloat16 or float16
# What takes the evaluator, numpy on few cores, about a minute.
LARGEST_PRODUCTS, LARGEST_CONVOLUTIONS, LARGEST_PARAMETERS = 20e9, 2e9, 200e6


class FixedSizes(Exception):
    """The graph is right for the example, but not, or not known to be, for other sizes. str() is the reason, symbols are the
    names of the symbolic dimensions."""

    def __init__(self, reason, symbols):
        super().__init__(reason)
        self.symbols = symbols


def work(model, inputs):
    """(multiply-adds of products, of convolutions) of one forward pass."""
    with FlopCounterMode(display=False) as counter:
        outputs_of(model, inputs)
    flops = counter.get_flop_counts().get("Global", {})
    convolutions = sum(count for op, count in flops.items() if "conv" in str(op))
    return (sum(flops.values()) - convolutions) / 2, convolutions / 2


def resized(inputs, axes, sizes):
    """The example inputs with other sizes of symbolic dimensions, {name: size}: rows are left out, or the first ones appear
    again. Rows are turned around first, so that the values are others at every place."""
    made = []
    for tensor, symbols in zip(inputs, axes):
        for axis, name in symbols.items():
            rows = torch.arange(sizes[name]).flip(0) % tensor.shape[axis]
            tensor = tensor.index_select(axis, rows)
        made.append(tensor)
    return tuple(made)


def sizes_of(inputs, axes):
    """{name: size} of the symbolic dimensions of the example. Raises ExportError if a name has two sizes."""
    sizes = {}
    for tensor, symbols in zip(inputs, axes):
        for axis, name in symbols.items():
            if sizes.setdefault(name, tensor.shape[axis]) != tensor.shape[axis]:
                raise ExportError(f"dimension {name} has sizes {sizes[name]} and {tensor.shape[axis]} in the example inputs")
    return sizes


def other_sizes(sizes, axes):
    """Other sizes to try, best first: more samples, fewer of everything else; half of everything else; only more samples."""
    first = {symbols[0] for symbols in axes if 0 in symbols}

    def with_rest(change):
        return {name: size + 1 if name in first else max(1, change(size)) for name, size in sizes.items()}

    return [with_rest(lambda size: size - 1), with_rest(lambda size: size // 2), with_rest(lambda size: size)]


def why_skipped(model, inputs, axes):
    """(inputs to compare on, reason to skip or None): smaller inputs if the example's are too large for the evaluator."""
    if sum(parameter.numel() for parameter in model.parameters()) > LARGEST_PARAMETERS:
        return inputs, f"the model has more than {LARGEST_PARAMETERS / 1e6:.0f} M parameters"
    small = {name: min(size, 2 if name == "B" else 16) for name, size in sizes_of(inputs, axes).items()}
    products = convolutions = 0
    for given in (inputs, resized(inputs, axes, small)):
        try:
            products, convolutions = work(model, given)
        except Exception:  # sizes that the module does not take
            break
        if products <= LARGEST_PRODUCTS and convolutions <= LARGEST_CONVOLUTIONS:
            return given, None
    return inputs, f"the example takes {(products + convolutions) / 1e9:.1f} G multiply-adds"


def outputs_of(model, inputs):
    """What the module returns in training mode without dropout, as arrays; its buffers are as before. Of equal numbers topk
    takes the first, as the evaluator does."""
    with (module_step.kept(model, with_parameters=False), observe.Watcher(model, cuts.Places(model)),
          module_step.same_random_numbers(0), FirstOfEqual()):
        return [output.detach().float().numpy() if output.dtype == torch.bfloat16 else output.detach().numpy()
                for output in module_step.outputs_of(model(*inputs))[1]]


class GatherElements(OpRun):
    """The evaluator's own takes no indices that are smaller than the data in other dimensions."""

    def _run(self, data, indices, axis=None):
        places = list(numpy.ogrid[tuple(slice(size) for size in indices.shape)])
        places[axis or 0] = indices
        return (data[tuple(places)],)


class Softplus(OpRun):
    """The evaluator's own overflows from 89 on."""

    def _run(self, x):
        return (numpy.logaddexp(x, x.dtype.type(0)),)


def evaluator_of(exported, record):
    """The evaluator of a copy of the graph in training form: batch norms take the batch's statistics if the record says so,
    dropouts and marks of cut gradients are left out."""
    copy = onnx.ModelProto()
    copy.CopyFrom(exported)
    graph.batch_norms_in_training_form(copy, {entry["running_mean"] for entry in record["batch_norm"] if entry["training"]})
    graph.leave_out_dropouts(copy)
    for node in graph.nodes_of(copy.graph):
        if (node.domain, node.op_type) == ("tessera", "StopGradient"):
            node.domain, node.op_type = "", "Identity"
    return ReferenceEvaluator(copy, new_ops=[GatherElements, Softplus, *evaluator_ops.OPS])


def compare(run, names, model, inputs, outputs, hint=""):
    """Raises ExportError unless the evaluator's outputs are the module's; hint: to the user if it cannot run the graph."""
    wanted = outputs_of(model, inputs)
    try:
        with numpy.errstate(all="ignore"), contextlib.redirect_stdout(None):
            got = run.run(None, {name: bits(x) for name, x in zip(names, inputs)})
    except Exception as why:  # the evaluator has no class for what it raises
        raise ExportError(f"onnx's reference evaluator cannot run the exported graph: {first_line(why)}{hint}") from why
    for at, (name, value, want) in enumerate(zip(outputs, got, wanted)):
        value = numpy.asarray(value)
        if value.shape != want.shape:
            raise ExportError(f"{name} has shape {list(value.shape)} in the exported graph, {list(want.shape)} in PyTorch")
        value, want = value.astype(numpy.float64), want.astype(numpy.float64)
        finite = numpy.isfinite(want)
        if not numpy.array_equal(finite, numpy.isfinite(value)):
            raise ExportError(f"{name} is not finite at other places in the exported graph than in PyTorch")
        if not finite.any():
            continue
        difference, size = numpy.abs(value - want)[finite].max(), numpy.abs(want[finite]).max()
        half = any(p.dtype in (torch.bfloat16, torch.float16) for p in model.parameters())
        if difference > max((HALF_TOLERANCE if half else TOLERANCE) * size, rounding_of(model, inputs, at, want)):
            raise ExportError(f"{name} of the exported graph differs from PyTorch's by {difference / size if size else 1:.1%} "
                              "of its largest element")


def rounding_of(model, inputs, at, wanted):
    """How far a right result may be from `wanted`, the module's output number `at`: by what that is from the same in float64, and a
    number that is 0 there by a rounding of 1, some times over."""
    given = tuple(x.double() if x.is_floating_point() else x for x in inputs)
    exact = twin.in_type(model, torch.float64, lambda made: outputs_of(made, given)[at])
    if exact is None or not numpy.isfinite(exact).all():
        return 0.0
    return ROUNDING * max(numpy.abs(wanted - exact).max(), UNIT if numpy.abs(exact).max() <= twin.ZERO else 0.0)


def bits(tensor):
    """A tensor as the evaluator takes it."""
    if tensor.dtype == torch.bfloat16:
        return graph.bits(tensor).view(onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))
    return tensor.detach().numpy()


def evaluate(exported, record, model, inputs, names, axes):
    """Compares the graph with the module, whose weights it must have, on the example and on other sizes of the symbolic
    dimensions. Raises ExportError if the outputs differ on the example, FixedSizes if only on other sizes."""
    run = evaluator_of(exported, record)
    compare(run, names, model, inputs, record["outputs"], " (--no-check leaves this check out)")
    sizes = sizes_of(inputs, axes)
    symbolic = {dim.dim_param for value in exported.graph.input for dim in value.type.tensor_type.shape.dim if dim.dim_param}
    if not symbolic:
        return
    for wanted in other_sizes(sizes, axes):
        wanted = {name: size if name in symbolic else sizes[name] for name, size in wanted.items()}
        given = resized(inputs, axes, wanted)
        try:
            outputs_of(model, given)
        except Exception:  # not a size that the module takes
            continue
        try:
            compare(run, names, model, given, record["outputs"])
        except ExportError as why:
            # On other rows of the example's sizes it may differ, too: then it was right for the example by chance.
            compare(run, names, model, resized(inputs, axes, sizes), record["outputs"])
            text = ", ".join(f"{name}={size}" for name, size in wanted.items())
            raise FixedSizes(f"with {text}, {why}", symbolic) from why
        unchecked = sorted(name for name in symbolic if wanted[name] == sizes[name] and sizes[name] > 1)
        if unchecked:
            raise FixedSizes(f"the module runs with no other {' and '.join(unchecked)}", unchecked)
        return
    raise FixedSizes("the module runs with no other sizes", symbolic)
