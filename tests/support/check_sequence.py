#!/usr/bin/env python3
"""Whole steps over sequence axes equal those of one rank, in the interpreter: loss, gradients and updates by name.

    check_sequence.py --seeds=2 --mesh='seq = 4' --attention=ring --order=zigzag --mask=window

Without --mask all masks of sequence_model.py are taken in turn. Heads, key heads, lengths and samples are of chance, as far
as the mesh allows them. The first failure ends the run with the command that shows it.
"""
import argparse
import pathlib
import random
import re
import sys
import tempfile

from check_random_models import run
from sequence_model import MASKS

GENERATOR = pathlib.Path(__file__).with_name("sequence_model.py")
JOINT = "differentiate,canonicalize,cse"
UPDATE = "clip-gradients{max-norm=0.1},insert-optimizer,guard-updates"
SHARD = "propagate-sharding,insert-reshards,verify-sharding,localize,verify-sharding,canonicalize,cse"
SCHEDULE = "split-async,prefetch,verify-schedule,verify-collective-order"


def sizes(mesh):
    """Ranks that split samples, and those of each sequence axis."""
    samples, positions = 1, []
    for name, role, size in re.findall(r"(\w+)(?: : (\w+))? = (\d+)", mesh):
        if (role or name) in ("seq", "sequence"):
            positions.append(int(size))
        elif (role or name) in ("shard", "data", "replicate", "replica"):
            samples *= int(size)
    return samples, positions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--mesh", required=True)
    parser.add_argument("--attention", default="auto")
    parser.add_argument("--order", default="auto")
    parser.add_argument("--strategy", default="zero3")
    parser.add_argument("--mask", choices=MASKS)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--remat", default="none")
    parser.add_argument("--expect-text", help="a regular expression that the sharded step must match")
    options = parser.parse_args()

    samples, positions = sizes(options.mesh)
    ranks = 1
    for size in positions:
        ranks *= size
    exchanged = {"ulysses": ranks, "ring+ulysses": positions[-1]}.get(options.attention, 1)
    cases = [(seed, mask) for seed in range(options.first_seed, options.first_seed + options.seeds)
             for mask in ([options.mask] if options.mask else MASKS)]
    with tempfile.TemporaryDirectory() as temporary:
        directory = pathlib.Path(temporary)
        for seed, mask in cases:
            chance = random.Random(f"{seed} {mask} {options.mesh} {options.attention}")
            groups = exchanged * chance.choice([1, 2] if exchanged < 4 else [1])
            heads = groups * chance.choice([1, 2, 3] if groups < 4 else [1, 2])
            length = 2 * ranks * chance.choice([1, 2, 3])
            batch = samples * options.micro_batches * chance.choice([1, 2])
            paths = {}
            for name, micro in (("one", 1), ("many", options.micro_batches)):
                generated = [GENERATOR, f"--seed={seed}", f"--batch={batch // micro}", f"--length={length}", f"--heads={heads}",
                             f"--groups={groups}", f"--mask={mask}"]
                text = run([sys.executable, *generated], seed)
                unit = f"flatten-parameters{{pad-multiple={2 * samples * ranks}}}"
                passes = [JOINT, unit, UPDATE]
                if name == "many":
                    text = text.replace("module {", f"module attributes {{dist.mesh = #dist.mesh<{options.mesh}>}} {{", 1)
                    choice = f"attention={options.attention} sequence-order={options.order}"
                    remat = f"rematerialise{{policy={options.remat}}}"
                    accumulate = f"accumulate-gradients{{count={micro}}}"
                    passes = [JOINT, *[remat] * (options.remat != "none"), unit, *[accumulate] * (micro > 1), UPDATE,
                              f"annotate-sharding{{strategy={options.strategy} {choice}}}", f"split-attention{{{choice}}}", SHARD,
                              SCHEDULE]
                source, paths[name] = directory / f"{name}.in.mlir", directory / f"{name}.mlir"
                source.write_text(text)
                run(["tessera-opt", source, f"--pass-pipeline=builtin.module(func.func({','.join(passes)}))", "-o", paths[name]],
                    f"{seed} {mask} {generated[1:]}")
            if options.expect_text and not re.search(options.expect_text, paths["many"].read_text()):
                sys.exit(f"seed {seed}, mask {mask}: no '{options.expect_text}' in the sharded step")
            # Sums of f32 in another order; the clipped norm and AdamW's first step pass differences on.
            run(["tessera-interp", paths["many"], f"--compare={paths['one']}", "--rtol=2e-5", "--atol=2e-6", "--quiet"],
                f"{seed}, mask {mask}, {batch} x {length}, {heads} heads in {groups} groups")
    print(f"{len(cases)} models: {options.mesh} {options.attention} {options.order} {options.strategy}")


if __name__ == "__main__":
    main()
