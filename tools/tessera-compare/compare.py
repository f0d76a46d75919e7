#!/usr/bin/python3
"""Compares training configurations of one model: compiles and runs each, or predicts it, and shows them side by side."""

import csv
import json
import os
import shlex
import sys

import configurations
import findings
import page
import runs


def say(text=""):
    """Prints; if nobody reads any more, the comparison goes on all the same."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")


def write_results(options, records, raws):
    with open(os.path.join(options.out, "results.csv"), "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.DictWriter(file, runs.COLUMNS)
        writer.writeheader()
        writer.writerows(records)
    with open(os.path.join(options.out, "results.json"), "w", encoding="utf-8") as file:
        json.dump({"format": "tessera-compare", "version": 1, "model": os.path.basename(options.model),
                   "ranks": options.ranks, "mesh": options.mesh, "target": options.target, "plan_only": options.plan_only,
                   "steps": None if options.plan_only else options.steps, "warmup": options.warmup,
                   "compile_flags": options.compile_flags, "run_flags": options.run_flags,
                   "configurations": raws}, file, indent=1)
        file.write("\n")


def facts(options):
    mesh = ", ".join(f"{axis}={size}" for axis, size in options.mesh.items())
    machine = f"cost model of target {options.target}"
    flags = "".join(f"; further flags of {tool}: {shlex.join(given)}"
                    for tool, given in (("tessera-compile", options.compile_flags), ("tessera-run", options.run_flags)) if given)
    if options.plan_only:
        return f"{mesh}{flags}; predicted by the {machine}, nothing was run. Times in milliseconds per step."
    return (f"{mesh}{flags}; medians over steps {options.warmup + 1} to {options.steps}. Times in milliseconds per step; hidden "
            f"communication and the split of the rest from a trace of two steps; utilisation against the peak in, and "
            f"predictions by, the {machine}.")


def main(arguments):
    for stream in (sys.stdout, sys.stderr):  # names of files need not be text
        stream.reconfigure(errors="backslashreplace")
    options = configurations.parse(arguments)
    try:
        import charts
    except ImportError as error:
        print(f"tessera-compare: error: {error}: install matplotlib for {sys.executable} (pip install matplotlib, or Debian's "
              "python3-matplotlib), or name another interpreter by PYTHON", file=sys.stderr)
        return 2
    os.makedirs(options.out, exist_ok=True)
    records, raws = [], []
    points = configurations.grid(options)
    for number, configuration in enumerate(points, 1):
        say(f"[{number}/{len(points)}] {configuration.label}")
        record, raw = runs.measure(options, configuration)
        if record["error"]:
            say(f"  failed: {record['error']}")
        records.append(record)
        raws.append(raw)
        write_results(options, records, raws)  # an interrupted comparison keeps what it has
    worked = [(record, raw) for record, raw in zip(records, raws) if record["status"] == "ok"]
    if not worked:
        print(f"tessera-compare: error: no configuration worked: {records[0]['error']}", file=sys.stderr)
        return 1
    drawn = charts.draw(*zip(*worked), options.out, options.plan_only)
    title = f"{os.path.basename(options.model)}: {len(points)} configurations"
    found = [page.verdict(records), *findings.sentences(records)]
    page.write(os.path.join(options.out, "index.html"), title, [facts(options), *found], records, options.out, drawn)
    say("\n".join(["", page.terminal(records), "", *found]))
    failed = len(records) - len(worked)
    say(f"\n{len(worked)} of {len(records)} configurations worked; see {os.path.join(options.out, 'index.html')}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
