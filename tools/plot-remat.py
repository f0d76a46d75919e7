#!/usr/bin/python3
"""Draws what recomputation costs against what it saves: reads the JSON of tessera-compile --remat-report.

Example:
  tessera-compile gpt.onnx -o gpt.tessera --remat budget=512MiB --remat-report remat.json
  tools/plot-remat.py remat.json -o remat.png
"""
import argparse
import json

from plots import fail, pyplot, save


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            report = json.load(file)
        point = lambda entry: (entry["saved_bytes"] / 2**20, entry["recomputed_flops"] / 1e9)
        named = [(name, point(entry)) for name, entry in sorted(report["policies"].items())]
        return report["policy"], [point(entry) for entry in report["front"]], named, point(report["chosen"])
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")
    except (ValueError, KeyError, TypeError, RecursionError):
        fail(f"'{path}' is not a report of --remat-report")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report")
    parser.add_argument("-o", "--output", default="remat.png")
    options = parser.parse_args()
    policy, front, named, chosen = read(options.report)

    figure, axes = pyplot().subplots(figsize=(7, 4.5))
    axes.plot(*zip(*front), "-", color="tab:blue", marker=".", label="budget")
    for (name, (x, y)), marker in zip(named, "s^o"):
        axes.plot(x, y, marker, color="tab:gray")
        axes.annotate(name, (x, y), textcoords="offset points", xytext=(6, 6))
    axes.plot(*chosen, "*", color="tab:red", markersize=13, label=f"chosen ({policy})")
    axes.set_xlabel("kept from forward to backward per rank and micro-batch, MiB")
    axes.set_ylabel("computed again, GFLOP")
    axes.set_xlim(left=0)
    axes.grid(True, alpha=0.3)
    axes.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
