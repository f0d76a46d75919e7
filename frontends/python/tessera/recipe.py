"""python -m tessera finetune: the three commands of a fine-tuning, from one file."""

import argparse
import os
import shlex
import subprocess
import sys

from .errors import ExportError, ToolError

HELP = """Prints and runs the three commands of a fine-tuning, whose flags a recipe (YAML) has:

  model: hf/                       # a folder of Hugging Face's: build, data build --model and --weights have it
  data:                            # flags of python -m tessera data build
    input: [chat.jsonl]
    seq: 2048
    split: valid=2%
    output: data/
  build:                           # flags of python -m tessera build, and of tessera-compile
    ranks: 2
    global-batch: 32
    output: ft.tessera
  run:                             # flags of tessera-run
    epochs: 3
    keep-best: true
    export-hf: out/
    out: runs/ft
  slurm:                           # flags of sbatch, for --slurm
    nodes: 2
    gpus-per-task: 1

A list gives a flag several times, true one without a value, false none. What is there already stays: data that the same
command would make, and an artifact that is newer than its model, data and recipe. The run goes on where it was with
--resume auto."""

SECTIONS = ("data", "build", "run", "slurm")


class Recipe:
    """The commands of a recipe. Raises ExportError for what is not one."""

    def __init__(self, values, path):
        self.path = path
        if not isinstance(values, dict):
            raise ExportError(f"{path}: expected 'model' and sections {', '.join(SECTIONS)}")
        if unknown := [key for key in values if key not in ("model", *SECTIONS)]:
            raise ExportError(f"{path}: unknown section '{unknown[0]}', expected model, {', '.join(SECTIONS)}")
        self.model = values.get("model")
        if not isinstance(self.model, str):
            raise ExportError(f"{path}: 'model' names no folder")
        self.sections = {}
        for name in SECTIONS:
            section = values.get(name, {})
            if not isinstance(section, dict):
                raise ExportError(f"{path}: section '{name}' is {section!r}, expected flags with values")
            self.sections[name] = {str(key).removeprefix("--").replace("_", "-"): value for key, value in section.items()}
        for name, needed in (("data", ("input", "seq", "output")), ("build", ("output",)), ("run", ("out",))):
            for key in needed:
                if key not in self.sections[name]:
                    raise ExportError(f"{path}: section '{name}' has no '{key}'")

    def flags(self, section, left_out=()):
        """The words of a section's flags. Raises ExportError for a value that is none."""
        words = []
        for key, value in self.sections[section].items():
            for each in [] if key in left_out else value if isinstance(value, list) else [value]:
                if isinstance(each, bool):
                    words += [f"--{key}"] if each else []
                elif isinstance(each, (str, int, float)):
                    words += [f"--{key}", str(each)]
                else:
                    raise ExportError(f"{self.path}: '{key}' of '{section}' is {each!r}, expected a text, a number or true")
        return words

    def inputs(self):
        given = self.sections["data"]["input"]
        return [str(each) for each in (given if isinstance(given, list) else [given])]

    def data(self):
        return ["data", "build", *self.inputs(), "--model", self.model, *self.flags("data", ("input",))]

    def build(self):
        given = self.sections["build"]
        seq = [] if "seq" in given or "data" in given else ["--data", str(self.sections["data"]["output"])]
        return ["build", self.model, *seq, *self.flags("build")]

    def run(self):
        given = self.sections["run"]
        defaults = [word for key, value in (("weights", self.model), ("data", self.sections["data"]["output"]), ("resume", "auto"))
                    if key not in given for word in (f"--{key}", str(value))]
        return [str(self.sections["build"]["output"]), *defaults, *self.flags("run")]

    def is_built(self):
        """Whether the artifact is newer than what it is made from."""
        artifact = self.sections["build"]["output"]
        made_from = [self.path, os.path.join(self.model, "config.json"), os.path.join(self.sections["data"]["output"], "manifest.json")]
        try:
            return all(os.path.getmtime(artifact) > os.path.getmtime(path) for path in made_from)
        except OSError:
            return False


def read(path):
    """The Recipe of a file. Raises ExportError."""
    try:
        import yaml
    except ImportError as why:
        raise ExportError(f"a recipe needs PyYAML: {why}") from why
    try:
        with open(path, encoding="utf-8") as file:
            return Recipe(yaml.safe_load(file), path)
    except OSError as why:
        raise ExportError(f"{path}: {why.strerror}") from why
    except (yaml.YAMLError, UnicodeDecodeError) as why:
        raise ExportError(f"{path}: {' '.join(str(why).split())}") from why


def main(words):
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tessera finetune", description=HELP, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", help="a YAML file")
    parser.add_argument("--print", action="store_true", help="print the commands, and run none")
    parser.add_argument("--slurm", metavar="FILE", help="write the third command as a job for sbatch, instead of running it")
    options = parser.parse_args(words)
    try:
        return follow(read(options.recipe), options)
    except (ExportError, ToolError) as why:
        print(f"tessera: error: {why}", file=sys.stderr)
        return 1
    except OSError as why:
        print(f"tessera: error: {why.filename}: {why.strerror}", file=sys.stderr)
        return 1


def follow(recipe, options):
    """The exit status of the first command that fails, or of the last."""
    from . import tools
    python = [sys.executable, "-m", "tessera"]
    steps = [(["python", "-m", "tessera"], python, recipe.data()), (["python", "-m", "tessera"], python, recipe.build())]
    if not options.slurm:
        steps.append((["tessera-run"], [tools.find_tool("tessera-run")] if not options.print else [], recipe.run()))
    for name, program, words in steps:
        print(shlex.join([*name, *words]), flush=True)
        if options.print:
            continue
        if words[0] == "build" and recipe.is_built():
            print(f"{recipe.sections['build']['output']} is newer than its model, data and recipe, and stays", flush=True)
            continue
        if status := subprocess.run([*program, *words]).returncode:
            return status if status > 0 else 128 - status
    if options.slurm:
        from .slurm import write_job
        write_job(options.slurm, recipe.run(), recipe.flags("slurm"))
        print(shlex.join(["sbatch", options.slurm]))
    return 0
