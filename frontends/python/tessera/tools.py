"""Runs Tessera's tools on an exported model and reads what they leave. Needs NumPy only."""

import dataclasses
import json
import os
import re
import shutil
import struct
import subprocess

import numpy

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DTYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64, "I32": numpy.int32,
          "I8": numpy.int8, "U8": numpy.uint8, "BOOL": numpy.bool_}


class ToolError(Exception):
    """A tool ended with an error. str() is what it said; reason is that in one line, and crashed is set if a signal
    ended it."""

    def __init__(self, tool, status, output):
        self.tool, self.crashed = tool, status < 0 or status >= 126
        super().__init__(output.strip() or f"{tool} ended with status {status}")

    @property
    def reason(self):
        return ("crash: " if self.crashed else "") + short(str(self))


@dataclasses.dataclass
class Training:
    """The first steps of a training: the loss of each, and the gradients of step 1 before clipping by parameter."""
    losses: list
    gradients: dict
    parameters: list = dataclasses.field(default_factory=list)  # names of what is trained


def short(output, length=300):
    """One line of what a tool printed: the error and the notes under it, without positions and without what repeats."""
    lines = [re.sub(r"^\S+:\d+:\d+: |^loc\(.*?\): ", "", line.strip()) for line in output.splitlines()]
    at = next((i for i, line in enumerate(lines) if "error" in line), 0)
    errors = [line for line in lines[at:] if re.match(r"(\S+: )?(error|note):", line)] or lines[at:at + 1]
    text = "; ".join(re.sub(r"^(\S+: )?(error|note): ", "", line) for line in dict.fromkeys(errors))
    return text[:length - 1] + "…" if len(text) > length else text


def find_tool(name):
    """The tool of TESSERA_BIN, of the build beside this file, or of the PATH. Raises ToolError."""
    for folder in (os.environ.get("TESSERA_BIN"), os.path.join(ROOT, "build", "release", "bin")):
        if folder and os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    found = shutil.which(name)
    if not found:
        raise ToolError(
            name, 1, f"error: {name} not found: build it (tools/setup.sh, cmake --preset release), or set TESSERA_BIN")
    return found


def run_tool(name, *arguments, timeout=None):
    """Runs a tool and returns its standard output. Raises ToolError."""
    command = [find_tool(name), *map(str, arguments)]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, text=True,
                              errors="replace")
    except subprocess.TimeoutExpired as why:
        raise ToolError(name, 1, f"error: {name} took longer than {timeout} s") from why
    if done.returncode != 0:
        raise ToolError(name, done.returncode, done.stderr + done.stdout)
    return done.stdout


def compile_model(onnx_file, artifact, flags, timeout=None):
    """Compiles a model; flags as on the command line."""
    run_tool("tessera-compile", onnx_file, "-o", artifact, *flags, timeout=timeout)


def batch_of(artifact):
    """What a compiled step reads: {name: {"role": "input" or "target", "dtype", "shape", "index_bound" if known}}."""
    summary = json.loads(run_tool("tessera-dump", artifact, "--json"))
    summary = summary.get("summary", summary)
    return {entry["name"]: entry for entry in summary["batch"]}


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


def load(path):
    """Name -> array of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = numpy.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors
