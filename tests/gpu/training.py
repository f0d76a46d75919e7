"""Whole trainings: ten steps against PyTorch's goldens, several ranks against the CPU, and under compute-sanitizer."""

import json
import os
import re
import shutil
import sys

import numpy as np

import breakdown
import cases
import probe

sys.path.insert(0, os.path.join(cases.ROOT, "tests", "end_to_end"))
import harness  # noqa: E402
import safetensors  # noqa: E402

sys.path.insert(0, os.path.join(cases.ROOT, "tests", "support"))
import fp8 as fp8_support  # noqa: E402

# Relative, of losses and gradient norms of ten steps against PyTorch in fp32 on a CPU. fp32: sums in another order, no
# TF32. bf16: as tests/end_to_end/test_precision.py.
LOSS = {"fp32": 1e-5, "bf16": 1e-3}
NORM = {"fp32": 1e-4, "bf16": 2e-2}
GRADIENT = {"fp32": 1e-4, "bf16": 5e-2}  # of a tensor's largest element, step 1
# Of how far training moved a tensor: AdamW makes a whole step of any gradient, also of one that is nearly 0. Elements
# whose gradient is below NOISE of the tensor's largest are left out: their sign is rounding. In bf16 that may also be so
# where a gradient passes through 0 later on; there the mean over the tensor is compared, not the largest difference.
PARAMETER = {"fp32": 2e-3, "bf16": 1e-1}
NOISE = {"fp32": 1e-6, "bf16": 1e-3}


def close(records, key, wanted, tolerance):
    """The largest relative difference; raises where it is too large."""
    if len(records) != len(wanted):
        raise AssertionError(f"{len(records)} steps instead of {len(wanted)}")
    worst = 0.0
    for step, (record, want) in enumerate(zip(records, wanted), 1):
        error = abs(record[key] - want) / want
        if not error <= tolerance:
            raise AssertionError(f"{key} of step {step} is {record[key]}, expected {want}: {error:.2e} > {tolerance:.0e}")
        worst = max(worst, error)
    return worst


def gradients_close(got, wanted, tolerance):
    if sorted(got) != sorted(wanted):
        raise AssertionError(f"gradients of other parameters: {sorted(set(got) ^ set(wanted))}")
    worst = 0.0
    for name, want in wanted.items():
        error = float(np.abs(got[name].astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30))
        if not error <= tolerance:
            raise AssertionError(f"gradient of {name}: {error:.2e} > {tolerance:.0e}")
        worst = max(worst, error)
    return worst


def parameters_close(final, before, wanted, gradients, precision):
    """Parameters after training, relative to how far it moved them."""
    worst = 0.0
    for name, want in wanted.items():
        difference = np.abs(final[name].astype(np.float64) - want)
        moved = np.abs(want.astype(np.float64) - before[name])
        gradient = np.abs(gradients[name])
        noise = (gradient > 0) & (gradient < NOISE[precision] * gradient.max())
        difference, size = np.where(noise, 0, difference), np.max if precision == "fp32" else np.mean
        error = float(size(difference) / max(size(moved), 1e-30))
        if not error <= PARAMETER[precision]:
            raise AssertionError(f"parameter {name}: {error:.2e} > {PARAMETER[precision]:.0e}")
        worst = max(worst, error)
    return worst


def flags(golden, *more):
    return ["--data", golden.data, "--order", "sequential", "--steps", golden.steps, "--weights", golden.weights, *more]


def oracle(suite):
    for model, precision in cases.TRAININGS:
        golden, name = harness.Golden(model), cases.oracle_name(model, precision)
        gradients, run = golden.load("gradients"), "oracle-" + name
        with suite.part(f"oracle {name}") as part:
            records, _ = suite.train(suite.artifact(name), run, *flags(golden, "--dump=gradients", "--dump-step", 1))
            loss = close(records, "loss", golden.losses, LOSS[precision])
            norm = close(records, "grad_norm", golden.norms, NORM[precision])
            dumped = safetensors.load(os.path.join(suite.work, run, "dump-1", "gradients.safetensors"))
            gradient = gradients_close(dumped, gradients, GRADIENT[precision])
            final = safetensors.load(os.path.join(suite.work, run, "model.safetensors"))
            parameter = parameters_close(final, golden.load("weights"), golden.load("final"), gradients, precision)
            part.note = (f"loss {loss:.1e}, norm {norm:.1e}, gradient {gradient:.1e}, parameter {parameter:.1e}")
        # A dumped run issues its steps; this one launches the captured graph from step 2 on.
        with suite.part(f"oracle {name}, as a graph") as part:
            again, _ = suite.train(suite.artifact(name), run + "-graph", *flags(golden))
            part.note = f"loss {close(again, 'loss', golden.losses, LOSS[precision]):.1e}"
            first, second = (safetensors.load(os.path.join(suite.work, folder, "model.safetensors"))
                             for folder in (run, run + "-graph"))
            for parameter, value in first.items():
                if not np.array_equal(value.view(np.uint32), second[parameter].view(np.uint32)):
                    raise AssertionError(f"{parameter} is not the same, bit for bit, as in the dumped run")
        for folder in (run, run + "-graph"):
            shutil.rmtree(os.path.join(suite.work, folder), ignore_errors=True)


def ranks(suite):
    """1 rank by NCCL, 2 and 4 as threads on one GPU, against the same training on the CPU."""
    for case in cases.ranks_cases():
        model, precision, strategy, count = case
        name, golden = cases.ranks_name(*case), harness.Golden(model)
        with suite.part(f"ranks {name}") as part:
            want = suite.manifest["ranks"][name]
            records, _ = suite.train(suite.artifact(name), "ranks-" + name, *flags(golden))
            loss = close(records, "loss", want["losses"], LOSS[precision])
            norm = close(records, "grad_norm", want["norms"], NORM[precision])
            final = safetensors.load(os.path.join(suite.work, "ranks-" + name, "model.safetensors"))
            recorded = safetensors.load(suite.prepared("results", name + ".safetensors"))
            parameter = parameters_close(final, golden.load("weights"), recorded, golden.load("gradients"), precision)
            part.note = f"loss {loss:.1e}, norm {norm:.1e}, parameter {parameter:.1e}"
        shutil.rmtree(os.path.join(suite.work, "ranks-" + name), ignore_errors=True)


def write_fp8(record, folder):
    """Weights and data of a training of goldens/fp8."""
    weights, tokens, targets = fp8_support.training_values(record["shapes"], record["steps"] * record["batch"],
                                                           record["sequence"])
    files = [os.path.join(folder, name + ".safetensors") for name in ("fp8-weights", "fp8-data")]
    safetensors.save(weights, files[0])
    safetensors.save({"tokens": tokens, "targets": targets}, files[1])
    return files


def fp8_flags(files):
    weights, data = files
    return ["--data", data, "--order", "sequential", "--steps", cases.FP8_STEPS, "--weights", weights]


def fp8(suite):
    """Products of 8-bit floats by cuBLASLt, against the CPU's, which are exact. Losses and norms tell of scales
    that are read from other places as far as those differ; the layout itself is checked when an artifact is read."""
    for model, recipe in cases.fp8_cases(suite.manifest["gpu"]):
        name = cases.fp8_name(model, recipe)
        with suite.part(name) as part:
            want = suite.manifest["fp8"][name]
            _, record = cases.fp8_record(model)
            records, _ = suite.train(suite.artifact(name), name, *fp8_flags(write_fp8(record, suite.work)))
            loss = close(records, "loss", want["losses"], LOSS["bf16"])
            norm = close(records, "grad_norm", want["norms"], NORM["bf16"])
            part.note = f"loss {loss:.1e}, norm {norm:.1e}"
        shutil.rmtree(os.path.join(suite.work, name), ignore_errors=True)


def own_kernels(help_text):
    """The flags of compute-sanitizer that leave out the kernels of cuBLASLt, cuDNN and NCCL. From 2023.3 on the option is
    called --kernel-name, before that --kernel-regex; kns is a part of the kernel's name, and any of them counts."""
    option = "--kernel-name" if "--kernel-name" in help_text else "--kernel-regex"
    return [word for part in (*(f"_{kind}_" for kind in breakdown.KINDS), "tessera") for word in (option, f"kns={part}")]


def sanitizer(suite):
    """Two steps: the first is issued, the second is captured as a graph and launched."""
    found, golden, sees_races = probe.tool("compute-sanitizer"), harness.Golden("gpt"), False
    golden.steps = 2

    def prefix(tool):
        if suite.device != "cuda":
            raise RuntimeError("needs a GPU")
        if not found:
            raise RuntimeError("compute-sanitizer is not installed")
        # Libraries try calls that may fail, and go on: only accesses count.
        more = ["--report-api-errors", "no"] if tool == "memcheck" else \
            own_kernels(suite.attempt([found, "--help"], 20, suite.plain)[1])
        return [found, "--tool", tool, "--error-exitcode", "9", "--print-limit", "5", "--launch-timeout", "0", *more]

    def must_see_races():
        if not sees_races:
            raise AssertionError("racecheck reports nothing, but it did not see a planted race either")

    def check(tool, name):
        with suite.part(f"compute-sanitizer {tool} {name}") as part:
            _, output = suite.train(suite.artifact(name), "sanitizer", *flags(golden, "--no-export"), timeout=100,
                                    prefix=prefix(tool))
            summary = re.findall(r"(?:ERROR|RACECHECK) SUMMARY.*", output)
            if not summary:
                raise AssertionError(f"no summary: {output[-400:]}")
            part.note = summary[-1]
            if tool == "racecheck":
                must_see_races()

    names = (cases.oracle_name("gpt", "bf16"), cases.ranks_name("gpt", "fp32", "zero3", 2))
    check("memcheck", names[0])
    with suite.part("compute-sanitizer racecheck of a planted race") as part:
        _, said = suite.attempt([*prefix("racecheck"), sys.executable, os.path.join(cases.HERE, "race.py")], 60, suite.plain)
        sees_races = bool(re.search(r"RACECHECK SUMMARY: [1-9]", said))
        if not sees_races:
            raise AssertionError(f"racecheck saw nothing: {said[-400:].strip()}")
        part.note = "it is found"
    # Of bf16 each of our kernels by itself: racecheck ends cuBLASLt's products in bf16 with an illegal access, also
    # where PyTorch calls them (2025.3.1, H100).
    wanted = sum(len(group["launches"]) for group in suite.kernel_groups())
    with suite.part("compute-sanitizer racecheck of generated kernels") as part:
        seconds = min(150, 0.9 * suite.left())
        _, said = suite.attempt([*prefix("racecheck"), sys.executable, "-u", os.path.join(cases.HERE, "run.py"), "--kernels-in",
                                 suite.work, "--device", suite.device, "--deadline", seconds], seconds + 15, suite.plain)
        results = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        done = sum(result["passed"] and not result["name"].startswith("kernels of ") for result in results)
        summary = re.findall(r"RACECHECK SUMMARY.*", said)
        if not summary or not summary[-1].startswith("RACECHECK SUMMARY: 0 "):
            raise AssertionError(f"{summary[-1] if summary else 'no summary'}: {said[-400:].strip()}")
        must_see_races()
        if done < wanted:
            raise AssertionError(f"only {done} of {wanted} kernels ran under it; no race in them")
        part.note = f"{done} kernels, {summary[-1]}"
    for tool in ("memcheck", "racecheck"):
        check(tool, names[1])
