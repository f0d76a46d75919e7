#!/usr/bin/python3
"""Draws the memory of a step over time: reads memory.json of a run folder (tessera-run --memory-snapshot), writes
memory.png.

Example: tools/plot-memory.py runs/demo
"""
import argparse
import json
import os

from plots import fail, pyplot, save


def read_snapshot(path):
    try:
        with open(path, encoding="utf-8") as file:
            snapshot = json.load(file)
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}; tessera-run writes it with --memory-snapshot")
    except (ValueError, RecursionError):
        fail(f"'{path}' is not JSON")
    try:
        times = [float(point["seconds"]) * 1e3 for point in snapshot["points"]]
        classes = {name: [point["by_class"][name] / 2**20 for point in snapshot["points"]]
                   for name in snapshot["points"][0]["by_class"]}
        return times, classes, snapshot["reserved"] / 2**20, snapshot["peak"] / 2**20, snapshot["step"]
    except (KeyError, TypeError, IndexError):
        fail(f"'{path}' is not a memory snapshot")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder of the run")
    parser.add_argument("--output", help="file to write (default: memory.png in the folder)")
    arguments = parser.parse_args()
    times, classes, reserved, peak, step = read_snapshot(os.path.join(arguments.folder, "memory.json"))
    used = {name: values for name, values in classes.items() if any(values)}
    figure, axes = pyplot().subplots(figsize=(8, 4.5))
    axes.stackplot(times, used.values(), labels=used.keys(), step="post", linewidth=0)
    axes.axhline(reserved, color="black", linestyle="--", linewidth=1, label=f"reserved {reserved:.1f} MiB")
    axes.set_xlabel(f"time in step {step} (ms)")
    axes.set_ylabel("memory of one rank (MiB)")
    axes.set_title(f"peak {peak:.1f} MiB of {reserved:.1f} MiB reserved")
    axes.set_ylim(bottom=0)
    axes.margins(x=0)
    axes.legend(loc="lower right", fontsize="small")
    output = arguments.output or os.path.join(arguments.folder, "memory.png")
    save(figure, output)
    print(f"peak {peak:.1f} MiB of {reserved:.1f} MiB reserved; curve in {output}")


if __name__ == "__main__":
    main()
