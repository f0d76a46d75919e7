"""python -m tessera build: exports a model and compiles it."""

import argparse
import contextlib
import os
import re
import shlex
import tempfile
import warnings

from .command_line import own_parser
from .errors import CommandError, ExportError
from .options import COMPILE, SWITCH

HELP = """Exports a model and compiles its training step: what "export" and tessera-compile do together. All flags of
tessera-compile can be given, too; those with an optional value as --report=FILE and --fit=BYTES.

  python -m tessera build hf/ --ranks 2 --seq 2048 --global-batch 32 -o ft.tessera
  tessera-run ft.tessera --weights hf/ --data data/ --epochs 3 --export-hf out/ --out runs/ft

A folder of Hugging Face's with .safetensors files is compiled without its weights, which tessera-run --weights reads. Of another
target the program, which has the weights that a run begins with, is kept beside the artifact, as net.pt2 for net.tessera."""

# Flags of tessera-compile that options.py does not have, as a word of a command each.
WORDS = ("--report", "--fit", "--timing", "--remarks", "--verbose")
OWN = ("--seq", "--output")  # of this command


def parser_of():
    parser = own_parser("build", HELP)
    parser.add_argument("target", help="module:function, file.py:function, hf:<type>, or a folder of Hugging Face's")
    parser.add_argument("-o", "--output", required=True, help="the artifact to write")
    parser.add_argument("--ranks", type=int, help="the number of ranks, which split parameters (--mesh fsdp=N --strategy zero3)")
    parser.add_argument("--seq", type=int, help="positions of a row (default of a language model: those of --data, else 2048, or "
                                                "what the model has if that is less)")
    parser.add_argument("--data", help="the folder of \"python -m tessera data\" that it will train on, for its --seq")
    parser.add_argument("--documents", choices=["on", "auto", "off"], default="auto",
                        help="position_ids as an input, by which a language model keeps documents of one row apart (default: if it does)")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="setting of a hf: configuration")
    parser.add_argument("--seed", type=int, default=0, help="of random weights")
    parser.add_argument("--no-weights", action="store_true", help="values by rule, or those of tessera-run --weights")
    parser.add_argument("--keep-program", metavar="FILE", help="where the program is kept (.pt2)")
    compiler = parser.add_argument_group("of tessera-compile, whose --help describes them")
    for flag, form in COMPILE.values():
        if flag not in OWN:
            compiler.add_argument(flag, dest=flag, default=[], help=argparse.SUPPRESS,
                                  **({"action": "append_const", "const": flag} if form == SWITCH
                                     else {"action": "append", "nargs": 2 if flag == "--betas" else 1}))
    return parser


def main(words):
    """The exit status. Raises CommandError, ToolError, ImportError, OSError."""
    flags = [word for word in words if word.split("=")[0] in WORDS]
    options = parser_of().parse_args([word for word in words if word not in flags])
    for flag, form in COMPILE.values():
        for given in getattr(options, flag, []):
            flags += [flag] if form == SWITCH else [flag, *given]
    return build(options, flags)


def build(options, flags):
    """The exit status. flags: of tessera-compile."""
    import torch

    from . import targets
    from .documents import follows_the_longest
    from .program import export
    is_language_model = targets.is_hugging_face(options.target)
    is_folder = is_language_model and targets.has_safetensors(options.target.removeprefix("hf:"))
    if options.documents == "auto" and not is_language_model:
        options.documents = "off"
    if options.ranks is not None:
        flags = ranks_of(options.ranks, flags)
    has_weights = not (options.no_weights or is_folder)
    program_path = place_of_program(options, has_weights)
    torch.manual_seed(options.seed)
    samples = 1 if has_one_sample(flags) else 2  # of which torch.export makes a constant

    def load(**sizes):
        return targets.load_target(options.target, options.set, weights=has_weights, documents=options.documents, batch=samples, **sizes)

    model, inputs, _ = load()
    sequence = options.seq or (sequence_of(options, model) if is_language_model else None)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        program = export(model, inputs)
        if sequence and has_own_length(program, sequence):
            notes.clear()
            model, inputs, _ = load(sequence=sequence, say=lambda _: None)
            program = export(model, inputs)
    for note in notes:
        print(f"note: {note.message}")
    if sequence and "position_ids" in program.inputs and is_language_model and follows_the_longest(model.model.config, sequence):
        raise ExportError(f"with LongRoPE, rotary positions of all documents of a batch follow the longest one, and rows of {sequence} are "
                          "longer than the model's first length: --documents off gives each row one length (data build --pack none)")
    if sequence:
        flags = ["--seq", str(sequence), *flags]
    if is_language_model and not is_folder:
        flags = with_frozen(flags, saved_buffers(program))
    if program.evaluation_differs is None and "--evaluate" not in flags:
        flags = [*flags, "--evaluate"]
    status = compile_program(program, program_path, options.output, flags)
    if not status:
        weights = ["--weights", options.target.removeprefix("hf:")] if is_folder else []
        command = ["tessera-run", options.output, *weights, "--data", options.data or "DATA", "--out", "RUN"]
        print("train it with:", shlex.join(command))
    return status


def saved_buffers(program):
    """The floating-point buffers that a program reads and does not change, and that save_pretrained writes."""
    signature = program.program.graph_signature
    return [spec.target for spec in signature.input_specs
            if spec.target in signature.buffers and spec.persistent and spec.target not in signature.buffers_to_mutate.values()
            and program.program.state_dict[spec.target].is_floating_point()
            and any(node.name == spec.arg.name and node.users for node in program.program.graph.nodes)]


def with_frozen(flags, names):
    """The flags of tessera-compile, by which tensors of these names are part of the state, too: a folder that a run exports then
    has them."""
    if not names:
        return flags
    pattern = "^(" + "|".join(map(re.escape, names)) + ")$"
    if "--frozen" not in flags:
        return [*flags, "--frozen", pattern]
    at = flags.index("--frozen") + 1
    return [*flags[:at], f"({flags[at]})|{pattern}", *flags[at + 1:]]


def has_one_sample(flags):
    """Whether a micro-batch has one sample, by the flags of tessera-compile."""
    given = {flag: value for flag, value in zip(flags, flags[1:]) if flag in ("--batch", "--global-batch")}
    return given.get("--batch", given.get("--global-batch")) == "1"


def has_own_length(program, sequence):
    """Whether a program has the positions of its example, and these are others."""
    lengths = {tensor.shape[1] for tensor in program.inputs.values() if len(tensor.shape) > 1}
    return any(isinstance(length, int) and length != sequence for length in lengths)


def place_of_program(options, has_weights):
    """Where the program is kept; None: nowhere. Raises CommandError."""
    if not has_weights and not options.keep_program:
        return None
    path = options.keep_program or os.path.splitext(options.output)[0] + ".pt2"
    if not path.endswith(".pt2"):
        raise CommandError(f"--keep-program {path} does not end in .pt2")
    # Beside an artifact that is made again lies the program that it was made from.
    if os.path.exists(path) and (options.keep_program or not os.path.exists(options.output)):
        raise CommandError(f"{path}, which the program would be kept in, exists; remove it, or name another by --keep-program")
    return path


def compile_program(program, path, output, flags):
    """Compiles a program, and keeps it at `path` if there is one; if that fails, what was there stays. Returns the exit status."""
    from . import tools
    from .signals import call, ended_in_order
    with ended_in_order(), tempfile.TemporaryDirectory(prefix="tessera-", dir=os.path.dirname(os.path.abspath(output))) as folder:
        saved, before = path or os.path.join(folder, "program.pt2"), os.path.join(folder, "before.pt2")
        status = 1
        try:
            if path and os.path.exists(path):
                os.rename(path, before)
            program.save(saved)
            command = [tools.find_tool("tessera-compile"), saved, "-o", output, *flags]
            print(shlex.join(["tessera-compile", os.path.basename(saved), *command[2:]]), flush=True)
            status = call(command)
        finally:
            if status and path:
                with contextlib.suppress(OSError):
                    os.remove(path)
                if os.path.exists(before):
                    os.rename(before, path)
        return status


def ranks_of(ranks, flags):
    """The flags of tessera-compile with a mesh of this number of ranks. Raises CommandError."""
    if ranks < 1:
        raise CommandError(f"--ranks must be at least 1, got {ranks}")
    if "--mesh" in flags:
        raise CommandError("--ranks and --mesh both say how many ranks there are: give one of them")
    if ranks == 1:
        return flags
    return ["--mesh", f"fsdp={ranks}", *([] if "--strategy" in flags else ["--strategy", "zero3"]), *flags]


def sequence_of(options, model):
    """Positions of a row: those of the data, else 2048 or as many as the model has. Raises CommandError."""
    from .targets import text_config
    config = text_config(model.model.config)
    if options.data:
        return sequence_of_data(options.data, getattr(config, "vocab_size", None))
    most = getattr(config, "max_position_embeddings", None)
    sequence = min(2048, most) if isinstance(most, int) and most > 0 else 2048
    print(f"{sequence} positions a row, for want of --seq or --data")
    return sequence


def sequence_of_data(folder, vocabulary):
    """Positions of the rows of a folder of data, or of a mixture. Raises CommandError."""
    from .data import manifest
    found = manifest.read(folder)
    if found["format"] == manifest.FORMAT and vocabulary and found["largest_token"] >= vocabulary:
        raise CommandError(f"--data {folder} has tokens up to {found['largest_token']}, and the model {vocabulary}: it is of another "
                           "tokenizer, or model.resize_token_embeddings(len(tokenizer)) was left out")
    return found["sequence"]
