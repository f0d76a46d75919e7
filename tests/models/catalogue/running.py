"""Runs a recorded row of the catalogue in every configuration and compares it with PyTorch. Needs NumPy only."""

import json
import os
import re
import sys
import unittest.mock

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "frontends", "python"))
from tessera import compare, safetensors, tools  # noqa: E402

RANKS = {"one rank": (), "zero3 on 2 ranks": ("--mesh", "shard=2", "--strategy", "zero3")}
CONFIGS = {**RANKS, "2 micro-batches": ("--accumulate", "2"), "recomputation": ("--remat", "full"), "bf16": ("--precision", "bf16")}
# On tests/gpu/simulator, where the build has it (has_simulator): not of the page, whose figures are a CPU's.
ON_GPU = {"simulated GPU": ("--target", "sm_90"), "simulated GPU, bf16": ("--target", "sm_90", "--precision", "bf16")}
# What a message has that is not meant for users: a verifier's, a crash, a broken invariant.
INTERNAL = re.compile(r"'[a-z_]+\.[a-z_]+' op |dominate|do not merge into|kernels' code refers to|internal error|crash: "
                      r"|unrealized_conversion|null operand|gradient probe|expected F32|failed to legalize|not generated")


def simulator():
    """The folder of the libraries that stand for a GPU's."""
    return os.path.join(os.path.dirname(os.path.dirname(tools.find_tool("tessera-run"))), "gpu-simulator")


def has_simulator():
    """Whether the build has them: CUDA's toolkit was found."""
    return os.path.exists(os.path.join(simulator(), "libcuda.so.1"))


def case_of(folder):
    """What case.json of a recorded row says; None if it is not there."""
    path = os.path.join(folder, "case.json")
    if not os.path.exists(path):
        return None
    with open(path) as file:
        return json.load(file)


def micro_batches(flags):
    return int(flags[flags.index("--accumulate") + 1]) if "--accumulate" in flags else 1


def wanted(folder, case, micro):
    """PyTorch's Training with that many micro-batches."""
    other = str(micro) in case["losses"] and micro > 1
    gradients = safetensors.load(os.path.join(folder, f"gradients{f'-{micro}' if other else ''}.safetensors"))
    return tools.Training(case["losses"][str(micro) if other else "1"], gradients, list(gradients))


def verdict_of(folder, case, flags, got):
    """The Verdict on a training with these flags."""
    want = wanted(folder, case, micro_batches(flags))
    if "bf16" not in flags:
        return compare.compare(want, got, lambda: case["rounding"])
    noise, tolerance = case.get("bf16_noise", {}), {}
    for name, gradient in want.gradients.items():
        largest = float(numpy.abs(gradient).max(initial=0))
        tolerance[name] = compare.BF16_GRADIENT + (compare.BF16_TIMES * noise.get(name, 0.0) / largest if largest else 0.0)
    return compare.compare(want, got, None, tolerance, compare.BF16_LOSS + compare.BF16_TIMES * case.get("bf16_loss", 0.0))


def run(folder, exporter, config, work, timeout=60):
    """The result of one check: a dictionary with "result" ("same", "DIFFERENT", "refused", "internal error", "exporter
    refuses", "not in PyTorch", "not compared"), "reason", and what was measured. work: a folder for its files."""
    case = case_of(folder)
    if "failed" in case:
        return {"result": "not in PyTorch", "reason": case["failed"]}
    found = case["exporters"].get(exporter)
    if found is None:
        return {"result": "not compared", "reason": "not exported"}
    if "refused" in found:
        return {"result": "exporter refuses", "reason": found["refused"]}
    flags = {**CONFIGS, **ON_GPU}[config]
    if "bf16" in flags and case["bf16"]:
        return {"result": "not compared", "reason": case["bf16"]}
    libraries = {"LD_LIBRARY_PATH": simulator()} if config in ON_GPU else {}
    with unittest.mock.patch.dict(os.environ, libraries):
        return train(folder, case, os.path.join(folder, exporter + ".onnx"), os.path.join(folder, "data.safetensors"), flags, work,
                     timeout)


def train(folder, case, model, data, flags, work, timeout):
    """The result of training an exported file of a row with these flags, as `run` gives it."""
    artifact, stage = os.path.join(work, "model.tessera"), "compile"
    batch = case["samples"] // micro_batches(flags)
    try:
        every = ["--batch", batch, *case["flags"], *flags]
        tools.compile_model(model, artifact, every, timeout)
        stage = "run"
        got = tools.train(artifact, data, model, case["steps"], os.path.join(work, "run"), timeout)
        got = tools.with_all_gradients(got, model, artifact, every, data, model, os.path.join(work, "kept"), timeout)
    except tools.ToolError as why:
        internal = stage == "run" or why.crashed or INTERNAL.search(str(why)) or "took longer" in str(why)
        return {"result": "internal error" if internal else "refused", "stage": stage, "reason": why.reason}
    verdict = verdict_of(folder, case, flags, got)
    summary = verdict.summary()
    return {"result": summary["result"], "reason": "; ".join(verdict.problems), "loss_difference": verdict.loss_difference,
            "gradient_difference": verdict.largest[1], "largest": verdict.largest[0], "gradients": len(verdict.errors)}
