#!/usr/bin/env python3
"""Tokens per second of Tessera and of PyTorch eager on the same model, machine and threads, interleaved in one run.

usage: training_speed.py [--case gpt2|small] [--rounds 5] [--threads 2] [--torch-python python3] [--work DIR]

Exports nothing: give the model with --model (see tools/demo/export_gpt.py for the commands). Each round runs Tessera, then
PyTorch; a round's figure is the median step, without the first of each process (reported apart: warm-up). Prints a table
and, with --json, a record for docs/benchmarks.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASES = {
    "gpt2": dict(layers=12, width=768, heads=12, length=1024, vocabulary=50257, batch=4, seq=256, steps=5),
    "small": dict(layers=4, width=128, heads=4, length=128, vocabulary=256, batch=8, seq=128, steps=60),
}


def run(command, **options):
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="gpt2")
    parser.add_argument("--model", required=True, help="the case's ONNX file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-python", default="python3", help="a Python with torch; empty: leave PyTorch out")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--json", help="append a record to this file")
    a = parser.parse_args()
    case = CASES[a.case]
    tokens = case["batch"] * case["seq"]
    shape = [f"--{k}={v}" for k, v in case.items()]

    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as work:
        artifact, data = os.path.join(work, "model.tessera"), os.path.join(work, "tokens.bin")
        np.random.default_rng(0).integers(0, case["vocabulary"], 400_000).astype(np.uint16).tofile(data)
        run([os.path.join(a.bin, "tessera-compile"), a.model, "-o", artifact, "--batch", case["batch"], "--seq",
             case["seq"], "--weight-decay", 0.1, "--clip-norm", 1])
        figures, first = {"tessera": [], "torch eager": []}, {"tessera": [], "torch eager": []}
        for _ in range(a.rounds):
            out = os.path.join(work, "run")
            run([os.path.join(a.bin, "tessera-run"), artifact, "--data", data, "--steps", case["steps"], "--threads",
                 a.threads, "--out", out, "--no-export"])
            with open(os.path.join(out, "metrics.jsonl")) as file:
                seconds = [r["step_seconds"] for r in map(json.loads, file) if "step_seconds" in r]
            figures["tessera"].append(tokens / statistics.median(seconds[1:]))
            first["tessera"].append(seconds[0])
            run(["rm", "-rf", out])
            if a.torch_python:
                done = run([a.torch_python, os.path.join(HERE, "torch_training.py"), *shape, f"--threads={a.threads}"])
                seconds = json.loads(done.stdout.splitlines()[-1])["seconds"]
                figures["torch eager"].append(tokens / statistics.median(seconds[1:]))
                first["torch eager"].append(seconds[0])

    print(f"{a.case}: B={case['batch']} T={case['seq']} fp32, {a.threads} threads, {platform.processor() or platform.machine()}")
    for name, values in figures.items():
        if values:
            print(f"{name:12s} {statistics.median(values):9.0f} tokens/s ({min(values):.0f}-{max(values):.0f}), "
                  f"first step {statistics.median(first[name]):.2f} s")
    if figures["torch eager"]:
        ratios = [t / e for t, e in zip(figures["tessera"], figures["torch eager"])]
        print(f"ratio        {statistics.median(ratios):9.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    if a.json:
        with open(a.json, "a") as file:
            file.write(json.dumps({"case": a.case, "threads": a.threads, "tokens_per_second": figures, "first_step": first}) + "\n")


if __name__ == "__main__":
    main()
