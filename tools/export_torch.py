#!/usr/bin/env python3
"""Exports a PyTorch model to ONNX the way tessera-compile wants it: training mode, no folding, symbolic batch and time, and
a record of what exporters lose (docs/onnx.md). A model whose file would train otherwise than in PyTorch is refused.

usage: tools/export_torch.py TARGET -o model.onnx [--exporter auto|torchscript|dynamo] [--set KEY=VALUE ...] ...

TARGET is one of
  package.module:function   or   file.py:function
      The function takes no arguments and returns (model, inputs) or (model, inputs, names): the module, a tuple of example
      tensors, and the names of its inputs (default: those of forward). Dimension 0 of every input is the batch, and
      dimension 1 of integer inputs is time. Where an exporter cannot keep them symbolic, the file has the examples' sizes.
  hf:<type>                 hf:gpt2, hf:llama, …: a Hugging Face causal language model of that type with random weights
  hf:<folder>               the configuration in that folder, and its weights if they are there
                            (--batch and --seq: sizes of the example)

Examples:
  tools/export_torch.py hf:gpt2 -o gpt2.onnx --batch 8 --seq 128 --set n_layer=4 --set n_embd=128 --set n_head=4
  tools/export_torch.py net.py:build -o net.onnx
  tessera-compile gpt2.onnx -o gpt2.tessera --batch 8 --seq 128
  tessera-run gpt2.tessera --data tokens.bin --weights gpt2.onnx --out runs/gpt2

Needs torch and onnx (torch 2.6 and 2.15 were tested), for the dynamo exporter onnxscript, for hf: transformers.
"""

import argparse
import os
import sys

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "frontends", "python")


def fail(message):
    sys.exit(f"export_torch.py: error: {message}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="module:function, file.py:function, hf:<type> or hf:<folder>")
    parser.add_argument("-o", "--output", required=True, help="the .onnx file to write")
    parser.add_argument("--exporter", choices=["auto", "torchscript", "dynamo"], default="auto",
                        help="auto: the first of them whose file passes all checks")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="setting of a hf: configuration")
    parser.add_argument("--keep-dropout", action="store_true", help="do not set dropout rates to 0")
    parser.add_argument("--check", action=argparse.BooleanOptionalAction, default=None,
                        help="run the exported graph and compare its outputs with the module's (default: unless that takes long)")
    parser.add_argument("--batch", type=int, default=2, help="samples of the example of hf: models")
    parser.add_argument("--seq", type=int, default=16, help="tokens of the example of hf: models")
    parser.add_argument("--seed", type=int, default=0, help="of random weights")
    options = parser.parse_args()
    try:
        import onnx
        import torch
        sys.path.insert(0, PACKAGE)
        from tessera import targets
        from tessera import onnx as entrance
    except ImportError as why:
        fail(why)
    torch.manual_seed(options.seed)
    try:
        model, inputs, names = targets.load_target(options.target, options.set, options.batch, options.seq)
        found = entrance.export(model, inputs, names, options.output, exporter=options.exporter,
                                    keep_dropout=options.keep_dropout, evaluate=options.check)
    except entrance.ExportError as why:
        fail(why)
    shapes = entrance.exporters.shapes_of(onnx.load(options.output, load_external_data=False))
    count = sum(p.numel() for p in model.parameters())
    print(f"{options.output}: {count} parameters, inputs {shapes}, by the {found['exporter'].replace(',', ' exporter of', 1)}")


if __name__ == "__main__":
    main()
