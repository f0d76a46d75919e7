"""Writes a training as a job of Slurm: train.sbatch with its own words and resources."""

import os
import shlex

from .errors import CommandError

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "train.sbatch")


def quoted(flag):
    """A flag as sbatch reads it: a value with spaces in quotes."""
    name, sign, value = flag.partition("=")
    return f'{name}="{value}"' if sign and any(map(str.isspace, value)) else flag


def check_place(path):
    """Raises CommandError if there is a file already."""
    if os.path.exists(path):
        raise CommandError(f"{path} exists; remove it, or name another file for --slurm")


def write_job(path, words, flags, left_out):
    """Writes a file for sbatch. words: of tessera-run; flags: of sbatch, ["--nodes=2", …], in place of the template's; left_out: of
    the template's, ["--exclusive", …]. Raises OSError, also of a file that is there."""
    wanted = {f"SBATCH {flag.partition('=')[0]}" for flag in [*flags, *left_out]}
    with open(TEMPLATE) as file:
        lines = [line for line in file if line.lstrip("#").split("=")[0].strip() not in wanted]
    header = max(at for at, line in enumerate(lines) if line.startswith("#SBATCH")) + 1
    lines[header:header] = [f"#SBATCH {quoted(flag)}\n" for flag in flags]
    begin = lines.index("set -euo pipefail\n") + 1
    lines[begin:begin] = [f"set -- {shlex.join(words)} \"$@\"\n"]
    with open(path, "x") as file:
        file.writelines(line for line in lines if not line.startswith("#   sbatch "))
