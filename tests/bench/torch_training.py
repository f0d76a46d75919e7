"""Trains the GPT of tests/onnx/models in PyTorch (fp32, AdamW, clipping) and prints the seconds of each step as JSON.

usage: torch_training.py --layers 12 --width 768 --heads 12 --length 1024 --vocabulary 50257 --batch 4 --seq 256 --steps 5
       torchrun --nproc-per-node 2 torch_training.py … --parallel ddp|fsdp2     (over gloo; --batch is that of all processes)
"""

import time

launched = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx", "models"))
import models  # noqa: E402


class CpuEvent:
    """torch 2.6 calls methods of device streams that its CPU stream lacks; there everything is over when it returns."""

    def __getattr__(self, name):
        return lambda *arguments, **options: None


def parallel(model, how):
    """Wraps the model. FSDP2 gathers once per step: on CPU torch 2.6 cannot gather again for the backward pass."""
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    dist.init_process_group("gloo")
    if how == "ddp":
        return DistributedDataParallel(model)
    torch.cpu.Stream.record_event = lambda self, event=None: CpuEvent()
    torch.cpu.Stream.wait_event = torch.cpu.Stream.wait_stream = lambda self, other: None
    mesh = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.h:
        fully_shard(block, mesh=mesh, reshard_after_forward=False)
    return fully_shard(model, mesh=mesh, reshard_after_forward=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("layers", "width", "heads", "length", "vocabulary", "batch", "seq", "steps", "threads"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    parser.add_argument("--parallel", choices=("ddp", "fsdp2"), help="one of torchrun's processes")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    model = models.Gpt(vocabulary=a.vocabulary, width=a.width, heads=a.heads, layers=a.layers, length=a.length)
    ranks = 1
    if a.parallel:
        model = parallel(model, a.parallel)
        ranks = dist.get_world_size()
    parameters = list(model.parameters())
    if a.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=True)
    seconds, first = [], None
    for _ in range(a.steps):
        tokens = torch.randint(0, a.vocabulary, (a.batch // ranks, a.seq + 1))
        start = time.perf_counter()
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        loss.item()
        seconds.append(time.perf_counter() - start)
        first = first or start - launched
    if not a.parallel or dist.get_rank() == 0:
        print(json.dumps({"torch": torch.__version__, "seconds": seconds, "launch": first}))
    if a.parallel:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
