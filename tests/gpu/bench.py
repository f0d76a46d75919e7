"""Tokens per second, use of the peak, and memory of Tessera, PyTorch eager, torch.compile and FSDP2 on the same shapes."""

import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

import cases

STEPS, WARMUP = 12, 4
# bf16 products without sparsity, FLOP/s, by a part of the GPU's name.
PEAKS = (("H200", 989e12), ("H100 PCIe", 756e12), ("H100", 989e12), ("GH200", 989e12), ("A100", 312e12), ("B200", 2250e12))
SYSTEMS = ("tessera", "eager", "compile", "fsdp2")
TITLES = {"tessera": "Tessera", "eager": "PyTorch eager", "compile": "torch.compile", "fsdp2": "FSDP2, 1 rank"}
# Seconds a process may take; compiling is by far the longest.
LIMITS = {"tessera": 60, "eager": 60, "compile": 150, "fsdp2": 60}


class Memory:
    """The largest use of the GPU's memory while the block runs, above what was used before, as nvidia-smi sees it."""

    def __init__(self, device):
        self.device, self.peak, self.done = device, None, threading.Event()

    def used(self):
        output = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        return int(output.split()[0]) << 20

    def watch(self):
        while not self.done.wait(0.2):
            self.peak = max(self.peak, self.used() - self.before)

    def __enter__(self):
        if self.device == "cuda":
            self.before, self.peak = self.used(), 0
            self.thread = threading.Thread(target=self.watch, daemon=True)
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        if self.device == "cuda":
            self.thread.join()


def tessera(suite, name, shape):
    data = os.path.join(suite.work, "tokens.bin")
    count = (STEPS + 1) * shape["batch"] * (shape["sequence"] + 1)
    np.random.default_rng(0).integers(0, shape["vocabulary"], count).astype(np.uint32).tofile(data)
    launched = time.time()
    records, _ = suite.train(suite.artifact(name), "bench", "--data", data, "--token-bytes", 4, "--steps", STEPS,
                             "--no-export", "--lr", 1e-4, timeout=LIMITS["tessera"])
    first = os.path.getmtime(os.path.join(suite.work, "bench", "run.json"))  # written right before the first step
    launcher = [record["launcher_cpu_seconds"] for record in records if "launcher_cpu_seconds" in record]  # on a GPU
    return {"seconds": [record["step_seconds"] for record in records], "losses": [record["loss"] for record in records],
            "memory": shape["planned"], "parameters": shape["parameters"], "launch": first - launched,
            "launcher": launcher[WARMUP:]}


def pytorch(suite, name, shape, system):
    table = cases.BENCH if suite.device == "cuda" else cases.CPU_BENCH
    environment = {**suite.environment, "TORCHINDUCTOR_CACHE_DIR": os.path.join(suite.work, "inductor")}
    environment.pop("LD_LIBRARY_PATH", None)
    if before := os.environ.get("LD_LIBRARY_PATH"):
        environment["LD_LIBRARY_PATH"] = before
    output = suite.run([sys.executable, os.path.join(cases.HERE, "torch_step.py"), table[name][0], "--batch", shape["batch"],
                        "--seq", shape["sequence"], "--steps", STEPS, "--system", system, "--device", suite.device,
                        "--precision", shape["precision"]], LIMITS[system], environment)
    return json.loads(re.findall(r"^\{.*\}$", output, re.MULTILINE)[-1])


def run(suite, only):
    table = cases.BENCH if suite.device == "cuda" else cases.CPU_BENCH
    gpu = suite.facts.get("gpu", "")
    peak = next((flops for name, flops in PEAKS if name in gpu), None)
    for name in only.split(",") if only else table:
        for system in SYSTEMS:
            with suite.part(f"benchmark {name} {system}") as part:
                if name not in table:
                    raise RuntimeError(f"unknown benchmark, expected some of {', '.join(table)}")
                if system == "tessera" and not suite.runner:
                    raise RuntimeError("there is no tessera-run")
                shape = suite.manifest["bench"][name]
                with Memory(suite.device) as memory:
                    found = tessera(suite, name, shape) if system == "tessera" else pytorch(suite, name, shape, system)
                if found["parameters"] != shape["parameters"]:
                    raise AssertionError(f"{found['parameters']} parameters instead of {shape['parameters']}")
                if not all(np.isfinite(found["losses"])):
                    raise AssertionError(f"losses {found['losses']}")
                expected = np.log(shape["vocabulary"])
                if abs(found["losses"][0] - expected) > 1.5:
                    raise AssertionError(f"the first loss is {found['losses'][0]}, of random tokens {expected:.2f} is expected")
                step = statistics.median(found["seconds"][WARMUP:])
                row = {"model": name, "title": table[name][3], "system": system, "batch": shape["batch"],
                       "sequence": shape["sequence"], "precision": shape["precision"], "step_seconds": step,
                       "tokens_per_second": shape["batch"] * shape["sequence"] / step,
                       "mfu": shape["flops"] / step / peak if peak else None, "first_step": found["seconds"][0],
                       "launch": found.get("launch"),
                       "launcher_cpu": statistics.median(found["launcher"]) if found.get("launcher") else None,
                       "own_memory": found["memory"], "gpu_memory": memory.peak,
                       "seconds": found["seconds"]}
                suite.rows.append(row)
                part.note = f"{row['tokens_per_second']:,.0f} tokens/s"


def gib(size):
    return "" if size is None else f"{size / 2**30:.1f}"


def table(rows):
    if not rows:
        return ""
    lines = ["| model | system | tokens/s | MFU | peak memory, GiB: planned or reserved | on the GPU | launcher's CPU time per step | Tessera's ratio |",
             "|---|---|---|---|---|---|---|---|"]
    own = {row["model"]: row["tokens_per_second"] for row in rows if row["system"] == "tessera"}
    for row in rows:
        ratio = f"{own[row['model']] / row['tokens_per_second']:.2f}" if row["model"] in own else ""
        mfu = "" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %"
        launcher = "" if row["launcher_cpu"] is None else f"{1e3 * row['launcher_cpu']:.2f} ms"
        lines.append(f"| {row['title']}, {row['precision']}, B={row['batch']}, T={row['sequence']} | "
                     f"{TITLES[row['system']]} | {row['tokens_per_second']:,.0f} | {mfu} | {gib(row['own_memory'])} | "
                     f"{gib(row['gpu_memory'])} | {launcher} | {ratio} |")
    return "\n".join(lines) + "\n\n"
