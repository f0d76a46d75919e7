"""Trains a model of torch_models.py and prints seconds per step and the peak of memory as JSON.

usage: torch_step.py SHAPE --vocabulary V --batch N --seq T --steps S --warmup W --system eager|compile|fsdp2|fsdp2+compile
                     --device cuda|cpu --precision bf16|fp32 [--padded ROWS] [--graphs]

The first W of the S steps are timed one by one, the others in blocks of 8, of which the mean counts. After each block a
line says all that is known, so that a process that is killed leaves the blocks before.

Parameters and optimizer state are f32; bf16 is autocast, for FSDP2 its mixed-precision policy (gathered in bf16, reduced
in f32). The loss is f32. The optimizer is the fused AdamW with clipping by norm, attention is scaled_dot_product_attention.
`compile` is the model with its loss, `fsdp2+compile` every block before it is sharded, and the loss, as torchtitan does.
Which gradient of attention was used is read from one more step, which is not timed, and printed as a line of its own.
"""

import argparse
import contextlib
import json
import time

import torch
import torch.nn.functional as F

import torch_models

BLOCK = 8  # steps


def shard(model, device, precision):
    """FSDP2 at world size 1: every block a unit, and the rest."""
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    if device == "cpu":  # as in tests/bench/torch_training.py: its CPU streams lack what FSDP2 calls
        import torch_training
        torch.cpu.Stream.record_event = lambda self, event=None: torch_training.CpuEvent()
        torch.cpu.Stream.wait_event = torch.cpu.Stream.wait_stream = lambda self, other: None
    dist.init_process_group("nccl" if device == "cuda" else "gloo", store=dist.HashStore(), rank=0, world_size=1)
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


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shape")
    for name in ("batch", "seq", "steps", "warmup", "vocabulary"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--system", choices=("eager", "compile", "fsdp2", "fsdp2+compile"), required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), required=True)
    parser.add_argument("--precision", choices=("bf16", "fp32"), required=True)
    parser.add_argument("--padded", type=int, help="rows of the model's table, if more than its vocabulary")
    parser.add_argument("--graphs", action="store_true", help="CUDA graphs of what is compiled")
    a = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    with torch.device(a.device):
        model = torch_models.build(a.shape, a.padded)
    for parameter in model.parameters():  # as tessera-run initialises, so that the first loss is that of random tokens
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.02)
    count = sum(p.numel() for p in model.parameters())
    entropy, sharded = cross_entropy, a.system.startswith("fsdp2")
    mode = "reduce-overhead" if a.graphs else None
    if a.system == "fsdp2+compile":
        for block in model.blocks:
            block.compile(mode=mode)
        entropy = torch.compile(cross_entropy, mode=mode)
    if sharded:
        model = shard(model, a.device, a.precision)
    parameters = list(model.parameters())

    def loss_of(tokens):
        return entropy(model(tokens[:, :-1]), tokens[:, 1:])

    if a.system == "compile":
        loss_of = torch.compile(loss_of, mode=mode)
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.1, fused=True)
    autocast = torch.autocast(a.device, torch.bfloat16) if a.precision == "bf16" and not sharded else contextlib.nullcontext()
    wait = torch.cuda.synchronize if a.device == "cuda" else lambda: None
    seconds, losses = [], []

    def batch():
        return torch.randint(0, a.vocabulary, (a.batch, a.seq + 1), device=a.device)

    def train(tokens):
        if a.graphs:
            torch.compiler.cudagraph_mark_step_begin()
        with autocast:
            loss = loss_of(tokens)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach().clone()  # a graph writes each step's loss to the same place

    def train_block(steps):
        """Waits for the GPU once, after the last step: until then the host may run ahead."""
        batches = [batch() for _ in range(steps)]
        wait()
        begin = time.perf_counter()
        found = [train(tokens) for tokens in batches]
        wait()
        seconds.append((time.perf_counter() - begin) / steps)
        losses.extend(loss.item() for loss in found)

    while len(losses) < a.steps:
        train_block(1 if len(losses) < a.warmup else min(BLOCK, a.steps - len(losses)))
        if len(losses) > a.warmup:
            memory = torch.cuda.max_memory_reserved() if a.device == "cuda" else None
            print(json.dumps({"parameters": count, "seconds": seconds, "memory": memory, "losses": losses}), flush=True)
    print(json.dumps({"attention_gradient": attention_gradient(lambda: train(batch()))}))
    if sharded:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
