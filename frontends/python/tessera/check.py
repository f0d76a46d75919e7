"""The whole check of one model: export it, train a few steps in PyTorch and in Tessera, compare."""

import contextlib
import dataclasses
import os

import numpy
import onnx
import torch

from . import compare, tools, training
from .dropout import NoDropout, without_dropout
from .errors import ExportError, listed
from .names import parameter_names
from .onnx import export, graph, record
from .onnx.export import write

GIVEN = ("--batch", "--seq", "--loss", "--ignore-index", "--label-smoothing", "--optimizer", "--lr", "--betas",
         "--epsilon", "--weight-decay", "--no-decay", "--clip-norm", "--schedule", "--warmup", "--output", "-o",
         "--precision")


class CannotCompare(Exception):
    """There is nothing to compare. stage: "model", "export", "compile" or "run"; str() is the message, short one line
    of it."""

    def __init__(self, stage, message, short=None):
        self.stage, self.short = stage, short or message
        super().__init__(message)


@contextlib.contextmanager
def stage(name):
    """Turns the errors of a step of the check into CannotCompare."""
    try:
        yield
    except ExportError as why:
        raise CannotCompare(name, str(why)) from why
    except tools.ToolError as why:
        raise CannotCompare(name, str(why), why.reason) from why


@dataclasses.dataclass
class Check:
    """A model with its example inputs, and what its check needs; `folder` gets the files."""
    model: object
    inputs: tuple
    names: list
    folder: str
    loss: training.Loss = dataclasses.field(default_factory=training.Loss)
    steps: int = 3
    seed: int = 0
    timeout: float = None
    tolerance: float = compare.GRADIENT
    onnx: str = None      # the exported file
    outputs: list = None  # names of the module's results
    exporter: str = "unknown exporter"
    padding: list = dataclasses.field(default_factory=list)  # tokens that the record says take no gradient
    dropout: int = 0      # rates of modules that were set to 0
    dropout_in_code: int = 0  # calls with another rate, which are left out
    data: dict = None
    wanted: dict = dataclasses.field(default_factory=dict)  # micro-batches -> PyTorch's tools.Training

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def samples(self):
        """Samples of one step: those of the example."""
        return len(self.inputs[0])

    def export(self, exporter="auto", say=lambda text: None):
        """Exports the model as tools/export_torch.py does."""
        with stage("export"):
            found = export(self.model, self.inputs, self.names, self.path("model.onnx"), exporter=exporter, say=say)
        self.onnx, self.outputs, self.exporter = self.path("model.onnx"), found["outputs"], found["exporter"]
        self.padding = paddings(found)
        if found["dropout"]:
            self.leave_out_dropouts(onnx.load(self.onnx))

    def use(self, path):
        """Takes a file that was exported before, and its weights into the model."""
        exported = onnx.load(path)
        tensors = {tensor.name: tensor for tensor in exported.graph.initializer}
        found = record.read(exported)
        self.onnx, self.outputs = path, [output.name for output in exported.graph.output]
        producer = f"{exported.producer_name} {exported.producer_version}"
        self.exporter = found["exporter"] if found else f"{producer}, no record"
        self.padding = paddings(found)
        missing = training.set_weights(self.model, {
            name: numpy.array(onnx.numpy_helper.to_array(tensor)) for name, tensor in tensors.items()})
        unused = {entry["name"] for entry in found["parameters"] if entry.get("unused")} if found else set()
        if set(missing) - unused:
            raise CannotCompare("file", f"{path} has no weights for {listed(sorted(set(missing) - unused))}")
        if graph.active_dropouts(exported):
            self.leave_out_dropouts(exported)

    def leave_out_dropouts(self, exported):
        """Goes on with a file that has none, as random numbers are not compared: rates that the code gives are left."""
        found = record.read(exported)
        self.dropout_in_code = len(graph.active_dropouts(exported))
        graph.leave_out_dropouts(exported)
        if found:
            record.attach(exported, found | {"dropout": []})
        self.onnx = self.path("without-dropout.onnx")
        write(exported, self.onnx)

    def sizes(self, accumulate):
        """tessera-compile's flags for the example's sizes."""
        if self.samples % accumulate:
            raise CannotCompare(
                "model", f"{self.samples} samples in the example do not divide by --accumulate {accumulate}")
        flags = ["--batch", self.samples // accumulate]
        times = {x.shape[1] for x in self.inputs if not x.is_floating_point() and x.dim() > 1}
        return flags + (["--seq", times.pop()] if len(times) == 1 else [])

    def run(self, flags=(), name="run"):
        """Trains in Tessera with more flags for tessera-compile, and in PyTorch unless done before; returns the
        Verdict."""
        flags = [str(flag) for flag in flags]
        wrong = [flag for flag in flags if flag.split("=")[0] in GIVEN]
        if wrong:
            raise CannotCompare("compile", f"{wrong[0]} is set by the check, or is an option of it")
        accumulate = option(flags, "--accumulate", 1)
        artifact = self.path(name + ".tessera")
        with stage("compile"):
            tools.compile_model(self.onnx, artifact, [*self.sizes(accumulate), *self.loss.flags(),
                                                        *training.hyper_flags(), *flags], self.timeout)
            batch = tools.batch_of(artifact)
        if accumulate > 1:  # micro-batches are an axis of their own
            batch = {name: entry | {"shape": entry["shape"][1:]} for name, entry in batch.items()}
        self.make_data(batch)
        want = self.reference(accumulate)
        with stage("run"):
            got = tools.train(artifact, self.path("data.npz"), self.onnx, self.steps, self.path(name), self.timeout)
        got = first_names(self.model, got)
        setting = (self.inputs, self.names, self.outputs, self.data, self.loss, self.steps)
        with without_dropout(self.model), NoDropout():
            return compare.compare(
                want, got, lambda: training.rounding(self.model, *setting, want.gradients, accumulate), self.tolerance)

    def make_data(self, batch):
        """The arrays of the steps, once."""
        if self.data is None:
            unknown = [entry for entry in batch if entry not in self.names and entry != "targets"]
            if unknown:
                raise CannotCompare("compile", f"the file reads {', '.join(unknown)}, which the model does not have")
            self.data = training.make_data(batch, self.inputs, self.names, self.loss, self.samples * self.steps,
                                           self.padding, self.seed)
            numpy.savez(self.path("data.npz"), **self.data)
            for name, example in zip(self.names, self.inputs):  # an input that the graph does not read
                if name not in self.data:
                    self.data[name] = training.repeated(example, self.samples * self.steps)

    def reference(self, accumulate=1):
        """PyTorch's Training, computed once. Raises CannotCompare if it fails or is not finite, or where rounding would
        hide what is wrong."""
        if accumulate not in self.wanted:
            narrow = sorted({str(p.dtype) for p in self.model.parameters() if p.dtype in (torch.bfloat16, torch.float16)})
            if narrow:
                raise CannotCompare("model", f"parameters of {' and '.join(narrow)}: two programs that are both right round "
                                    "apart; compare model.float()")
            try:
                with without_dropout(self.model) as self.dropout, NoDropout():
                    want = training.reference(self.model, self.inputs, self.names, self.outputs, self.data, self.loss,
                                              self.steps, accumulate)
            except (RuntimeError, TypeError, ValueError, KeyError, IndexError) as why:
                raise CannotCompare(
                    "model", f"PyTorch: {type(why).__name__}: {' '.join(str(why).split())[:300]}") from why
            if not numpy.all(numpy.isfinite(want.losses)):
                raise CannotCompare("model", f"PyTorch's own losses are {want.losses}")
            self.wanted[accumulate] = want
        return self.wanted[accumulate]


def paddings(found):
    """The padding indices of a record."""
    return sorted({entry["padding_idx"] for entry in (found or {}).get("parameters", ()) if "padding_idx" in entry})


def first_names(model, got):
    """A Training with the names that parameters have in the model: the first one of a tied parameter."""
    first = {other: name for name, (_, others) in parameter_names(model).items() for other in others}
    return tools.Training(got.losses, {first.get(name, name): gradient for name, gradient in got.gradients.items()},
                            [first.get(name, name) for name in got.parameters])


def option(flags, name, default):
    """The integer value of an option among flags, as "--name 2" or "--name=2"."""
    for at, flag in enumerate(flags):
        if flag.startswith(name + "="):
            return int(flag.split("=")[1])
        if flag == name and at + 1 < len(flags):
            return int(flags[at + 1])
    return default
