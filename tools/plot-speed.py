#!/usr/bin/python3
"""Draws the speed of runs over their steps: tokens per second (samples, where the model has no positions) and TFLOP per
second of one rank, from metrics.jsonl and run.json of each folder; prints the medians without the first step.

Example: tools/plot-speed.py runs/bf16 runs/fp8 --output speed.png
"""
import argparse
import json
import os
import statistics

from plots import fail, pyplot, save


def read_run(folder):
    """(what is counted, steps, that per second and rank, TFLOP per second and rank) of a run."""
    try:
        with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
            info = json.load(file)
        ranks, flops = int(info["ranks"]), float(info["artifact"]["model"]["flops_per_step"])
        counted = "tokens" if int(info["artifact"]["model"]["positions_per_sample"]) else "samples"
        with open(os.path.join(folder, "metrics.jsonl"), encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines if line.endswith("\n")]  # one without was cut off by a crash
        steps = [record for record in records if "stage" not in record]
        return (counted, [step["step"] for step in steps], [step[f"{counted}_per_second"] / ranks for step in steps],
                [flops / step["step_seconds"] / ranks / 1e12 for step in steps])
    except OSError as error:
        fail(f"cannot read '{error.filename}': {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError, RecursionError):
        fail(f"'{folder}' does not hold a run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", help="folders of runs")
    parser.add_argument("--output", help="file to write (default: speed.png in the first folder)")
    arguments = parser.parse_args()
    figure, (above, below) = pyplot().subplots(2, 1, figsize=(8, 6), sharex=True)
    units = set()
    for folder in arguments.folder:
        counted, steps, speeds, flops = read_run(folder)
        if not steps:
            fail(f"'{folder}' has no steps")
        units.add(counted)
        name = os.path.basename(os.path.normpath(folder))
        above.plot(steps, speeds, linewidth=1.2, label=name)
        below.plot(steps, flops, linewidth=1.2, label=name)
        middle = [statistics.median(values[1:] or values) for values in (speeds, flops)]
        print(f"{name}: {middle[0]:,.0f} {counted}/s, {middle[1]:.3g} TFLOP/s of a rank")
    above.set_ylabel(f"{' or '.join(sorted(units))} per second and rank")
    below.set_ylabel("TFLOP per second and rank")
    below.set_xlabel("step")
    for axes in (above, below):
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    above.legend()
    output = arguments.output or os.path.join(arguments.folder[0], "speed.png")
    save(figure, output)
    print(f"curves in {output}")


if __name__ == "__main__":
    main()
