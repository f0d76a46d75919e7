"""The results as one HTML page that needs no other file, and as a table for the terminal."""

import base64
import html
import os

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#111}
h1{margin-bottom:0}table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{padding:4px 9px;text-align:right;
border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}.best{background:#ecfdf5;font-weight:600}
.large{color:#9a3412}
.failed{color:#b91c1c;text-align:left}figure{margin:2em 0}figcaption{color:#555}img{max-width:100%}code{background:#f3f4f6}"""


def milliseconds(value):
    return f"{1e3 * value:.1f}"


def unit_of(values):
    """(name, bytes) of the unit for the largest of these."""
    return ("GiB", 2**30) if max(values, default=0) >= 2**30 else ("MiB", 2**20)


def columns(records):
    """(heading, column, how to show it)"""
    worked = [record for record in records if record["status"] == "ok"]
    unit, size = unit_of([record["memory_reserved"] for record in worked])
    sent_unit, sent_size = unit_of([record["communication_bytes"] for record in worked])
    host = [("host " + unit, "memory_host", lambda v: f"{v / size:.2f}")] if any(r["memory_host"] for r in worked) else []
    return (("tokens/s", "tokens_per_second", lambda v: f"{v:,.0f}"), ("TFLOP/s", "flops_per_second", lambda v: f"{v / 1e12:,.4g}"),
            ("step ms", "step_seconds", milliseconds),
            ("compute", "compute_seconds", milliseconds), ("exposed", "exposed_communication_seconds", milliseconds),
            ("hidden", "hidden_communication_seconds", milliseconds), ("data", "data_wait_seconds", milliseconds),
            ("host", "host_seconds", milliseconds), ("util %", "utilisation", lambda v: f"{100 * v:.1f}"),
            (unit + "/rank", "memory_reserved", lambda v: f"{v / size:.2f}"), *host, ("fits", "fits", str),
            (f"sent {sent_unit}", "communication_bytes", lambda v: f"{v / sent_size:.2f}"),
            ("predicted ms", "predicted_step_seconds", milliseconds))


def cells(record, shown):
    return [show(record[column]) if record[column] is not None else "-" for _, column, show in shown]


def best_of(records):
    """The configuration with the most tokens per second, of those that fit the device; None if none does."""
    fitting = [record for record in records if record["status"] == "ok" and record["fits"] == "yes"]
    return max(fitting, key=lambda record: record["tokens_per_second"], default=None)


def verdict(records):
    """What is best, in a sentence or two."""
    worked = [record for record in records if record["status"] == "ok"]
    if not worked:
        return ""
    device = worked[0]["device_memory"]
    large = sum(record["fits"] == "no" for record in worked)
    limit = f"a device has {device / 2**30:.1f} GiB"
    text = f"{large} of {len(worked)} need more memory than there is: {limit}" if large else f"All fit: {limit}"
    best = best_of(records)
    return text + (f". Most tokens per second of those that fit: {best['configuration']}." if best else ". None fits.")


def terminal(records):
    shown = columns(records)
    rows = [["configuration", *(heading for heading, _, _ in shown)]]
    rows += [[record["configuration"], *cells(record, shown)] for record in records if record["status"] == "ok"]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
             for row in rows]
    lines += [f"{record['configuration']}: failed: {record['error']}" for record in records if record["status"] != "ok"]
    return "\n".join(lines)


def table(records):
    best, shown = best_of(records), columns(records)
    rows = ["<tr><th>configuration</th>" + "".join(f"<th>{html.escape(h)}</th>" for h, _, _ in shown) + "</tr>"]
    for record in records:
        name = html.escape(record["configuration"])
        if record["status"] == "ok":
            mark = ' class="best"' if record is best else ' class="large"' if record["fits"] == "no" else ""
            rows.append(f"<tr{mark}><td>{name}</td>" + "".join(f"<td>{c}</td>" for c in cells(record, shown)) + "</tr>")
        else:
            rows.append(f'<tr><td>{name}</td><td class="failed" colspan="{len(shown)}">{html.escape(record["error"])}</td></tr>')
    return "<table>" + "\n".join(rows) + "</table>"


def write(path, title, paragraphs, records, folder, charts):
    figures = []
    for file_name, caption in charts:
        with open(os.path.join(folder, file_name + ".png"), "rb") as file:
            data = base64.b64encode(file.read()).decode("ascii")
        figures.append(f'<figure><img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
                       f"<figcaption>{html.escape(caption)}</figcaption></figure>")
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
                   f"<style>{STYLE}</style></head><body>\n<h1>{html.escape(title)}</h1>\n"
                   + "".join(f"<p>{html.escape(text)}</p>\n" for text in paragraphs)
                   + f"{table(records)}\n" + "\n".join(figures) + "\n</body></html>\n")
