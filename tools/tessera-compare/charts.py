"""The charts, as PNG files."""

import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed")
PARTS = (("compute_seconds", "compute", "#2563eb"), ("exposed_communication_seconds", "exposed communication", "#dc2626"),
         ("data_wait_seconds", "data", "#d97706"), ("host_seconds", "host", "#9ca3af"))
CLASSES = ("parameters", "gradients", "optimizer", "activations", "communication", "workspace", "inputs")

plt.rcParams.update({"figure.dpi": 110, "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False,
                     "axes.spines.right": False, "font.size": 9, "axes.axisbelow": True})


def series(records):
    """(label, records) of each line: a strategy and an accumulation."""
    keys = []
    for record in records:
        key = (record["strategy"], record["accumulate"])
        if key not in keys:
            keys.append(key)
    several = len({accumulate for _, accumulate in keys}) > 1
    for strategy, accumulate in keys:
        chosen = [r for r in records if (r["strategy"], r["accumulate"]) == (strategy, accumulate)]
        yield (f"{strategy}, accumulate {accumulate}" if several else strategy), sorted(chosen, key=lambda r: r["batch"])


def by_batch(records, values, ylabel, title):
    figure, axes = plt.subplots(figsize=(6.4, 4))
    strategies = list(dict.fromkeys(record["strategy"] for record in records))
    styles = ("o-", "s--", "^:", "d-.")
    accumulations = sorted({record["accumulate"] for record in records})
    for label, line in series(records):
        axes.plot([record["batch"] for record in line], [values(record) for record in line],
                  styles[accumulations.index(line[0]["accumulate"]) % len(styles)],
                  color=COLOURS[strategies.index(line[0]["strategy"]) % len(COLOURS)], label=label)
    axes.set_xticks(sorted({record["batch"] for record in records}))
    axes.set_xlabel("batch size (samples of one micro-batch over all ranks)")
    axes.set_ylabel(ylabel)
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    axes.legend(fontsize=8)
    return figure


def bars(records):
    """Positions, labels and width of one bar per record."""
    labels = [f"{r['strategy']}\nb{r['batch']} a{r['accumulate']}" for r in records]
    return range(len(records)), labels, max(6.4, 0.55 * len(records) + 1.5)


def stacked(records, parts, title):
    positions, labels, width = bars(records)
    figure, axes = plt.subplots(figsize=(width, 4))
    bottom = [0.0] * len(records)
    for column, name, colour in parts:
        heights = [1e3 * (record[column] or 0.0) for record in records]
        axes.bar(positions, heights, bottom=bottom, label=name, color=colour, width=0.7)
        bottom = [a + b for a, b in zip(bottom, heights)]
    axes.set_xticks(list(positions), labels, fontsize=7)
    axes.set_ylabel("milliseconds per step")
    axes.set_title(title)
    axes.legend(fontsize=8)
    return figure


def heat_map(records):
    strategies = list(dict.fromkeys(record["strategy"] for record in records))
    batches = sorted({record["batch"] for record in records})
    accumulations = sorted({record["accumulate"] for record in records})
    figure, panels = plt.subplots(1, len(strategies), figsize=(max(6.4, 3.2 * len(strategies)), 3.6), squeeze=False)
    top = max(100 * record["utilisation"] for record in records)
    for panel, strategy in zip(panels[0], strategies):
        cells = {(r["accumulate"], r["batch"]): 100 * r["utilisation"] for r in records if r["strategy"] == strategy}
        table = [[cells.get((accumulate, batch), float("nan")) for batch in batches] for accumulate in accumulations]
        image = panel.imshow(table, cmap="viridis", vmin=0, vmax=top or 1, aspect="auto", origin="lower")
        for row, accumulate in enumerate(accumulations):
            for column, batch in enumerate(batches):
                if (accumulate, batch) in cells:
                    value = cells[accumulate, batch]
                    panel.text(column, row, f"{value:.1f}", ha="center", va="center",
                               color="black" if value > 0.6 * top else "white")
        panel.set_xticks(range(len(batches)), batches)
        panel.set_yticks(range(len(accumulations)), accumulations)
        panel.set_xlabel("batch size")
        panel.set_title(strategy)
        panel.grid(False)
    panels[0][0].set_ylabel("accumulation")
    figure.colorbar(image, ax=panels[0].tolist(), label="utilisation, % of the target's peak")
    return figure


def memory_over_time(records, raws):
    """Within a step, as planned: live bytes of one rank by class, for the largest batch of each strategy."""
    largest = {}
    for record, raw in zip(records, raws):
        best = largest.get(record["strategy"])
        if best is None or record["memory_peak"] > best[0]["memory_peak"]:
            largest[record["strategy"]] = (record, raw)
    figure, panels = plt.subplots(1, len(largest), figsize=(max(6.4, 3.6 * len(largest)), 3.6), squeeze=False, sharey=True)
    for panel, (strategy, (record, raw)) in zip(panels[0], largest.items()):
        memory = raw["report"]["memory"]
        points = memory["over_step"]
        panel.stackplot([point["instruction"] for point in points],
                        [[point["by_class"][name] / 2**20 for point in points] for name in CLASSES], labels=CLASSES,
                        step="post")
        panel.axhline(memory["reserved_per_rank"] / 2**20, color="black", linewidth=1, linestyle="--", label="reserved")
        panel.set_title(f"{strategy}, b{record['batch']} a{record['accumulate']}")
        panel.set_xlabel("instruction of the step")
    panels[0][0].set_ylabel("MiB of one rank")
    panels[0][-1].legend(fontsize=6, loc="upper right")
    return figure


def resident_over_steps(records, raws):
    figure, axes = plt.subplots(figsize=(6.4, 4))
    for record, raw in zip(records, raws):
        axes.plot([step["step"] for step in raw["steps"]], [step["memory"]["rss"] / 2**20 for step in raw["steps"]],
                  label=f"{record['strategy']} b{record['batch']} a{record['accumulate']}", linewidth=1)
    axes.set_xlabel("step")
    axes.set_ylabel("MiB of the process (resident)")
    axes.set_ylim(bottom=0)
    axes.set_title("memory over the run")
    axes.legend(fontsize=6)
    return figure


def draw(records, raws, folder, is_plan):
    """Writes the charts of the configurations that worked. Returns (file name, caption) in order."""
    how = "predicted" if is_plan else "measured"
    charts = [
        ("tokens-per-second.png", f"Tokens per second by batch size, {how}",
         lambda: by_batch(records, lambda r: r["tokens_per_second"], "tokens per second, all ranks", "throughput")),
        ("memory.png", "Memory that one rank reserves, by batch size; planned, which is what is allocated",
         lambda: by_batch(records, lambda r: r["memory_reserved"] / 2**20, "MiB of one rank", "memory")),
        ("communication.png", f"Communication of one step, {how}: exposed (computation waits for it) and hidden (beside "
                              "computation)",
         lambda: stacked(records, (("exposed_communication_seconds", "exposed", "#dc2626"),
                                   ("hidden_communication_seconds", "hidden", "#059669")), "communication")),
        ("utilisation.png", f"Utilisation over batch and accumulation, {how}", lambda: heat_map(records)),
        ("step-time.png", f"Where a step's time goes, {how}", lambda: stacked(records, PARTS, "one step")),
        ("memory-over-step.png", "Memory within a step by class, planned; the configuration of each strategy that needs most",
         lambda: memory_over_time(records, raws))]
    if not is_plan:
        charts.append(("memory-over-run.png", "Resident memory of the process over the run, measured",
                       lambda: resident_over_steps(records, raws)))
    for name, _, chart in charts:
        figure = chart()
        figure.savefig(os.path.join(folder, name), bbox_inches="tight")
        plt.close(figure)
    return [(name, caption) for name, caption, _ in charts]
