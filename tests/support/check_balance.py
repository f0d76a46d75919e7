#!/usr/bin/env python3
"""In a zigzag each rank has the same work of causal attention: the pairs of a query and a key that its attention ops do not hide are counted.

    check_balance.py --ranks=4 --attention=ring --mask=window

A step of a small decoder is sharded, and its program of a rank made to return the ranges of keys that it computes for its
attention ops, forward and backward; the interpreter runs it on all ranks. Of an op that is causal itself (the own block of a ring) the pairs are
those that `causal` and `window` leave. Fails unless the mean over ranks is at least 0.95 of the most that a rank has, and
ranks differ by no more than what a block of queries sees of a block of keys.
"""
import argparse
import pathlib
import re
import sys
import tempfile

import numpy as np

import safetensors
from check_random_models import run
from check_sequence import GENERATOR, on_mesh, sharded

WINDOW = 5  # of sequence_model.py
LEAST = 0.95  # of perfect balance
ATTENTION = re.compile(r"= train\.(attention|attention_grad) ([^{\n]*)\{([^\n]*)\} : \(([^\n]*?)\) ->")


def ops(text):
    """Of each attention op: its name, the values of its range of keys, its attributes, and the shapes of queries and keys."""
    for name, operands, attributes, types in ATTENTION.findall(text):
        ranges = re.search(r"keys\((%\S+) to (%\S+)\)", operands)
        shapes = [tuple(map(int, shape.split("x")[:-1])) for shape in re.findall(r"tensor<([^>]*)>", types)]
        yield name, ranges and ranges.groups(), attributes, shapes[0], shapes[1]


def returning(text, ranks, values):
    """The function with `values` (and how many queries each is of) of every rank, side by side, as its results."""
    head, body = re.match(r"(.*?func\.func @\w+\([^\n]*\)) -> [^\n]* \{\n(.*)", text, re.S).groups()
    results, types = [], []
    for value, queries in values.items():
        types.append(f"tensor<1x{queries}xi64>")
        results.append(f'{types[-1]} {{train.role = "output", train.name = "{value[1:]}", dist.global = tensor<1x{ranks * queries}xi64>, '
                       'dist.sharding = #dist.sharding<[{}, {"seq"}]>}')
    body = re.sub(r"\n    return [^\n]*", lambda _: f"\n    return {', '.join(values)} : {', '.join(types)}", body)
    return f"{head} -> ({', '.join(results)}) {{\n{body}"


def visible(queries, keys, attributes):
    """Pairs of an op without ranges."""
    i, j = np.arange(queries)[:, None], np.arange(keys)[None, :]
    seen = np.ones((queries, keys), bool)
    if "causal" in attributes:
        seen &= j <= i + keys - queries
        if window := re.search(r"window = (\d+)", attributes):
            seen &= j > i + keys - queries - int(window[1])
    return int(seen.sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, required=True)
    parser.add_argument("--attention", required=True)
    parser.add_argument("--mask", required=True, choices=("causal", "window"))
    parser.add_argument("--order", default="zigzag")
    parser.add_argument("--block", type=int, default=16, help="positions of each of a rank's two ranges")
    options = parser.parse_args()
    ranks, length = options.ranks, 2 * options.ranks * options.block
    with tempfile.TemporaryDirectory() as temporary:
        source, local, counted, out = (pathlib.Path(temporary) / name for name in ("in.mlir", "local.mlir", "counted.mlir", "out.safetensors"))
        text = run([sys.executable, GENERATOR, "--seed=1", "--batch=1", f"--length={length}", "--heads=2", "--groups=2",
                    f"--mask={options.mask}"], 1)
        source.write_text(on_mesh(text, f"seq = {ranks}"))
        run(["tessera-opt", source, f"--pass-pipeline={sharded(2 * ranks, options.attention, options.order)}", "-o", local], options)
        found = list(ops(local.read_text()))
        wanted = {value: queries[2] for _, bounds, _, queries, _ in found for value in bounds or ()}
        counted.write_text(returning(local.read_text(), ranks, wanted))
        run(["tessera-interp", counted, f"--dump={out}", "--quiet"], options)
        ranges = {name: value.reshape(ranks, -1) for name, value in safetensors.load(out).items()}

    pairs = {}
    for name, bounds, attributes, queries, keys in found:
        of = pairs.setdefault(name, np.zeros(ranks, np.int64))
        if bounds:
            begin, end = (ranges[bound[1:]] for bound in bounds)
            of += np.maximum(np.minimum(end, keys[2]) - np.maximum(begin, 0), 0).sum(1)
        else:
            of += visible(queries[2], keys[2], attributes)
    if set(pairs) != {"attention", "attention_grad"} or not wanted:
        sys.exit(f"no attention with ranges of keys was found: {pairs}")
    whole = visible(length, length, f"causal {f'window = {WINDOW}' if options.mask == 'window' else ''}")
    most = options.block * (min(options.block, WINDOW) if options.mask == "window" else options.block)
    for name, of in pairs.items():
        if of.sum() % whole:
            sys.exit(f"{name}: {of.tolist()} pairs are no multiple of the {whole} that the mask leaves")
        attentions = of.sum() // whole
        balance = of.mean() / of.max()
        print(f"{options.mask}, {ranks} ranks, {options.attention}, {name}: {of.tolist()} pairs, balance {balance:.3f}")
        if balance < LEAST or of.max() - of.min() > attentions * most:
            sys.exit("the work is not balanced")


if __name__ == "__main__":
    main()
