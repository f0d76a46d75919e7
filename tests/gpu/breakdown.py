"""Where a step's time went, by class of instruction, from tessera-run's trace, beside what the cost model predicted."""

import json
import re

# What trace.json and --report call an instruction, and how both are shown.
CLASSES = {"gemm": "products", "conv": "products", "attention": "attention", "attention_grad": "attention",
           "copy": "copies and fills", "fill": "copies and fills"}
# Kinds of generated kernels, which their names say: k<number>_<kind>_<what about>.
KINDS = ("elementwise", "row", "column", "reduce_all", "scatter", "rows_columns", "blocks")


def kind_of(symbol):
    found = re.match(rf"k\d+_({'|'.join(KINDS)})_", symbol)
    return found[1] if found else "other"


def class_of(event):
    if event["cat"] == "launch":
        return f"kernels: {kind_of(event['args'].get('detail', ''))}"
    return CLASSES.get(event["cat"], event["cat"])


def predicted(report):
    """Class -> seconds, of what tessera-compile --report=FILE wrote."""
    step = report["step"]
    return {"products": step["product_seconds"], "attention": step["attention_seconds"], "copies and fills": step["copy_seconds"],
            **{f"kernels: {row['kind']}": row["seconds"] for row in report["kernels"]}}


def measured(path, step):
    """Class -> [instructions, seconds] of one step in a trace."""
    found = {}
    with open(path) as file:
        for event in json.load(file)["traceEvents"]:
            if event["ph"] == "X" and event["args"]["step"] == step and event["cat"] not in ("step", "wait"):
                entry = found.setdefault(class_of(event), [0, 0.0])
                entry[0] += 1
                entry[1] += event["dur"] / 1e6
    return found


def table(path, step, prediction):
    """Rows of class, count, seconds and predicted seconds, the longest first, and the sum."""
    found = measured(path, step)
    if not found:
        raise RuntimeError(f"the trace has nothing of step {step}")
    rows = [{"class": name, "count": found.get(name, [0, 0])[0], "seconds": found.get(name, [0, 0.0])[1],
             "predicted": prediction.get(name)}
            for name in sorted({*found, *(name for name, seconds in prediction.items() if seconds > 0)})]
    rows.sort(key=lambda row: -row["seconds"])
    rows.append({"class": "all", "count": sum(row["count"] for row in rows), "seconds": sum(row["seconds"] for row in rows),
                 "predicted": sum(prediction.values())})
    return rows
