#!/usr/bin/env python3
"""Runs pass pipelines on random models (random_model.py) and executes what comes out.

    check_random_models.py --seeds=20 --gradcheck=differentiate
        gradients against finite differences, in f64
    check_random_models.py --seeds=20 --expect=differentiate --actual='differentiate,flatten-parameters'
        both pipelines give the same results, compared by name; --micro-batches=N runs the second on models with a
        batch that is N times smaller, --mesh='shard = 3' gives it a mesh, --place=2 splits parameters that chance
        chooses, each along some dimension that divides, over the model axes, which have so many ranks

Pipelines are those of one function. The first failure ends the run with the command that shows it.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

GENERATOR = pathlib.Path(__file__).with_name("random_model.py")


def run(command, seed):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error:" in line]  # remarks come in front of them
        text = "\n".join(errors or [done.stderr])
        sys.exit(f"seed {seed}: {' '.join(map(str, command))}\n{text[:2000]}")
    return done.stdout


def placement(text, ranks, seed):
    """The pass that splits some parameters of the model over `ranks`, at least one."""
    chance, rules = random.Random(seed), []
    for shape, attributes in re.findall(r"%\w+: tensor<((?:\d+x)+)f\d+> {([^}]*)}", text):
        name = re.search(r'train\.name = "([^"]+)"', attributes)
        dims = [dim for dim, length in enumerate(shape.split("x")[:-1]) if int(length) % ranks == 0]
        if dims and 'train.role = "param"' in attributes:
            rules.append(f"{{^{re.escape(name[1])}$={chance.choice(dims)}}}")
    if not rules:
        return None
    chosen = chance.sample(rules, chance.randint(1, len(rules)))
    return f"place-parameters{{rules={','.join(chosen)}}},"


def compile_model(directory, seed, batch, pipeline, name, mesh=None, terms=False, place=None):
    model, result = directory / f"{name}.in.mlir", directory / f"{name}.mlir"
    text = run([sys.executable, GENERATOR, f"--seed={seed}", f"--batch={batch}"] + ["--terms"] * terms, seed)
    pipeline = "add-loss{kind=output:loss}," * terms + pipeline
    if mesh:
        text = text.replace("module {", f"module attributes {{dist.mesh = #dist.mesh<{mesh}>}} {{", 1)
    if place:
        before = placement(text, place, seed)
        if not before:
            return None
        pipeline = before + pipeline
    model.write_text(text)
    run(["tessera-opt", model, f"--pass-pipeline=builtin.module(func.func({pipeline}))", "-o", result], seed)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--terms", action="store_true", help="models whose loss has several terms")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--mesh", help="mesh of the module that --actual gets")
    parser.add_argument("--place", metavar="RANKS", type=int, help="splits parameters of the module that --actual gets")
    parser.add_argument("--gradcheck", metavar="PIPELINE")
    parser.add_argument("--expect", metavar="PIPELINE")
    parser.add_argument("--actual", metavar="PIPELINE")
    parser.add_argument("--rtol", type=float, help="relative tolerance of a comparison")
    parser.add_argument("--atol", type=float, help="absolute tolerance of a comparison")
    parser.add_argument("--exact", action="store_true", help="--expect and --actual agree bit for bit, on one mesh")
    options = parser.parse_args()
    if (options.gradcheck is None) == (options.expect is None) or (options.expect is None) != (options.actual is None):
        parser.error("give --gradcheck, or --expect and --actual")

    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        compared = 0
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            if options.gradcheck is not None:
                model = compile_model(directory, seed, options.batch, options.gradcheck, "model", terms=options.terms)
                run(["tessera-interp", model, "--gradcheck", "--quiet", "--samples=4"], seed)
                continue
            whole = options.batch * options.micro_batches
            mesh, tolerance = (options.mesh, ["--rtol=0", "--atol=0"]) if options.exact else (None, [])
            tolerance += [f"--{name}={value}" for name in ("rtol", "atol") if (value := getattr(options, name)) is not None]
            expected = compile_model(directory, seed, whole, options.expect, "expected", mesh, options.terms)
            actual = compile_model(directory, seed, options.batch, options.actual, "actual", options.mesh, options.terms,
                                   options.place)
            if not actual:
                continue
            compared += 1
            run(["tessera-interp", actual, f"--compare={expected}", "--quiet", *tolerance], seed)
    if options.expect is not None and 2 * compared < options.seeds:
        sys.exit(f"only {compared} of {options.seeds} models have parameters that divide")
    print(f"{options.seeds} models")


if __name__ == "__main__":
    main()
