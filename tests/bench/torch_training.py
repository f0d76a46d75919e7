"""Trains the GPT of tests/onnx/models in PyTorch (fp32, AdamW, clipping) and prints the seconds of each step as JSON.

usage: torch_training.py --layers 12 --width 768 --heads 12 --length 1024 --vocabulary 50257 --batch 4 --seq 256 --steps 5
"""

import time

launched = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "onnx", "models"))
import models  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("layers", "width", "heads", "length", "vocabulary", "batch", "seq", "steps", "threads"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--compile", action="store_true", help="torch.compile instead of eager")
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(0)
    model = models.Gpt(vocabulary=a.vocabulary, width=a.width, heads=a.heads, layers=a.layers, length=a.length)
    parameters = list(model.parameters())
    if a.compile:
        model = torch.compile(model)
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.1, fused=True)
    seconds, first = [], None
    for _ in range(a.steps):
        tokens = torch.randint(0, a.vocabulary, (a.batch, a.seq + 1))
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
    print(json.dumps({"torch": torch.__version__, "seconds": seconds, "launch": first}))


if __name__ == "__main__":
    main()
