"""Runs Tessera's tools on an exported model and reads what they leave. Needs NumPy only."""

import dataclasses
import json
import os
import shutil
import subprocess
import warnings

import numpy

from .errors import CompileError, ToolError
from .safetensors import load

HERE = os.path.dirname(os.path.abspath(__file__))
NATIVE = os.path.join(HERE, "native", "bin")  # the tools of a wheel that has them
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))


@dataclasses.dataclass
class Training:
    """The first steps of a training: the loss of each, and the gradients of step 1 before clipping by parameter."""
    losses: list
    gradients: dict
    parameters: list = dataclasses.field(default_factory=list)  # names of what is trained


def find_tool(name):
    """The path of a tool: of TESSERA_BIN, of this package if it is a wheel with tools, of the PATH, or of the build in the
    clone that this file lies in. Raises ToolError."""
    given = os.environ.get("TESSERA_BIN")
    places = [given] if given else [NATIVE, None, os.path.join(ROOT, "build", "release", "bin")]
    found = next(filter(None, (shutil.which(name, path=place) for place in places)), None)
    if not found:
        where = f"not in TESSERA_BIN, which is {given}" if given else "neither in this package nor on the PATH nor built in a clone"
        raise ToolError(name, 1, f"error: {name} is {where}: install the wheel that tools/package.sh makes in a clone (the package "
                        "alone, from its sources, has no tools), or build them (tools/setup.sh, tools/build-tools.sh) and set "
                        "TESSERA_BIN to the folder that has them")
    return found


def run_tool(name, *arguments, timeout=None):
    """Runs a tool and returns its standard output. Raises ToolError, of tessera-compile CompileError."""
    command = [find_tool(name), *map(str, arguments)]
    kind = CompileError if name == "tessera-compile" else ToolError
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, text=True,
                              errors="replace")
    except subprocess.TimeoutExpired as why:
        raise kind(name, 1, f"error: {name} took longer than {timeout} s") from why
    if done.returncode != 0:
        raise kind(name, done.returncode, done.stderr + done.stdout)
    for line in done.stderr.splitlines():
        if "warning: " in line:
            warnings.warn(line.partition("warning: ")[2], stacklevel=3)
    return done.stdout


def summary_of(artifact):
    """What tessera-dump says of an artifact, as a dictionary. Raises ToolError."""
    summary = json.loads(run_tool("tessera-dump", artifact, "--json"))
    return summary.get("summary", summary)


def compile_model(model, artifact, flags, timeout=None):
    """Compiles a model; flags as on the command line."""
    run_tool("tessera-compile", model, "-o", artifact, *flags, timeout=timeout)


def batch_of(artifact):
    """What a compiled step reads: {name: {"role": "input" or "target", "dtype", "shape", "index_bound" if known}}."""
    return {entry["name"]: entry for entry in summary_of(artifact)["batch"]}


def train(artifact, data, weights, steps, folder, timeout=None):
    """Runs the first steps on the samples of `data` in their order, and returns a Training."""
    run_tool("tessera-run", artifact, "--data", data, "--order", "sequential", "--steps", steps, "--weights", weights,
             "--out", folder, "--threads", 1, "--no-export", "--dump=gradients,parameters", "--dump-step", 1,
             timeout=timeout)
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        losses = [record["loss"] for record in map(json.loads, file) if "loss" in record]
    dump = os.path.join(folder, "dump-1")
    return Training([numpy.nan if loss is None else loss for loss in losses],
                    load(os.path.join(dump, "gradients.safetensors")),
                    list(load(os.path.join(dump, "parameters.safetensors"))))


def with_all_gradients(got, model, artifact, flags, data, weights, folder, timeout=None):
    """The Training `got` of an artifact, with gradients that are never in memory since the kernel of their update computes
    them: those of step 1 of the same model, compiled into `artifact` with --keep-gradients and run in `folder`."""
    if set(got.parameters) <= set(got.gradients):
        return got
    compile_model(model, artifact, [*flags, "--keep-gradients"], timeout)
    kept = train(artifact, data, weights, 1, folder, timeout)
    return dataclasses.replace(got, gradients=kept.gradients | got.gradients)
