#!/usr/bin/env python3
"""Trains the models of tests/onnx/models in PyTorch for ten AdamW steps and records what Tessera must reproduce.

usage: make_goldens.py [model ...]      (torch 2.6, onnx, safetensors; see tests/onnx/models)

For each model a folder with
  weights.safetensors    the parameters before the first step, by their ONNX initializer names
  gradients.safetensors  the gradient of every parameter in the first step, before clipping
  final.safetensors      the parameters after the last step
  data.safetensors       inputs and targets, one sample per row, in the order of training
  golden.json            losses and gradient norms per step, and the hyper-parameters
Everything runs in fp32 on one thread. The targets of the language models are random tokens too, a tenth of them ignored.
"""

import argparse
import json
import os
import sys

import onnx
import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
MODELS = os.path.join(HERE, "..", "..", "onnx", "models")
sys.path.insert(0, MODELS)
import models  # noqa: E402

STEPS, BATCH = 10, 48  # 48 divides by 1, 2, 3 and 4 ranks, with and without 4 micro-batches
HYPER = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1, "clip_norm": 0.3}
# model -> (exported file, sequence length of the recorded data)
CASES = {"gpt": ("gpt.dynamo18.onnx", 64), "llama": ("llama.dynamo18.onnx", 64)}


def onnx_names(path, model):
    """Initializer name -> parameter, where a tied parameter has one name only."""
    initializers = [i.name for i in onnx.load(path, load_external_data=False).graph.initializer]
    parameters = dict(model.named_parameters(remove_duplicate=False))
    named = {name: parameters[name] for name in initializers if name in parameters}
    if {id(p) for p in named.values()} != {id(p) for p in model.parameters()}:
        raise SystemExit(f"{path}: its initializers are not the model's parameters")
    return named


def snapshot(named):
    return {name: parameter.detach().clone().contiguous() for name, parameter in named.items()}


def perturb(named):
    """Small random weights, so that no parameter (a norm's scale, a bias) has a special value."""
    with torch.no_grad():
        for name, parameter in named.items():
            deviation = 0.05 if parameter.dim() >= 2 else 0.1
            center = 1.0 if parameter.dim() == 1 and name.endswith("weight") else 0.0
            parameter.copy_(center + deviation * torch.randn(parameter.shape))


def train(name):
    path, length = CASES[name]
    torch.manual_seed(20)
    model, _, inputs, _ = models.build(name, seed=1)
    model.train()
    named = onnx_names(os.path.join(MODELS, path), model)
    perturb(named)
    tokens = torch.randint(0, 256, (STEPS * BATCH, length), dtype=torch.int32)
    targets = torch.randint(0, 256, (STEPS * BATCH, length), dtype=torch.int32)
    targets[torch.rand(targets.shape) < 0.1] = -100

    decayed = [p for p in named.values() if p.dim() >= 2]
    plain = [p for p in named.values() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": HYPER["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=HYPER["lr"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["epsilon"], foreach=False)

    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    save_file(snapshot(named), os.path.join(folder, "weights.safetensors"))
    save_file({inputs[0]: tokens, "targets": targets}, os.path.join(folder, "data.safetensors"))
    losses, norms = [], []
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        logits = model(tokens[rows].long())
        loss = F.cross_entropy(logits.flatten(0, 1), targets[rows].long().flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            save_file({n: p.grad.clone() for n, p in named.items()}, os.path.join(folder, "gradients.safetensors"))
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), HYPER["clip_norm"]).item())
        optimizer.step()
        losses.append(loss.item())
    save_file(snapshot(named), os.path.join(folder, "final.safetensors"))
    golden = {"model": path, "torch": torch.__version__, "batch": BATCH, "sequence": length, "steps": STEPS,
              "hyper": HYPER, "losses": losses, "gradient_norms": norms}
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump(golden, file, indent=2)
        file.write("\n")
    print(name, "losses", ["%.6f" % x for x in losses], "norms", ["%.4f" % x for x in norms])


def train_vision(name):
    """A model on arrays: SGD with momentum, batches of 12. Records weights, data and losses."""
    path, samples, targets, loss_of = VISION[name]
    torch.manual_seed(21)
    model, _, inputs, _ = models.build(name, seed=1)
    model.train()
    state = {n: t.clone() for n, t in model.state_dict().items() if not n.endswith("num_batches_tracked")}
    samples, targets = samples(), targets()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for rows in torch.arange(len(samples)).split(12):
        optimizer.zero_grad()
        loss = loss_of(model(samples[rows]), targets[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    save_file(state, os.path.join(folder, "weights.safetensors"))
    save_file({inputs[0]: samples, "targets": targets}, os.path.join(folder, "data.safetensors"))
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump({"model": path, "torch": torch.__version__, "batch": 12, "lr": 0.05, "momentum": 0.9,
                   "losses": losses}, file, indent=2)
        file.write("\n")
    print(name, "losses", ["%.6f" % x for x in losses])


VISION = {
    "cnn": ("cnn.ts17.onnx", lambda: torch.rand(120, 1, 16, 16), lambda: torch.randint(0, 10, (120,)), F.cross_entropy),
    "mlp": ("mlp.ts17.onnx", lambda: torch.randn(120, 16), lambda: torch.randn(120, 4), F.mse_loss),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=[*CASES, *VISION])
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name in parser.parse_args().models:
        train(name) if name in CASES else train_vision(name)


if __name__ == "__main__":
    main()
