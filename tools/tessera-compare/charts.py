"""The charts, each as PNG, SVG and PDF, as wide as the text of a page."""

import math
import os

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  (the backend is chosen first)

from configurations import CHOICES  # noqa: E402
from page import unit_of  # noqa: E402

COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2", "#be185d", "#4b5563")
STYLES = ("o-", "s--", "^:", "d-.")
PARTS = (("compute_seconds", "compute", "#2563eb"), ("exposed_communication_seconds", "exposed communication", "#dc2626"),
         ("data_wait_seconds", "data", "#d97706"), ("host_seconds", "host", "#9ca3af"))
# What lines are drawn over: the first of these that varies.
SIZES = (("sequence", "tokens of a sample"), ("batch", "batch size (samples of one micro-batch over all ranks)"),
         ("accumulate", "micro-batches of a step"))
CLASSES = ("parameters", "gradients", "optimizer", "activations", "communication", "workspace", "inputs")
WIDTH, HEIGHT = 6.3, 8.4  # inches of A4 and of Letter within their margins
COLUMNS, MOST_PANELS = 4, 24  # of a figure of small panels
FORMATS = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same bytes each time

plt.rcParams.update({"figure.dpi": 160, "axes.grid": True, "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False,
                     "font.size": 8, "axes.titlesize": 8, "axes.axisbelow": True, "svg.fonttype": "none", "svg.hashsalt": "tessera",
                     "pdf.fonttype": 42})


def chosen(record):
    return tuple(record[column] or "" for column, _ in CHOICES)


def name_of(choice):
    return " ".join(filter(None, choice)) or "default"


def distinct(values):
    return list(dict.fromkeys(values))


def varies(records, column):
    return len({record[column] for record in records}) > 1


def add_legend(figure, columns, *entries):
    """Below the figure, where it hides nothing; files are cut to what is drawn."""
    figure.legend(*entries, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 0), ncol=columns)


def by_size(records, values, ylabel, limit=None):
    """A line over sequence lengths, or batch sizes if there is one length, for each combination of choices (colour) and of the
    other sizes (style); `limit` is drawn across."""
    figure, axes = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    over, *others = [column for column, _ in SIZES if varies(records, column)] or ["batch"]
    choices, sizes = distinct(map(chosen, records)), distinct(tuple(record[column] for column in others) for record in records)
    for choice in choices:
        for size in sizes:
            line = sorted((r for r in records if (chosen(r), tuple(r[column] for column in others)) == (choice, size)),
                          key=lambda r: r[over])
            label = ", ".join([name_of(choice), *(f"{column} {number}" for column, number in zip(others, size))])
            if line:
                axes.plot([r[over] for r in line], [values(r) for r in line], STYLES[sizes.index(size) % len(STYLES)],
                          color=COLOURS[choices.index(choice) % len(COLOURS)], markersize=4, linewidth=1.2, label=label)
    if limit is not None:
        axes.axhline(limit[0], color="black", linewidth=1, linestyle=(0, (6, 2)), label=limit[1])
    ticks = sorted({record[over] for record in records})
    if over == "sequence" and ticks[-1] >= 8 * ticks[0]:
        axes.set_xscale("log", base=2)
        axes.minorticks_off()
    axes.set_xticks(ticks, [f"{tick // 1024} Ki" if tick >= 8192 and tick % 1024 == 0 else str(tick) for tick in ticks])
    axes.set_xlabel(dict(SIZES)[over])
    axes.set_ylabel(ylabel)
    axes.set_ylim(bottom=0)
    add_legend(figure, 2)
    return figure


def memory(records):
    unit, size = unit_of([record["memory_reserved"] for record in records])
    device, top = records[0]["device_memory"], max(record["memory_reserved"] for record in records)
    # A limit far above everything would flatten what there is to see; the caption has it.
    limit = (device / size, "memory of the device") if top > device / 8 else None
    return by_size(records, lambda r: (r["memory_reserved"] + r["memory_libraries"]) / size, f"{unit} of one rank", limit)


def stacked(records, parts):
    figure, axes = plt.subplots(figsize=(WIDTH, min(HEIGHT, 1.2 + 0.2 * len(records))), layout="constrained")
    positions, left = range(len(records)), [0.0] * len(records)
    for column, name, colour in parts:
        lengths = [1e3 * (record[column] or 0.0) for record in records]
        axes.barh(positions, lengths, left=left, label=name, color=colour, height=0.7)
        left = [a + b for a, b in zip(left, lengths)]
    axes.set_yticks(list(positions), [record["configuration"] for record in records], fontsize=max(3, min(7, 300 / len(records))))
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds per step")
    add_legend(figure, len(parts))
    return figure


def panels(count, share=True):
    """A figure of `count` small panels, and these."""
    columns = min(COLUMNS, count)
    rows = math.ceil(count / columns)
    figure, grid = plt.subplots(rows, columns, figsize=(WIDTH, min(HEIGHT, 0.8 + 1.45 * rows)), squeeze=False, sharex=share, sharey=share,
                                layout="constrained")
    for panel in grid.flat[count:]:
        panel.set_visible(False)
    return figure, list(grid.flat[:count])


def heat_map(records):
    row = "sequence" if varies(records, "sequence") else "accumulate"
    split = row == "sequence" and varies(records, "accumulate")  # then each accumulation has panels of its own

    def panel_of(record):
        return name_of(chosen(record)) + (f", accumulate {record['accumulate']}" if split else "")

    shown = distinct(map(panel_of, records))[:MOST_PANELS]
    batches, rows = sorted({r["batch"] for r in records}), sorted({r[row] for r in records})
    figure, grid = panels(len(shown))
    top = max(100 * record["utilisation"] for record in records)
    for panel, title in zip(grid, shown):
        cells = {(r[row], r["batch"]): 100 * r["utilisation"] for r in records if panel_of(r) == title}
        table = [[cells.get((number, batch), float("nan")) for batch in batches] for number in rows]
        image = panel.imshow(table, cmap="viridis", vmin=0, vmax=top or 1, aspect="auto", origin="lower")
        for (number, batch), value in cells.items():
            panel.text(batches.index(batch), rows.index(number), f"{value:.1f}", ha="center", va="center", fontsize=7,
                       color="black" if value > 0.6 * top else "white")
        panel.set_xticks(range(len(batches)), batches)
        panel.set_yticks(range(len(rows)), rows)
        panel.set_title(title, fontsize=7)
        panel.grid(False)
    figure.supxlabel("batch size", fontsize=8)
    figure.supylabel(row, fontsize=8)
    figure.colorbar(image, ax=grid, label="utilisation, %")
    return figure


def memory_over_step(records, raws):
    """Within a step, as planned: live bytes of one rank by class, for the configuration of each combination that needs most."""
    largest = {}
    for record, raw in zip(records, raws):
        best = largest.get(chosen(record))
        if best is None or record["memory_peak"] > best[0]["memory_peak"]:
            largest[chosen(record)] = (record, raw)
    shown = list(largest.values())[:MOST_PANELS]
    unit, size = unit_of([record["memory_reserved"] for record, _ in shown])
    figure, grid = panels(len(shown))
    for panel, (record, raw) in zip(grid, shown):
        planned = raw["report"]["memory"]
        points = planned["over_step"]
        areas = panel.stackplot([point["instruction"] for point in points],
                                [[point["by_class"][name] / size for point in points] for name in CLASSES], colors=COLOURS, step="post")
        line = panel.axhline((planned["reserved_per_rank"] + planned["host_per_rank"]) / size, color="black", linewidth=1, linestyle="--")
        panel.set_title(record["configuration"], fontsize=7)
    figure.supxlabel("instruction of the step", fontsize=8)
    figure.supylabel(f"{unit} of one rank", fontsize=8)
    add_legend(figure, 4, [*areas, line], [*CLASSES, "reserved, with the host's"])
    return figure


def memory_over_run(records, raws):
    """A panel for each configuration, all on one scale."""
    shown = sorted(zip(records, raws), key=lambda pair: -pair[0]["rss_peak"])[:MOST_PANELS]
    unit, size = unit_of([record["rss_peak"] for record, _ in shown])
    figure, grid = panels(len(shown))
    grid[0].set_ylim(0, 1.1 * shown[0][0]["rss_peak"] / size)  # the axes are shared
    for panel, (record, raw) in zip(grid, shown):
        panel.plot([step["step"] for step in raw["steps"]], [step["memory"]["rss"] / size for step in raw["steps"]], color=COLOURS[0],
                   linewidth=1)
        panel.set_title(record["configuration"], fontsize=7)
    figure.supxlabel("step", fontsize=8)
    figure.supylabel(f"{unit} of the process (resident)", fontsize=8)
    return figure


def draw(records, raws, folder, is_plan):
    """Writes the charts of the configurations that worked, in every format. Returns (file name without its end, caption) in order."""
    how = "predicted" if is_plan else "measured"
    device = f"{records[0]['device_memory'] / 2**30:.1f} GiB"
    charts = [
        ("tokens-per-second", f"Tokens per second by size, {how}",
         lambda: by_size(records, lambda r: r["tokens_per_second"], "tokens per second, all ranks")),
        ("flops-per-second", f"FLOP of the model per second by size, {how}",
         lambda: by_size(records, lambda r: r["flops_per_second"] / 1e12, "TFLOP/s, all ranks")),
        ("memory", "Memory that one rank takes of its device, by size; planned, which is what is allocated, with an estimate for "
                   f"libraries of GPUs. A device has {device}", lambda: memory(records)),
        ("communication", f"Communication of one step, {how}: exposed (computation waits for it) and hidden (beside computation)",
         lambda: stacked(records, (("exposed_communication_seconds", "exposed", "#dc2626"),
                                   ("hidden_communication_seconds", "hidden", "#059669")))),
        ("utilisation", f"Utilisation over batch and sequence or accumulation, {how}, in percent of the target's peak", lambda: heat_map(records)),
        ("step-time", f"Where a step's time goes, {how}", lambda: stacked(records, PARTS)),
        ("memory-over-step", "Memory within a step by class, planned; of each combination the configuration that needs most",
         lambda: memory_over_step(records, raws))]
    if not is_plan:
        of = f"; the {MOST_PANELS} of {len(records)} configurations that took most" if len(records) > MOST_PANELS else ""
        charts.append(("memory-over-run", f"Resident memory of the process over the run, measured{of}", lambda: memory_over_run(records, raws)))
    for name, _, chart in charts:
        figure = chart()
        for kind, undated in FORMATS.items():
            figure.savefig(os.path.join(folder, f"{name}.{kind}"), bbox_inches="tight", metadata=undated)
        plt.close(figure)
    return [(name, caption) for name, caption, _ in charts]
