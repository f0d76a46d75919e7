#!/usr/bin/env python3
"""Counts what a training step of each model issues on a GPU, and compares it with the table in step_counts.json.

    tests/bench/step_counts.py             what is worse or better than the table; status 1 if anything is
    tests/bench/step_counts.py --update    takes the figures of today into the table, and writes docs/benchmarks/step.md

No GPU takes part: launches, bytes and instructions are those of the compiled step, milliseconds those that the cost model
predicts (tessera-compile --report). Less is better of every figure. "before" in the table is where the counting began; it
is written once, for a model that has none.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = os.path.join(HERE, "step_counts.json")
PAGE = os.path.join(ROOT, "docs", "benchmarks", "step.md")
FLAGS = ["--precision", "bf16", "--clip-norm", "1", "--target", "h200x8"]
MODELS = {
    # title, model of shape_model.py, samples, sequence, more flags
    "gpt2": ("GPT-2 124M, 32 x 1024", "gpt2", 32, 1024, []),
    "gpt2-xl": ("GPT-2 1.5B, 8 x 1024", "gpt2-xl", 8, 1024, []),
    "llama-1b": ("Llama-1B, 2 x 4096", "llama-1b", 2, 4096, []),
    "qwen2-1.5b": ("Qwen2-1.5B, 2 x 4096", "qwen2-1.5b", 2, 4096, []),
    "llama-1b-zero3": ("Llama-1B on 8 GPUs, zero3, 16 x 4096", "llama-1b", 16, 4096,
                       ["--mesh", "shard=8", "--strategy", "zero3", "--prefetch", "auto"]),
}
# Predicted milliseconds are rounded, so that machines that add in another order agree.
DIGITS = 3


def run(command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")


def figures(report):
    """Class -> figure -> number, of what tessera-compile --report=FILE wrote."""
    def milliseconds(seconds):
        return round(1e3 * seconds, DIGITS)

    found = {}
    for row in report["kernels"]:
        found[f"kernels: {row['kind']}"] = {
            "launches": row["launches"], "bytes read": int(row["bytes_read"]), "bytes written": int(row["bytes_written"]),
            "ms": milliseconds(row["seconds"])}
    names = {"gemm": "products", "conv": "convolutions", "attention": "attention", "attention_grad": "attention gradients",
             "copy": "copies", "fill": "fills", "collective": "collectives", "record": "events recorded",
             "wait": "events waited for"}
    for name, count in report["instructions"].items():
        if name != "launch":
            found[names.get(name, name)] = {"count": count}
    step = report["step"]
    for name, key in (("products", "product_seconds"), ("attention", "attention_seconds"), ("kernels", "kernel_seconds"),
                      ("copies", "copy_seconds"), ("exposed communication", "exposed_communication_seconds"),
                      ("step", "seconds")):
        found.setdefault(f"predicted: {name}", {})["ms"] = milliseconds(step[key])
    return found


def measure(tools, name):
    """Compiles one of MODELS; returns its figures."""
    _, shape, batch, sequence, flags = MODELS[name]
    with tempfile.TemporaryDirectory(prefix="tessera-") as work:
        model, report = os.path.join(work, "model.onnx"), os.path.join(work, "report.json")
        run([sys.executable, os.path.join(HERE, "shape_model.py"), shape, f"--batch={batch}", f"--seq={sequence}", "-o",
             model])
        run([os.path.join(tools, "tessera-compile"), model, "--batch", batch, "--seq", sequence, *FLAGS, *flags,
             f"--report={report}"])
        with open(report) as file:
            return figures(json.load(file))


def compare(name, before, after):
    """What is worse and what is better, a line each, naming model, class and figure. What is not there counts as 0."""
    worse, better = [], []
    for row in sorted({*before, *after}):
        old, new = before.get(row, {}), after.get(row, {})
        for figure in sorted({*old, *new}):
            a, b = old.get(figure, 0), new.get(figure, 0)
            if abs(a - b) <= (2 * 10**-DIGITS if figure == "ms" else 0):
                continue
            (worse if b > a else better).append(f"{name}, {row}, {figure}: {a:,} before, {b:,} now")
    return worse, better


def load():
    with open(TABLE) as file:
        return json.load(file)


def launches(table):
    return sum(row.get("launches", 0) for row in table.values())


def gigabytes(table):
    return sum(row.get("bytes read", 0) + row.get("bytes written", 0) for row in table.values()) / 1e9


def page(table):
    """docs/benchmarks/step.md."""
    def pair(before, after, form):
        return f"{form.format(before)} → {form.format(after)}"

    lines = [
        "# What a training step issues", "",
        "**Predicted and counted, not measured:** launches, bytes and products are those of the compiled step, milliseconds those that the cost model",
        "predicts for one H200 (" + " ".join(f"`{flag}`" for flag in (" ".join(FLAGS[i:i + 2]) for i in range(0, len(FLAGS), 2))) +
        ", AdamW). Bytes are the sizes of the buffers that a kernel reads and writes; caches are not",
        "modelled. Each cell is where the counting began (2026-11-23) → now. Written by `tests/bench/step_counts.py --update` from",
        "`tests/bench/step_counts.json`; a test compiles the models again and fails where a figure is another one.", "",
        "| model | kernels launched | products | GB read and written by kernels | ms of generated kernels | ms of the step |",
        "|---|---|---|---|---|---|"]
    for name, (title, *_) in MODELS.items():
        a, b = table[name]["before"], table[name]["now"]
        lines.append("| " + " | ".join([
            title, pair(launches(a), launches(b), "{}"), pair(a["products"]["count"], b["products"]["count"], "{}"),
            pair(gigabytes(a), gigabytes(b), "{:.1f}"),
            pair(a["predicted: kernels"]["ms"], b["predicted: kernels"]["ms"], "{:.1f}"),
            pair(a["predicted: step"]["ms"], b["predicted: step"]["ms"], "{:.1f}")]) + " |")
    for name, (title, *_) in MODELS.items():
        a, b = table[name]["before"], table[name]["now"]
        lines += ["", f"## {title}", "", "| kernels | launches | GB read | GB written | ms |", "|---|---|---|---|---|"]
        for row in sorted(key for key in {*a, *b} if key.startswith("kernels: ")):
            old, new = a.get(row, {}), b.get(row, {})
            lines.append(f"| `{row.removeprefix('kernels: ')}` | " + " | ".join(
                [pair(old.get("launches", 0), new.get("launches", 0), "{}"),
                 *(pair(old.get(key, 0) / 1e9, new.get(key, 0) / 1e9, "{:.2f}") for key in ("bytes read", "bytes written")),
                 pair(old.get("ms", 0), new.get("ms", 0), "{:.2f}")]) + " |")
        lines += ["", "| other instructions | count |", "|---|---|"]
        for row in sorted(key for key in {*a, *b} if "count" in {**a.get(key, {}), **b.get(key, {})}):
            lines.append(f"| {row} | {pair(a.get(row, {}).get('count', 0), b.get(row, {}).get('count', 0), '{}')} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("TESSERA_BIN", os.path.join(ROOT, "build", "release", "bin")))
    parser.add_argument("--update", action="store_true", help="write the table and the page")
    options = parser.parse_args()
    table = load() if os.path.exists(TABLE) else {}
    differs = False
    for name in MODELS:
        found = measure(options.bin, name)
        entry = table.setdefault(name, {"before": found, "now": found})
        for what, lines in zip(("worse", "better"), compare(name, entry["now"], found)):
            for line in lines:
                differs = True
                print(f"{what}: {line}")
        entry["now"] = found
    if options.update:
        with open(TABLE, "w") as file:
            file.write(json.dumps({name: table[name] for name in MODELS}, indent=1, sort_keys=True) + "\n")
        with open(PAGE, "w") as file:
            file.write(page(table))
        return 0
    return 1 if differs else 0


if __name__ == "__main__":
    sys.exit(main())
