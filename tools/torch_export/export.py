"""The whole export: observe the module, run an exporter, check what it wrote, attach the record, write the file."""

import os
import tempfile
import warnings

import onnx
import torch

from . import exporters, observe, record
from .distinct import distinct, without_dropout
from .errors import ExportError, listed

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
    inputs = tuple(inputs)
    axes = axes or [exporters.axes_of(x) for x in inputs]
    if not model.training:
        model.train()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with without_dropout(model, not keep_dropout) as rates, distinct(model):
            if rates:
                say(f"{rates} dropout rate{'' if rates == 1 else 's'} set to 0 (--keep-dropout keeps them)")
            observation = observe.observe(model, inputs, say)
            outputs = outputs or observation.outputs
            choices = list(exporters.EXPORTERS) if exporter == "auto" else [exporter]
            reasons = []
            for choice in choices:
                try:
                    exported = exporters.run(choice, model, inputs, names, outputs, axes)
                    record.unify(exported, model)
                    found = record.describe(model, choice, outputs, observation)
                    record.check(exported, found)
                    break
                except ExportError as why:
                    reasons.append(str(why) if choice in str(why) else f"{choice}: {why}")
                    if choice != choices[-1]:
                        say(f"passed over {choice}: {why}")
            else:
                raise ExportError("; ".join(reasons))
    record.put_values(exported, model)
    record.strip_notes(exported)
    record.attach(exported, found)
    fixed = exporters.fixed_inputs(exported, axes)
    if fixed:
        say(f"note: the exporter fixed sizes of the example ({listed(fixed)}); to train with others, export with those")
    return exported, found


def write(exported, path):
    """Writes a ModelProto to a temporary file beside `path` and renames it; large weights go to `path`.data likewise."""
    folder = os.path.dirname(os.path.abspath(path))
    size = sum(len(tensor.raw_data) for tensor in exported.graph.initializer)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as place:
        name, data = os.path.basename(path), os.path.basename(path) + ".data"
        onnx.save(exported, os.path.join(place, name), save_as_external_data=size > LARGE, location=data,
                  all_tensors_to_one_file=True)
        if os.path.exists(os.path.join(place, data)):
            os.replace(os.path.join(place, data), os.path.join(folder, data))
        os.replace(os.path.join(place, name), path)
