#!/usr/bin/python3
"""Draws the memory of a finished benchmark, allocated_memory.png and reserved_memory.png, and prints its table. Needs matplotlib.

  tools/fsdp2-benchmark/visualize.py --dir results/
"""

import json
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from command_line import Parser, fail  # noqa: E402
from plots import pyplot, save  # noqa: E402

STYLES = ("o-", "s--", "^:", "D-.", "v-")
MIB = 2**20


def read_results(folder):
    """What main.py wrote into the folder (results.json)."""
    path = os.path.join(folder, "results.json")
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
        if not results["variants"]:
            raise ValueError
        return results
    except OSError as why:
        fail(f"{path}: {why.strerror}")
    except (ValueError, KeyError, TypeError):
        fail(f"{path}: not a file of main.py")


def most(variant, figure):
    """[bytes, …] of a figure after preparation and after each step, each of the rank that has most; None if a rank lacks it."""
    ranks = [rank.get(figure) for rank in variant["ranks"]]
    return None if None in ranks else [max(values) for values in zip(*ranks)]


def table(results):
    """The lines that show each variant: losses, the largest relative difference to the first variant in a step, how far the parameters
    moved, and memory of the rank that has most; then which do not train."""
    row = "{:38s} {:>7s} {:>7s} {:>7s} {:>8s} {:>9s} {:>6s} {:>6s} {:>9s}".format
    lines = [row("", "loss", "", "", "params", "allocated", "MiB", "", "resident"),
             row("", "first", "last", "off by", "moved", "prepared", "kept", "peak", "MiB")]
    for name, variant in results["variants"].items():
        losses, off = variant["losses"], variant["off_by"]
        kept, peak, resident = (most(variant, figure) for figure in ("allocated", "peak_allocated", "resident"))
        memory = [f"{size / MIB:.1f}" for size in (kept[0], kept[-1], max(peak[1:]), max(resident))]
        lines.append(row(name, f"{losses[0]:.4f}", f"{losses[-1]:.4f}", "-" if off is None else f"{off:.0e}",
                         f"{100 * variant['changed']:.2f} %", *memory))
    return lines + [f"{name} does not train: its parameters do not change" for name, variant in results["variants"].items()
                    if not variant["trains"]]


def draw(results, folder):
    """Writes the two plots."""
    on_gpu = results["device"] == "cuda"
    held, taken = ("reserved", "reserved memory of a rank") if on_gpu else ("resident", "resident memory of a rank's process")
    for file, figure, ylabel in (("allocated_memory.png", "peak_allocated", "allocated memory of a rank, peak in the step"),
                                 ("reserved_memory.png", held, taken)):
        picture, axes = pyplot().subplots(figsize=(8, 5))
        for at, (name, variant) in enumerate(results["variants"].items()):
            values = most(variant, figure)
            line, = axes.plot(range(len(values)), [size / MIB for size in values], STYLES[at % len(STYLES)], markersize=4, linewidth=1.2,
                              markerfacecolor="none", label=name)
            if file == "reserved_memory.png" and not on_gpu and most(variant, "reserved"):
                axes.plot(range(len(values)), [size / MIB for size in most(variant, "reserved")], color=line.get_color(), linewidth=1,
                          linestyle=(0, (6, 2)), label=f"{name}: reserved by its plan")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("step (0: prepared, before the first)")
        axes.set_ylabel(f"{ylabel} (MiB)")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=2)
        save(picture, os.path.join(folder, file))


def main():
    parser = Parser(__doc__)
    parser.add_argument("--dir", required=True, help="the folder that main.py wrote")
    folder = parser.parse_args().dir
    results = read_results(folder)
    print("\n".join(table(results)))
    draw(results, folder)
    print(f"plots in {os.path.join(folder, 'allocated_memory.png')} and {os.path.join(folder, 'reserved_memory.png')}")


if __name__ == "__main__":
    main()
