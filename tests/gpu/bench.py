"""Tokens per second, use of the peak, and memory of Tessera, PyTorch eager, torch.compile and FSDP2 on the same shapes."""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time

import numpy as np

import breakdown
import cases

sys.path.insert(0, os.path.join(cases.ROOT, "tests", "bench"))
import shape_model  # noqa: E402

# The first steps do not count. Of Tessera's, two from the second on are traced: they are issued one instruction after the
# other, the fourth is captured as a graph.
WARMUP, TRACED = 4, 2
# bf16 products without sparsity, FLOP/s, by a part of the GPU's name; the first that fits counts.
PEAKS = (("H200 NVL", 835e12), ("H200", 989e12), ("H100 NVL", 835e12), ("H100 PCIe", 756e12), ("H100", 989e12),
         ("A100", 312e12), ("B200", 2250e12))
TITLES = {"tessera": "Tessera", "eager": "PyTorch eager", "compile": "torch.compile", "fsdp2": "FSDP2, 1 rank"}
FP8_RECIPES = sorted({recipe for recipes in cases.FP8.values() for recipe in recipes})
# What may follow a system. Of tessera: the gradient of attention, timed algorithms of products, what products do
# besides, and a recipe of products in 8 bits. Of PyTorch: a padded vocabulary, compiled blocks, and CUDA graphs of what is compiled.
OPTIONS = {"tessera": ("fast", "autotune", "epilogues=none", "epilogues=bias", "epilogues=all",
                       *(f"fp8={recipe}" for recipe in FP8_RECIPES)), "eager": ("padded",),
           "compile": ("padded", "graphs"), "fsdp2": ("compile", "padded", "graphs")}
# Seconds a process may take; compiling is by far the longest.
LIMITS = {"tessera": 60, "eager": 60, "compile": 180, "fsdp2": 60}
TRACE = 12 << 20  # bytes of a trace that is kept with the results


def rows_of(model, gpu=""):
    """What is run on an architecture (`sm_90`) unless --rows says otherwise, what matters most first. Tessera again at the
    end shows drift."""
    fastest = [row + "+padded" if model in cases.PADDED else row for row in ("fsdp2+compile", "compile")]
    fast = ["tessera+fast"] if model in cases.BENCH else []  # no choice on a CPU
    if model in cases.FP8_BENCH:
        fast.extend("tessera+fp8=" + recipe for recipe in cases.FP8.get(gpu, ())[:1])
    return ["tessera", *fastest, *fast, "eager", "fsdp2", "tessera"]


class Memory:
    """The largest use of the GPU's memory while the block runs, above what was used before, as nvidia-smi sees it; None
    where it cannot say, or where there is no GPU to ask for."""

    def __init__(self, gpu):
        self.gpu, self.peak, self.done = gpu, None, threading.Event()

    def used(self):
        try:
            output = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", self.gpu],
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=10).stdout
            return int(output.split()[0]) << 20
        except (OSError, subprocess.TimeoutExpired, ValueError, IndexError):
            return None

    def watch(self, before):
        while not self.done.wait(1):
            if (used := self.used()) is not None:
                self.peak = max(self.peak or 0, used - before)

    def __enter__(self):
        before = self.used() if self.gpu else None
        self.thread = threading.Thread(target=self.watch, args=[before], daemon=True)
        if before is not None:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        if self.thread.is_alive():
            self.thread.join()


def parse(row):
    """System and options of a row: tessera+fast+epilogues=bias. Raises ValueError."""
    system, *options = row.split("+")
    if system not in OPTIONS:
        raise ValueError(f"unknown system '{system}', expected {', '.join(OPTIONS)}")
    if unknown := [option for option in options if option not in OPTIONS[system]]:
        raise ValueError(f"'{row}': unknown option '{unknown[0]}'; {system} takes {', '.join(OPTIONS[system])}")
    chosen = [option for option in options if "=" in option]  # each is an artifact of its own
    if len(chosen) > 1 or len(set(options)) < len(options):
        raise ValueError(f"'{row}': an option is there twice, or epilogues beside a recipe")
    if "graphs" in options and "compile" not in [system, *options]:
        raise ValueError(f"'{row}': only what is compiled has graphs")
    return system, options


def title(system, options):
    return TITLES[system] + "".join(f", {option.replace('=', ' ')}" for option in options)


def peak_of(gpu):
    """FLOP/s by the name that nvidia-smi gives, None for a GPU that is not known."""
    return next((flops for part, flops in PEAKS if part in gpu), None)


def prediction(gpu, predictions, target):
    """Machine and prediction: of the one with this GPU (h200x8: NVIDIA H200), else of the target that was prepared for."""
    name = next((name for name in predictions if name.split("x")[0].upper() in gpu), target)
    return name, predictions[name]


def gradient_of(output, asked):
    """Which gradient of attention ran, which tessera-run says; else what was asked for."""
    said = re.search(r"attention gradient: (.*\S)", output)
    return said[1] if said else f"{asked} (asked for)"


def tessera(suite, name, shape, steps, options):
    data = os.path.join(suite.work, "tokens.bin")
    count = (steps + 1) * shape["batch"] * (shape["sequence"] + 1)
    np.random.default_rng(0).integers(0, shape["vocabulary"], count).astype(np.uint32).tofile(data)
    epilogues = next((option.removeprefix("epilogues=") for option in options if option.startswith("epilogues=")),
                     shape["epilogues"])
    recipe = next((option.removeprefix("fp8=") for option in options if option.startswith("fp8=")), None)
    gradient = "fast" if "fast" in options else "deterministic"
    flags = ["--attention-gradient", gradient]
    if "autotune" in options:
        flags.append("--autotune=" + os.path.join(suite.work, "gemm.json"))
    launched = time.time()
    artifact = suite.artifact(cases.fp8_bench_name(name, recipe) if recipe else
                              cases.bench_name(name, epilogues, shape["epilogues"]))
    records, output = suite.train(artifact, "bench", "--data", data, "--token-bytes", 4, "--steps", steps, "--trace-steps", TRACED,
                                  "--no-export", "--weights", "fresh", "--lr", 1e-4, *flags, timeout=LIMITS["tessera"])
    folder = os.path.join(suite.work, "bench")
    trace, kept = os.path.join(folder, "trace.json"), os.path.join(suite.out, "trace.json")
    predictions = shape["predictions_of_recipes"][recipe] if recipe else shape["predictions"]
    machine, predicted = prediction(suite.facts.get("gpu", ""), predictions, shape["target"])
    launcher = [record["launcher_cpu_seconds"] for record in records if "launcher_cpu_seconds" in record]  # on a GPU
    found = {"seconds": [record["step_seconds"] for record in records], "losses": [record["loss"] for record in records],
             "memory": shape["planned"], "parameters": shape["parameters"], "launcher": launcher[WARMUP:],
             "attention_gradient": gradient_of(output, gradient), "predicted_for": machine}
    try:
        found["launch"] = os.path.getmtime(os.path.join(folder, "run.json")) - launched  # written right before the first step
        if not os.path.exists(kept) and os.path.getsize(trace) < TRACE:
            shutil.copy(trace, kept)
        found["breakdown"] = breakdown.table(trace, 1 + TRACED, predicted)
    except Exception as error:  # noqa: BLE001: whatever is wrong with the trace, the figures are good
        found["note"] = f"no times by class: {type(error).__name__}: {error}"
    return found


def pytorch(suite, model, shape, steps, system, options):
    if "compile" in options:
        system += "+compile"
    more = ["--padded", cases.PADDED[model]] if "padded" in options else []
    if "graphs" in options:
        more.append("--graphs")
    environment = {**suite.plain, "TORCHINDUCTOR_CACHE_DIR": os.path.join(suite.work, "inductor")}
    wrong, output = suite.attempt(
        [sys.executable, os.path.join(cases.HERE, "torch_step.py"), model, "--vocabulary", shape["vocabulary"], "--batch",
         shape["batch"], "--seq", shape["sequence"], "--steps", steps, "--warmup", WARMUP, "--system", system, "--device",
         suite.device, "--precision", shape["precision"], *more], LIMITS["compile" if "compile" in system else system],
        environment)
    found = {}
    for line in re.findall(r"^\{.*\}$", output, re.MULTILINE):  # a later line has more steps
        found.update(json.loads(line))
    if "seconds" not in found:
        raise RuntimeError(f"{wrong}: {output[-1200:].strip()}")
    if (done := len(found["losses"])) < steps:
        found["note"] = f"only {done - WARMUP} of {steps - WARMUP} steps: {wrong}"
        found["attention_gradient"] = "unknown: cut off before it was asked for"
    found.setdefault("attention_gradient", f"unknown: the profiled step failed, {wrong}")
    return found


def measure(suite, name, system, options):
    """One row of the results; raises where the system did not train the model that it should have."""
    model, _, _, timed, called = (cases.BENCH if suite.device == "cuda" else cases.CPU_BENCH)[name]
    if system == "tessera" and not suite.runner:
        raise RuntimeError("there is no tessera-run")
    shape, steps = suite.manifest["bench"][name], WARMUP + timed
    parameters = shape["parameters"]
    if "padded" in options:
        if model not in cases.PADDED:
            raise RuntimeError("its vocabulary needs no padding")
        _, width, _, _, vocabulary = shape_model.GPT2[model]
        parameters += (cases.PADDED[model] - vocabulary) * width
    with Memory(suite.gpu) as memory:
        found = tessera(suite, name, shape, steps, options) if system == "tessera" else \
            pytorch(suite, model, shape, steps, system, options)
    if found["parameters"] != parameters:
        raise AssertionError(f"{found['parameters']} parameters instead of {parameters}")
    if not all(np.isfinite(found["losses"])):
        raise AssertionError(f"losses {found['losses']}")
    expected = np.log(shape["vocabulary"])
    if abs(found["losses"][0] - expected) > 1.5:
        raise AssertionError(f"the first loss is {found['losses'][0]}, of random tokens {expected:.2f} is expected")
    seconds = found["seconds"][WARMUP:]
    step = statistics.median(seconds)
    peak = peak_of(suite.facts.get("gpu", ""))
    row = "+".join([system, *options])
    again = any(before["model"] == name and before["system"] == row for before in suite.rows)
    return {"model": name, "title": called, "system": row, "what": title(system, options) + ", again" * again,
            "batch": shape["batch"], "sequence": shape["sequence"], "precision": shape["precision"], "step_seconds": step,
            "step_range": [min(seconds), max(seconds)],
            "tokens_per_second": shape["batch"] * shape["sequence"] / step,
            "mfu": shape["flops"] / step / peak if peak else None, "first_step": found["seconds"][0],
            "launch": found.get("launch"),
            "launcher_cpu": statistics.median(found["launcher"]) if found.get("launcher") else None,
            "own_memory": found["memory"], "gpu_memory": memory.peak,
            "attention_gradient": found["attention_gradient"], "breakdown": found.get("breakdown"),
            "predicted_for": found.get("predicted_for"), "seconds": found["seconds"], "note": found.get("note", ""),
            "is_cut": len(found["losses"]) < steps}


def run(suite, name, rows):
    """Each row is a case of its own, whose figures are in the results as soon as they are known. One that is cut off has
    failed, and keeps them."""
    for row in rows or rows_of(name, suite.manifest["gpu"]):
        system, options = parse(row)
        with suite.part(f"benchmark {name} {row}") as part:
            if system == "tessera" and suite.device == "cpu" and options:
                raise RuntimeError("a CPU has no such choice")
            found = measure(suite, name, system, options)
            suite.rows.append(found)
            part.note = "; ".join(filter(None, (f"{found['tokens_per_second']:,.0f} tokens/s", found["note"])))
            if found["is_cut"]:
                raise RuntimeError(part.note)
