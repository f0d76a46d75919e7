#!/usr/bin/env python3
"""Runs the program of the exec phase in the interpreter, and holds it against earlier phases.

    check_phases.py model.onnx -- --batch 4 --mesh shard=2 --strategy zero3
        what is executed gives what the phase schedule says; --against names another phase
    check_phases.py model.onnx --exact -- …
        and, bit for bit, what the kernels and library calls say before they are given memory
    check_phases.py --seeds=20
        random models (random_model.py), each in a random configuration, against the same step on one rank in one batch, and
        exactly, also in bf16

What follows -- are options of tessera-compile. The first failure ends the run with the commands that show it.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import tempfile

GENERATOR = pathlib.Path(__file__).with_name("random_model.py")
PHASES = ["import", "differentiate", "optimize", "precision", "shard", "schedule", "lower"]
# bf16 keeps 8 bits: a value that is rounded before or after a sum differs by 2^-8 of its terms.
TOLERANCES = {"fp32": ("1e-5", "1e-6"), "bf16": ("2e-2", "2e-2")}


def run(command, failure):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{failure}{' '.join(map(str, command))}\n{done.stderr[:3000]}")
    return done.stdout


def compile_phases(model, folder, flags, failure=""):
    run(["tessera-compile", model, "--compile-to=lower", f"--dump-phases={folder}", *flags], failure)
    return {name: folder / f"{number}-{name}.mlir" for number, name in enumerate(PHASES, 1)}


def compare(actual, expected, tolerance, failure="", *more):
    rtol, atol = tolerance
    run(["tessera-interp", actual, f"--compare={expected}", "--quiet", f"--rtol={rtol}", f"--atol={atol}", *more], failure)


def split_pipeline(model, flags):
    """The pipeline of the phase lower, as it is before to-exec and as it is."""
    for line in run(["tessera-compile", model, "--print-pipelines", *flags], "").splitlines():
        if line.startswith("lower"):
            whole = line[line.index("builtin.module"):].strip()
            return whole[:whole.index(",to-exec")] + ")", whole
    sys.exit("tessera-compile --print-pipelines prints no phase 'lower'")


def compare_exactly(schedule, model, flags, folder, failure=""):
    """Kernels and library calls give the same bits on tensors and in memory, in whichever order streams run."""
    values, whole = split_pipeline(model, flags)
    for pipeline, result in ((values, "values.mlir"), (whole, "program.mlir")):
        run(["tessera-opt", schedule, f"--pass-pipeline={pipeline}", "-o", folder / result], failure)
    for order in ("issued", "compute-first", "compute-last"):
        compare(folder / "program.mlir", folder / "values.mlir", ("0", "0"), failure, f"--streams={order}")


def check_model(options, folder):
    precision = "bf16" if "bf16" in options.flags else "fp32"
    phases = compile_phases(options.model, folder, options.flags)
    tolerance = (options.rtol, options.atol or options.rtol) if options.rtol else TOLERANCES[precision]
    compare(phases["lower"], phases[options.against], tolerance)
    if options.exact:
        compare_exactly(phases["schedule"], options.model, options.flags, folder)


def random_configuration(seed):
    """Flags, micro-batches, and the ranks that the batch is split over."""
    choose = random.Random(seed).choice
    mesh, strategies = choose([
        ("shard=1", ["ddp"]),
        ("shard=2", ["ddp", "zero1", "zero2", "zero3"]),
        ("shard=4", ["ddp", "zero1", "zero2", "zero3"]),
        ("replicate=2,shard=2", ["hsdp"]),
    ])
    micro_batches = choose([1, 2, 3])
    flags = ["--mesh", mesh, "--strategy", choose(strategies), "--accumulate", micro_batches,
             "--remat", choose(["none", "none", "selective", "full"]), "--wrap", choose(["module", "none", "size:4096"]),
             "--epilogues", choose(["none", "bias", "all"]),
             "--combine-bytes", choose(["0", "1000000"])]
    offload = choose([None, None, "optimizer", "optimizer,parameters,activations"])
    if offload:
        flags += ["--offload", offload]
    return flags, micro_batches


def check_seed(seed, options, folder):
    # The velocity of a step with momentum is the gradient, so that gradients are compared and not what is left of them.
    common = ["--loss", "output:loss", "--optimizer", "sgd", "--momentum", "0.9", "--clip-norm", 0.5 * (seed % 2),
              *options.flags]
    flags, micro_batches = random_configuration(seed)
    failure = f"seed {seed}: {' '.join(map(str, flags + common))}\n"
    for name, batch in (("whole", options.batch * micro_batches), ("micro", options.batch)):
        text = run([sys.executable, GENERATOR, f"--seed={seed}", f"--batch={batch}"], failure)
        # The driver is told which output is the loss.
        text = text.replace('train.role = "loss"', 'train.role = "output", train.name = "loss"')
        (folder / f"{name}.mlir").write_text(text)
    reference = compile_phases(folder / "whole.mlir", folder / f"{seed}.whole", common, failure)
    phases = compile_phases(folder / "micro.mlir", folder / f"{seed}.micro", common + flags, failure)
    tolerance = (options.rtol or "1e-4", options.atol or "1e-5")
    compare(phases["lower"], reference["optimize"], tolerance, failure)
    compare(phases["lower"], reference["import"], tolerance, failure, "--common")
    for precision in ("fp32", "bf16"):
        narrow = [*common, *flags, "--precision", precision]
        phases = compile_phases(folder / "micro.mlir", folder / f"{seed}.{precision}", narrow, failure)
        compare_exactly(phases["schedule"], folder / "micro.mlir", narrow, folder, failure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", type=pathlib.Path)
    parser.add_argument("--against", default="schedule", choices=PHASES[:-1])
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--first", type=int, default=0, help="first of the seeds")
    parser.add_argument("--batch", type=int, default=4, help="samples of a random model's micro-batch")
    parser.add_argument("--keep-going", action="store_true", help="with --seeds: print failures and go on")
    parser.add_argument("--rtol")
    parser.add_argument("--atol")
    parser.add_argument("flags", nargs="*", help="options of tessera-compile, after --")
    arguments, flags = sys.argv[1:], []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, flags = arguments[:at], arguments[at + 1:]
    options = parser.parse_args(arguments)
    options.flags = flags
    if (options.model is None) == (options.seeds is None):
        parser.error("give a model or --seeds")
    with tempfile.TemporaryDirectory() as temporary:
        if options.model:
            check_model(options, pathlib.Path(temporary))
            return
        failures = 0
        for seed in range(options.first, options.first + options.seeds):
            try:
                check_seed(seed, options, pathlib.Path(temporary))
            except SystemExit as failure:
                if not options.keep_going:
                    raise
                failures += 1
                print(failure, flush=True)
        print(f"{options.seeds} models, {failures} failures")
        sys.exit(failures != 0)


if __name__ == "__main__":
    main()
