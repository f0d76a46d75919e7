#!/usr/bin/python3
"""Draws the loss curve of a run folder: reads metrics.jsonl and run.json, writes loss.png.

Example: tools/plot-loss.py runs/demo
"""
import argparse
import json
import os

from plots import fail, pyplot, save


def read_metrics(path):
    steps, losses, evaluations = [], [], []
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                    if record.get("stage") == "evaluation" and record["eval_loss"] is not None:
                        evaluations.append((int(record["step"]), float(record["eval_loss"])))
                    if "stage" in record:  # memory, before and after the first step
                        continue
                    if record["loss"] is not None:
                        steps.append(int(record["step"]))
                        losses.append(float(record["loss"]))
                except (ValueError, KeyError, TypeError):
                    fail(f"'{path}' line {number} is not a record of a step")
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")
    if not steps:
        fail(f"'{path}' has no losses")
    return steps, losses, evaluations


def read_entropy(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file).get("unigram_entropy")
    except (OSError, ValueError):
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="folder of the run")
    parser.add_argument("--output", help="file to write (default: loss.png in the folder)")
    arguments = parser.parse_args()
    steps, losses, evaluations = read_metrics(os.path.join(arguments.folder, "metrics.jsonl"))
    entropy = read_entropy(os.path.join(arguments.folder, "run.json"))
    figure, axes = pyplot().subplots(figsize=(8, 4.5))
    axes.plot(steps, losses, color="tab:blue", linewidth=1.2, label="loss")
    if evaluations:
        axes.plot(*zip(*evaluations), color="tab:orange", marker="o", markersize=3, linewidth=1.2, label="evaluation")
    if entropy is not None:
        axes.axhline(entropy, color="tab:gray", linestyle="--", linewidth=1, label=f"unigram entropy {entropy:.3f}")
    axes.set_xlabel("step")
    axes.set_ylabel("loss (nats)" if entropy is not None else "loss")
    axes.set_title(f"loss {losses[0]:.3f} to {losses[-1]:.3f} in {steps[-1]} steps")
    axes.grid(alpha=0.3)
    axes.legend()
    output = arguments.output or os.path.join(arguments.folder, "loss.png")
    save(figure, output)
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f} over {len(steps)} steps"
          + (f", unigram entropy {entropy:.4f}" if entropy is not None else "") + f"; curve in {output}")


if __name__ == "__main__":
    main()
