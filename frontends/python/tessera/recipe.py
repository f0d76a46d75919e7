"""python -m tessera finetune: the three commands of a fine-tuning, from one file."""

import json
import os
import shlex
import sys

from . import tools
from .command_line import own_parser
from .errors import CommandError, in_a_line, need
from .options import COMPILE, PAIR
from .signals import call
from .whole_file import sha256_of, whole_file

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

A list gives a flag several times, true one without a value, false none; betas are a text, 0.9 0.95. What is there already
stays: data that the same command would make, and an artifact that the same words made of the same model and data. The run
goes on where it was, with --resume auto."""

SECTIONS = ("data", "build", "run", "slurm")
PAIRS = [flag.removeprefix("--") for flag, form in COMPILE.values() if form == PAIR]


class Recipe:
    """The commands of a recipe. Raises CommandError where it has other keys or values."""

    def __init__(self, values, path):
        self.path = path
        if not isinstance(values, dict):
            raise CommandError(f"{path}: expected 'model' and sections {', '.join(SECTIONS)}")
        if unknown := [key for key in values if key not in ("model", *SECTIONS)]:
            raise CommandError(f"{path}: unknown section '{unknown[0]}', expected model, {', '.join(SECTIONS)}")
        self.model = values.get("model")
        if not isinstance(self.model, str) or not self.model:
            raise CommandError(f"{path}: 'model' is missing or not a text")
        self.sections = {}
        for name in SECTIONS:
            section = values.get(name, {})
            if not isinstance(section, dict):
                raise CommandError(f"{path}: section '{name}' is {section!r}, expected flags with values")
            self.sections[name] = {}
            for key, value in section.items():
                flag = key.removeprefix("--").replace("_", "-")
                if flag in self.sections[name]:
                    raise CommandError(f"{path}: section '{name}' has '{flag}' twice")
                self.sections[name][flag] = value
        for name, needed in (("data", ("input", "seq", "output")), ("build", ("output",)), ("run", ("out",))):
            for key in needed:
                if key not in self.sections[name]:
                    raise CommandError(f"{path}: section '{name}' has no '{key}'")
                value = self.sections[name][key]
                if not (is_text(value) or key == "input" and isinstance(value, list) and value and all(map(is_text, value))):
                    raise CommandError(f"{path}: '{key}' of '{name}' is {value!r}, expected a text")

    def flags(self, section, left_out=()):
        """The words of a section's flags. Raises CommandError for a value of another type."""
        words = []
        for key, value in self.sections[section].items():
            for each in [] if key in left_out else value if isinstance(value, list) else [value]:
                if not isinstance(each, str) or not each:
                    raise CommandError(f"{self.path}: '{key}' of '{section}' is {each!r}, expected a text, a number or true")
                if each.lower() == "true":
                    words.append(f"--{key}")
                elif each.lower() != "false":
                    words += [f"--{key}", *each.split()] if key in PAIRS else [f"--{key}={each}"]
        return words

    def inputs(self):
        given = self.sections["data"]["input"]
        return given if isinstance(given, list) else [given]

    def data(self):
        return ["data", "build", *self.inputs(), "--model", self.model, *self.flags("data", ("input",))]

    def build(self):
        given = self.sections["build"]
        seq = [] if "seq" in given or "data" in given else [f"--data={self.sections['data']['output']}"]
        return ["build", self.model, *seq, *self.flags("build")]

    def run(self):
        given = self.sections["run"]
        defaults = [f"--{key}={value}" for key, value in (("weights", self.model), ("data", self.sections["data"]["output"]), ("resume", "auto"))
                    if key not in given]
        return [self.sections["build"]["output"], *defaults, *self.flags("run")]

    def left_out(self, section):
        """The flags that a section has as false."""
        return [f"--{key}" for key, value in self.sections[section].items() if isinstance(value, str) and value.lower() == "false"]

    def made_from(self):
        """What an artifact follows from, as a text: the words of its command, and the compiler, the model's configuration, the data
        and files that the words name. Raises ToolError."""
        given = [value for key, value in self.sections["build"].items() if key != "output" and is_text(value) and os.path.isfile(value)]
        files = [tools.find_tool("tessera-compile"), os.path.join(self.model, "config.json"),
                 os.path.join(self.sections["data"]["output"], "manifest.json"), *given]
        return json.dumps({"build": self.build(), **{path: sha256_of(path) if os.path.exists(path) else None for path in files}}, indent=1)

    def record(self):
        """The file beside the artifact that says what it was made from."""
        return self.sections["build"]["output"] + ".recipe"

    def stamp(self):
        """Size and time of the artifact, as a line. Raises OSError."""
        found = os.stat(self.sections["build"]["output"])
        return f"\n{found.st_size} bytes, {found.st_mtime_ns} ns\n"

    def keep_record(self, made_from):
        """Says beside the artifact what it was made from."""
        with whole_file(self.record()) as place, open(place, "w", encoding="utf-8") as file:
            file.write(made_from + self.stamp())

    def is_built(self):
        """Whether the artifact is there and was made from the same by an earlier call."""
        try:
            with open(self.record(), encoding="utf-8") as file:
                return file.read() == self.made_from() + self.stamp()
        except OSError:
            return False


def is_text(value):
    """Whether a value can be a name."""
    return isinstance(value, str) and value != "" and value.lower() not in ("true", "false")


def read(path):
    """The Recipe of a file. Raises CommandError."""
    yaml = need("yaml", "pyyaml")

    class Loader(yaml.BaseLoader):
        """All values but nothing are texts, as they are written: 12:00:00 is not a number, and off is not false."""

        def construct_scalar(self, node):
            return None if node.style is None and node.value in ("", "~", "null") else super().construct_scalar(node)

        def construct_mapping(self, node, deep=False):
            names = [key.value for key, _ in node.value]
            for key, _ in node.value:
                if names.count(key.value) > 1:
                    raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is given twice", key.start_mark)
            mapping = super().construct_mapping(node, deep)
            if None in mapping:
                raise yaml.constructor.ConstructorError(None, None, "a key has no name", node.start_mark)
            return mapping

    try:
        with open(path, encoding="utf-8") as file:
            return Recipe(yaml.load(file, Loader), path)
    except OSError as why:
        raise CommandError(f"{path}: {why.strerror}") from why
    except (yaml.YAMLError, UnicodeDecodeError) as why:
        raise CommandError(f"{path}: {in_a_line(why)}") from why


def main(words):
    """The exit status. Raises CommandError, ToolError, OSError."""
    parser = own_parser("finetune", HELP)
    parser.add_argument("recipe", help="a YAML file")
    parser.add_argument("--print", action="store_true", help="print the commands, and run none")
    parser.add_argument("--slurm", metavar="FILE", help="write the third command as a job for sbatch, instead of running it")
    options = parser.parse_args(words)
    return follow(read(options.recipe), options)


def follow(recipe, options):
    """The exit status of the first command that fails, or of the last."""
    from .slurm import check_place, write_job
    if options.slurm and not options.print:
        check_place(options.slurm)
    for words in (recipe.data(), recipe.build()):
        print(shlex.join(["python", "-m", "tessera", *words]), flush=True)
        if options.print:
            continue
        if words[0] == "build" and recipe.is_built():
            print(f"{recipe.sections['build']['output']} is already what this command makes, and stays", flush=True)
            continue
        made_from = recipe.made_from() if words[0] == "build" else None
        if status := call([sys.executable, "-m", "tessera", *words]):
            return status
        if made_from:
            recipe.keep_record(made_from)
    if options.slurm:
        if not options.print:
            write_job(options.slurm, recipe.run(), recipe.flags("slurm"), recipe.left_out("slurm"))
        print(shlex.join(["sbatch", options.slurm]))
        return 0
    print(shlex.join(["tessera-run", *recipe.run()]), flush=True)
    return 0 if options.print else call([tools.find_tool("tessera-run"), *recipe.run()])
