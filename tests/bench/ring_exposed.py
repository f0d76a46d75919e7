#!/usr/bin/env python3
"""Time in which ranks of a ring wait for communication, measured on this machine and as predicted for a target, as a table in Markdown.

    tests/bench/ring_exposed.py [--bin build/release/bin] [--ranks 2] [--seq 2048,4096] [--target cpu.json]

Ranks are threads of one process with one thread each, so that a machine with fewer cores than ranks measures how these take turns. Exposed: the time
in which a rank's compute stream waits, or runs a collective itself (medians over steps of the mean over ranks); to wait for a slower rank counts. Predictions are those
of `tessera-compile --report`, of the same intervals, for ranks that are alike. A target file of this machine is made by tessera-calibrate.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
import safetensors  # noqa: E402

WARM = 2  # steps that are not measured


def run(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parents[1] / "build" / "release" / "bin")
    parser.add_argument("--model", type=pathlib.Path, default=HERE.parent / "onnx" / "models" / "llama.dynamo18.onnx")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--seq", default="2048,4096", help="positions of a sample")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--target", default="cpu")
    options = parser.parse_args()
    print(f"{processor()}, {os.cpu_count()} CPUs, {options.ranks} ranks of one thread, {datetime.date.today()}, load {os.getloadavg()[0]:.1f} before, predicted for "
          f"{options.target}\n")
    print("| positions | step, measured | exposed | | step, predicted | exposed | |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tessera-ring-") as name:
        folder = pathlib.Path(name)
        for positions in map(int, options.seq.split(",")):
            artifact, report, data, out = (folder / f"{positions}{end}" for end in (".tessera", ".json", ".safetensors", ""))
            flags = ["--batch=1", f"--seq={positions}", f"--mesh=seq={options.ranks}", "--attention=ring", f"--target={options.target}"]
            run(options.bin / "tessera-compile", options.model, *flags, "-o", artifact, f"--report={report}")
            chance = np.random.default_rng(0)
            dump = json.loads(subprocess.run([options.bin / "tessera-dump", artifact, "--summary", "--json"], check=True,
                                             stdout=subprocess.PIPE, text=True).stdout)
            safetensors.save({entry["name"]: chance.integers(0, entry["index_bound"], (1, positions)) for entry in dump["summary"]["batch"]}, data)
            run(options.bin / "tessera-run", artifact, "--data", data, "--steps", WARM + options.steps, "--threads", 1, "--no-export",
                "--weights", "fresh", "--out", out)
            with open(out / "metrics.jsonl") as file:
                steps = [record for record in map(json.loads, file) if "loss" in record][WARM:]
            seconds, exposed = (statistics.median(step[key] for step in steps) for key in ("step_seconds", "exposed_communication_seconds"))
            made = json.loads(report.read_text())["step"]
            total, waiting = made["seconds"], made["exposed_communication_seconds"]
            print(f"| {positions:,} | {1e3 * seconds:.1f} ms | {1e3 * exposed:.2f} ms | {100 * exposed / seconds:.1f} % | {1e3 * total:.1f} ms | "
                  f"{1e3 * waiting:.2f} ms | {100 * waiting / total:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
