#!/usr/bin/env python3
"""Trains low-rank adapters beside the frozen Llama of the golden `llama` in PyTorch and records what Tessera must
reproduce: adapters of the attention's products, the final norm trained itself, ten AdamW steps on the golden's data.

usage: make_lora_goldens.py      (torch, safetensors)

Writes into the folder lora
  adapters.safetensors   A and B of every adapter before the first step (neither is 0)
  gradients.safetensors  the gradient of all that is trained, in the first step, before clipping
  final.safetensors      what is trained, after the last step
  merged.safetensors     the adapted matrices with the adapters added
  golden.json            losses and what was asked for
Everything runs in fp32 on one thread. The formula is that of Hugging Face's PEFT: y + (x A^T) B^T * (alpha / rank).
"""

import json
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "onnx", "models"))
import models  # noqa: E402

RANK, ALPHA, TRAINED = 4, 8.0, "norm.weight"
TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj")


class Adapted(nn.Module):
    """A Linear with an adapter beside it."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.lora_A = nn.Parameter(torch.randn(RANK, base.in_features) / base.in_features**0.5)
        self.lora_B = nn.Parameter(0.05 * torch.randn(base.out_features, RANK))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_A), self.lora_B) * (ALPHA / RANK)


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(22)
    with open(os.path.join(HERE, "llama", "golden.json")) as file:
        golden = json.load(file)
    model, _, inputs, _ = models.build("llama", seed=1)
    model.train()
    model.load_state_dict(load_file(os.path.join(HERE, "llama", "weights.safetensors")), strict=False)
    trained = {}
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.Linear) and name.split(".")[-1] in TARGETS:
            adapted = Adapted(module)
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, adapted)
            trained[name + ".lora_A.weight"], trained[name + ".lora_B.weight"] = adapted.lora_A, adapted.lora_B
    named = [(n, p) for n, p in model.named_parameters() if n.endswith(TRAINED) and n.count(".") <= 2 and ".layers." not in n]
    (final_norm, parameter), = named
    trained[final_norm] = parameter.requires_grad_(True)

    hyper = golden["hyper"]
    groups = [{"params": [p for p in trained.values() if p.dim() >= 2], "weight_decay": hyper["weight_decay"]},
              {"params": [p for p in trained.values() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=hyper["lr"], betas=(hyper["beta1"], hyper["beta2"]), eps=hyper["epsilon"],
                                  foreach=False)
    data = load_file(os.path.join(HERE, "llama", "data.safetensors"))
    tokens, targets = data[inputs[0]], data["targets"]
    folder = os.path.join(HERE, "lora")
    os.makedirs(folder, exist_ok=True)
    snapshot = lambda: {n: p.detach().clone().contiguous() for n, p in trained.items()}  # noqa: E731
    save_file({n: t for n, t in snapshot().items() if n != final_norm}, os.path.join(folder, "adapters.safetensors"))
    losses = []
    for step in range(golden["steps"]):
        rows = slice(step * golden["batch"], (step + 1) * golden["batch"])
        logits = model(tokens[rows].long())
        loss = F.cross_entropy(logits.flatten(0, 1), targets[rows].long().flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            save_file({n: p.grad.clone() for n, p in trained.items()}, os.path.join(folder, "gradients.safetensors"))
        torch.nn.utils.clip_grad_norm_(trained.values(), hyper["clip_norm"])
        optimizer.step()
        losses.append(loss.item())
    save_file(snapshot(), os.path.join(folder, "final.safetensors"))
    merged = {n + ".weight": (m.base.weight + (ALPHA / RANK) * m.lora_B @ m.lora_A).detach().contiguous()
              for n, m in model.named_modules() if isinstance(m, Adapted)}
    save_file(merged, os.path.join(folder, "merged.safetensors"))
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump({"torch": torch.__version__, "rank": RANK, "alpha": ALPHA, "targets": "|".join(TARGETS),
                   "trained": final_norm, "losses": losses}, file, indent=2)
        file.write("\n")
    print("losses", ["%.6f" % x for x in losses], "trained", final_norm)


if __name__ == "__main__":
    main()
