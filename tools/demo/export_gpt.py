#!/usr/bin/env python3
"""Exports the demo's model, a GPT of 10.8 M parameters on bytes, with the package tessera and without its weights.

usage: export_gpt.py [--out gpt.pt2] [--layers 6 --width 384 --heads 6 --length 256 --vocabulary 256]

Needs torch (tools/setup.sh --oracle). Batch and positions stay open: tessera-compile binds them with --batch and --seq. The
file holds the structure only; tessera-run makes the weights from a seed.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "frontends", "python"), os.path.join(HERE, "..", "..", "tests", "onnx", "models")]
import models  # noqa: E402
import tessera  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(HERE, "gpt.pt2"))
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("length", 256), ("vocabulary", 256)):
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()

    with tessera.no_weights():
        model = models.Gpt(vocabulary=a.vocabulary, width=a.width, heads=a.heads, layers=a.layers, length=a.length)
    program = tessera.export(model, (models.tokens(a.vocabulary, 2, min(64, a.length)),),
                             dynamic={"tokens": {0: "batch", 1: "positions"}})
    for node in program.program.graph.nodes:
        node.meta.pop("stack_trace", None)  # the files of one machine
    program.save(a.out)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{a.out}: {parameters / 1e6:.2f} M parameters, {os.path.getsize(a.out)} bytes")


if __name__ == "__main__":
    main()
