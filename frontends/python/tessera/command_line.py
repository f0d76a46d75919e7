"""The commands of python -m tessera."""

import argparse
import contextlib
import importlib
import json
import os
import sys
import tempfile

from .errors import CannotCompare, CommandError, ExportError, ToolError


# Commands with a parser of their own, which need no torch before they ask for it: {name: (module, what it does)}.
OWN_PARSERS = {"build": (".build", "export and compile in one"), "data": (".data.command", "make, show and mix folders of tokens"),
               "finetune": (".recipe", "data, artifact and run of a fine-tuning, from one file"),
               "export-hf": (".export_hf", "the weights of a checkpoint as a folder of Hugging Face's"),
               "sample": (".sample", "what such a folder writes"), "track": (".track", "give a run's records to a tracker")}


def fail(message, status=1):
    print(f"tessera: error: {message}", file=sys.stderr)
    return status


def fail_usage(message):
    """Of a command line that is wrong: as argparse's own errors, and those of the tools, the status is 2."""
    return fail(message, 2)


def own_parser(name, description):
    """The argparse parser of a command; its flags are not abbreviated."""
    return argparse.ArgumentParser(prog=f"python -m tessera {name}", description=description, allow_abbrev=False,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def add_target(parser):
    parser.add_argument("target", help="module:function, file.py:function, hf:<type>, hf:<folder> or hf:<path of config.json>")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="setting of a hf: configuration")
    parser.add_argument("--batch", type=int, default=2, help="samples of the example of hf: models")
    parser.add_argument("--seq", type=int, default=16, help="tokens of the example of hf: models")
    parser.add_argument("--documents", choices=["on", "auto", "off"], default="off",
                        help="position_ids as an input of a hf: model, by which it keeps documents of one row apart")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and data")
    parser.add_argument("--exporter", choices=["auto", "torchscript", "dynamo"], default="auto",
                        help="of ONNX; auto: the first of them whose file passes all checks")


def parser_of(description):
    parser = argparse.ArgumentParser(prog="python -m tessera", description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    export = commands.add_parser("export", help="write a .pt2 or .onnx file", description=EXPORT,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_target(export)
    export.add_argument("-o", "--output", required=True, help="the file to write: .pt2 or .onnx")
    export.add_argument("--no-weights", action="store_true", help="shapes of parameters only, a file of kilobytes (.pt2)")
    export.add_argument("--auto", action="store_true", help="keep open whatever dimension can be, not only samples and positions (.pt2)")
    export.add_argument("--evaluation", action="store_true", help="the model as it is after eval(), to evaluate trained weights (.pt2)")
    export.add_argument("--keep-dropout", action="store_true", help="do not set dropout rates to 0 (.onnx; .pt2 keeps them)")
    export.add_argument("--check", action=argparse.BooleanOptionalAction, default=None,
                        help="compare what was exported with the module (default: unless that takes long)")
    verify = commands.add_parser("verify", help="compare the first steps with PyTorch's", description=VERIFY,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    add_target(verify)
    verify.add_argument("--via", choices=["pt2", "onnx"], default="pt2", help="what the model is exported as")
    verify.add_argument("--file", metavar="FILE", help="check this exported .pt2 or .onnx file instead of exporting")
    verify.add_argument("--perturb", action="store_true", help="add noise to the weights")
    verify.add_argument("--loss", default="cross-entropy", help="cross-entropy, mse or output:<name>")
    verify.add_argument("--ignore-index", type=int, default=-100)
    verify.add_argument("--label-smoothing", type=float, default=0.0)
    verify.add_argument("--steps", type=int, default=3, help="AdamW steps whose losses are compared; gradients: the first's")
    verify.add_argument("--tolerance", type=float, default=1e-4, help="of a gradient, relative to its largest element")
    verify.add_argument("--json", metavar="FILE", help="write the result there")
    verify.add_argument("--keep", metavar="FOLDER", help="keep the files there: model, data, artifact, run")
    for name, (_, words) in OWN_PARSERS.items():
        commands.add_parser(name, help=words, add_help=False)
    return parser


EXPORT = """Exports a PyTorch model for training: by the ending of the file as a program of torch.export (.pt2) or as ONNX (.onnx),
with a record of what ONNX loses (docs/onnx.md). A model whose file would train otherwise than in PyTorch is refused.

  python -m tessera export hf:gpt2 -o gpt2.pt2 --batch 8 --seq 128 --set n_layer=4 --set n_embd=128 --set n_head=4
  python -m tessera export hf:llama-8b/config.json -o llama.pt2 --no-weights
  tessera-compile gpt2.pt2 -o gpt2.tessera --batch 8 --seq 128"""

VERIFY = """Checks that a PyTorch model trains in Tessera as it does in PyTorch: exports it, compiles it, runs the first optimizer
steps in both from the same weights on the same batch, and compares the losses and every gradient by name. The batch has
the sizes and the integers of the example inputs, the same in every step (hf: random tokens of --batch and --seq), floats from
a normal distribution, a tenth of the added loss's targets ignored. Dropout rates are 0 in the comparison, those in the code,
too; other random numbers are Tessera's on both sides. With -- --precision bf16 Tessera may be as far from PyTorch's fp32 as
PyTorch under torch.autocast is.

The last line is the verdict. Exit status: 0 the same, 1 DIFFERENT, 2 could not be compared, with the reason.

  python -m tessera verify net.py:build --loss mse
  python -m tessera verify hf:qwen2 --set num_hidden_layers=2 --set hidden_size=128 -- --mesh shard=2 --strategy zero3
  python -m tessera verify net.py:build --file net.onnx      (a file that was exported before, and its weights)

Two fp32 programs add in different orders: losses may differ by 1e-5 of themselves and gradients by --tolerance of their
largest element, and by more where PyTorch's own are as far from those in float64. Fresh weights are checked as they are;
--perturb adds noise, so that no weight is special (no bias 0, no scale 1)."""


def main(words, description):
    if words[:1] and words[0] in OWN_PARSERS:
        return run_own(*words)
    at = words.index("--") if "--" in words else len(words)
    parser = parser_of(description)
    options, unknown = parser.parse_known_args(words[:at])
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}"
                     + ("; flags of tessera-compile come after --" if options.command == "verify" else ""))
    flags = words[at + 1:]
    try:
        import torch  # noqa: F401
        if options.command == "export":
            if flags:
                return fail_usage("export passes nothing on to tessera-compile")
            return export(options)
        if options.steps < 1:
            return fail_usage("--steps must be at least 1")
        return verify(options, flags)
    except ImportError as why:
        return fail(why)
    except OSError as why:  # of --keep and --json: no verdict, whose status is 0 or 1
        return fail_usage(f"{why.filename}: {why.strerror}" if why.filename else why)


def run_own(name, *words):
    """The exit status of a command with a parser of its own."""
    try:
        return importlib.import_module(OWN_PARSERS[name][0], __package__).main(list(words))
    except (CommandError, ToolError, ImportError) as why:
        return fail(str(why).strip())
    except OSError as why:
        return fail(f"{why.filename}: {why.strerror}" if why.filename else why)
    except KeyboardInterrupt:
        return fail("interrupted", 130)


def load(options, weights=True):
    """(model, inputs, names) of the target."""
    import torch

    from . import targets
    torch.manual_seed(options.seed)
    return targets.load_target(options.target, options.set, options.batch, options.seq, weights=weights,
                               documents=options.documents)


def export(options):
    """The exit status."""
    kind = os.path.splitext(options.output)[1]
    if kind not in (".pt2", ".onnx"):
        return fail_usage(f"{options.output} ends neither in .pt2 nor in .onnx")
    if kind == ".onnx" and (options.no_weights or options.auto or options.evaluation):
        return fail_usage("--no-weights, --auto and --evaluation are for .pt2 files")
    try:
        print((export_program if kind == ".pt2" else export_onnx)(options))
    except ExportError as why:
        return fail(why)
    return 0


def export_program(options):
    """Writes a program; returns a line on it."""
    import warnings

    from .program import export
    model, inputs, _ = load(options, not options.no_weights)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        made = export(model, inputs, dynamic="auto" if options.auto else None, check=options.check is not False,
                      evaluation=options.evaluation)
    for note in notes:
        print(f"note: {note.message}")
    made.save(options.output)
    count = sum(parameter.numel() for parameter in model.parameters())
    shapes = ", ".join(f"{name}[{', '.join(map(open_size, enumerate(tensor.shape)))}]" for name, tensor in made.inputs.items())
    return (f"{options.output}: {count} parameters{'' if made.has_weights else ' without values'}, inputs {shapes}, "
            f"{os.path.getsize(options.output)} bytes")


def open_size(entry):
    """(axis, size) as text: of a symbol that torch.export chose, what tessera-compile calls it."""
    axis, size = entry
    return ("batch", "seq")[axis] if isinstance(size, str) and axis < 2 else str(size)


def export_onnx(options):
    """Writes an ONNX file; returns a line on it."""
    import onnx

    from . import onnx as entrance
    model, inputs, names = load(options)
    found = entrance.export(model, inputs, names, options.output, exporter=options.exporter,
                            keep_dropout=options.keep_dropout, evaluate=options.check)
    shapes = entrance.exporters.shapes_of(onnx.load(options.output, load_external_data=False))
    count = sum(parameter.numel() for parameter in model.parameters())
    return f"{options.output}: {count} parameters, inputs {shapes}, by the {found['exporter'].replace(',', ' exporter of', 1)}"


def verify(options, flags):
    """The exit status."""
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="tessera-verify-"))
        try:
            status, line, result = check(options, flags, os.path.abspath(folder))
        except ImportError:
            raise
        except Exception as why:  # whatever a damaged file or an odd model makes of the tools: that is no difference
            status, line = 2, f"not compared: {type(why).__name__}: {' '.join(str(why).split())[:300]}"
            result = {"result": "not compared", "reason": line}
    print(line, flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")
    return status


def check(options, flags, folder):
    """(exit status, verdict's line, what --json writes)."""
    from . import training
    from .check import Check
    loss = training.Loss(options.loss, options.ignore_index, options.label_smoothing)
    try:
        model, inputs, names = load(options)
        if not model.training:  # parts that are meant to be in evaluation mode stay so
            model.train()
        if options.perturb:
            training.perturb(model, options.seed)
        job = Check(model, inputs, names, folder, loss, options.steps, options.seed, tolerance=options.tolerance,
                    via=options.via, draw=options.target.startswith("hf:"))
        if options.file:
            job.use(os.path.abspath(options.file))
        else:
            job.export(options.exporter, say=print)
        try:
            verdict = job.run(flags)
        finally:
            for note in job.notes:
                print(f"note: {note}")
    except (CannotCompare, ExportError) as why:
        where, reason = getattr(why, "stage", "model"), str(why)
        if "\n" in reason:  # all that a tool said; the verdict is one line
            print(reason)
            reason = why.short
        line = f"not compared: {'the exporter refuses it: ' if where == 'export' else ''}{reason}"
        return 2, line, {"result": "not compared", "stage": where, "reason": str(why)}
    count = sum(parameter.numel() for parameter in model.parameters())
    rates = job.dropout + job.dropout_in_code
    print(f"{job.exporter}; {count} parameters, {options.steps} steps of {job.samples} samples"
          + (f"; {rates} dropout rate{'' if rates == 1 else 's'} 0" if rates else ""))
    for name, error in sorted(verdict.errors.items(), key=lambda item: -item[1])[:0 if verdict.same else 10]:
        print(f"  {error:8.1e}  {name}")
    return 0 if verdict.same else 1, verdict.line(), verdict.summary() | {"dropout_rates_set_to_0": rates}
