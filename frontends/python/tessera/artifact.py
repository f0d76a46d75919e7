"""Compiles programs and models, and predicts what a step would do: calls of tessera-compile."""

import contextlib
import json
import os
import tempfile

from . import tools
from .options import COMPILE, flags_of
from .signals import ended_in_order


class Artifact:
    """A compiled training step: a file of tessera-compile. path: where it is. program: the Program that it was compiled
    from, whose values a training begins with; None if it was compiled from a file."""

    def __init__(self, path, program=None):
        self.path = os.fspath(path)
        self.program = program

    def __fspath__(self):
        return self.path

    @property
    def summary(self):
        """What tessera-dump --json says: mesh, memory, parameters, batch. Raises ToolError."""
        return tools.summary_of(self.path)

    @property
    def batch(self):
        """{name: {"role": "input" or "target", "dtype", "shape", …}} of what a step reads; shapes of the whole batch."""
        return tools.batch_of(self.path)

    def __repr__(self):
        return f"Artifact({self.path!r})"


class Report:
    """What one step would take. data: memory in bytes, times in seconds, collectives, kernels as tessera-compile
    --report=FILE writes them; str() is its text."""

    def __init__(self, text, data):
        self.text, self.data = text, data

    def __str__(self):
        return self.text

    def __getitem__(self, key):
        return self.data[key]

    def __repr__(self):
        return f"Report({', '.join(self.data)})"


@contextlib.contextmanager
def file_of(model):
    """The path of a model: of a file, or of a Program, which is saved for a while."""
    if isinstance(model, (str, os.PathLike)):
        yield os.fspath(model)
        return
    if not hasattr(model, "save"):
        raise TypeError(f"expected a Program or a path, got {type(model).__name__}")
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        path = os.path.join(folder, "program.pt2")
        model.save(path)
        yield path


def compile(program_or_path, output=None, *, batch=None, seq=None, mesh=None, strategy=None, flags=(), **options):
    """Compiles a model into one file for all ranks; returns an Artifact.

    program_or_path: a Program, or the path of a .pt2 or .onnx file. output: the file to write (default: the model's path
        with the ending .tessera; a Program needs one).
    batch: samples of one micro-batch over all ranks, or global_batch: those of a step; seq: positions of one sample, where they are open.
    mesh: ranks by axis, {"shard": 2} or "shard=2" (default: one rank); strategy: "ddp", "zero1", "zero2", "zero3", "hsdp".
    options: every flag of tessera-compile with _ for - (options.py): loss="mse", optimizer="adamw", lr=1e-3 (per step),
        precision="bf16", remat="full", dim={"name": 4}, …
    flags: more words of the command, as they are.
    Raises CompileError with the tool's message; then nothing is written. TypeError for unknown keywords.
    """
    words = flags_of(COMPILE, "compile", {"batch": batch, "seq": seq, "mesh": mesh, "strategy": strategy, **options})
    if output is None:
        if not isinstance(program_or_path, (str, os.PathLike)):
            raise TypeError("a Program has no path: say where the artifact goes, compile(program, \"net.tessera\", …)")
        output = os.path.splitext(os.fspath(program_or_path))[0] + ".tessera"
    with file_of(program_or_path) as path:
        tools.compile_model(path, os.fspath(output), [*words, *map(str, flags)])
    return Artifact(output, None if isinstance(program_or_path, (str, os.PathLike)) else program_or_path)


def report(program_or_path, *, batch=None, seq=None, target=None, mesh=None, strategy=None, flags=(), **options):
    """Predicts memory, communication and time of a step on a machine that need not be there; returns a Report.

    target: "cpu", "h100x8", …, or the path of a target file (default: this CPU). The rest as in `compile`. Nothing is
    launched and no weights are read. Raises CompileError.
    """
    given = {"batch": batch, "seq": seq, "target": target, "mesh": mesh, "strategy": strategy, **options}
    words = flags_of(COMPILE, "report", given)
    with file_of(program_or_path) as path, tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        data = os.path.join(folder, "report.json")
        text = tools.run_tool("tessera-compile", path, *words, *flags, f"--report={data}")
        with open(data) as file:
            return Report(text, json.load(file))
