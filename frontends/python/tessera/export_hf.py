"""python -m tessera export-hf: the weights of a checkpoint as a folder of Hugging Face's."""

import argparse
import os
import subprocess
import sys

from .errors import ToolError
from .run import Run

HELP = """Writes the weights of a checkpoint as a folder of Hugging Face's: tessera-run --export-only with the artifact, and the
folder whose files are followed, that the run's records name. Further flags (--export-dtype, --export-lora, …) are passed on.

  python -m tessera export-hf runs/ft/checkpoints/best out/"""


def main(words):
    """The exit status."""
    parser = argparse.ArgumentParser(prog="python -m tessera export-hf", description=HELP, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", help="a checkpoint, or the folder of a run: its newest one")
    parser.add_argument("output", help="the folder to make")
    parser.add_argument("--artifact", help="the compiled step, if it is no longer where the run had it")
    options, flags = parser.parse_known_args(words)
    try:
        artifact = options.artifact or artifact_of(options.checkpoint)
        from . import tools
        return subprocess.run([tools.find_tool("tessera-run"), artifact, "--resume", options.checkpoint, "--export-only",
                               "--export-hf", options.output, *flags]).returncode
    except (ToolError, ValueError) as why:
        print(f"tessera: error: {why}", file=sys.stderr)
        return 1


def artifact_of(checkpoint):
    """The path of the artifact that the run of a checkpoint was trained with. Raises ValueError."""
    place = os.path.abspath(checkpoint)
    for folder in (place, os.path.dirname(place), os.path.dirname(os.path.dirname(place))):
        if os.path.isfile(os.path.join(folder, "run.json")):
            try:
                path = Run(folder).settings["artifact"]["path"]
            except (OSError, ValueError, KeyError, TypeError) as why:
                raise ValueError(f"{folder}/run.json does not name an artifact; --artifact does") from why
            if not os.path.isfile(path):
                raise ValueError(f"the artifact of {folder} was {path}, which is not there; --artifact says where it is now")
            return path
    raise ValueError(f"{checkpoint} is no checkpoint in the folder of a run; --artifact names its artifact")
