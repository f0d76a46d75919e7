#!/usr/bin/env python3
"""One training step of a golden's model under PyTorch's context_parallel: the loss and the gradient of every parameter.

usage: torchrun --nproc-per-node N context_parallel.py FOLDER MODEL...      (torch with distributed.tensor's _context_parallel; gloo)

Writes FOLDER/MODEL-ORDER-ROTATION.npz: each parameter's gradient, and `loss`. ORDER is zigzag (PyTorch's load balance) or
contiguous, ROTATION how blocks of keys get to the other ranks: allgather or alltoall.

context_parallel has entries for the attention kernels of CUDA alone (custom_ops, register_cp_sharding_rules). What a CPU's attention
dispatches to is entered here; the split, the ring, the merging and the backward pass are PyTorch's.
"""

import os
import sys

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._context_parallel import _attention as ring
from torch.nn.attention import SDPBackend, sdpa_kernel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "onnx", "models")]
import models  # noqa: E402
from harness import Golden  # noqa: E402

FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default
POSITIONS = 2  # the dimension of queries, keys and values


def register(mesh):
    def parts(arguments):
        return [part.to_local() if isinstance(part, DTensor) else part for part in arguments]

    def whole(results):
        return tuple(DTensor.from_local(part, mesh, [Shard(POSITIONS)], run_check=False) for part in results)

    def forward(_, arguments, options):
        query, key, value, *rest = parts(arguments)
        dropout, causal = [*rest, *(0.0, False)[len(rest):]]
        return whole(ring._templated_ring_attention(mesh.get_group(), POSITIONS, FORWARD, query=query, key=key, value=value,
                                                    is_causal=causal, dropout_p=dropout, scale=options.get("scale")))

    def kernel(*, grad_out, query, key, value, out, logsumexp, is_causal, dropout_p, scale):
        return BACKWARD(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, scale=scale)

    def backward(_, arguments, options):
        gradient, query, key, value, out, logsumexp, dropout, causal = parts(arguments)
        results = ring._templated_ring_attention_backward(
            mesh.get_group(), POSITIONS, kernel, grad_out=gradient, grad_out_name="grad_out", query=query, key=key, value=value, out=out,
            logsumexp=logsumexp, is_causal=causal, dropout_p=dropout, scale=options.get("scale"))
        return whole(results[:3])

    ring.custom_ops[FORWARD], ring.custom_ops[BACKWARD] = forward, backward


def logits_of(model, tokens, positions):
    """The models' own forward functions count positions from 0; a rank's are others."""
    if isinstance(model, models.Gpt):
        x = model.wte(tokens) + model.wpe(positions)
        for block in model.h:
            x = block(x)
        return model.lm_head(model.ln_f(x))
    angles = torch.outer(positions.float(), model.inv_freq)
    angles = torch.cat((angles, angles), dim=-1)
    x = model.embed_tokens(tokens)
    for layer in model.layers:
        x = layer(x, angles.cos(), angles.sin())
    return model.lm_head(model.norm(x))


def step(name, mesh):
    golden = Golden(name)
    model, _, inputs, _ = models.build(name, seed=1)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for parameter, value in golden.load("weights").items():
            parameters[parameter].copy_(torch.from_numpy(value.copy()))
    data = {entry: torch.from_numpy(value[:golden.batch].astype(np.int64)) for entry, value in golden.load("data").items()}
    tokens, targets, positions = data[inputs[0]], data["targets"], torch.arange(golden.sequence)
    count = (targets != -100).sum()
    with context_parallel(mesh, buffers=[tokens, targets, positions], buffer_seq_dims=[1, 1, 0]), \
            sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        logits = logits_of(model, tokens, positions)
        assert logits.shape[1] == golden.sequence // mesh.size()
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum") / count
        loss.backward()
    results = {"loss": loss.detach(), **{parameter: value.grad for parameter, value in parameters.items()}}
    for value in results.values():
        dist.all_reduce(value)
    return {result: value.numpy() for result, value in results.items()}


def main():
    folder, *names = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    register(mesh)
    for name in names:
        for order in ("zigzag", "contiguous"):
            for rotation in ("allgather", "alltoall"):
                ring._cp_options.enable_load_balance = order == "zigzag"
                ring.set_rotate_method(rotation)
                results = step(name, mesh)
                if dist.get_rank() == 0:
                    np.savez(os.path.join(folder, f"{name}-{order}-{rotation}.npz"), **results)
    # gloo's threads sometimes abort a process that ends in order.
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
