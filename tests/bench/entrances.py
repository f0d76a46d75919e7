#!/usr/bin/env python3
"""Times ten steps of a GPT-2 (4 layers, d=256, 4 x 256 tokens, fp32) that came in by .pt2 and by ONNX. Needs torch, transformers and onnx.

usage: entrances.py [--rounds N]        prints the time of a step by each, and the ratio

The two take turns, so that both meet the same machine; a time is the median of the last ten of twelve steps of all rounds.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "frontends", "python"))
import numpy  # noqa: E402
from tessera.tools import compile_model, run_tool  # noqa: E402

SETTINGS = {"n_layer": 4, "n_embd": 256, "n_head": 4, "vocab_size": 4096, "n_positions": 256, "resid_pdrop": 0.0,
            "embd_pdrop": 0.0, "attn_pdrop": 0.0}
WARM, STEPS, SAMPLES, TOKENS = 2, 12, 4, 256


def export(ending, folder):
    path = os.path.join(folder, "model." + ending)
    flags = [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]
    subprocess.run([sys.executable, "-m", "tessera", "export", "hf:gpt2", *flags, "-o", path], check=True, capture_output=True,
                   env=os.environ | {"PYTHONPATH": os.path.join(ROOT, "frontends", "python")})
    return path


def step_seconds(artifact, weights, data, folder):
    """(seconds of the steps after the first ones, losses of all)."""
    run_tool("tessera-run", artifact, "--data", data, "--weights", weights, "--steps", STEPS, "--threads", os.cpu_count(),
             "--no-export", "--out", folder)
    with open(os.path.join(folder, "metrics.jsonl")) as file:
        records = [record for record in map(json.loads, file) if "loss" in record]
    return [record["step_seconds"] for record in records[WARM:]], [record["loss"] for record in records]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = os.path.join(folder, "tokens.npz")
        tokens = numpy.random.default_rng(0).integers(0, SETTINGS["vocab_size"], (SAMPLES * STEPS, TOKENS))
        numpy.savez(data, input_ids=tokens, targets=tokens)
        times, losses, artifacts = {}, {}, {}
        for ending in ("pt2", "onnx"):
            model = export(ending, folder)
            artifacts[ending] = model + ".tessera", model
            compile_model(model, artifacts[ending][0], ["--batch", SAMPLES, "--seq", TOKENS])
        for turn in range(options.rounds):
            for ending, (artifact, weights) in artifacts.items():
                own, losses[ending] = step_seconds(artifact, weights, data, os.path.join(folder, f"run-{ending}-{turn}"))
                times.setdefault(ending, []).extend(own)
        middle = {ending: statistics.median(own) for ending, own in times.items()}
        for ending, own in times.items():
            low, high = statistics.quantiles(own, n=4)[::2]
            print(f"{ending}: median {1e3 * middle[ending]:.1f} ms a step (quartiles {1e3 * low:.1f} to {1e3 * high:.1f}, {len(own)} steps)")
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses["pt2"], losses["onnx"]))
        print(f"pt2 / onnx: {middle['pt2'] / middle['onnx']:.3f}; losses of {STEPS} steps differ by {worst:.0e} at most")


if __name__ == "__main__":
    main()
