"""What is compared: the grid of configurations, and the checks of the command line before anything is compiled."""

import argparse
import itertools
import os
import shlex
import subprocess


# What a configuration is made of beside its sizes: the column of the results, which is also the flag of tessera-compile, and what one
# of them is called.
CHOICES = (("strategy", "strategy"), ("precision", "precision"), ("remat", "policy"), ("attention", "way"))


class Configuration:
    """One point of the grid. What was not asked for is None, and left to tessera-compile."""

    def __init__(self, sequence, batch, accumulate, **choices):
        self.sequence, self.batch, self.accumulate, self.choices = sequence, batch, accumulate, choices
        self.sizes = [f"b{batch}", f"a{accumulate}"]  # as names have them; grid() puts lengths before, if there are several

    @property
    def chosen(self):
        """(column, value) of each choice that was asked for."""
        return [(column, value) for column, value in self.choices.items() if value is not None]

    @property
    def flags(self):
        return [*(word for column, value in self.chosen for word in ("--" + column, value)), *size_flags(self.sequence)]

    @property
    def name(self):
        return "-".join([*(value.replace("/", "_") for _, value in self.chosen), *self.sizes])

    @property
    def short_name(self):
        """How tables and charts call it."""
        return " ".join([*(value for _, value in self.chosen), *self.sizes])

    @property
    def label(self):
        return ", ".join([*(value if column == "strategy" else f"{column} {value}" for column, value in self.chosen),
                          *([f"sequence {self.sequence}"] if len(self.sizes) > 2 else []), f"batch {self.batch}",
                          f"accumulate {self.accumulate}"])


def positive(text):
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got '{text}'")
    return int(text)


def numbers(text):
    values = [positive(part) for part in text.split(",")]
    if len(set(values)) != len(values):
        raise argparse.ArgumentTypeError(f"'{text}' has a value twice")
    return values


def words(what):
    def read(text):
        values = text.split(",")
        if len(set(values)) != len(values):
            raise argparse.ArgumentTypeError(f"'{text}' has a {what} twice")
        return values
    return read


def mesh(text):
    axes = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or name in axes or not size.isdigit() or int(size) < 1:
            raise argparse.ArgumentTypeError(f"expected <axis>=<n>[,…] as --mesh of tessera-compile, got '{text}'")
        axes[name] = int(size)
    return axes


def parser():
    result = argparse.ArgumentParser(
        prog="tessera-compare", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Compiles and runs a model under every combination of strategy, precision, recomputation, attention, sequence "
                    "length, batch size and accumulation, and shows throughput, memory, communication and utilisation side by side.",
        epilog="Examples:\n"
               "  tessera-compare model.onnx --strategies ddp,zero3 --batch-sizes 2,4,8 --accumulate 1,2,4 --ranks 2 \\\n"
               "      --seq 256 --steps 50 --data text/ --out results/\n"
               "  tessera-compare model.onnx --strategies ddp,zero3 --precision fp32,bf16 --remat none,full \\\n"
               "      --batch-sizes 8,16 --seq 1024 --ranks 8 --plan-only --target h100x8 --out plan/")
    result.add_argument("model", help="the model: .pt2, .onnx, .onnxtxt or .mlir")
    result.add_argument("--strategies", type=words("strategy"), default=["ddp", "zero3"], metavar="LIST", dest="strategy",
                        help="strategies of tessera-compile (default: ddp,zero3)")
    for column, what in CHOICES[1:]:
        result.add_argument("--" + column, type=words(what), default=[None], metavar="LIST",
                            help=f"values of tessera-compile's --{column} (default: one, its default)")
    result.add_argument("--batch-sizes", type=numbers, required=True, metavar="LIST",
                        help="samples of one micro-batch, over all ranks")
    result.add_argument("--accumulate", type=numbers, default=[1], metavar="LIST",
                        help="micro-batches per step (default: 1)")
    result.add_argument("--ranks", type=positive, help="ranks, on one axis that state is split over (default: 1)")
    result.add_argument("--mesh", type=mesh, metavar="AXES", help="instead of --ranks: <axis>=<n>[,…] as tessera-compile takes it")
    result.add_argument("--seq", type=numbers, default=[None], metavar="LIST",
                        help="tokens of one sample, if the model leaves it open")
    result.add_argument("--steps", type=positive, default=20, help="steps of each run (default: 20)")
    result.add_argument("--warmup", type=int, help="first steps that do not count (default: a tenth, at least one if there "
                                                   "are two)")
    result.add_argument("--data", help="what tessera-run trains on")
    result.add_argument("--out", required=True, metavar="DIR", help="folder of the results; must not hold any")
    result.add_argument("--plan-only", action="store_true", help="predict by the cost model; run nothing")
    result.add_argument("--target", default="cpu", help="machine of the cost model: cpu, h100x8, …, or a target file "
                                                        "(default: cpu)")
    result.add_argument("--compile-flags", default="", metavar="FLAGS", help="further flags of tessera-compile, quoted")
    result.add_argument("--run-flags", default="", metavar="FLAGS", help="further flags of tessera-run, quoted")
    result.add_argument("--timeout", type=positive, default=3600, metavar="SECONDS",
                        help="after which one compilation or run is given up (default: 3600)")
    result.add_argument("--tools", default="", help=argparse.SUPPRESS)
    return result


def check_with_compiler(result, options):
    """tessera-compile knows what its flags take, what axes are for and what sizes the model leaves open."""
    base = [os.path.join(options.tools, "tessera-compile"), options.model, "--mesh", mesh_text(options.mesh)]

    def check(*flags):
        run = subprocess.run([*base, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        if run.returncode:
            result.error(run.stderr.strip().removeprefix("tessera-compile: error: "))

    for column, _ in CHOICES:
        for value in getattr(options, column):
            if value is not None:
                check("--" + column, value, "--print-pipelines")
    check("--batch", str(options.batch_sizes[0]), *size_flags(options.seq[0]), "--compile-to=import", *options.compile_flags)


def size_flags(sequence):
    return ["--seq", str(sequence)] if sequence else []


def mesh_text(axes):
    return ",".join(f"{axis}={size}" for axis, size in axes.items())


def split_flags(result, name, text):
    try:
        return shlex.split(text)
    except ValueError as error:
        result.error(f"argument {name}: {error}")


def parse(arguments):
    """The checked command line. Ends the program with status 2 before anything has run."""
    result = parser()
    options = result.parse_args(arguments)
    if options.ranks and options.mesh:
        result.error("argument --mesh: not allowed with argument --ranks")
    for batch in options.batch_sizes:
        if batch % (options.ranks or 1):
            result.error(f"argument --batch-sizes: {batch} does not divide by {options.ranks} ranks")
    options.mesh = options.mesh or {"ranks:data": options.ranks or 1}
    options.ranks = 1
    for size in options.mesh.values():
        options.ranks *= size
    if not os.path.isfile(options.model):
        result.error(f"argument model: no file '{options.model}'")
    if options.plan_only:
        if options.data or options.run_flags:
            result.error(f"argument --plan-only: runs nothing, {'--data' if options.data else '--run-flags'} has no meaning")
    elif not options.data:
        result.error("argument --data: needed to run; --plan-only predicts without")
    elif not os.path.exists(options.data):
        result.error(f"argument --data: no file or folder '{options.data}'")
    if options.warmup is None:
        options.warmup = max(1, options.steps // 10) if options.steps > 1 else 0
    if not 0 <= options.warmup < options.steps:
        result.error(f"argument --warmup: expected 0 to {options.steps - 1}, got {options.warmup}")
    options.compile_flags = split_flags(result, "--compile-flags", options.compile_flags)
    options.run_flags = split_flags(result, "--run-flags", options.run_flags)
    if os.path.exists(options.out) and (not os.path.isdir(options.out) or os.listdir(options.out)):
        result.error(f"argument --out: '{options.out}' exists and is not an empty folder")
    for tool in ("tessera-compile",) if options.plan_only else ("tessera-compile", "tessera-run"):
        if not os.access(os.path.join(options.tools, tool), os.X_OK):
            result.error(f"no program '{os.path.join(options.tools, tool)}'")
    check_with_compiler(result, options)
    return options


def grid(options):
    points = itertools.product(*(getattr(options, column) for column, _ in CHOICES), options.seq, options.batch_sizes, options.accumulate)
    found = [Configuration(*sizes, **{column: value for (column, _), value in zip(CHOICES, chosen)})
             for *chosen, sizes in ((*point[:-3], point[-3:]) for point in points)]
    for configuration in found if len(options.seq) > 1 else []:
        configuration.sizes.insert(0, f"s{configuration.sequence}")
    return found
