#!/usr/bin/env python3
"""Records what PyTorch makes of FP8, for test_fp8.py and test_fp8_casts.py.

usage: make_fp8_goldens.py      (torch 2.12 or newer: older ones give NaN for what is too large; onnx, onnxscript)

Writes into fp8/
  casts.npz     per format: f32 values, PyTorch's bytes for them after a clamp, and what all 256 bytes mean; per rounding:
                largest absolute values and scales, by torchao's formula with logarithms in f64; per recipe the codes,
                scales and results of the products of one linear layer
  <model>.onnx  a small GPT and a small Llama whose layers are multiples of 128, without weights
  <model>.json  ten AdamW steps of each in fp32 and with each recipe: losses and gradient norms. Weights and data are those of
                fp8.training_values, so that no file holds them

The recipes are torch autograd functions in the linear layers but the head: x, g and what is returned are bf16, weights are
cast from f32, their gradients are f32. The head multiplies bf16; all else is f32.
"""

import hashlib
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
OUT = os.path.join(HERE, "fp8")
sys.path[:0] = [os.path.join(ROOT, "frontends", "python"), os.path.join(ROOT, "tests", "onnx", "models"),
                os.path.join(ROOT, "tests", "support")]
import export_models  # noqa: E402
import fp8  # noqa: E402
import models  # noqa: E402
from tessera.onnx import export_proto  # noqa: E402

FORMATS = {"e4m3fn": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
STEPS, BATCH, LENGTH = 10, 16, 64
HYPER = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_norm": 0.3}
MODELS = {
    "gpt": lambda: models.Gpt(width=128, heads=4, layers=2, length=LENGTH),
    "llama": lambda: models.Llama(width=128, heads=4, groups=4, layers=2, hidden=384),
}


# --- Casts and scales -------------------------------------------------------------------------------------------------


def cast(x, dtype):
    largest = torch.finfo(dtype).max
    return x.clamp(-largest, largest).to(dtype)


def scale(amax, dtype, rounding):
    """torchao's float8_utils: in f64, to f32, and down to a power of two; of mxfp8, from the quotient rounded up. The
    logarithm is in f64: in f32, as torchao's, it takes a scale just below a power of two for that power."""
    largest = torch.finfo(dtype).max
    if rounding == "e8m0":
        exponent = torch.ceil(torch.log2((amax / torch.tensor(largest, dtype=torch.float32)).double())).clamp(min=-127)
        return torch.where(torch.isfinite(amax), torch.exp2(-exponent), torch.nan).float()
    result = (largest / torch.clamp(amax.double(), min=1e-12)).float()
    return torch.exp2(torch.floor(torch.log2(result.double()))).float() if rounding == "down" else result


def record_casts():
    random = np.random.default_rng(1)
    arrays = {}
    for name, dtype in FORMATS.items():
        codes = torch.arange(256, dtype=torch.uint8)
        values = codes.view(dtype).float()
        finite = np.unique(values[torch.isfinite(values)].numpy())
        middles = ((finite[1:].astype(np.float64) + finite[:-1]) / 2).astype(np.float32)
        near = np.concatenate([finite, middles])
        inputs = np.concatenate([
            near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf)),
            np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-38, np.inf, -np.inf, np.nan, 3.4e38, -3.4e38]),
            (random.standard_normal(4096) * np.exp2(random.integers(-30, 20, 4096))).astype(np.float32)])
        arrays[name + "_decoded"] = values.numpy()
        arrays[name + "_inputs"] = inputs
        arrays[name + "_codes"] = cast(torch.from_numpy(inputs), dtype).view(torch.uint8).numpy()
        powers = np.exp2(np.arange(-126, 128)).astype(np.float32)
        just = np.exp2(np.arange(-45, 100)).astype(np.float32) * np.float32(torch.finfo(dtype).max)
        amax = np.concatenate([
            just, np.nextafter(just, np.float32(np.inf)), np.nextafter(just, np.float32(0)),
            np.float32([0, 1e-45, 1e-40, 1e-13, 1e-12, 2e-12, 3.4e38, np.inf, np.nan, 448, 57344]), powers,
            np.nextafter(powers, np.float32(np.inf)), np.nextafter(powers, np.float32(0)),
            np.exp2(random.uniform(-126, 127, 4096)).astype(np.float32)])
        arrays[name + "_amax"] = amax
        for rounding in ("none", "down", "e8m0"):
            arrays[f"{name}_scale_{rounding}"] = scale(torch.from_numpy(amax), dtype, rounding).numpy()
    np.savez_compressed(os.path.join(OUT, "casts.npz"), torch=torch.__version__, **arrays, **record_products())


# --- Recipes ----------------------------------------------------------------------------------------------------------


def quantized(x, dim, block, rounding, name="e4m3fn", rows=1):
    """Codes of `x` [m, n] as tiles [m/a, a, n/b, b] and their scales: `block` neighbours along `dim` (None: all)
    share a scale, and `rows` (None: all) along the other dimension."""
    dtype = FORMATS[name]
    other = 1 - dim
    sizes = [0, 0]
    sizes[dim], sizes[other] = block or x.shape[dim], rows or x.shape[other]
    tiles = x.float().unflatten(1, (-1, sizes[1])).unflatten(0, (-1, sizes[0]))
    s = scale(tiles.abs().amax((1, 3), keepdim=True), dtype, rounding)
    return cast(tiles * s, dtype), s


# recipe -> product -> what quantized() is told of its operands; a product that is not there multiplies bf16.
ALL = {"block": None, "rounding": "down"}
TENSOR = {"block": None, "rounding": "none", "rows": None}
BLOCK = {"block": 128, "rounding": "down"}
MX = {"block": 32, "rounding": "e8m0"}
CASTS = {
    "tensorwise": {"y": (TENSOR, TENSOR), "dx": ({**TENSOR, "name": "e5m2"}, TENSOR),
                   "dw": ({**TENSOR, "name": "e5m2"}, TENSOR)},
    "rowwise": {"y": (ALL, ALL), "dx": (ALL, ALL), "dw": (ALL, ALL)},
    "rowwise_hp": {"y": (ALL, ALL), "dx": (ALL, {**ALL, "rows": None})},
    "block128": {"y": (BLOCK, {**BLOCK, "rows": 128}), "dx": (BLOCK, {**BLOCK, "rows": 128}), "dw": (BLOCK, BLOCK)},
    "mxfp8": {"y": (MX, MX), "dx": (MX, MX), "dw": (MX, MX)},
}
# product -> the dimension of each operand that is contracted
CONTRACTED = {"y": (1, 1), "dx": (1, 0), "dw": (0, 0)}


def product(recipe, kind, first, second, seen=None):
    """y of x and w, dx of g and w, dw of g and x, in f32. `seen` collects the codes and scales of operands."""
    factors = [first, second]
    for i, how in enumerate(CASTS[recipe].get(kind, ())):
        codes, s = quantized(factors[i], CONTRACTED[kind][i], **how)
        factors[i] = (codes.float() * (1 / s)).flatten(2, 3).flatten(0, 1)
        if seen is not None:
            seen.append((codes.view(torch.uint8).flatten(2, 3).flatten(0, 1), (1 / s)[:, 0, :, 0]))
    first, second = factors
    return first @ second.T if kind == "y" else first @ second if kind == "dx" else first.T @ second


class Fp8Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, recipe):
        x = x.bfloat16().float()
        ctx.save_for_backward(x, w)
        ctx.recipe = recipe
        return product(recipe, "y", x, w).bfloat16().float()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g.bfloat16().float()
        return product(ctx.recipe, "dx", g, w).bfloat16().float(), product(ctx.recipe, "dw", g, x), None


def record_products():
    """Per recipe the products of fp8.case_values: of codes the SHA-256, all scales, of y, dx and dw every 32nd row."""
    x, w, g = (torch.from_numpy(value) for value in fp8.case_values())
    arrays = {}
    for recipe in CASTS:
        for kind, first, second in (("y", x, w), ("dx", g, w), ("dw", g, x)):
            seen = []
            result = product(recipe, kind, first, second, seen)
            arrays[f"{recipe}_{kind}"] = result[::32].numpy()
            for i, (codes, inverse) in enumerate(seen):
                digest = hashlib.sha256(codes.contiguous().numpy().tobytes()).digest()
                arrays[f"{recipe}_{kind}_codes_{i}"] = np.frombuffer(digest, np.uint8)
                arrays[f"{recipe}_{kind}_inverse_{i}"] = inverse.numpy()
    return arrays


def use_recipe(model, recipe):
    for name, layer in model.named_modules():
        if not isinstance(layer, torch.nn.Linear):
            continue

        def forward(x, layer=layer, isHead=name == "lm_head"):
            if isHead:
                return F.linear(x.bfloat16().float(), layer.weight.bfloat16().float())
            y = Fp8Linear.apply(x.flatten(0, -2), layer.weight, recipe).unflatten(0, x.shape[:-1])
            return y if layer.bias is None else y + layer.bias

        layer.forward = forward


# --- Trainings --------------------------------------------------------------------------------------------------------


def train(model, named, tokens, targets):
    decayed = [p for p in named.values() if p.dim() >= 2]
    plain = [p for p in named.values() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": HYPER["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=HYPER["lr"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["epsilon"], foreach=False)
    losses, norms = [], []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        logits = model(torch.from_numpy(tokens[rows]).long())
        loss = F.cross_entropy(logits.flatten(0, 1), torch.from_numpy(targets[rows]).long().flatten())
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), HYPER["clip_norm"]).item())
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, "gradient_norms": norms}


def record_trainings(name):
    model = MODELS[name]()
    exported, _ = export_proto(model, (models.tokens(256, 2, LENGTH),), ["tokens"], ["logits"], exporter="dynamo")
    initializers = {i.name for i in exported.graph.initializer}
    export_models.strip_weights(exported, {buffer for buffer, _ in model.named_buffers()}, name + ".weights")
    with open(os.path.join(OUT, name + ".onnx"), "wb") as file:
        file.write(exported.SerializeToString(deterministic=True))
    shapes = {n: list(p.shape) for n, p in model.named_parameters(remove_duplicate=False) if n in initializers}
    record = {"torch": torch.__version__, "batch": BATCH, "sequence": LENGTH, "steps": STEPS, "hyper": HYPER, "shapes": shapes,
              "recipes": {}}
    for recipe in ("fp32", "tensorwise", "rowwise", "rowwise_hp", "block128", "mxfp8"):
        model = MODELS[name]()
        named = {n: p for n, p in model.named_parameters(remove_duplicate=False) if n in shapes}
        weights, tokens, targets = fp8.training_values(shapes, STEPS * BATCH, LENGTH)
        with torch.no_grad():
            for parameter, weight in weights.items():
                named[parameter].copy_(torch.from_numpy(weight))
        if recipe != "fp32":
            use_recipe(model, recipe)
        record["recipes"][recipe] = train(model, named, tokens, targets)
        print(name, recipe, *("%.6f" % loss for loss in record["recipes"][recipe]["losses"][::3]))
    with open(os.path.join(OUT, name + ".json"), "w") as file:
        json.dump(record, file, indent=1)
        file.write("\n")


def main():
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 12):
        sys.exit(f"torch {torch.__version__} gives NaN for what is too large for float8: needs 2.12 or newer")
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    os.makedirs(OUT, exist_ok=True)
    record_casts()
    for name in MODELS:
        record_trainings(name)


if __name__ == "__main__":
    main()
