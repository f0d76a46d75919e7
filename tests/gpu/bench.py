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

import breakdown
import cases

# The first steps do not count. Of Tessera's, two from the second on are traced: they are issued one instruction after the
# other, the fourth is captured as a graph.
STEPS, WARMUP, TRACED = 12, 4, 2
# bf16 products without sparsity, FLOP/s, by a part of the GPU's name.
PEAKS = (("H200", 989e12), ("H100 PCIe", 756e12), ("H100", 989e12), ("GH200", 989e12), ("A100", 312e12), ("B200", 2250e12))
SYSTEMS = ("tessera", "eager", "compile", "fsdp2")
TITLES = {"tessera": "Tessera", "eager": "PyTorch eager", "compile": "torch.compile", "fsdp2": "FSDP2, 1 rank"}
# What is run unless --rows says otherwise, in this order: what matters most comes first.
ROWS = ("tessera", "compile", "tessera+fast", "eager", "fsdp2")
# What may follow tessera: the gradient of attention, timed algorithms of products, and what products do besides.
OPTIONS = ("fast", "autotune", "epilogues=none", "epilogues=bias", "epilogues=all")
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


def parse(row):
    """System and options of a row: tessera+fast+epilogues=bias. Raises ValueError."""
    system, *options = row.split("+")
    if system not in SYSTEMS:
        raise ValueError(f"unknown system '{system}', expected {', '.join(SYSTEMS)}")
    if unknown := [option for option in options if system != "tessera" or option not in OPTIONS]:
        raise ValueError(f"'{row}': unknown option '{unknown[0]}'; tessera takes {', '.join(OPTIONS)}")
    epilogues = [option for option in options if option.startswith("epilogues=")]
    if len(epilogues) > 1 or len(set(options)) < len(options):
        raise ValueError(f"'{row}': an option is there twice")
    return system, options


def title(system, options):
    return TITLES[system] + "".join(f", {option.replace('=', ' ')}" for option in options)


def tessera(suite, name, shape, options):
    data = os.path.join(suite.work, "tokens.bin")
    count = (STEPS + 1) * shape["batch"] * (shape["sequence"] + 1)
    np.random.default_rng(0).integers(0, shape["vocabulary"], count).astype(np.uint32).tofile(data)
    epilogues = next((option.removeprefix("epilogues=") for option in options if "=" in option), shape["epilogues"])
    gradient = "fast" if "fast" in options else "deterministic"
    flags = ["--attention-gradient", gradient]
    if "autotune" in options:
        flags.append("--autotune=" + os.path.join(suite.work, "gemm.json"))
    launched = time.time()
    records, _ = suite.train(suite.artifact(cases.bench_name(name, epilogues, shape["epilogues"])), "bench", "--data", data,
                             "--token-bytes", 4, "--steps", STEPS, "--trace-steps", TRACED, "--no-export", "--lr", 1e-4,
                             *flags, timeout=LIMITS["tessera"])
    folder = os.path.join(suite.work, "bench")
    first = os.path.getmtime(os.path.join(folder, "run.json"))  # written right before the first step
    table = breakdown.table(os.path.join(folder, "trace.json"), 1 + TRACED, shape["predicted"])
    launcher = [record["launcher_cpu_seconds"] for record in records if "launcher_cpu_seconds" in record]  # on a GPU
    return {"seconds": [record["step_seconds"] for record in records], "losses": [record["loss"] for record in records],
            "memory": shape["planned"], "parameters": shape["parameters"], "launch": first - launched,
            "launcher": launcher[WARMUP:], "attention_gradient": gradient, "breakdown": table}


def pytorch(suite, name, shape, system):
    table = cases.BENCH if suite.device == "cuda" else cases.CPU_BENCH
    environment = {**suite.plain, "TORCHINDUCTOR_CACHE_DIR": os.path.join(suite.work, "inductor")}
    output = suite.run([sys.executable, os.path.join(cases.HERE, "torch_step.py"), table[name][0], "--batch", shape["batch"],
                        "--seq", shape["sequence"], "--steps", STEPS, "--system", system, "--device", suite.device,
                        "--precision", shape["precision"]], LIMITS[system], environment)
    return json.loads(re.findall(r"^\{.*\}$", output, re.MULTILINE)[-1])


def measure(suite, name, system, options):
    """One row of the results; raises where the system did not train the model that it should have."""
    table = cases.BENCH if suite.device == "cuda" else cases.CPU_BENCH
    if system == "tessera" and not suite.runner:
        raise RuntimeError("there is no tessera-run")
    shape = suite.manifest["bench"][name]
    with Memory(suite.device) as memory:
        found = tessera(suite, name, shape, options) if system == "tessera" else pytorch(suite, name, shape, system)
    if found["parameters"] != shape["parameters"]:
        raise AssertionError(f"{found['parameters']} parameters instead of {shape['parameters']}")
    if not all(np.isfinite(found["losses"])):
        raise AssertionError(f"losses {found['losses']}")
    expected = np.log(shape["vocabulary"])
    if abs(found["losses"][0] - expected) > 1.5:
        raise AssertionError(f"the first loss is {found['losses'][0]}, of random tokens {expected:.2f} is expected")
    step = statistics.median(found["seconds"][WARMUP:])
    gpu = suite.facts.get("gpu", "")
    peak = next((flops for part, flops in PEAKS if part in gpu), None)
    return {"model": name, "title": table[name][3], "system": "+".join([system, *options]), "what": title(system, options),
            "batch": shape["batch"], "sequence": shape["sequence"], "precision": shape["precision"], "step_seconds": step,
            "tokens_per_second": shape["batch"] * shape["sequence"] / step,
            "mfu": shape["flops"] / step / peak if peak else None, "first_step": found["seconds"][0],
            "launch": found.get("launch"),
            "launcher_cpu": statistics.median(found["launcher"]) if found.get("launcher") else None,
            "own_memory": found["memory"], "gpu_memory": memory.peak,
            "attention_gradient": found["attention_gradient"], "breakdown": found.get("breakdown"),
            "predicted_for": shape["predicted_for"], "seconds": found["seconds"]}


def run(suite, name, rows):
    """Each row is a case of its own, whose figures are in the results as soon as they are known."""
    for row in rows:
        system, options = parse(row)
        with suite.part(f"benchmark {name} {row}") as part:
            if system == "tessera" and suite.device == "cpu" and options:
                raise RuntimeError("a CPU has no such choice")
            found = measure(suite, name, system, options)
            suite.rows.append(found)
            part.note = f"{found['tokens_per_second']:,.0f} tokens/s"
