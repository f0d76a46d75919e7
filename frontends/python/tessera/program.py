"""Exports a PyTorch module as a program of one training step's forward pass, which tessera-compile reads as a .pt2 file."""

import contextlib
import dataclasses
import io
import logging
import os
import warnings

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from . import archive
from .dimensions import fixed_dimensions, input_names, narrowed, shapes_for, wanted_dimensions
from .errors import ExportError, first_line, listed, user_line
from .evaluation_mode import find_difference
from .finite import FiniteAssumed
from .module_checks import check_parameters, has_values
from .module_step import attributes_kept, global_hooks_kept, has_own_modes, in_mode, kept, modes_after
from .program_check import check_program
from .value_checks import masks_kept
from .weight_map import note_of
from .weightless import as_fake, mode_of

BRANCHES = "; Python cannot branch on values in a program: torch.where chooses by them, and what only checks them can be left out"

# Of a module with a result other than tensors, such as the cache of keys and values of a language model.
RETURNS = """; a program returns tensors: of a language model set model.config.use_cache = False, or export a wrapper:
  class Logits(torch.nn.Module):
      def __init__(self, model): super().__init__(); self.model = model
      def forward(self, input_ids): return self.model(input_ids=input_ids, use_cache=False).logits"""


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An input or a parameter. shape: sizes; an open dimension is the name of its symbol. dtype: "float32", …; trained: of
    a parameter, its requires_grad."""
    shape: tuple
    dtype: str
    trained: bool = False


class Program:
    """An exported program. program: the torch.export.ExportedProgram. mode: that of the module, "training" or "evaluation", None
    of a file that does not say. evaluation_differs: why evaluation mode computes something else than this program of training,
    beside dropout and batch norms; None if it does not, or is not known to. weights: of a transformers model, which tensors of
    Hugging Face's files its parameters are, as docs/pt2.md#weights describes it; None of another one."""

    def __init__(self, program, mode=None, evaluation_differs=None, weights=None):
        self.program, self.mode, self.evaluation_differs, self.weights = program, mode, evaluation_differs, weights
        self.versions = versions_of(program)

    @staticmethod
    def load(path):
        """The program of a .pt2 file. Raises ExportError if this PyTorch cannot read it."""
        try:
            with quiet():
                return Program(torch.export.load(os.fspath(path)), **archive.read_note(os.fspath(path)))
        except Exception as why:  # what torch's reader raises has no common class
            raise ExportError(f"{path}: {first_line(why)}") from why

    def save(self, path):
        """Writes the program and its weights to `path`, which ends in .pt2; the file either is complete or as before. Of
        parameters without values it has the shapes. Raises ExportError."""
        if not os.fspath(path).endswith(".pt2"):
            raise ExportError(f"{path} does not end in .pt2")
        changed = [name for name, version in versions_of(self.program).items() if version != self.versions.get(name)]
        if changed:
            warnings.warn(f"the module has changed since its export, and the program, whose tensors are the module's, has the new "
                          f"values of {listed(changed)}", stacklevel=2)
        note = {"mode": self.mode, "evaluation_differs": self.evaluation_differs}
        archive.write(self.program, os.fspath(path), note | ({"weights": self.weights} if self.weights else {}) if self.mode else None)

    @property
    def inputs(self):
        """{name: Tensor} of what forward takes, in its order."""
        values = {node.name: node.meta.get("val") for node in self.program.graph.nodes if node.op == "placeholder"}
        return {name: tensor_of(values[name]) for name in self.program.graph_signature.user_inputs
                if isinstance(values.get(name), torch.Tensor)}

    @property
    def parameters(self):
        """{name: Tensor} of the parameters; a tied one is there once."""
        found = {name: self.program.state_dict[name] for name in self.program.graph_signature.parameters}
        return {name: tensor_of(tensor) for name, tensor in found.items()}

    @property
    def has_weights(self):
        """Whether every parameter has values."""
        return archive.has_weights(self.program)

    def __repr__(self):
        inputs = ", ".join(f"{name}[{', '.join(map(str, tensor.shape))}]" for name, tensor in self.inputs.items())
        return f"Program({inputs}; {len(self.parameters)} parameters)"


def versions_of(program):
    """{name: how often it was changed in place} of a program's parameters; what the module itself changes are buffers."""
    return {name: program.state_dict[name]._version for name in program.graph_signature.parameters
            if not program.state_dict[name].is_inference()}


def tensor_of(value):
    """The Tensor of a torch tensor, which may have symbolic sizes."""
    shape = tuple(size if isinstance(size, int) else str(size) for size in value.shape)
    return Tensor(shape, str(value.dtype).removeprefix("torch."), bool(value.requires_grad))


def export(module, example_inputs, *, dynamic=None, kwargs=None, check=True, evaluation=False):
    """Exports a module for training; returns a Program. The module is as before.

    module: a torch.nn.Module. It is exported in training mode; parts that are in evaluation mode while it is in training
        mode (frozen batch norms) stay so. Parameters may lie on the device "meta" or be fake tensors (`no_weights`): then
        the program has their shapes.
    example_inputs: a tensor, or a tuple of the tensors that forward takes, of any sizes; two samples or more.
    kwargs: {name: tensor} of what forward takes by keyword.
    dynamic: which dimensions stay open. None: dimension 0, as "batch", of every input that has as many samples as the
        first, and dimension 1 of integer inputs of samples and positions; {input: {dimension: name or torch.export.Dim}}; or
        "auto": all that can be. What the module fixes although it was to be open is an ExportError if it was named here, else (but for
        "auto") a warning: the file has the example's size.
    check: run the program and compare its outputs and every gradient with the module's, which takes two forward and
        backward passes; what changes gradients and is not in a program (hooks, custom autograd functions), and what the
        forward pass seeds or changes, is found only so. False leaves this out; without values there is nothing to compare.
    evaluation: export the module as it is after eval(), for evaluations of what was trained (docs/pt2.md#random-numbers).
    Raises ExportError with the reason: the module does not export, trains otherwise in PyTorch than as a program, or has
    tensors that share memory.
    """
    inputs = tuple(example_inputs) if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    kwargs = dict(kwargs or {})
    wrong = [value for value in (*inputs, *kwargs.values()) if not isinstance(value, torch.Tensor)]
    if wrong:
        raise ExportError(f"an example input is a {type(wrong[0]).__name__}, expected tensors")
    check_parameters(module)
    mode = mode_of(module)
    if mode is not None:
        inputs = tuple(on_cpu(value, mode) for value in inputs)
        kwargs = {name: on_cpu(value, mode) for name, value in kwargs.items()}
    names = input_names(module, len(inputs))
    if len(names) != len(inputs):
        raise ExportError(f"forward takes {len(names)} inputs, the example has {len(inputs)}")
    named = {**dict(zip(names, inputs)), **kwargs}
    finite = FiniteAssumed()
    with attributes_kept(module), in_mode(module, not evaluation), as_fake(module, mode), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        choices = wanted_dimensions(dynamic, named)
        with finite:
            program, reason = traced(module, inputs, kwargs, named, choices)
        made = Program(program, "evaluation" if evaluation else "training")
        if not evaluation:
            made.evaluation_differs = why_evaluation_differs(program, module, inputs, kwargs, named, choices)
        functions = check_program(module, program, inputs, kwargs) if mode is None and check else []
    made.weights, missing = note_of(module)
    if missing and mode is None:
        warnings.warn(f"the folder of the model has no values of {listed(missing)}: they are as the module has them", stacklevel=2)
    if functions:
        warnings.warn("the backward passes of custom autograd functions are not part of a program, and were compared for the "
                      f"example only: {listed(functions)}", stacklevel=2)
    if finite.lines:
        warnings.warn("checks whether numbers are finite are left out, and the program goes on as if they were; training skips a "
                      f"step whose numbers are not finite: {listed(dict.fromkeys(finite.lines), 3)}", stacklevel=2)
    if finite.variances:
        warnings.warn("gaussian_nll_loss's check for negative variances is left out: a program takes them as eps, where PyTorch raises "
                      f"ValueError: {listed(dict.fromkeys(finite.variances), 3)}", stacklevel=2)
    tell_fixed(made, named, choices[0], dynamic, reason)
    made.versions = versions_of(program)  # the checks have changed weights, and set them back
    return made


def on_cpu(value, mode):
    """An example input for a module without values."""
    return torch.zeros(value.shape, dtype=value.dtype) if not has_values(value) else value


def traced(module, inputs, kwargs, named, choices):
    """(ExportedProgram, why dimensions of the first choice are not open or None) by the first of the choices of open dimensions
    that can be exported. Raises ExportError."""
    reason = None
    for wanted in [choice for at, choice in enumerate(choices) if choice not in choices[:at]]:
        shapes = shapes_for(module, named, len(inputs), wanted)
        for _ in range(3):  # torch.export suggests one range after the other
            try:
                with quiet(), global_hooks_kept(), kept(module, with_parameters=False), masks_kept():
                    program = torch.export.export(module, inputs, kwargs, strict=False, dynamic_shapes=shapes)
                return without_leftovers(program), reason
            except Exception as why:  # torch has no common class for what its exporter raises
                problem = why
                reason = reason or reason_of(why)
                shapes = narrowed(shapes, str(why))
                if shapes is None:
                    break
    hint = BRANCHES if isinstance(problem, GuardOnDataDependentSymNode) else ""
    if "not a known type" in str(problem) and "in output" in str(problem):
        raise ExportError(f"torch.export: {str(problem).partition(', which')[0]}{RETURNS}") from problem
    raise ExportError(f"torch.export: {reason_of(problem)}{user_line(problem)}{hint}") from problem


def why_module_differs(module, inputs):
    """Program.evaluation_differs of a module that is in training mode, also None where torch.export cannot tell."""
    named = dict(zip(input_names(module, len(inputs)), inputs))
    try:
        with attributes_kept(module), FiniteAssumed():
            program = traced(module, inputs, {}, named, [{}])[0]
    except ExportError:
        return None
    return why_evaluation_differs(program, module, inputs, {}, named, [{}])


def why_evaluation_differs(program, module, inputs, kwargs, named, choices):
    """Program.evaluation_differs of a module that is in training mode, and was traced so as `program`."""
    if has_own_modes(module) and (changes := modes_after(module, False)[1]):
        return f"eval() changes {listed(changes)}"
    attention = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # other operators for the same numbers
    try:
        with attributes_kept(module), in_mode(module, False), FiniteAssumed():
            return find_difference(program, traced(module, inputs, kwargs, named, choices)[0])
    except ExportError as why:
        return f"it cannot be exported ({why})"
    finally:
        torch.backends.mha.set_fastpath_enabled(attention)


@contextlib.contextmanager
def quiet():
    """What torch.export logs and prints of a failure is in its exception."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def without_leftovers(program):
    """The program without the empty tensors that checkpoints of PyTorch 2.6 leave, which nothing reads."""
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten.empty.memory_format and not node.users:
            program.graph.erase_node(node)
    return program


def reason_of(why, length=400):
    """What torch.export's exception says, in one line: what follows its heading, without hints about logs."""
    lines = [line.strip(" -") for line in str(why).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("For more information", "Suggested fixes", "Set TORCH"))]
    if len(lines) > 1 and lines[0].startswith("Constraints violated"):
        lines = lines[1:2]
    return (lines[0] if lines else type(why).__name__)[:length]


def tell_fixed(program, named, wanted, dynamic, reason):
    """Warns of dimensions that were to be open and are not. Raises ExportError if they were asked for by name."""
    found = {name: tensor.shape for name, tensor in program.inputs.items()}
    order = list(found)  # names of the program: as those of forward, in its order
    found = {name: found[order[at]] for at, name in enumerate(named) if at < len(order)}
    fixed = fixed_dimensions(wanted, named, found) if len(found) == len(named) else []
    if isinstance(dynamic, dict) and fixed:
        raise ExportError(f"the module fixes sizes that were to be open: {listed(fixed)}")
    if fixed and dynamic is None:
        warnings.warn(f"the module fixes sizes that were to be open: {listed(fixed)} in the program, as in the example"
                      + (f" ({reason})" if reason else ""), stacklevel=3)
    if dynamic is None and not any(0 in entry for entry in wanted.values()):
        warnings.warn("the example has fewer than two samples, of which torch.export makes a constant: the program is for "
                      "that many samples only", stacklevel=3)
