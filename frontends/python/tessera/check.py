"""The whole check of one model: export it, train a few steps in PyTorch and in Tessera, compare."""

import contextlib
import dataclasses
import functools
import os
import tempfile
import warnings

import numpy
import torch

from . import compare, tools, training, twin
from .dimensions import axes_of, input_names
from .draws import TesseraRandom
from .dropout import NoDropout, without_dropout
from .errors import CannotCompare, ExportError, ToolError, first_line, listed
from .hyper import hyper_flags
from .module_step import gradients_kept, in_mode
from .names import parameter_names
from .options import COMPILE, flags_of

GIVEN = ("--batch", "--seq", "--loss", "--ignore-index", "--label-smoothing", "--optimizer", "--lr", "--betas",
         "--epsilon", "--weight-decay", "--no-decay", "--clip-norm", "--schedule", "--warmup", "--output", "-o")


@contextlib.contextmanager
def stage(name):
    """Turns the errors of a step of the check into CannotCompare."""
    try:
        yield
    except ExportError as why:
        raise CannotCompare(name, str(why), first_line(why)) from why
    except ToolError as why:
        raise CannotCompare(name, str(why), why.reason) from why


@dataclasses.dataclass
class Check:
    """A model with its example inputs, and what its check needs; `folder` gets the files. via: "pt2" or "onnx"."""
    model: object
    inputs: tuple
    names: list
    folder: str
    loss: training.Loss = dataclasses.field(default_factory=training.Loss)
    steps: int = 3
    seed: int = 0
    timeout: float = None
    tolerance: float = compare.GRADIENT
    via: str = "pt2"
    file: str = None      # the exported file
    outputs: list = None  # names of the module's results
    exporter: str = "unknown exporter"
    symbols: "dict | None" = None  # of a program: {name of an open dimension other than the batch's: size in the example}
    padding: list = dataclasses.field(default_factory=list)  # tokens that take no gradient
    dropout: int = 0      # rates of modules that were set to 0
    dropout_in_code: int = 0  # calls with another rate, which are left out
    random_calls: int = 0  # of the program
    kinds: "list | None" = None  # element types of the reference's random numbers, in order of calls
    data: dict = None
    draw: bool = True  # whether integers are drawn; else they are the example's
    notes: list = dataclasses.field(default_factory=list)  # what the user should know, one text each
    wanted: dict = dataclasses.field(default_factory=dict)  # micro-batches -> PyTorch's tools.Training

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def samples(self):
        """Samples of one step: dimension 0 of the first example input that has one."""
        return next((len(tensor) for tensor in self.inputs if tensor.dim()), 1)

    def export(self, exporter="auto", say=lambda text: None, dynamic=None):
        """Exports the model. exporter: of ONNX; dynamic: as `tessera.export` takes it, of programs."""
        with stage("export"):
            if self.via == "pt2":
                from .check_pt2 import export_program
                export_program(self, dynamic)
            else:
                from .check_onnx import export_onnx
                export_onnx(self, exporter, say)

    def use(self, path):
        """Takes a file that was exported before, and its weights into the model."""
        self.via = "pt2" if path.endswith(".pt2") else "onnx"
        with stage("file"):
            if self.via == "pt2":
                from .check_pt2 import use_program
                use_program(self, path)
            else:
                from .check_onnx import use_onnx
                use_onnx(self, path)

    def sizes(self, accumulate):
        """tessera-compile's flags for the example's sizes."""
        if self.samples % accumulate:
            raise CannotCompare(
                "model", f"{self.samples} samples in the example do not divide by --accumulate {accumulate}")
        flags = ["--batch", self.samples // accumulate]
        lengths = {axes[1]: tensor.shape[1] for tensor, axes in zip(self.inputs, axes_of(self.inputs)) if 1 in axes}
        if len(lengths) == 1:
            return flags + ["--seq", *lengths.values()]
        sizes = lengths if self.symbols is None else self.symbols  # an ONNX file has the names of axes_of
        return flags + [word for name, size in sizes.items() for word in ("--dim", f"{name}={size}")]

    def run(self, flags=(), name="run"):
        """Trains in Tessera with more flags for tessera-compile, and in PyTorch unless done before; returns the
        Verdict."""
        flags = [str(flag) for flag in flags]
        wrong = [flag for flag in flags if flag.split("=")[0] in GIVEN]
        if wrong:
            raise CannotCompare("compile", f"{wrong[0]} is set by the check, or is an option of it")
        accumulate, precision = option(flags, "--accumulate", 1), option(flags, "--precision", "fp32")
        if precision not in ("fp32", "bf16"):
            raise CannotCompare("compile", f"--precision {precision} has no counterpart in PyTorch: compare fp32 or bf16")
        artifact = self.path(name + ".tessera")
        with stage("compile"):
            flags = [*self.sizes(accumulate), *self.loss.flags(), *hyper_flags(), *flags]
            tools.compile_model(self.file, artifact, flags, self.timeout)
            batch = tools.batch_of(artifact)
        for entry in batch.values():
            if entry["dims"][:1] == ["micro_batch"]:  # an axis of its own
                entry |= {"shape": entry["shape"][1:], "dims": entry["dims"][1:]}
        self.make_data(batch)
        want = self.reference(accumulate)
        with stage("run"):
            got = tools.train(artifact, self.path("data.npz"), self.file, self.steps, self.path(name), self.timeout)
            got = tools.with_all_gradients(got, self.file, self.path(name + "-kept.tessera"), flags, self.path("data.npz"),
                                           self.file, self.path(name + "-kept"), self.timeout)
        got = first_names(self.model, got)
        with without_dropout(self.model), NoDropout():
            if precision == "bf16":
                return self.compare_bf16(want, got, accumulate)
            measured = functools.cache(lambda: twin.twin_of(*self.setting, want.gradients, accumulate, self.kinds, want.losses[0]))
            verdict = compare.compare(
                want, got, lambda: measured().errors, self.tolerance, loss_noise=lambda: measured().loss_error,
                again=lambda: self.calm_losses(want, accumulate, flags, name + "-calm"))
        if verdict.same and verdict.unknown:
            raise CannotCompare("model", f"gradients differ that are not finite in float64, so that rounding cannot be told from "
                                f"a difference: {listed(verdict.unknown)}")
        return verdict

    def compare_bf16(self, want, got, accumulate):
        """The Verdict on a training in bf16, judged by the distance to PyTorch's in float32 that PyTorch's own has."""
        narrow = training.reference(*self.setting, accumulate, TesseraRandom(list(self.kinds)), autocast=True)
        if not numpy.all(numpy.isfinite(narrow.losses)):
            raise CannotCompare("model", f"PyTorch's own losses under autocast are {narrow.losses}")
        tolerance, loss_tolerance = compare.beside_bf16(want, narrow)
        verdict = compare.compare(want, got, None, tolerance, loss_tolerance)
        own = compare.compare(want, narrow, None, tolerance, loss_tolerance)
        verdict.beside = (f"bf16 against fp32; PyTorch's own under torch.autocast: loss {narrow.losses[0]:.4f}, gradients within "
                          f"{own.largest[1]:.0e}")
        return verdict

    @property
    def setting(self):
        """What PyTorch's side of the training takes."""
        return self.model, self.inputs, self.names, self.outputs, self.data, self.loss, self.steps

    def calm_losses(self, want, accumulate, flags, name):
        """(PyTorch's losses, Tessera's, how wrong PyTorch's are from rounding) with an epsilon that keeps what is rounding in
        PyTorch's Training `want` small."""
        epsilon, artifact, flags = training.calm_epsilon(want.gradients), self.path(name + ".tessera"), list(flags)
        flags[flags.index("--epsilon") + 1] = epsilon
        with stage("compile"):
            tools.compile_model(self.file, artifact, flags, self.timeout)
        with stage("run"):
            got = tools.train(artifact, self.path("data.npz"), self.file, self.steps, self.path(name), self.timeout)
        wanted = training.reference(*self.setting, accumulate, epsilon=epsilon).losses
        return wanted, got.losses, twin.loss_errors(wanted, *self.setting, accumulate, self.kinds, epsilon)

    def make_data(self, batch):
        """The arrays of the steps, once."""
        if self.data is None:
            if not any("sample" in entry["dims"] for entry in batch.values()):
                raise CannotCompare("compile", "no input has a dimension that counts samples")
            unknown = [entry for entry in batch if entry not in self.names and entry != "targets"]
            if unknown:
                raise CannotCompare("compile", f"the file reads {', '.join(unknown)}, which the model does not have")
            self.data = training.make_data(batch, self.inputs, self.names, self.loss, self.samples * self.steps,
                                           self.padding, self.seed, self.draw)
            numpy.savez(self.path("data.npz"), **self.data)
            for name, example in zip(self.names, self.inputs):  # an input that the graph does not read
                if name not in self.data and example.dim() and len(example) == self.samples:
                    self.data[name] = training.repeated(example, self.samples * self.steps)
                elif name not in self.data:
                    self.data[name] = example.detach().numpy()
                    self.data.shared.add(name)
            self.notes += [f"all targets of a step are ignored: {name} is {self.loss.ignore_index} throughout"
                           for name, array in self.data.items() if array.dtype.kind == "i" and self.all_ignored(array)]

    def all_ignored(self, array):
        """Whether the samples of some step have nothing but the index that is ignored."""
        return array.size % self.steps == 0 and (array.reshape(self.steps, -1) == self.loss.ignore_index).all(1).any()

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
                    random = TesseraRandom()
                    want = training.reference(*self.setting, accumulate, random)
                    self.kinds = random.kinds
                if self.via == "pt2" and random.count != self.random_calls:
                    raise ValueError(f"the module draws random numbers {random.count} times, its program {self.random_calls} times")
            except (RuntimeError, TypeError, ValueError, KeyError, IndexError) as why:
                raise CannotCompare(
                    "model", f"PyTorch: {type(why).__name__}: {' '.join(str(why).split())[:300]}") from why
            if not numpy.all(numpy.isfinite(want.losses)):
                raise CannotCompare("model", "; ".join([f"PyTorch's own losses are {want.losses}", *self.notes]))
            self.wanted[accumulate] = want
        return self.wanted[accumulate]


def first_names(model, got):
    """A Training with the names that parameters have in the model: the first one of a tied parameter."""
    first = {other: name for name, (_, others) in parameter_names(model).items() for other in others}
    return tools.Training(got.losses, {first.get(name, name): gradient for name, gradient in got.gradients.items()},
                          [first.get(name, name) for name in got.parameters])


def option(flags, name, default):
    """The value of an option among flags, as "--name 2" or "--name=2", of the type of the default."""
    for at, flag in enumerate(flags):
        if flag.startswith(name + "="):
            return type(default)(flag.split("=")[1])
        if flag == name and at + 1 < len(flags):
            return type(default)(flags[at + 1])
    return default


def verify(module, inputs, *, strategy=None, mesh=None, loss="cross-entropy", ignore_index=-100, label_smoothing=0.0,
           steps=3, via="pt2", dynamic=None, tolerance=compare.GRADIENT, seed=0, folder=None, timeout=None, flags=(),
           **options):
    """Trains the first steps in PyTorch and in Tessera, from the module's weights on the same random batch, and compares
    the losses and every gradient by name; returns the Verdict. The module is as before.

    module, inputs: as `export` takes them; the batch has the inputs' sizes and integers, in every step; floats come from a
        normal distribution; dropout rates are 0, and other random numbers are Tessera's on both sides.
    strategy, mesh, options: as `compile` takes them, but for what the comparison sets itself: sizes, AdamW and its rates.
        precision="bf16" is compared with PyTorch in float32, and may be as far from it as PyTorch under torch.autocast is.
    loss: "cross-entropy" (of the output with random targets, a tenth of them ignored), "mse" or "output:<name>".
    steps: how many losses are compared; gradients are those of the first. via: "pt2" or "onnx", what it is exported as.
    tolerance: of a gradient, relative to its largest element; losses may differ by 1e-5 of themselves, later
        ones by more where that is rounding (compare.LATER_LOSS).
    folder: keeps the files there. timeout: seconds of one call of a tool.
    Raises CannotCompare with the stage ("model", "export", "compile", "run") and the reason.
    """
    if via not in ("pt2", "onnx"):
        raise ValueError(f'via is {via!r}, expected "pt2" or "onnx"')
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    words = [*flags_of(COMPILE, "verify", {"mesh": mesh, "strategy": strategy, **options}), *flags]
    try:
        with tempfile.TemporaryDirectory(prefix="tessera-verify-") as temporary, in_mode(module), gradients_kept(module):
            place = os.path.abspath(folder or temporary)
            os.makedirs(place, exist_ok=True)
            check = Check(module, inputs, input_names(module, len(inputs)), place,
                          training.Loss(loss, ignore_index, label_smoothing), steps, seed, timeout, tolerance, via, draw=False)
            check.export(dynamic=dynamic)
            verdict = check.run(words)
    except ExportError as why:
        raise CannotCompare("model", str(why)) from why
    for note in check.notes:
        warnings.warn(note, stacklevel=2)
    return verdict
