"""Compares a program with the module that it was exported from: outputs and every gradient, both in PyTorch.

A program has no hooks, and what custom autograd functions and checkpoints do in the backward pass is lost in it: these
differ here. Weights are other ones than the exported, so that numbers that were computed from them differ, too.
"""

import random

import numpy
import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree

from .differences import differing
from .dimensions import input_names
from .distinct import distinct
from .errors import ExportError, first_line, listed
from .module_checks import python_state
from .module_step import SEED, SeedingRefused, changed, combine, gradients, kept, outputs_of, restore, same_random_numbers, state
from .names import parameter_names

REENTRANT = "CheckpointFunction"
CHECKPOINTS = "; checkpoints hide gradients from torch.export unless they have use_reentrant=False"
OUTPUT = 1e-4  # of an output's largest element: decomposed operations round otherwise


def check_program(model, program, inputs, kwargs):
    """Raises ExportError unless the program gives the module's outputs and gradients. The module is as before. Both draw
    the same random numbers. Returns the names of custom autograd functions, whose backward passes are compared for
    the example only."""
    with kept(model) as (buffers, _), distinct(model):
        return compare_step(model, program, inputs, kwargs, buffers)


def custom_functions(result):
    """Names of the custom autograd functions that a result depends on."""
    names, seen, left = set(), set(), [result.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left += [before for before, _ in node.next_functions]
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            names.add(node.name().removesuffix("Backward"))
    return sorted(names)


def numbers_of_python():
    """Where the random numbers of Python and NumPy are."""
    return random.getstate(), repr(numpy.random.get_state())


def compare_step(model, program, inputs, kwargs, buffers):
    found = {}

    def plain():
        with SeedingRefused():
            found["outputs"] = outputs_of(model(*inputs, **kwargs))[1]
        found["which"] = {at for at, output in enumerate(found["outputs"]) if output.requires_grad}
        if not found["which"]:
            raise ExportError("no output depends on a trained parameter")
        total = combine(found["outputs"], found["which"])
        functions = custom_functions(total)
        found["functions"] = [name for name in functions if name != REENTRANT]
        found["hint"] = CHECKPOINTS if REENTRANT in functions else ""
        return total

    start, attributes, random_state = state(model.named_parameters()), python_state(model), numbers_of_python()
    given, inputs = inputs, tuple(tensor.clone() for tensor in inputs)
    given_by_name, kwargs = kwargs, {name: tensor.clone() for name, tensor in kwargs.items()}
    try:
        with same_random_numbers(SEED):
            true = gradients(model, plain)
    except ExportError:
        raise
    except Exception as why:
        hint = "; an output that is not trained, such as a metric, is returned as .detach()" if "derivative for" in str(why) else ""
        raise ExportError(f"the module fails in training mode: {type(why).__name__}: {first_line(why)}{hint}") from why
    if numbers_of_python() != random_state:
        raise ExportError("the forward pass draws random numbers of Python or NumPy, of which a program has those of the export for "
                          "all steps: draw with torch, whose numbers are new ones in each step")
    names = changed(start, model.named_parameters())
    if names:
        raise ExportError(f"the forward pass changes parameters: {listed(names)}")
    named = {**dict(zip(input_names(model, len(inputs)), given)), **given_by_name}
    names = changed(named, {**dict(zip(named, inputs)), **kwargs}.items())
    if names:
        raise ExportError(f"the forward pass changes its inputs in place: {listed(names)}: clone them first")
    after = python_state(model)
    names = [name for name in after if after[name] != attributes.get(name)]
    if names:
        raise ExportError(f"the forward pass changes attributes that are no buffers: {listed(names)}: a file has the values "
                          "of the export; register as buffers what lasts, or run the module once before the export if they "
                          "only keep what is computed once")
    restore(buffers, model.named_buffers())
    try:
        with same_random_numbers(SEED):
            outputs, exported = run_program(model, program, inputs, kwargs, found["which"])
    except Exception as why:
        found["hint"] = CHECKPOINTS if "does not require grad" in str(why) else found["hint"]
        raise ExportError(f"the program does not run on the example: {type(why).__name__}: {first_line(why)}"
                          + found["hint"]) from why
    compare_outputs(found["outputs"], outputs)
    different = differing(model, true, exported)
    if different:
        texts = [f"{name} (by {value:.2g} of its norm)" for name, value in different.items()]
        raise ExportError(f"gradients of the program differ from the module's: {listed(texts)}; hooks, and the backward of "
                          "custom autograd functions and checkpoints are not part of a program" + found["hint"])
    return found["functions"]


def run_program(model, program, inputs, kwargs, which):
    """(outputs, {parameter: gradient or None}) of the program with copies of the module's parameters, which have no hooks."""
    copies, of = {}, {}
    for name, (parameter, others) in parameter_names(model).items():
        made = parameter.detach().clone().requires_grad_(parameter.requires_grad)
        copies[name] = made
        of.update({each: made for each in (name, *others)})
    buffers, clones = {}, {}  # two names of one buffer stay one
    for name, buffer in model.named_buffers(remove_duplicate=False):
        buffers[name] = clones.setdefault(id(buffer), buffer.detach().clone())
    positions, named = _pytree.tree_unflatten(list(range(program.call_spec.in_spec.num_leaves)), program.call_spec.in_spec)
    flat = {**dict(zip(positions, inputs)), **{at: kwargs[name] for name, at in named.items()}}
    # Not program.module(), which cannot be made where a module is called "code", as what torch.fx generates is.
    given, users = [], iter(range(len(flat)))
    for spec in program.graph_signature.input_specs:
        given.append(flat[next(users)] if spec.kind is InputKind.USER_INPUT else
                     of.get(spec.target, buffers.get(spec.target, program.constants.get(spec.target))))
    result = program.graph_module(*given)
    outputs = outputs_of(_pytree.tree_unflatten(result, program.call_spec.out_spec))[1]
    combine(outputs, which).backward()
    return outputs, {name: tensor.grad for name, tensor in copies.items()}


def compare_outputs(wanted, found):
    """Raises ExportError unless the outputs agree."""
    if len(wanted) != len(found):
        raise ExportError(f"the program has {len(found)} outputs, the module {len(wanted)}")
    for at, (want, got) in enumerate(zip(wanted, found)):
        want, got = want.detach().double(), got.detach().double()
        if want.shape != got.shape:
            raise ExportError(f"output {at} of the program has shape {list(got.shape)}, that of the module {list(want.shape)}")
        want, got = want.nan_to_num(), got.nan_to_num()
        size = want.abs().max().item() if want.numel() else 0.0
        difference = (want - got).abs().max().item() if want.numel() else 0.0
        if not difference <= OUTPUT * size:
            raise ExportError(f"output {at} of the program differs from the module's by {difference / size if size else difference:.1e} of its "
                              "largest element: something in it depends on what is not its inputs and weights")
