#!/usr/bin/env python3
"""Trains the recorded MLP in PyTorch with other optimizers and records what Tessera must reproduce.

usage: make_optimizer_goldens.py      (torch, safetensors; needs the folder mlp of make_goldens.py)

optimizers.json has for each case the flags of tessera-compile, the losses of ten steps and the norms of their gradients before
clipping; optimizers/<case>.safetensors the parameters after the last step, and optimizers/<case>-average.safetensors
their moving averages. schedules.json has learning rates of PyTorch's schedulers. Everything runs in fp32 on one thread.

Lion is written out here as its authors published it (google/automl, lion/lion_pytorch.py).
"""

import json
import os

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS, BATCH = 10, 12


class Lion(torch.optim.Optimizer):
    def __init__(self, params, lr, betas, weight_decay=0.0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - group["lr"] * group["weight_decay"])
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                exp_avg, (beta1, beta2) = state["exp_avg"], group["betas"]
                update = exp_avg * beta1 + p.grad * (1 - beta1)
                p.add_(update.sign_(), alpha=-group["lr"])
                exp_avg.mul_(beta2).add_(p.grad, alpha=1 - beta2)


def adamw(groups):
    return torch.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95), eps=1e-8, foreach=False)


def lion(groups):
    return Lion(groups, lr=3e-3, betas=(0.9, 0.99))


def sgd(groups):
    return torch.optim.SGD(groups, lr=0.1, momentum=0.9, nesterov=True)


ADAMW = ["--optimizer", "adamw", "--lr", 1e-2, "--betas", 0.9, 0.95]
LION = ["--optimizer", "lion", "--lr", 3e-3]
SGD = ["--optimizer", "sgd", "--lr", 0.1, "--momentum", 0.9, "--nesterov"]
# name -> (optimizer, flags, decay of matrices, clip_norm, clip_value, decay of the averages)
CASES = {
    "lion": (lion, LION, 0.1, 0, 0, 0),
    "lion-ema": (lion, LION, 0.1, 0, 0.05, 0.9),
    "adamw-value": (adamw, ADAMW, 0.1, 0, 0.02, 0),
    "sgd-norm-value": (sgd, SGD, 0, 0.5, 0.03, 0),
    "adamw-ema": (adamw, ADAMW, 0.1, 0.5, 0, 0.9),
}


def forward(p, x):
    x = F.relu(F.linear(x, p["fc1.weight"], p["fc1.bias"]))
    x = F.silu(F.linear(x, p["fc2.weight"], p["fc2.bias"]))
    return F.linear(x, p["fc3.weight"], p["fc3.bias"])


def train(name):
    make, flags, decay, clip_norm, clip_value, ema = CASES[name]
    folder = os.path.join(HERE, "mlp")
    parameters = {n: t.clone().requires_grad_() for n, t in load_file(os.path.join(folder, "weights.safetensors")).items()}
    averages = {n: t.detach().clone() for n, t in parameters.items()}
    data = load_file(os.path.join(folder, "data.safetensors"))
    optimizer = make([{"params": [t for t in parameters.values() if t.dim() >= 2], "weight_decay": decay},
                      {"params": [t for t in parameters.values() if t.dim() < 2], "weight_decay": 0.0}])
    losses, norms = [], []
    for rows in torch.arange(STEPS * BATCH).split(BATCH):
        optimizer.zero_grad()
        loss = F.mse_loss(forward(parameters, data["x"][rows]), data["targets"][rows])
        loss.backward()
        norms.append(torch.linalg.vector_norm(torch.cat([t.grad.flatten() for t in parameters.values()])).item())
        if clip_norm:
            torch.nn.utils.clip_grad_norm_(parameters.values(), clip_norm)
        if clip_value:
            torch.nn.utils.clip_grad_value_(parameters.values(), clip_value)
        optimizer.step()
        if ema:
            torch.optim.swa_utils.get_ema_multi_avg_fn(ema)(list(averages.values()),
                                                            [t.detach() for t in parameters.values()], None)
        losses.append(loss.item())
    folder = os.path.join(HERE, "optimizers")
    os.makedirs(folder, exist_ok=True)
    save_file({n: t.detach() for n, t in parameters.items()}, os.path.join(folder, name + ".safetensors"))
    if ema:
        save_file(averages, os.path.join(folder, name + "-average.safetensors"))
    print(name, "losses", ["%.6f" % x for x in losses])
    flags = flags + ["--weight-decay", decay, "--clip-norm", clip_norm, "--clip-value", clip_value, "--ema", ema]
    return {"flags": flags, "losses": losses, "norms": norms}


def rates(total, build):
    """The learning rates of steps 1 to `total`: PyTorch's schedulers give that of the step after the ones done."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.8)
    scheduler = build(optimizer)
    values = []
    for _ in range(total):
        optimizer.step()
        scheduler.step()
        values.append(scheduler.get_last_lr()[0])
    return values


def schedules():
    """Recorded where PyTorch's step count is Tessera's: after k calls of step() a scheduler is at step k."""
    s = torch.optim.lr_scheduler

    def after_warmup(make, warmup=5):
        def build(optimizer):
            # LinearLR begins above 0: its factor at step 0 is never used here.
            first = s.LinearLR(optimizer, start_factor=1e-9, end_factor=1.0, total_iters=warmup)
            return s.SequentialLR(optimizer, [first, make(optimizer)], milestones=[warmup])
        return build

    def wsd(optimizer):
        return s.SequentialLR(optimizer, [s.ConstantLR(optimizer, factor=1.0, total_iters=15),
                                          s.LinearLR(optimizer, start_factor=1.0, end_factor=0.125, total_iters=10)],
                              milestones=[15])

    return {
        "linear": {"flags": ["--schedule", "linear", "--warmup", 5, "--min-lr", 0.1],
                   "rates": rates(25, after_warmup(lambda o: s.LinearLR(o, 1.0, 0.125, total_iters=20)))},
        "cosine": {"flags": ["--schedule", "cosine", "--warmup", 5, "--min-lr", 0.1],
                   "rates": rates(25, after_warmup(lambda o: s.CosineAnnealingLR(o, T_max=20, eta_min=0.1)))},
        "inverse-sqrt": {"flags": ["--schedule", "inverse-sqrt", "--warmup", 5],
                         "rates": rates(25, after_warmup(lambda o: s.LambdaLR(o, lambda k: (5 / (k + 5)) ** 0.5)))},
        "wsd": {"flags": ["--schedule", "wsd", "--decay-steps", 10, "--min-lr", 0.1], "rates": rates(25, wsd)},
        "wsd 1-sqrt": {"flags": ["--schedule", "wsd", "--decay-steps", 10, "--decay-curve", "1-sqrt"],
                       "rates": rates(25, lambda o: s.LambdaLR(o, lambda k: 1 - (max(k - 15, 0) / 10) ** 0.5))},
    }


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name, record in (("optimizers", {case: train(case) for case in CASES}), ("schedules", schedules())):
        with open(os.path.join(HERE, name + ".json"), "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
