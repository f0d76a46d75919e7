"""The results as one HTML page that needs no other file, and as a table for the terminal."""

import base64
import html
import os

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#111}
h1{margin-bottom:0}table{border-collapse:collapse;margin:1em 0;font-size:13px}td,th{padding:4px 9px;text-align:right;
border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}.best{background:#ecfdf5;font-weight:600}
.failed{color:#b91c1c;text-align:left}figure{margin:2em 0}figcaption{color:#555}img{max-width:100%}code{background:#f3f4f6}"""


def milliseconds(value):
    return f"{1e3 * value:.1f}"


def mebibytes(value):
    return f"{value / 2**20:.1f}"


# (heading, column, how to show it)
TABLE = (("tokens/s", "tokens_per_second", lambda v: f"{v:,.0f}"), ("step ms", "step_seconds", milliseconds),
         ("compute", "compute_seconds", milliseconds), ("exposed", "exposed_communication_seconds", milliseconds),
         ("hidden", "hidden_communication_seconds", milliseconds), ("data", "data_wait_seconds", milliseconds),
         ("host", "host_seconds", milliseconds), ("util %", "utilisation", lambda v: f"{100 * v:.1f}"),
         ("MiB/rank", "memory_reserved", mebibytes), ("sent MiB", "communication_bytes", mebibytes),
         ("predicted ms", "predicted_step_seconds", milliseconds))


def cells(record):
    return [show(record[column]) if record[column] is not None else "-" for _, column, show in TABLE]


def name(record):
    return f"{record['strategy']} b{record['batch']} a{record['accumulate']}"


def terminal(records):
    rows = [["configuration", *(heading for heading, _, _ in TABLE)]]
    rows += [[name(record), *cells(record)] for record in records if record["status"] == "ok"]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths)))
             for row in rows]
    lines += [f"{name(record)}: failed: {record['error']}" for record in records if record["status"] != "ok"]
    return "\n".join(lines)


def table(records):
    worked = [record for record in records if record["status"] == "ok"]
    best = max(worked, key=lambda record: record["tokens_per_second"], default=None)
    rows = ["<tr><th>configuration</th>" + "".join(f"<th>{html.escape(h)}</th>" for h, _, _ in TABLE) + "</tr>"]
    for record in records:
        if record["status"] == "ok":
            mark = ' class="best"' if record is best else ""
            rows.append(f"<tr{mark}><td>{name(record)}</td>" + "".join(f"<td>{c}</td>" for c in cells(record)) + "</tr>")
        else:
            rows.append(f'<tr><td>{name(record)}</td><td class="failed" colspan="{len(TABLE)}">'
                        f"{html.escape(record['error'])}</td></tr>")
    return "<table>" + "\n".join(rows) + "</table>"


def write(path, title, facts, records, folder, charts):
    figures = []
    for file_name, caption in charts:
        with open(os.path.join(folder, file_name), "rb") as file:
            data = base64.b64encode(file.read()).decode("ascii")
        figures.append(f'<figure><img alt="{html.escape(caption)}" src="data:image/png;base64,{data}">'
                       f"<figcaption>{html.escape(caption)}</figcaption></figure>")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
                   f"<style>{STYLE}</style></head><body>\n<h1>{html.escape(title)}</h1>\n<p>{html.escape(facts)}</p>\n"
                   f"{table(records)}\n" + "\n".join(figures) + "\n</body></html>\n")
