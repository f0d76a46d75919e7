#!/usr/bin/env python3
"""Attention on a CPU, forward and backward, beside PyTorch's scaled_dot_product_attention: medians of rounds in turn.

    tests/bench/attention.py [--positions 4096 16384] [--depth 64 128] [--threads 2] [--rounds 5]

Causal, 8 heads, f32 and bf16. PyTorch has to be installed. The last column is PyTorch's time over ours.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ours(binary, positions, depth, heads, threads, dtype):
    done = subprocess.run([binary, *map(str, (positions, depth, heads, heads, threads, 1, dtype))], capture_output=True, text=True,
                          check=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return [float(word) for word in done.stdout.split()]


def torchs(torch, positions, depth, heads, dtype):
    kind = {"f32": torch.float32, "bf16": torch.bfloat16}[dtype]
    q, k, v = (torch.randn(1, heads, positions, depth, dtype=kind, requires_grad=True) for _ in range(3))
    grad = torch.randn(1, heads, positions, depth, dtype=kind)
    start = time.perf_counter()
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    middle = time.perf_counter()
    out.backward(grad)
    return [middle - start, time.perf_counter() - middle]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, nargs="+", default=[4096, 16384])
    parser.add_argument("--depth", type=int, nargs="+", default=[64, 128])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--binary", default=ROOT / "build" / "release" / "bin" / "bench-attention")
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("attention.py: PyTorch is not installed")
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads, {options.heads} heads, causal, seconds")
    print(f"{'positions':>9} {'depth':>5} {'type':>5} {'ours fwd':>9} {'bwd':>9} {'torch fwd':>9} {'bwd':>9} {'torch / ours':>12}")
    for positions in options.positions:
        for depth in options.depth:
            for dtype in ("f32", "bf16"):
                torchs(torch, positions, depth, options.heads, dtype)  # takes its memory
                rounds = [(ours(options.binary, positions, depth, options.heads, options.threads, dtype),
                           torchs(torch, positions, depth, options.heads, dtype)) for _ in range(options.rounds)]
                own, other = ([statistics.median(times[side][part] for times in rounds) for part in (0, 1)] for side in (0, 1))
                ratio = statistics.median(sum(theirs) / sum(mine) for mine, theirs in rounds)
                print(f"{positions:>9} {depth:>5} {dtype:>5} {own[0]:>9.3f} {own[1]:>9.3f} {other[0]:>9.3f} {other[1]:>9.3f} {ratio:>12.2f}")


if __name__ == "__main__":
    main()
