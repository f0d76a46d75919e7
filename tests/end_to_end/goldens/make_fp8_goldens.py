#!/usr/bin/env python3
"""Records what PyTorch makes of FP8, for test_fp8.py and test_fp8_casts.py.

usage: make_fp8_goldens.py      (torch 2.12 or newer: older ones give NaN for what is too large; onnx, onnxscript)

Writes into fp8/
  casts.npz     per format: f32 values, PyTorch's bytes for them after a clamp, and what all 256 bytes mean; per rounding:
                largest absolute values and scales, by torchao's formula
  <model>.onnx  a small GPT and a small Llama whose layers are multiples of 128, without weights
  <model>.json  ten AdamW steps of each in fp32 and with each recipe: losses and gradient norms. Weights and data are those of
                fp8.training_values, so that no file holds them

The recipes are torch autograd functions in the linear layers but the head: x, g and what is returned are bf16, weights are
cast from f32, their gradients are f32. The head multiplies bf16; all else is f32.
"""

import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..", "..")
OUT = os.path.join(HERE, "fp8")
sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tests", "onnx", "models"),
                os.path.join(ROOT, "tests", "support")]
import export_models  # noqa: E402
import fp8  # noqa: E402
import models  # noqa: E402
import torch_export  # noqa: E402

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
    """torchao's float8_utils: in f64, to f32, and down to a power of two; of mxfp8, from the quotient rounded up."""
    largest = torch.finfo(dtype).max
    if rounding == "e8m0":
        exponent = torch.ceil(torch.log2((amax / torch.tensor(largest, dtype=torch.float32)).double())).clamp(min=-127)
        return torch.where(torch.isfinite(amax), torch.exp2(-exponent), torch.nan).float()
    result = (largest / torch.clamp(amax.double(), min=1e-12)).float()
    return torch.exp2(torch.floor(torch.log2(result))) if rounding == "down" else result


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
        amax = np.concatenate([
            np.float32([0, 1e-45, 1e-40, 1e-13, 1e-12, 2e-12, 3.4e38, np.inf, np.nan, 448, 57344]), powers,
            np.nextafter(powers, np.float32(np.inf)), np.nextafter(powers, np.float32(0)),
            np.exp2(random.uniform(-126, 127, 4096)).astype(np.float32)])
        arrays[name + "_amax"] = amax
        for rounding in ("none", "down", "e8m0"):
            arrays[f"{name}_scale_{rounding}"] = scale(torch.from_numpy(amax), dtype, rounding).numpy()
    np.savez_compressed(os.path.join(OUT, "casts.npz"), torch=torch.__version__, **arrays)


# --- Recipes ----------------------------------------------------------------------------------------------------------


def through_fp8(x, dim, block, rounding, name="e4m3fn", rows=1):
    """`x` [m, n] as FP8 represents it: `block` neighbours along `dim` (None: all of them) share a scale, and `rows` (None: all)
    along the other dimension."""
    dtype = FORMATS[name]
    other = 1 - dim
    sizes = [0, 0]
    sizes[dim], sizes[other] = block or x.shape[dim], rows or x.shape[other]
    tiles = x.float().unflatten(1, (-1, sizes[1])).unflatten(0, (-1, sizes[0]))  # [m/a, a, n/b, b]
    s = scale(tiles.abs().amax((1, 3), keepdim=True), dtype, rounding)
    return (cast(tiles * s, dtype).float() * (1 / s)).flatten(2, 3).flatten(0, 1)


class Fp8Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, recipe):
        x = x.bfloat16().float()
        ctx.save_for_backward(x, w)
        ctx.recipe = recipe
        q = {
            "tensorwise": lambda: (through_fp8(x, 1, None, "none", rows=None), through_fp8(w, 1, None, "none", rows=None)),
            "rowwise": lambda: (through_fp8(x, 1, None, "down"), through_fp8(w, 1, None, "down")),
            "rowwise_hp": lambda: (through_fp8(x, 1, None, "down"), through_fp8(w, 1, None, "down")),
            "block128": lambda: (through_fp8(x, 1, 128, "down"), through_fp8(w, 1, 128, "down", rows=128)),
            "mxfp8": lambda: (through_fp8(x, 1, 32, "e8m0"), through_fp8(w, 1, 32, "e8m0")),
        }[recipe]()
        return (q[0] @ q[1].T).bfloat16().float()

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        g = g.bfloat16().float()
        if ctx.recipe == "tensorwise":
            gq = through_fp8(g, 1, None, "none", "e5m2", rows=None)
            dx = gq @ through_fp8(w, 0, None, "none", rows=None)
            dw = gq.T @ through_fp8(x, 0, None, "none", rows=None)
        elif ctx.recipe == "rowwise":
            dx = through_fp8(g, 1, None, "down") @ through_fp8(w, 0, None, "down")
            dw = through_fp8(g, 0, None, "down").T @ through_fp8(x, 0, None, "down")
        elif ctx.recipe == "rowwise_hp":
            dx = through_fp8(g, 1, None, "down") @ through_fp8(w, 0, None, "down", rows=None)
            dw = g.T @ x
        elif ctx.recipe == "block128":
            dx = through_fp8(g, 1, 128, "down") @ through_fp8(w, 0, 128, "down", rows=128)
            dw = through_fp8(g, 0, 128, "down").T @ through_fp8(x, 0, 128, "down")
        else:
            dx = through_fp8(g, 1, 32, "e8m0") @ through_fp8(w, 0, 32, "e8m0")
            dw = through_fp8(g, 0, 32, "e8m0").T @ through_fp8(x, 0, 32, "e8m0")
        return dx.bfloat16().float(), dw, None


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
    exported, _ = torch_export.export_proto(model, (models.tokens(256, 2, LENGTH),), ["tokens"], ["logits"], exporter="dynamo")
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
