#!/usr/bin/env python3
"""Checks that a PyTorch model trains in Tessera as it does in PyTorch: exports it, compiles it, runs the first
optimizer steps in both from the same weights on the same random batch, and compares the losses and every gradient by
name.

usage: tools/check_model.py TARGET [options] [-- flags of tessera-compile]

TARGET is what tools/export_torch.py takes: net.py:build, package.module:function, hf:<type> or hf:<folder>. The batch
has the sizes of the example inputs (hf: --batch and --seq): random tokens below the number of embeddings, floats from
a normal distribution, a tenth of the targets ignored. Dropout rates are 0 in the comparison, those in the code, too.

The last line is the verdict. Exit status: 0 the same, 1 DIFFERENT, 2 could not be compared, with the reason.

Examples:
  tools/check_model.py net.py:build --loss mse
  tools/check_model.py hf:qwen2 --set num_hidden_layers=2 --set hidden_size=128 -- --mesh shard=2 --strategy zero3
  tools/check_model.py net.py:build --onnx net.onnx      (a file that was exported before, and its weights)

Two fp32 programs add in different orders: losses may differ by 1e-5 of themselves and gradients by --tolerance of
their largest element. Fresh weights are checked as they are; --perturb adds noise, so that no weight is special (no
bias 0, no scale 1).
"""

import argparse
import json
import os
import sys
import tempfile

PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "frontends", "python")


def arguments(words):
    """(options, flags for tessera-compile)."""
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="module:function, file.py:function, hf:<type> or hf:<folder>")
    parser.add_argument("--onnx", metavar="FILE", help="check this exported file instead of exporting")
    parser.add_argument("--exporter", choices=["auto", "torchscript", "dynamo"], default="auto")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[],
                        help="setting of a hf: configuration")
    parser.add_argument("--batch", type=int, default=2, help="samples of the example of hf: models")
    parser.add_argument("--seq", type=int, default=16, help="tokens of the example of hf: models")
    parser.add_argument("--seed", type=int, default=0, help="of random weights and data")
    parser.add_argument("--perturb", action="store_true", help="add noise to the weights")
    parser.add_argument("--loss", default="cross-entropy", help="cross-entropy, mse or output:<name>")
    parser.add_argument("--ignore-index", type=int, default=-100)
    parser.add_argument("--label-smoothing", type=float, default=0.0)
    parser.add_argument("--steps", type=int, default=3,
                        help="AdamW steps whose losses are compared; gradients: the first's")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="of a gradient, relative to its largest element")
    parser.add_argument("--json", metavar="FILE", help="write the result there")
    parser.add_argument("--keep", metavar="FOLDER", help="keep the files there: model, data, artifact, run")
    return parser.parse_args(words[:at]), words[at + 1:]


def check(options, flags, folder):
    """(exit status, verdict's line, what --json writes)."""
    import torch
    sys.path.insert(0, PACKAGE)
    from tessera import targets, training
    from tessera.check import CannotCompare, Check
    from tessera.errors import ExportError
    torch.manual_seed(options.seed)
    loss = training.Loss(options.loss, options.ignore_index, options.label_smoothing)
    try:
        model, inputs, names = targets.load_target(options.target, options.set, options.batch, options.seq)
        if not model.training:  # parts that are meant to be in evaluation mode stay so
            model.train()
        if options.perturb:
            training.perturb(model, options.seed)
        job = Check(model, inputs, names, folder, loss, options.steps, options.seed, tolerance=options.tolerance)
        if options.onnx:
            job.use(os.path.abspath(options.onnx))
        else:
            job.export(options.exporter, say=print)
        verdict = job.run(flags)
    except (CannotCompare, ExportError) as why:
        where, reason = getattr(why, "stage", "model"), str(why)
        if "\n" in reason:  # all that a tool said; the verdict is one line
            print(reason)
            reason = why.short
        line = f"not compared: {'the exporter refuses it: ' if where == 'export' else ''}{reason}"
        return 2, line, {"result": "not compared", "stage": where, "reason": str(why)}
    count = sum(p.numel() for p in model.parameters())
    rates = job.dropout + job.dropout_in_code
    print(f"{job.exporter}; {count} parameters, {options.steps} steps of {job.samples} samples"
          + (f"; {rates} dropout rate{'' if rates == 1 else 's'} 0" if rates else ""))
    for name, error in sorted(verdict.errors.items(), key=lambda item: -item[1])[:0 if verdict.same else 10]:
        print(f"  {error:8.1e}  {name}")
    return 0 if verdict.same else 1, verdict.line(), verdict.summary() | {"dropout_rates_set_to_0": rates}


def main():
    options, flags = arguments(sys.argv[1:])
    try:
        import numpy, onnx, torch  # noqa: E401, F401
    except ImportError as why:
        sys.exit(f"check_model.py: error: {why}")
    if options.steps < 1:
        sys.exit("check_model.py: error: --steps must be at least 1")
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="check-model-") as temporary:
        try:
            status, line, result = check(options, flags, os.path.abspath(options.keep or temporary))
        except Exception as why:  # whatever a damaged file or an odd model makes of the tools: that is no difference
            status, line = 2, f"not compared: {type(why).__name__}: {' '.join(str(why).split())[:300]}"
            result = {"result": "not compared", "reason": line}
    if options.json:
        with open(options.json, "w") as file:
            json.dump(result, file, indent=2)
            file.write("\n")
    print(line)
    return status


if __name__ == "__main__":
    sys.exit(main())
