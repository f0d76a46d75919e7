"""Trains a compiled step: a call of tessera-run, whose progress is passed on."""

import collections
import json
import os
import subprocess
import sys
import tempfile

from . import tools
from .artifact import file_of
from .errors import ToolError
from .options import TRAIN, flags_of
from .progress import Progress
from .signals import ended_in_order, environment, wait_for

KEPT_LINES = 50  # of what the tool says, for the text of an error


class Run:
    """A training that ended, or one that another process did. out: its folder."""

    def __init__(self, out):
        self.out = os.fspath(out)

    @property
    def records(self):
        """All lines of metrics.jsonl, as dictionaries (docs/telemetry.md); a line that is not whole is left out."""
        found = []
        with open(os.path.join(self.out, "metrics.jsonl")) as file:
            for line in file:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    break  # a crash cut it off: it is the last
        return found

    @property
    def metrics(self):
        """One dictionary per step: "step", "loss", "grad_norm", "lr", "step_seconds", "tokens_per_second", …; a number that
        is not finite is None. pandas.DataFrame takes this list as it is."""
        return [record for record in self.records if "loss" in record]

    @property
    def evaluations(self):
        """One dictionary per evaluation: "step", "eval_loss", …"""
        return [record for record in self.records if record.get("stage") == "evaluation"]

    @property
    def losses(self):
        """The loss of each step; nan where it was not finite."""
        return [float("nan") if record["loss"] is None else record["loss"] for record in self.metrics]

    @property
    def settings(self):
        """What run.json says: versions, command, settings, memory."""
        with open(os.path.join(self.out, "run.json")) as file:
            return json.load(file)

    @property
    def checkpoints(self):
        """The paths of the checkpoints, oldest first."""
        folder = os.path.join(self.out, "checkpoints")
        names = [name for name in os.listdir(folder) if name[-1:].isdigit()] if os.path.isdir(folder) else []
        return [os.path.join(folder, name) for name in sorted(names, key=lambda name: int(name.rpartition("-")[2]))]

    @property
    def weights(self):
        """The path of the trained weights (safetensors), or None if they were not written there."""
        path = os.path.join(self.out, "model.safetensors")
        return path if os.path.exists(path) else None

    def to_pandas(self):
        """The metrics as a pandas.DataFrame with one row per step; needs pandas."""
        import pandas
        return pandas.json_normalize(self.metrics).set_index("step")

    def __repr__(self):
        return f"Run({self.out!r})"


def train(artifact, data, *, steps=None, epochs=None, weights=None, out, flags=(), show=None, **options):
    """Trains; returns the Run when it has ended.

    artifact: an Artifact or its path. data: the path of tokens, text or arrays (docs/data.md), or {name: array} with the
        samples along dimension 0, "targets" among them.
    steps: number of the last step; or epochs: how often each sample comes, at least (of a
        mixture until a source would begin again). out: folder of the run; it must not hold another.
    weights: initial parameters: a Program, the path of a .pt2, .onnx or .safetensors file, or "fresh" for values by rule
        from the seed. Without, those of the program or file that was compiled; by rule if it has none.
    show: pass on all that the tool prints, or nothing. By default all of it goes to a terminal; elsewhere, in a notebook or a log, a
        line on steps comes every ten seconds.
    options: every flag of tessera-run with _ for - (options.py): seed=0, lr=1e-3, order="sequential", checkpoint_every=100, …;
        eval_data is a path or {name: array}, as data is.
    flags: more words of the command, as they are.
    Ctrl-C reaches the tool, which ends after the step with a checkpoint; then KeyboardInterrupt is raised. SIGTERM and SIGHUP do
    the same, and end Python, unless the program handles them; if Python is killed, the tool ends as by SIGTERM.
    Raises ToolError with what the tool said.
    """
    if (steps is None) == (epochs is None):
        raise TypeError("tessera.train() takes steps or epochs, one of them")
    length = ["--steps", str(steps)] if epochs is None else ["--epochs", str(epochs)]
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        if isinstance(options.get("eval_data"), dict):
            options["eval_data"] = data_file(options["eval_data"], folder, "eval_data")
        command = [tools.find_tool("tessera-run"), os.fspath(artifact), "--data", data_file(data, folder),
                   *length, "--out", os.fspath(out), *flags_of(TRAIN, "train", options), *map(str, flags)]
        flag, values = ("--weights", weights) if weights is not None else ("--model-file", program_of(artifact, command))
        if values is None:
            follow(command, show)
        else:
            with file_of(values) as path:
                follow([*command, flag, path], show)
    return Run(out)


def program_of(artifact, command):
    """The Program that an artifact was compiled from, if a call of tessera-run begins with its values: it is in no file. The
    tool compares them with those that were compiled."""
    program = getattr(artifact, "program", None)
    given = dict(zip(command, [*command[1:], None]))
    names = {word.partition("=")[0] for word in command}
    begins = not names & {"--weights", "--model-file"} and given.get("--resume", "auto") == "auto"
    return program if program is not None and program.has_weights and begins and "--resume=auto" not in command else None


def data_file(data, folder, name="data"):
    """The path of the data; arrays are written into the folder. name: of the argument."""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if not isinstance(data, dict):
        raise TypeError(f"{name} is a {type(data).__name__}, expected a path or {{name: array}}")
    import numpy
    path = os.path.join(folder, name + ".npz")
    numpy.savez(path, **{name: numpy.asarray(array, order="C") for name, array in data.items()})
    return path


def follow(command, show):
    """Runs a tool to its end and passes on what it prints. Raises ToolError, KeyboardInterrupt."""
    everything = sys.stderr.isatty() if show is None else show
    progress = Progress(sys.stderr) if show is None and not everything else None
    last = collections.deque(maxlen=KEPT_LINES)

    def read():
        for line in process.stdout:
            last.append(line)
            if progress:
                progress.line(line)
            elif everything:
                sys.stderr.write(line)
                sys.stderr.flush()

    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env=environment()) as process:
        wait_for(process, read)
    if process.returncode:
        raise ToolError(os.path.basename(command[0]), process.returncode, "".join(last))
