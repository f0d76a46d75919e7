#!/usr/bin/env python3
"""Trains the GPT of make_goldens.py with PyTorch's data-parallel wrappers, over gloo on CPU, and records the losses.

usage: make_distributed_goldens.py      (torch 2.6; two processes of one thread each)

Same weights, batches and optimizer as gpt/golden.json; the batch is cut into one part per rank, each rank's loss is
summed and divided by the number of targets of the whole batch. Writes gpt/distributed.json: losses and gradient norms
of DistributedDataParallel and of FSDP2 (fully_shard on each block and on the model, gathered once per step: on CPU
torch 2.6 cannot gather again for backward).
"""

import json
import os
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import load_file
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "onnx", "models"))
import models  # noqa: E402

RANKS = 2


class CpuEvent:
    """torch 2.6 calls methods of device streams that its CPU stream lacks; there everything is over when it returns."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


torch.cpu.Stream.record_event = lambda self, event=None: CpuEvent()
torch.cpu.Stream.wait_event = torch.cpu.Stream.wait_stream = lambda self, other: None
FOLDER = os.path.join(HERE, "gpt")


def wrap(model, how):
    if how == "ddp":
        return DistributedDataParallel(model)
    mesh = dist.device_mesh.init_device_mesh("cpu", (RANKS,))
    for block in model.h:
        fully_shard(block, mesh=mesh, reshard_after_forward=False)
    return fully_shard(model, mesh=mesh, reshard_after_forward=False)


def train(rank, how, port, results):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    with open(os.path.join(FOLDER, "golden.json")) as file:
        golden = json.load(file)
    hyper, batch = golden["hyper"], golden["batch"]
    model, _, inputs, _ = models.build("gpt", seed=1)
    model.load_state_dict(load_file(os.path.join(FOLDER, "weights.safetensors")), strict=False)
    model = wrap(model.train(), how)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    plain = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": hyper["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=hyper["lr"], betas=(hyper["beta1"], hyper["beta2"]), eps=hyper["epsilon"], foreach=False)
    data = load_file(os.path.join(FOLDER, "data.safetensors"))
    tokens, targets = data[inputs[0]].long(), data["targets"].long()
    part = batch // RANKS
    losses, norms = [], []
    for step in range(golden["steps"]):
        whole = slice(step * batch, (step + 1) * batch)
        own = slice(step * batch + rank * part, step * batch + (rank + 1) * part)
        count = (targets[whole] != -100).sum()
        logits = model(tokens[own])
        loss = F.cross_entropy(logits.flatten(0, 1), targets[own].flatten(), ignore_index=-100, reduction="sum") / count
        optimizer.zero_grad()
        # DDP takes the mean over ranks. So would FSDP2, but the mean of gloo's reduce-scatter is a sum.
        (loss * RANKS if how == "ddp" else loss).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), hyper["clip_norm"])
        norms.append((norm.full_tensor() if hasattr(norm, "full_tensor") else norm).item())
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total)
        losses.append(total.item())
    if rank == 0:
        results[how] = {"losses": losses, "gradient_norms": norms}
    dist.destroy_process_group()


def main():
    record = {"torch": torch.__version__, "backend": "gloo", "ranks": RANKS}
    with mp.Manager() as manager:
        results = manager.dict()
        for port, how in ((29651, "ddp"), (29652, "fsdp2")):
            mp.spawn(train, (how, port, results), nprocs=RANKS)
        record.update({how: results[how] for how in ("ddp", "fsdp2")})
    with open(os.path.join(FOLDER, "distributed.json"), "w") as file:
        json.dump(record, file, indent=2)
        file.write("\n")


if __name__ == "__main__":
    main()
