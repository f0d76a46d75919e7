#!/usr/bin/env python3
"""Tokens per second of Tessera, PyTorch eager, torch.compile and llm.c on one model, machine and threads, interleaved.

usage: training_speed.py --model gpt2.pt2 [--case gpt2|small] [--rounds 5] [--threads 2] [--torch-python python3]
                         [--systems tessera,eager,compile] [--llmc DIR]

Exports nothing: give the model with --model (see tools/demo/export_gpt.py for the commands). Each round runs every system
once. A round's figure is the median step without the first of the process. Reported apart: the first step, and the time
from launch to its begin (for PyTorch from the start of Python; for Tessera from exec, memory and parameters included).
--llmc is a built checkout of llm.c whose train_gpt2 has the case's batch and sequence, and its weights and data; it is run
in that folder. Prints a table and, with --json, a record for docs/benchmarks.
"""

import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

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


def medians(values):
    return f"{statistics.median(values):9.0f} ({min(values):.0f}-{max(values):.0f})"


class Tessera:
    """A compiled step; `flags` are those of tessera-compile, `threads` is per rank."""

    def __init__(self, a, case, work, threads, flags=()):
        self.a, self.case, self.work, self.threads = a, case, work, threads
        self.artifact, self.data = (os.path.join(work, name) for name in ("model.tessera", "tokens.bin"))
        os.makedirs(work, exist_ok=True)
        np.random.default_rng(0).integers(0, case["vocabulary"], 400_000).astype(np.uint16).tofile(self.data)
        self.compile = [os.path.join(a.bin, "tessera-compile"), a.model, "--batch", case["batch"], "--seq", case["seq"],
                        "--weight-decay", 0.1, "--clip-norm", 1, *flags]
        run([*self.compile, "-o", self.artifact])
        self.metrics = []  # of all rounds, without first steps

    def round(self):
        """Seconds of each step, and from launch to the first."""
        out = os.path.join(self.work, "run")
        begin = time.time()
        run([os.path.join(self.a.bin, "tessera-run"), self.artifact, "--data", self.data, "--steps", self.case["steps"],
             "--threads", self.threads, "--weights", "fresh", "--out", out, "--no-export", "--trace-steps", 0])
        with open(os.path.join(out, "metrics.jsonl")) as file:
            steps = [r for r in map(json.loads, file) if "step_seconds" in r]
        first_written = os.path.getmtime(os.path.join(out, "run.json"))  # written right before the first step
        shutil.rmtree(out)
        self.metrics += steps[1:]
        return [r["step_seconds"] for r in steps], first_written - begin


class Torch:
    def __init__(self, a, case, compile):
        shape = [f"--{k}={v}" for k, v in case.items()]
        self.command = [a.torch_python, os.path.join(HERE, "torch_training.py"), *shape, f"--threads={a.threads}"]
        if compile:
            self.command.append("--compile")

    def round(self):
        record = json.loads(run(self.command).stdout.splitlines()[-1])
        return record["seconds"], record["launch"]


class Llmc:
    """train_gpt2.c prints "step N: train loss L (took M ms)"."""

    def __init__(self, a):
        self.folder, self.environment = a.llmc, {**os.environ, "OMP_NUM_THREADS": str(a.threads)}

    def round(self):
        done = run(["./train_gpt2"], cwd=self.folder, env=self.environment)
        seconds = [float(ms) / 1e3 for ms in re.findall(r"step \d+: train loss .*took ([\d.]+) ms", done.stdout)]
        if len(seconds) < 2:
            sys.exit(f"{self.folder}/train_gpt2 printed no steps:\n{done.stdout[-2000:]}")
        return seconds, float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES, default="gpt2")
    parser.add_argument("--model", required=True, help="the case's program or ONNX file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-python", default="python3", help="a Python with torch; empty: leave PyTorch out")
    parser.add_argument("--systems", default="tessera,eager,compile", help="of tessera, eager and compile")
    parser.add_argument("--llmc", help="folder of a built llm.c")
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"))
    parser.add_argument("--json", help="append a record to this file")
    a = parser.parse_args()
    case = CASES[a.case]
    tokens = case["batch"] * case["seq"]
    chosen = a.systems.split(",")
    if not a.torch_python:
        chosen = ["tessera"]
    if unknown := set(chosen) - {"tessera", "eager", "compile"}:
        parser.error(f"unknown systems {sorted(unknown)}")

    with tempfile.TemporaryDirectory(prefix="tessera-bench-") as work:
        systems = {}
        if "tessera" in chosen:
            systems["tessera"] = Tessera(a, case, work, a.threads)
        if "eager" in chosen:
            systems["torch eager"] = Torch(a, case, compile=False)
        if "compile" in chosen:
            systems["torch.compile"] = Torch(a, case, compile=True)
        if a.llmc:
            systems["llm.c"] = Llmc(a)
        speed, first, launch = ({name: [] for name in systems} for _ in range(3))
        for _ in range(a.rounds):
            for name, system in systems.items():
                seconds, before = system.round()
                speed[name].append(tokens / statistics.median(seconds[1:]))
                first[name].append(seconds[0])
                launch[name].append(before)

    print(f"{a.case}: B={case['batch']} T={case['seq']} fp32, {a.threads} threads, {a.rounds} rounds, "
          f"{platform.processor() or platform.machine()}")
    print(f"{'':14s} {'tokens/s (range)':>24s} {'launch, s':>10s} {'first step, s':>14s}")
    for name in systems:
        print(f"{name:14s} {medians(speed[name]):>24s} {statistics.median(launch[name]):10.2f} "
              f"{statistics.median(first[name]):14.2f}")
    peers = [name for name in systems if name != "tessera"]
    if "tessera" in systems:
        for name in peers + (["best of them"] if len(peers) > 1 else []):
            other = speed[name] if name in speed else [max(round) for round in zip(*(speed[p] for p in peers))]
            ratios = [t / o for t, o in zip(speed["tessera"], other)]
            print(f"ratio to {name:14s} {statistics.median(ratios):5.2f} ({min(ratios):.2f}-{max(ratios):.2f})")
    if a.json:
        record = {"case": a.case, "threads": a.threads, "tokens_per_second": speed, "first_step": first, "launch": launch}
        with open(a.json, "a") as file:
            file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
