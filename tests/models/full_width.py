#!/usr/bin/env python3
"""Exports and compiles well-known models at full width, without weights, and writes how long that took.

usage: full_width.py [--only REGEX] [--results FILE] [--page docs/benchmarks/full-width.md] [--memory-limit GIB]

Each model of zoo.py is made with parameters that have no values (buffers have theirs), exported by tessera.export with
its batch and positions open, saved as .pt2 and compiled as a step of ZeRO-3 for H100s in bf16, one sample per rank.
One model at a time, each in a process of its own. --page makes the page of the results in the file. Needs torch and
transformers.

Exit status: 0; 1 if a model was not compiled.
"""

import argparse
import datetime
import json
import multiprocessing
import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "frontends", "python")]
sys.path.append(os.path.join(HERE, "..", "support"))  # last: it has a module safetensors, too
import archives  # noqa: E402
import results  # noqa: E402
import tessera  # noqa: E402
import zoo  # noqa: E402
from tessera import tools  # noqa: E402

RANKS = {"llama-3.1-70b": 64, "mixtral-8x7b": 32, "qwen3-30b-a3b": 32, "gpt-neox-20b": 16}  # 8 of the others
PAGE = """# Models at full width

How long it takes to export well-known models without weights, and to compile them: `tests/models/full_width.py`, {date},
torch {torch}, transformers {transformers}, {machine}. Other jobs ran beside it, so that times of the compiler are CPU
seconds (user and system); wall seconds are in brackets.

```sh
tests/models/full_width.py --results full.jsonl --page docs/benchmarks/full-width.md
```

A model is made with parameters that have no values and buffers that have theirs, in training mode with its dropouts, and
exported by `tessera.export` with its batch and positions open where the model allows that. The file is compiled with
`--strategy zero3 --precision bf16 --target h100x8 --report`, one sample on each rank. The memory is the largest resident
set of `tessera-compile`; the last column is what the report predicts that a rank takes.

| model | parameters | positions | ranks | export, s | .pt2, KiB | compile, s | memory, MiB | memory of a rank, GiB |
|---|---|---|---|---|---|---|---|---|
"""


def write(name, path):
    """Exports a model to a file; the first half of its result."""
    warnings.simplefilter("ignore")
    start = time.time()
    with tessera.no_weights():
        made = zoo.FULL[name]()
    made.model.train()
    program = tessera.export(made.model, made.inputs)
    program.save(path)
    seconds = time.time() - start
    compressed = archives.packed(archives.entries(path))
    with open(path, "wb") as file:
        file.write(compressed)
    parameters = sum(parameter.numel() for parameter in made.model.parameters())
    kept = sorted({axis for tensor in program.inputs.values() for axis, size in enumerate(tensor.shape) if isinstance(size, str)})
    return {"parameters": parameters, "sequence": made.sequence if 1 in kept else None, "loss": made.loss,
            "export_seconds": seconds, "bytes": len(compressed), "open": kept}


def compile_program(name, found, path):
    """Compiles the file; the second half of the result."""
    ranks = RANKS.get(name, 8)
    command = [tools.find_tool("tessera-compile"), path, "-o", path + ".tessera", "--loss", found["loss"], "--mesh",
               f"shard={ranks}", "--strategy", "zero3", "--precision", "bf16", "--target", "h100x8",
               f"--report={path}.json"]
    command += ["--batch", str(ranks)] if 0 in found["open"] else []
    command += ["--seq", str(found["sequence"])] if found["sequence"] else []
    # A process that Python starts itself begins with Python's memory, and counts it.
    command = ["/usr/bin/time", "-q", "-o", path + ".time", "-f", "%e %U %S %M", *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with open(path + ".time") as file:
        wall, user, system, kibibytes = map(float, file.read().split())
    result = {"ranks": ranks, "compile_wall": wall, "compile_seconds": user + system, "compile_megabytes": kibibytes / 1024}
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "error:" in line or "note:" in line]
        return result | {"stage": "compile", "reason": " ".join(errors or [f"it ended with status {done.returncode}"])[:300]}
    with open(path + ".json") as file:
        return result | {"rank_bytes": json.load(file)["memory"]["peak_per_rank"]}


def run(name, path_of_results, memory):
    """One model, in a process of its own; its result goes to the file of results."""
    resource.setrlimit(resource.RLIMIT_AS, (memory << 30, memory << 30))
    result = {"name": name}
    with tempfile.TemporaryDirectory(prefix="tessera-full-") as folder:
        path = os.path.join(folder, "model.pt2")
        try:
            result |= write(name, path)
            result |= compile_program(name, result, path)
        except Exception as why:  # noqa: BLE001
            result |= {"stage": "export", "reason": f"{type(why).__name__}: {' '.join(str(why).split())}"[:300]}
    with open(path_of_results, "a") as file:
        file.write(json.dumps(result) + "\n")
    print(json.dumps(result), flush=True)


def read(path):
    """The results in a file, the last one of each model, in the order of the zoo."""
    found = results.read(path, lambda result: result["name"])
    return [found[name] for name in zoo.FULL if name in found]


def row(result):
    if "reason" in result:
        where = "not exported" if result["stage"] == "export" else "refused by the compiler"
        reason = re.sub(r"\S*/model\.pt2: ", "", result["reason"])
        return f"| {result['name']} | {result.get('parameters', '')} | | | | | {where}: {reason} | | |\n"
    parameters = f"{result['parameters'] / 1e6:.0f} M" if result["parameters"] < 2e9 else f"{result['parameters'] / 1e9:.2f} G"
    return (f"| {result['name']} | {parameters} | {result['sequence'] or ''} | {result['ranks']} | "
            f"{result['export_seconds']:.0f} | {result['bytes'] / 1024:.0f} | {result['compile_seconds']:.1f} "
            f"({result['compile_wall']:.1f}) | {result['compile_megabytes']:.0f} | {result['rank_bytes'] / 2**30:.1f} |\n")


def machine():
    """The CPU and the number of cores."""
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} cores of {model}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models that match")
    parser.add_argument("--results", default=os.path.join(HERE, "..", "..", "build", "full-width.jsonl"))
    parser.add_argument("--page", metavar="FILE")
    parser.add_argument("--memory-limit", type=int, default=12, help="GiB of addresses of one process")
    options = parser.parse_args()
    for name in zoo.FULL:
        if re.search(options.only, name):
            process = multiprocessing.get_context("spawn").Process(
                target=run, args=(name, options.results, options.memory_limit))
            process.start()
            process.join()
    found = read(options.results)
    if options.page:
        versions = {name: results.version(name) for name in ("torch", "transformers")}
        with open(options.page, "w") as file:
            file.write(PAGE.format(date=datetime.date.today().isoformat(), machine=machine(), **versions))
            file.writelines(map(row, found))
    return 1 if any("reason" in result for result in found) else 0


if __name__ == "__main__":
    sys.exit(main())
