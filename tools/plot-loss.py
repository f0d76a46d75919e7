#!/usr/bin/python3
"""Draws the loss curve of a run folder: reads metrics.jsonl and run.json, writes loss.png. Of several folders it draws the
difference of each to the first one, as means over the last --smooth steps, and prints how they end.

Examples: tools/plot-loss.py runs/demo
          tools/plot-loss.py --output precisions.png --smooth 50 runs/fp32 runs/bf16 runs/rowwise
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
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    fail(f"'{path}' line {number} is not a record of a step")
    except OSError as error:
        fail(f"cannot read '{path}': {error.strerror}")
    if not steps:
        fail(f"'{path}' has no losses")
    return steps, losses, evaluations


def read_entropy(path):
    try:
        with open(path, encoding="utf-8") as file:
            return float(json.load(file)["unigram_entropy"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def smoothed(losses, count):
    """Means over the last `count` steps, from the first step that has so many."""
    return [sum(losses[end - count:end]) / count for end in range(count, len(losses) + 1)]


def compare(folders, output, smooth):
    curves = {}
    for folder in folders:
        _, losses, _ = read_metrics(os.path.join(folder, "metrics.jsonl"))
        if len(losses) < smooth:
            fail(f"'{folder}' has {len(losses)} steps, fewer than --smooth {smooth}")
        curves[os.path.basename(os.path.normpath(folder))] = smoothed(losses, smooth)
    first, base = next(iter(curves.items()))
    figure, axes = pyplot().subplots(figsize=(8, 4.5))
    for name, curve in curves.items():
        common = min(len(curve), len(base))
        difference = [100 * (own / other - 1) for own, other in zip(curve[:common], base[:common])]
        axes.plot(range(smooth, smooth + common), difference, linewidth=1.2, label=name)
        print(f"{name}: {curve[common - 1]:.4f} at the end, {difference[-1]:+.2f} % of {first}")
    axes.set_xlabel("step")
    axes.set_ylabel(f"loss against {first} (%), mean of {smooth} steps")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, output)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", help="folder of the run; several are compared with the first")
    parser.add_argument("--output", help="file to write (default: loss.png in the folder)")
    parser.add_argument("--smooth", type=int, default=50, help="steps that a compared loss is the mean of")
    arguments = parser.parse_args()
    if len(arguments.folder) > 1:
        if arguments.smooth < 1:
            fail(f"--smooth must be at least 1, got {arguments.smooth}")
        return compare(arguments.folder, arguments.output or os.path.join(arguments.folder[0], "losses.png"), arguments.smooth)
    arguments.folder = arguments.folder[0]
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
