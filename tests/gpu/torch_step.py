"""Trains a model of torch_models.py and prints the seconds of each step and the peak of memory as JSON.

usage: torch_step.py SHAPE --batch N --seq T --steps S --system eager|compile|fsdp2 --device cuda|cpu --precision bf16|fp32

Parameters and optimizer state are f32; bf16 is autocast, for FSDP2 its mixed-precision policy (gathered in bf16, reduced
in f32). The optimizer is the fused AdamW with clipping by norm, attention is scaled_dot_product_attention. Which of its
gradients was used is read from one more step, which is not timed.
"""

import argparse
import contextlib
import json
import os
import time

import torch
import torch.nn.functional as F

import torch_models


def shard(model, device, precision):
    """FSDP2 at world size 1: every block a unit, and the rest."""
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    for name, value in (("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", "29511"), ("RANK", "0"), ("WORLD_SIZE", "1")):
        os.environ.setdefault(name, value)
    if device == "cpu":  # as in tests/bench/torch_training.py: its CPU streams lack what FSDP2 calls
        import torch_training
        torch.cpu.Stream.record_event = lambda self, event=None: torch_training.CpuEvent()
        torch.cpu.Stream.wait_event = torch.cpu.Stream.wait_stream = lambda self, other: None
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    mesh = dist.device_mesh.init_device_mesh(device, (1,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if precision == "bf16" else \
        MixedPrecisionPolicy()
    for block in model.blocks:
        fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=device == "cuda")
    return fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=device == "cuda")


def attention_gradient(train):
    """What scaled_dot_product_attention used backwards, and whether PyTorch was asked for deterministic algorithms."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        train()
    used = sorted({event.key.removeprefix("aten::_") for event in profile.key_averages()
                   if "scaled_dot_product" in event.key and event.key.startswith("aten::_") and "backward" in event.key})
    asked = "deterministic algorithms" if torch.are_deterministic_algorithms_enabled() else "not asked to be deterministic"
    return f"{', '.join(used) or 'no fused kernel'}; {asked}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape")
    for name in ("batch", "seq", "steps"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--system", choices=("eager", "compile", "fsdp2"), required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--precision", choices=("bf16", "fp32"), required=True)
    a = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.device(a.device):
        model = torch_models.build(a.shape)
    for parameter in model.parameters():  # as tessera-run initialises, so that the first loss is that of random tokens
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    vocabulary, count = model.embedding.num_embeddings, sum(p.numel() for p in model.parameters())
    if a.system == "fsdp2":
        model = shard(model, a.device, a.precision)
    parameters = list(model.parameters())
    step_model = torch.compile(model) if a.system == "compile" else model
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.1, fused=True)
    autocast = torch.autocast(a.device, torch.bfloat16) if a.precision == "bf16" and a.system != "fsdp2" else \
        contextlib.nullcontext()
    wait = torch.cuda.synchronize if a.device == "cuda" else lambda: None
    seconds, losses = [], []

    def train():
        tokens = torch.randint(0, vocabulary, (a.batch, a.seq + 1), device=a.device)
        wait()
        begin = time.perf_counter()
        with autocast:
            logits = step_model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        del logits
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        wait()
        seconds.append(time.perf_counter() - begin)

    for _ in range(a.steps):
        train()
    memory = torch.cuda.max_memory_reserved() if a.device == "cuda" else None
    timed, first = list(seconds), list(losses)
    print(json.dumps({"parameters": count, "seconds": timed, "memory": memory, "losses": first,
                      "attention_gradient": attention_gradient(train)}))
    if a.system == "fsdp2":
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
