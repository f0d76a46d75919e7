#!/usr/bin/env python3
"""Predicts steps of Llama-3.1-8B with long sequences on 8 H100, beside published figures, as a table in Markdown.

    tests/bench/long_context.py [--bin build/release/bin]

bf16, zero3, one sequence over all ranks, attention computed once and the rest of a block twice, activations on the host.
Published: tokens/s per GPU of head-chunked Ulysses ("UPipe", arXiv 2602.21196), a fork of torchtitan, full recomputation
with offload, and of Ulysses in the same table; attention gradients are those of FlashAttention-3, added in any order.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
K, M = 1 << 10, 1 << 20
# positions: published tokens/s per GPU with Ulysses and with head chunks; None: out of memory
PUBLISHED = {128 * K: (2320, 2281), 256 * K: (1504, 1487), 512 * K: (879, 867), M: (475, 473), 2 * M: (246, 246), 3 * M: (162, 166),
             4 * M: (None, 126), 5 * M: (None, 98)}
COMMON = ["--batch=1", "--mesh=seq=8", "--strategy=zero3", "--precision=bf16", "--remat=attention", "--offload=activations",
          "--target=h100x8"]


def report(tool, model, folder, *flags):
    path = folder / "report.json"
    done = subprocess.run([tool, model, *COMMON, *flags, f"--report={path}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, flags))} failed:\n{done.stdout}{done.stderr}")
    return json.loads(path.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parents[1] / "build" / "release" / "bin")
    options = parser.parse_args()
    print("| positions | attention | tokens/s per GPU, gradients deterministic | fast | GiB per GPU, with libraries | GiB on the host of a rank | "
          "published: Ulysses, in head chunks |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tessera-long-") as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        subprocess.run([sys.executable, HERE / "shape_model.py", "llama-3.1-8b", "--batch=1", "--seq=0", "-o", model], check=True)
        for positions, published in PUBLISHED.items():
            for attention in ("ulysses", "ulysses:chunk=8"):
                made = [report(options.bin / "tessera-compile", model, folder, f"--seq={positions}", f"--attention={attention}",
                               f"--attention-gradient={gradient}") for gradient in ("deterministic", "fast")]
                memory = made[1]["memory"]
                speed = [f"{row['tokens_per_second'] / 8:,.0f}" for row in made]
                gib = (memory["reserved_per_rank"] + memory["libraries_per_rank"]) / 2**30
                print(f"| {positions:,} | `{attention}` | {speed[0]} | {speed[1]} | {gib:.1f} | {memory['host_per_rank'] / 2**30:.0f} | "
                      f"{', '.join('out of memory' if rate is None else str(rate) for rate in published)} |", flush=True)


if __name__ == "__main__":
    main()
