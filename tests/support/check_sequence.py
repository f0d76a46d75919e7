#!/usr/bin/env python3
"""Whole steps over sequence axes equal those of one rank, in the interpreter: loss, gradients and updates by name.

    check_sequence.py --seeds=2 --mesh='seq = 4' --attention=ring --order=zigzag --mask=window

Where masks are written out for all pairs, those of the one rank stay so. Without --mask all masks of sequence_model.py are taken in turn. Heads, key heads, lengths and samples are of chance, as far
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
CHUNKED = "chunk-heads{{heads={}}},join-products,join-heads,cse,differentiate,join-chunks,canonicalize,cse"
UPDATE = "clip-gradients{max-norm=0.1},insert-optimizer,guard-updates"
SHARD = "propagate-sharding,insert-reshards,verify-sharding,localize,verify-sharding,canonicalize,cse"
SCHEDULE = "split-async,prefetch,verify-schedule,verify-collective-order"
# Sums of f32 in another order; the clipped norm and AdamW's first step pass differences on.
TOLERANCE = ["--rtol=2e-5", "--atol=2e-6"]


def pipeline(*passes):
    return f"builtin.module(func.func({','.join(passes)}))"


def unsharded(multiple):
    """The passes that make a step of one rank; units are padded to a multiple, as they are of several."""
    return pipeline(JOINT, f"flatten-parameters{{pad-multiple={multiple}}}", UPDATE)


def sharded(multiple, attention="auto", order="auto", strategy="zero3", micro=1, remat="none", chunk=0, gather=""):
    """The passes that make a step of a rank of a module's mesh; `chunk`: query heads at a time, 0 for all; `gather`: options of
    split-attention that say how keys are gathered."""
    choice = f"attention={attention} sequence-order={order}"
    remat = [f"rematerialise{{policy={remat} twice={str(chunk > 0).lower()}}}"] * (remat != "none")
    return pipeline("recognize-attention", CHUNKED.format(chunk) if chunk else JOINT, *remat, f"flatten-parameters{{pad-multiple={multiple}}}",
                    *[f"accumulate-gradients{{count={micro}}}"] * (micro > 1), UPDATE, f"annotate-sharding{{strategy={strategy} {choice}}}",
                    f"split-attention{{{choice} {gather}}}", SHARD, SCHEDULE)


def on_mesh(text, mesh):
    return text.replace("module {", f"module attributes {{dist.mesh = #dist.mesh<{mesh}>}} {{", 1)


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
    parser.add_argument("--length", type=int, help="of sequences; default: of chance")
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--remat", default="none")
    parser.add_argument("--chunk", choices=("shared", "own"), help="attention of some heads at a time: of every key head, or of some key heads")
    parser.add_argument("--gather-bytes", type=int, default=0, help="that gathered keys and values may take; 0: those of all heads")
    parser.add_argument("--gather-type", default="compute", choices=("compute", "fp32"), help="what they are gathered in")
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
            if options.chunk == "shared":
                size = exchanged * chance.choice([1, 2])
                groups, heads = exchanged, size * chance.choice([2, 3])
            elif options.chunk:
                each = chance.choice([1, 2])
                groups, heads, size = 2 * exchanged, 2 * exchanged * each, exchanged * each
            elif options.gather_bytes:
                groups = chance.choice([2, 3, 5])
                heads = groups * chance.choice([1, 2])
            length = options.length or 2 * ranks * chance.choice([1, 2, 3])
            batch = samples * options.micro_batches * chance.choice([1, 2])
            paths = {}
            for name, micro in (("one", 1), ("many", options.micro_batches)):
                generated = [GENERATOR, f"--seed={seed}", f"--batch={batch // micro}", f"--length={length}", f"--heads={heads}",
                             f"--groups={groups}", f"--mask={mask}"]
                text = run([sys.executable, *generated], seed)
                if name == "many":
                    text = on_mesh(text, options.mesh)
                    passes = sharded(2 * samples * ranks, options.attention, options.order, options.strategy, micro, options.remat,
                                     size if options.chunk else 0,
                                     f"gather-bytes={options.gather_bytes} gather-type={options.gather_type}")
                else:
                    passes = unsharded(2 * samples * ranks)
                source, paths[name] = directory / f"{name}.in.mlir", directory / f"{name}.mlir"
                source.write_text(text)
                run(["tessera-opt", source, f"--pass-pipeline={passes}", "-o", paths[name]], f"{seed} {mask} {generated[1:]}")
            if options.expect_text and not re.search(options.expect_text, paths["many"].read_text()):
                sys.exit(f"seed {seed}, mask {mask}: no '{options.expect_text}' in the sharded step")
            run(["tessera-interp", paths["many"], f"--compare={paths['one']}", *TOLERANCE, "--quiet"],
                f"{seed}, mask {mask}, {batch} x {length}, {heads} heads in {groups} groups")
    print(f"{len(cases)} models: {options.mesh} {options.attention} {options.order} {options.strategy}")


if __name__ == "__main__":
    main()
