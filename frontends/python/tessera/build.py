"""python -m tessera build: exports a model and compiles it."""

import argparse
import json
import os
import sys
import warnings

from .errors import CompileError, ExportError, ToolError

HELP = """Exports a model and compiles its training step: what "export" and tessera-compile do one after the other. Flags that are not
listed here are those of tessera-compile (tessera-compile --help).

  python -m tessera build hf/ --ranks 2 --seq 2048 --global-batch 32 -o ft.tessera
  tessera-run ft.tessera --weights hf/ --data data/ --epochs 3 --export-hf out/ --out runs/ft

A folder of Hugging Face's is compiled without its weights, which tessera-run --weights reads. Of another target the program,
which has the weights that a run begins with, is kept beside the artifact, as net.pt2 for net.tessera."""


def parser_of():
    parser = argparse.ArgumentParser(prog="python -m tessera build", description=HELP, allow_abbrev=False,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="module:function, file.py:function, hf:<type>, or a folder of Hugging Face's")
    parser.add_argument("-o", "--output", required=True, help="the artifact to write")
    parser.add_argument("--ranks", type=int, help="so many ranks that split parameters (--mesh fsdp=N --strategy zero3)")
    parser.add_argument("--seq", type=int, help="positions of a row (default of a language model: those of --data, else 2048, or "
                                                "what the model has if that is less)")
    parser.add_argument("--data", help="the folder of \"python -m tessera data\" that it will train on, for its --seq")
    parser.add_argument("--documents", choices=["on", "auto", "off"], default="auto",
                        help="position_ids as an input, by which a language model keeps documents of one row apart (default: if it does)")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="setting of a hf: configuration")
    parser.add_argument("--no-weights", action="store_true", help="values by rule, or those of tessera-run --weights")
    parser.add_argument("--keep-program", metavar="FILE", help="where the program is kept (.pt2)")
    return parser


def main(words):
    """The exit status."""
    options, flags = parser_of().parse_known_args(words)
    try:
        return build(options, flags)
    except (ExportError, ImportError) as why:
        print(f"tessera: error: {why}", file=sys.stderr)
        return 1
    except CompileError as why:
        print(str(why).strip(), file=sys.stderr)
        return why.status
    except ToolError as why:
        print(str(why).strip(), file=sys.stderr)
        return 1


def build(options, flags):
    """The exit status. flags: of tessera-compile."""
    from . import targets
    from .program import export
    is_language_model = targets.is_hugging_face(options.target)
    is_folder = is_language_model and targets.has_files_of_weights(options.target.removeprefix("hf:"))
    if options.ranks is not None:
        flags = ranks_of(options.ranks, flags)
    has_weights = not (options.no_weights or is_folder)
    model, inputs, _ = targets.load_target(options.target, options.set, weights=has_weights,
                                           documents=options.documents if is_language_model else "off")
    sequence = options.seq or (sequence_of(options, model) if is_language_model else None)
    if sequence:
        flags = ["--seq", str(sequence), *flags]
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        program = export(model, inputs)
    for note in notes:
        print(f"note: {note.message}")
    if program.evaluation_differs is None and "--evaluate" not in flags:
        flags = [*flags, "--evaluate"]
    path = options.keep_program or os.path.splitext(options.output)[0] + ".pt2"
    keeps = has_weights or options.keep_program
    if not path.endswith(".pt2"):
        raise ExportError(f"--keep-program {path} does not end in .pt2")
    if keeps and os.path.exists(path):
        raise ExportError(f"{path}, which the program would be kept in, exists; remove it, or name another by --keep-program")
    return compile_program(program, path if keeps else None, options.output, flags)


def compile_program(program, path, output, flags):
    """Compiles a program, and keeps it at `path` if there is one. Returns the exit status."""
    import subprocess
    import tempfile

    from . import tools
    from .signals import ended_in_order
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        saved = path or os.path.join(folder, "program.pt2")
        program.save(saved)
        command = [tools.find_tool("tessera-compile"), saved, "-o", output, *flags]
        print("tessera-compile", os.path.basename(saved), *command[2:], flush=True)
        status = subprocess.run(command).returncode
        if status and path:
            os.remove(path)
        return status


def ranks_of(ranks, flags):
    """The flags of tessera-compile with a mesh of so many ranks. Raises ExportError."""
    if ranks < 1:
        raise ExportError(f"--ranks must be at least 1, got {ranks}")
    if any(flag.split("=")[0] == "--mesh" for flag in flags):
        raise ExportError("--ranks and --mesh both say how many ranks there are: give one of them")
    if ranks == 1:
        return flags
    strategy = [] if any(flag.split("=")[0] == "--strategy" for flag in flags) else ["--strategy", "zero3"]
    return ["--mesh", f"fsdp={ranks}", *strategy, *flags]


def sequence_of(options, model):
    """Positions of a row: those of the data, else 2048 or as many as the model has."""
    if options.data:
        path = os.path.join(options.data, "manifest.json")
        try:
            with open(path, encoding="utf-8") as file:
                return int(json.load(file)["sequence"])
        except (OSError, ValueError, KeyError, TypeError) as why:
            raise ExportError(f"--data: {path} does not say how long its rows are ({type(why).__name__})") from why
    config = model.model.config
    config = config.get_text_config() if hasattr(config, "get_text_config") else config
    most = getattr(config, "max_position_embeddings", None)
    sequence = min(2048, most) if isinstance(most, int) and most > 0 else 2048
    print(f"{sequence} positions a row, for want of --seq or --data")
    return sequence
