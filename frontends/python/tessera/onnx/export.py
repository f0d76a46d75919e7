"""The whole export: observe the module, run an exporter, check what it wrote, attach the record, write the file."""

import dataclasses
import os
import warnings

import onnx
import torch

from ..dimensions import axes_of
from ..distinct import distinct
from ..dropout import without_dropout
from ..errors import ExportError, listed
from ..module_checks import check_parameters
from ..module_step import in_mode
from ..program import why_module_differs
from ..whole_file import whole_file
from . import evaluate as evaluator
from . import exporters, graph, observe, record

LARGE = 1_500_000_000  # bytes of weights from which they go into a file of their own


def export(model, inputs, names, path, outputs=None, exporter="auto", axes=None, keep_dropout=False, evaluate=None, say=print):
    """Writes `model` to `path`, which either is complete and checked or not there, and returns its record.

    inputs: tuple of example tensors; names: of the inputs; outputs: names of the outputs (default: "output", or the keys of
    a dictionary); axes: symbolic dimensions per input, [{axis: name}, …] (default: B for dimension 0, T for dimension 1 of
    integer inputs); exporter: "auto", "torchscript" or "dynamo"; keep_dropout: do not set dropout rates to 0; evaluate: compare
    the file's outputs with the module's, None: if that takes less than minutes; say: takes a line of text for the user.
    Raises ExportError, and writes nothing.
    """
    exported, found = export_proto(model, inputs, names, outputs, exporter, axes, keep_dropout, evaluate, say)
    try:
        write(exported, path)
    except OSError as why:
        raise ExportError(f"{path}: {why.strerror or why}") from why
    return found


def export_proto(model, inputs, names, outputs=None, exporter="auto", axes=None, keep_dropout=False, evaluate=None, say=print):
    """The same, as (ModelProto, record)."""
    inputs, names = tuple(inputs), list(names)
    axes = axes or axes_of(inputs)
    check_parameters(model)
    with warnings.catch_warnings(), in_mode(model):
        warnings.simplefilter("ignore")
        with without_dropout(model, not keep_dropout) as rates, distinct(model):
            if rates:
                say(f"{rates} dropout rate{'' if rates == 1 else 's'} set to 0 (--keep-dropout keeps them)")
            observation = observe.observe(model, inputs, say)
            observation.cleared = rates
            observation.evaluation_differs = why_module_differs(model, inputs)
            trial = Trial(model, inputs, names, outputs or observation.outputs, axes, observation, evaluate)
            trial.decide(say)
            choices = list(exporters.EXPORTERS) if exporter == "auto" else [exporter]
            exported, found, fixed = first_that_passes(trial, choices, say)
    if fixed:
        symbols = " and ".join(exporters.fixed_symbols(exported, axes))
        say(f"note: the file has the example's {symbols}: {fixed}; to train with others, export with those")
    graph.put_values(exported, model)
    return exported, found


@dataclasses.dataclass
class Trial:
    """What exporters are tried on. evaluate: whether to compare outputs; given: the inputs for that."""
    model: torch.nn.Module
    inputs: tuple
    names: list
    outputs: list
    axes: list
    observation: observe.Observation
    evaluate: bool
    given: tuple = ()

    def decide(self, say):
        """Whether to run the evaluator, and on which inputs. Raises ExportError if it does not run and would have to."""
        self.given = self.inputs
        if self.evaluate is None:
            self.given, reason = evaluator.why_skipped(self.model, self.inputs, self.axes)
            self.evaluate = reason is None
            if reason:
                say(f"note: the exported graph's outputs were not compared with PyTorch's: {reason} (--check does it)")
        if not self.evaluate and self.observation.suspects:
            raise ExportError(f"exporters are known to drop {listed(self.observation.suspects)}; --check shows whether they do")

    def run(self, exporter):
        """(ModelProto, record, why sizes are fixed or None) of one exporter. Raises ExportError if a check fails."""
        try:
            exported, doubtful = exporters.run(exporter, self.model, self.inputs, self.names, self.outputs, self.axes,
                                               self.observation.marks)
        except ExportError as why:
            if not self.observation.marks:
                raise
            raise ExportError(f"{why} (gradients are cut by {listed(self.observation.suspects)})") from why
        graph.unify(exported, self.model)
        graph.turn_on(exported)
        found = record.describe(self.model, exporter, self.outputs, self.observation)
        record.check(exported, found)
        if doubtful and not self.evaluate:
            exporters.fix_sizes(exported, self.inputs, self.axes, doubtful)
        reason = "the exporter fixed it" if exporters.fixed_symbols(exported, self.axes) else None
        if self.evaluate:
            with distinct(self.model, seed=1):  # a number that was computed from parameters is another one now
                graph.put_values(exported, self.model)
                try:
                    evaluator.evaluate(exported, found, self.model, self.given, self.names, self.axes)
                except evaluator.FixedSizes as why:
                    exporters.fix_sizes(exported, self.inputs, self.axes, why.symbols)
                    reason = reason or str(why)
                except ExportError as why:
                    blame = f" (exporters are known to drop {listed(self.observation.suspects)})"
                    raise ExportError(f"{why}{blame if self.observation.suspects else ''}") from why
        graph.strip_notes(exported)
        record.attach(exported, found)
        return exported, found, reason


def first_that_passes(trial, choices, say):
    """What the first exporter made whose file passes all checks; one that keeps dimensions symbolic, if there is one."""
    best, reasons = None, []
    for choice, following in zip(choices, [*choices[1:], None]):
        try:
            exported, found, reason = trial.run(choice)
            if reason is None:
                return exported, found, None
            best = best or (exported, found, reason)
            told = f"sizes are fixed in {choice}'s file ({reason}); trying {following}"
        except ExportError as why:
            reasons.append(str(why) if choice in str(why) else f"{choice}: {why}")
            told = f"passed over {choice}: {why}"
        if following:
            say(told)
    if best is None:
        raise ExportError("; ".join(reasons))
    return best


def write(exported, path):
    """Writes a ModelProto to `path`, and large weights to `path`.data. Raises OSError."""
    size = sum(len(tensor.raw_data) for tensor in exported.graph.initializer)
    with whole_file(path) as made:
        onnx.save(exported, made, save_as_external_data=size > LARGE, location=os.path.basename(path) + ".data",
                  all_tensors_to_one_file=True)
