"""python -m tessera export-hf: the weights of a checkpoint as a folder of Hugging Face's."""

import os

from . import tools
from .command_line import own_parser
from .errors import CommandError
from .run import Run
from .signals import call

HELP = """Writes the weights of a checkpoint as a folder of Hugging Face's: tessera-run --export-only with the artifact, and the
folder whose files are followed, that the run's records name. Further flags (--export-dtype, --export-lora, …) are passed on.

  python -m tessera export-hf runs/ft/checkpoints/best out/"""


def main(words):
    """The exit status. Raises CommandError, ToolError."""
    parser = own_parser("export-hf", HELP)
    parser.add_argument("checkpoint", help="a checkpoint, or the folder of a run: its newest one")
    parser.add_argument("output", help="the folder to make")
    parser.add_argument("--artifact", help="the compiled step, if it is no longer where the run had it")
    options, flags = parser.parse_known_args(words)
    return call([tools.find_tool("tessera-run"), options.artifact or artifact_of(options.checkpoint), "--resume", options.checkpoint,
                 "--export-only", "--export-hf", options.output, *flags])


def artifact_of(checkpoint):
    """The path of the artifact that the run of a checkpoint was trained with. Raises CommandError."""
    place = os.path.abspath(checkpoint)
    for folder in (place, os.path.dirname(place), os.path.dirname(os.path.dirname(place))):
        if os.path.isfile(os.path.join(folder, "run.json")):
            try:
                path = Run(folder).settings["artifact"]["path"]
            except (OSError, ValueError, KeyError, TypeError) as why:
                raise CommandError(f"{folder}/run.json does not name an artifact; --artifact does") from why
            if not os.path.isfile(path):
                raise CommandError(f"the artifact of {folder} was {path}, which is not there; --artifact says where it is now")
            return path
    raise CommandError(f"{checkpoint} is no checkpoint in the folder of a run; --artifact names its artifact")
