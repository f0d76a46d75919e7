#!/usr/bin/env python3
"""Exports the demo's model, a GPT of 10.8 M parameters on bytes, with torch.onnx.export and without its weights.

usage: export_gpt.py [--out gpt.onnx] [--layers 6 --width 384 --heads 6 --length 256 --vocabulary 256]

Needs torch 2.6, onnx and onnxscript (tools/setup.sh --oracle). Batch ("B") and time ("T") stay symbolic: tessera-compile binds
them with --batch and --seq. The file holds the structure only; tessera-run initialises the weights from a seed.
"""

import argparse
import os
import sys
import tempfile

import onnx
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "onnx", "models"))
import export_models  # noqa: E402
import models  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(HERE, "gpt.onnx"))
    for name, value in (("layers", 6), ("width", 384), ("heads", 6), ("length", 256), ("vocabulary", 256)):
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()

    model = models.Gpt(vocabulary=a.vocabulary, width=a.width, heads=a.heads, layers=a.layers, length=a.length)
    model.eval()  # no dropout; training is compiled from the forward graph
    tokens = models.tokens(a.vocabulary, 2, min(64, a.length))
    shapes = ({0: torch.export.Dim("B", min=1, max=4096), 1: torch.export.Dim("T", min=2, max=a.length)},)
    program = torch.onnx.export(model, (tokens,), input_names=["tokens"], output_names=["logits"], opset_version=18,
                                dynamic_shapes=shapes, dynamo=True, external_data=False)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        program.save(path)
        exported = onnx.load(path)
    export_models.name_dimensions(exported, [{0: "B", 1: "T"}])
    buffers = {buffer for buffer, _ in model.named_buffers()}
    export_models.strip_weights(exported, buffers, os.path.basename(a.out) + ".weights")
    export_models.strip_notes(exported)
    with open(a.out, "wb") as file:
        file.write(exported.SerializeToString(deterministic=True))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{a.out}: {parameters / 1e6:.2f} M parameters, {os.path.getsize(a.out)} bytes")


if __name__ == "__main__":
    main()
