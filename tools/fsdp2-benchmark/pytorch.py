"""Trains one of PyTorch's variants and writes what a rank saw. main.py starts it; by hand, in a folder that main.py made:

  torchrun --nproc-per-node 2 pytorch.py VARIANT FOLDER

FOLDER has settings.json, model/ (a configuration and the initial weights) and batches.npz; FOLDER/VARIANT/rank-<n>.json is written.
"""

import json
import os
import sys
import time

import numpy
import torch
import torch.distributed as dist
from measure import measured, tracker_for
from safetensors import safe_open
from torch.distributed.fsdp import fully_shard
from transformers import AutoConfig, AutoModelForCausalLM

WEIGHTS = os.path.join("model", "model.safetensors")


def load_model(folder):
    """The model of the folder with its initial weights, in fp32, on the CPU."""
    config = AutoConfig.from_pretrained(os.path.join(folder, "model"))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
    with safe_open(os.path.join(folder, WEIGHTS), "pt") as file, torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(file.get_tensor(name))
    return model


def shard(model):
    """Applies fully_shard to each decoder layer, and then to the root. The model's parameters are other tensors afterwards."""
    for module in list(model.modules()):
        if type(module).__name__ in (model._no_split_modules or ()):
            fully_shard(module, reshard_after_forward=True)
    fully_shard(model, reshard_after_forward=True)


def prepare_after(model, make_optimizer):
    """As PyTorch wants it: the optimizer gets the sharded parameters."""
    shard(model)
    return model, make_optimizer(model.parameters()), torch.Tensor.backward


def prepare_not_fixed(model, make_optimizer):
    """The optimizer keeps the parameters that the model had before, which nothing else knows any more."""
    optimizer = make_optimizer(model.parameters())
    shard(model)
    return model, optimizer, torch.Tensor.backward


def prepare_fixed(model, make_optimizer):
    """The optimizer is switched by name to the sharded parameters. In between it holds names alone, so that each layer's whole
    parameters are freed when that layer is sharded."""
    optimizer = make_optimizer(model.parameters())
    names = {parameter: name for name, parameter in model.named_parameters()}
    for group in optimizer.param_groups:
        group["params"] = [names[parameter] for parameter in group["params"]]
    names.clear()
    shard(model)
    sharded = dict(model.named_parameters())
    for group in optimizer.param_groups:
        group["params"] = [sharded[name] for name in group["params"]]
    return model, optimizer, torch.Tensor.backward


def prepare_accelerate(model, make_optimizer):
    """accelerate does all that in prepare(). On CPUs it would use DDP and leave its FSDP plugin out, without a word: there its state
    is set to FSDP, as it would be on GPUs."""
    from accelerate import Accelerator, DistributedType, FullyShardedDataParallelPlugin
    plugin = FullyShardedDataParallelPlugin(fsdp_version=2, reshard_after_forward=True, auto_wrap_policy="transformer_based_wrap",
                                            cpu_ram_efficient_loading=False)
    accelerator = Accelerator(cpu=not torch.cuda.is_available(), mixed_precision="no", fsdp_plugin=plugin)
    if accelerator.device.type == "cpu":
        accelerator.state.distributed_type, accelerator.state.fsdp_plugin = DistributedType.FSDP, plugin
    return *accelerator.prepare(model, make_optimizer(model.parameters())), accelerator.backward


PREPARE = {"torch_optimizer_after_fsdp": prepare_after, "torch_optimizer_before_fsdp_not_fixed": prepare_not_fixed,
           "torch_optimizer_before_fsdp_fixed": prepare_fixed, "accelerate": prepare_accelerate}


def changed(model, folder):
    """How far training moved the parameters: the norm of all differences to the initial ones over the norm of these."""
    moved = norm = 0.0
    with safe_open(os.path.join(folder, WEIGHTS), "pt") as file:
        for name, parameter in model.named_parameters():
            value, initial = parameter.detach().full_tensor().cpu().double(), file.get_tensor(name).double()
            moved, norm = moved + float((value - initial).square().sum()), norm + float(initial.square().sum())
    return (moved / norm) ** 0.5


def train(variant, folder, settings, device):
    """The record of this rank: losses of the whole batch, seconds of each step, memory after preparation and after each step."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    share, record, tracker = settings["batch"] // ranks, {}, tracker_for(device)

    def make_optimizer(parameters):
        return torch.optim.AdamW(parameters, lr=settings["lr"], betas=settings["betas"], eps=settings["epsilon"],
                                 weight_decay=settings["weight_decay"])

    with measured(record, tracker):
        model, optimizer, backward = PREPARE[variant](load_model(folder), make_optimizer)
    record |= {"losses": [], "seconds": []}
    batches = numpy.load(os.path.join(folder, "batches.npz"))
    for step in range(settings["steps"]):
        mine = slice(step * settings["batch"] + rank * share, step * settings["batch"] + (rank + 1) * share)
        start = time.perf_counter()
        with measured(record, tracker):
            tokens, targets = (torch.from_numpy(batches[name][mine]).to(device) for name in ("input_ids", "targets"))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(input_ids=tokens, use_cache=False).logits.flatten(0, 1), targets.flatten())
            backward(loss)
            optimizer.step()
            loss = loss.detach()
            dist.all_reduce(loss)
            record["losses"].append(loss.item() / ranks)
            del tokens, targets, loss
        record["seconds"].append(time.perf_counter() - start)
    return record | {"changed": changed(model, folder)}


def main():
    variant, folder = sys.argv[1:]
    with open(os.path.join(folder, "settings.json"), encoding="utf-8") as file:
        settings = json.load(file)
    device = settings["device"]
    torch.set_num_threads(settings["threads"])
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    if settings["snapshot"] and device == "cuda":
        torch.cuda.memory._record_memory_history()
    record = train(variant, folder, settings, device)
    out = os.path.join(folder, variant)
    if settings["snapshot"] and device == "cuda":
        torch.cuda.memory._dump_snapshot(os.path.join(out, f"snapshot-{dist.get_rank()}.pickle"))
    with open(os.path.join(out, f"rank-{dist.get_rank()}.json"), "w", encoding="utf-8") as file:
        json.dump(record, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
