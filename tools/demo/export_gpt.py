#!/usr/bin/env python3
"""Exports the demo's model, a GPT of 10.8 M parameters on bytes, with the package tessera and without its weights.

usage: export_gpt.py [--out gpt.onnx] [--layers 6 --width 384 --heads 6 --length 256 --vocabulary 256]

Needs torch 2.6, onnx and onnxscript (tools/setup.sh --oldest). Batch ("B") and time ("T") stay symbolic: tessera-compile binds
them with --batch and --seq. The file holds the structure only; tessera-run initialises the weights from a seed.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "frontends", "python"), os.path.join(HERE, "..", "..", "tests", "onnx", "models")]
import export_models  # noqa: E402
import models  # noqa: E402
from tessera.onnx import export_proto  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(HERE, "gpt.onnx"))
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("length", 256), ("vocabulary", 256)):
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()

    model = models.Gpt(vocabulary=a.vocabulary, width=a.width, heads=a.heads, layers=a.layers, length=a.length)
    tokens = models.tokens(a.vocabulary, 2, min(64, a.length))
    exported, _ = export_proto(model, (tokens,), ["tokens"], ["logits"], exporter="dynamo")
    buffers = {buffer for buffer, _ in model.named_buffers()}
    export_models.strip_weights(exported, buffers, os.path.basename(a.out) + ".weights")
    with open(a.out, "wb") as file:
        file.write(exported.SerializeToString(deterministic=True))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{a.out}: {parameters / 1e6:.2f} M parameters, {os.path.getsize(a.out)} bytes")


if __name__ == "__main__":
    main()
