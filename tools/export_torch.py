#!/usr/bin/env python3
"""Exports a PyTorch model to ONNX the way tessera-compile wants it: training mode, no folding, symbolic batch and time.

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

Needs torch and onnx (2.6 and 1.17 were tested), for the dynamo exporter onnxscript, for hf: transformers.
"""

import argparse
import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import sys
import tempfile
import warnings

LARGE = 1_500_000_000  # bytes of weights from which they go into a file of their own


def fail(message):
    sys.exit(f"export_torch.py: error: {message}")


def parse_value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def load_function(target):
    place, _, name = target.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(place)
        function = getattr(module, name)
    except (OSError, ImportError, AttributeError, ValueError) as why:
        fail(f"{target}: {why}")
    made = function()
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        fail(f"{target} returned {type(made).__name__}, expected (model, inputs) or (model, inputs, names)")
    model, inputs = made[:2]
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    names = list(made[2]) if len(made) == 3 else list(inspect.signature(model.forward).parameters)[:len(inputs)]
    if len(names) != len(inputs):
        fail(f"{target}: {len(inputs)} inputs, but names are {names}")
    return model, inputs, names


def load_hugging_face(name, settings, batch, sequence):
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        import transformers
    except ImportError as why:
        fail(f"hf:{name}: {why}")
    try:
        if os.path.isdir(name):
            config = transformers.AutoConfig.from_pretrained(name, **settings)
        else:
            config = transformers.AutoConfig.for_model(name, **settings)
        has_weights = os.path.isdir(name) and any(file.endswith((".safetensors", ".bin")) for file in os.listdir(name))
        make = transformers.AutoModelForCausalLM
        model = (make.from_pretrained(name, config=config, torch_dtype=torch.float32)
                 if has_weights else make.from_config(config))
    except (OSError, ValueError, KeyError) as why:
        fail(f"hf:{name}: {str(why)[:200]}")

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    print(f"hf:{name}: {type(model).__name__}, weights {'from the folder' if has_weights else 'random'}")
    return Logits(), (torch.zeros(batch, sequence, dtype=torch.int64),), ["input_ids"]


def without_dropout(model):
    """Sets every dropout rate to 0: as modules, and as numbers that modules hand to functions."""
    import torch
    count = 0
    for module in model.modules():
        if isinstance(module, torch.nn.modules.dropout._DropoutNd):
            count += module.p > 0
            module.p = 0.0
        for name, value in vars(module).items():
            if "drop" in name and isinstance(value, float) and value > 0:
                setattr(module, name, 0.0)
                count += 1
    if count:
        print(f"{count} dropout rate{'' if count == 1 else 's'} set to 0 (--keep-dropout keeps them)")


def axes_of(tensor):
    return {0: "B", 1: "T"} if not tensor.is_floating_point() and tensor.dim() > 1 else {0: "B"}


@contextlib.contextmanager
def quiet():
    """What exporters print is not for the user: whole graphs, hints about torchvision. Also what they print from C++."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    with tempfile.TemporaryFile() as sink:
        os.dup2(sink.fileno(), 1)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for target, old in zip((1, 2), saved):
                os.dup2(old, target)
                os.close(old)


def export_torchscript(model, inputs, names, path):
    import torch
    torch.onnx.export(model, inputs, path, input_names=names, output_names=["output"], opset_version=17, dynamo=False,
                      dynamic_axes={name: axes_of(x) for name, x in zip(names, inputs)}, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING)


def export_dynamo(model, inputs, names, path):
    import torch
    symbols = {name: torch.export.Dim(name, min=2, max=1 << 20) for name in "BT"}
    shapes = tuple({axis: symbols[symbol] for axis, symbol in axes_of(x).items()} for x in inputs)
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    program = torch.onnx.export(model, inputs, input_names=names, output_names=["output"], opset_version=18,
                                dynamic_shapes=shapes, dynamo=True)
    program.save(path, external_data=size > LARGE)


EXPORTERS = {"torchscript": export_torchscript, "dynamo": export_dynamo}


def export(model, inputs, names, path, wanted):
    """Exports with the wanted exporter, or with the first one that can; returns its name."""
    choices = list(EXPORTERS) if wanted == "auto" else [wanted]
    reasons = []
    for name in choices:
        try:
            with quiet():
                EXPORTERS[name](model, inputs, names, path)
            return name
        except Exception as why:  # torch has no common class for what exporters raise
            text = str(why).strip() or type(why).__name__
            reasons.append(f"the {name} exporter failed: {text.splitlines()[0][:300]}")
            if name != choices[-1]:
                print(reasons[-1])
            if os.path.exists(path):
                os.remove(path)
    fail("\n  ".join(reasons))


def check_file(model, path):
    """Every trained parameter must be in the file under its own name: --weights and model.safetensors go by names. Returns
    the inputs' shapes as text."""
    import onnx
    graph = onnx.load(path, load_external_data=False).graph
    names = {tensor.name for tensor in graph.initializer}
    found = {id(p) for name, p in model.named_parameters(remove_duplicate=False) if name in names}
    missing = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in found]
    if missing:
        print(f"warning: {len(missing)} parameters are not in the file under their names: {', '.join(missing[:5])}"
              f"{', …' if len(missing) > 5 else ''}", file=sys.stderr)
    shapes, fixed = [], False
    for value in graph.input:
        dims = [dim.dim_param or str(dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        fixed |= bool(dims) and dims[0].isdigit()
        shapes.append(f"{value.name}[{', '.join(dims)}]")
    if fixed:
        print("note: the exporter fixed the sizes of the example; to train with others, export with those")
    return ", ".join(shapes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="module:function, file.py:function, hf:<type> or hf:<folder>")
    parser.add_argument("-o", "--output", required=True, help="the .onnx file to write")
    parser.add_argument("--exporter", choices=["auto", *EXPORTERS], default="auto",
                        help="auto: TorchScript, and dynamo if that fails")
    parser.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="setting of a hf: configuration")
    parser.add_argument("--keep-dropout", action="store_true", help="do not set dropout rates to 0")
    parser.add_argument("--batch", type=int, default=2, help="samples of the example of hf: models")
    parser.add_argument("--seq", type=int, default=16, help="tokens of the example of hf: models")
    parser.add_argument("--seed", type=int, default=0, help="of random weights")
    options = parser.parse_args()
    try:
        import torch
    except ImportError as why:
        fail(why)
    if any("=" not in setting for setting in options.set):
        fail("--set expects KEY=VALUE")
    warnings.filterwarnings("ignore")
    torch.manual_seed(options.seed)
    if options.target.startswith("hf:"):
        settings = {key: parse_value(value) for key, value in (setting.split("=", 1) for setting in options.set)}
        model, inputs, names = load_hugging_face(options.target[3:], settings, options.batch, options.seq)
    elif ":" in options.target:
        if options.set:
            fail("--set is for hf: targets")
        model, inputs, names = load_function(options.target)
    else:
        fail(f"'{options.target}' is not module:function, file.py:function or hf:<type>")
    if not options.keep_dropout:
        without_dropout(model)
    model.train()
    # Exporting runs the model: what that changes, running statistics, is put back.
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    exporter = export(model, inputs, names, options.output, options.exporter)
    for name, buffer in model.named_buffers():
        buffer.copy_(buffers[name])
    shapes = check_file(model, options.output)
    count = sum(p.numel() for p in model.parameters())
    print(f"{options.output}: {count} parameters, inputs {shapes}, by the {exporter} exporter")


if __name__ == "__main__":
    main()
