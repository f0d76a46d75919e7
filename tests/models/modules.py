#!/usr/bin/env python3
"""Trains several hundred ordinary modules of PyTorch (tests/models/catalogue) in Tessera and compares with PyTorch: the
losses of three AdamW steps and every gradient of the first, by name.

usage: modules.py [--family F ...] [--only REGEX] [--configs C ...] [--exporters E ...] [--resume] [--jobs 2]
                  [--results FILE] [--page docs/modules.md] [--record | --no-record] [--goldens]

Each module is exported by both of PyTorch's exporters, as python -m tessera export does, and PyTorch's training is written
beside the files (--folder; needs torch; what is there already stays). Every file is then compiled and run in every
configuration (catalogue/running.py). Results go to a file of JSON lines as they come; --resume leaves out what is in it.
--page writes the page of what is there. --goldens copies the recordings of the rows that are `recorded` to
tests/models/modules, which tests/models/test_modules.py checks without torch.

Exit status: 0; 1 if a module trains otherwise than in PyTorch, or an internal error was met.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import re
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "frontends", "python")]
sys.path.append(os.path.join(ROOT, "tests", "support"))  # last: it has a module safetensors, too
import archives  # noqa: E402
import results  # noqa: E402
from catalogue import FAMILIES, all_rows, running  # noqa: E402

GOLDENS = os.path.join(HERE, "modules")
BAD = ("DIFFERENT", "internal error")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", nargs="+", choices=FAMILIES, default=FAMILIES)
    parser.add_argument("--only", default="", help="names of modules that match")
    parser.add_argument("--configs", nargs="+", choices=[*running.CONFIGS, *running.ON_GPU], default=list(running.CONFIGS))
    parser.add_argument("--exporters", nargs="+", choices=["torchscript", "dynamo"], default=["torchscript", "dynamo"])
    parser.add_argument("--resume", action="store_true", help="leave out checks that are in the file of results")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "modules"), help="what is recorded")
    parser.add_argument("--results", default=os.path.join(ROOT, "build", "modules.jsonl"))
    parser.add_argument("--page", metavar="FILE", help="write the page of the results")
    parser.add_argument("--record", action="store_true", help="record only, run nothing")
    parser.add_argument("--no-record", action="store_true", help="run what is recorded, without torch")
    parser.add_argument("--goldens", action="store_true", help="renew tests/models/modules")
    return parser.parse_args()


def record(rows, options):
    """Records what is not there."""
    import torch
    import tessera.check  # noqa: F401, imported once for all
    from catalogue import recording
    from pool import Pool
    torch.set_num_threads(1)
    by_name = {row.name: row for row in rows}

    def run(name, _):
        return recording.record(by_name[name], os.path.join(options.folder, name), options.exporters)

    def done(case, result):
        path = os.path.join(options.folder, *case, "case.json")
        if result.get("result") == "failed":  # an exporter hangs or dies
            known = running.case_of(os.path.dirname(path)) or {"failed": result["reason"]}
            for exporter in options.exporters:
                known.get("exporters", {}).setdefault(exporter, {"refused": f"the exporter fails: {result['reason']}"})
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                json.dump(known, file, indent=1, sort_keys=True)
        print(f"{case[0]}: recorded in {result.get('seconds', 'too many')} s", flush=True)

    with tempfile.TemporaryDirectory() as folder:  # exporters import much at their first run, now for all processes
        recording.record(rows[0], folder, options.exporters)
    rows = sorted(rows, key=lambda row: not row.recorded)  # the goldens' first
    pool = Pool(1, 120, 16, run, done)  # torch takes all of a core and much memory
    for row in rows:
        known = running.case_of(os.path.join(options.folder, row.name))
        if known is None or not set(options.exporters) <= set(known.get("exporters", options.exporters)):
            pool.start((row.name,))
    pool.finish()


def case_of(result):
    """What identifies a check."""
    return result["name"], result["exporter"], result["config"]


def run(names, options):
    """Checks what is recorded; returns all results of the file."""
    known = results.read(options.results, case_of) if options.resume else {}
    lock = threading.Lock()
    os.makedirs(os.path.dirname(os.path.abspath(options.results)), exist_ok=True)
    output = open(options.results, "a" if options.resume else "w")

    def check(case):
        name, exporter, config = case
        with tempfile.TemporaryDirectory(prefix="tessera-module-") as work:
            result = running.run(os.path.join(options.folder, name), exporter, config, work)
        result = {"name": name, "exporter": exporter, "config": config} | result
        with lock:
            known[case] = result
            output.write(json.dumps(result) + "\n")
            output.flush()
            if result["result"] in (*BAD, "refused"):
                print(f"{name}, {exporter}, {config}: {result['result']}: {result['reason'][:300]}", flush=True)

    cases = [(name, exporter, config) for name in names for exporter in options.exporters for config in options.configs]
    cases = [case for case in cases if case not in known and running.case_of(os.path.join(options.folder, case[0]))]
    with output, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(check, cases))
    return known


def write_goldens(rows, options):
    """One archive per recorded module, the same bytes for the same files."""
    os.makedirs(GOLDENS, exist_ok=True)
    for row in rows:
        folder = os.path.join(options.folder, row.name)
        case = running.case_of(folder)
        if not case or all("refused" in found for found in case.get("exporters", {}).values()):
            print(f"{row.name}: nothing to keep")
            continue
        entries = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), "rb") as file:
                entries.append((name, file.read()))
        with open(os.path.join(GOLDENS, row.name + ".zip"), "wb") as file:
            file.write(archives.packed(entries))


def main():
    options = arguments()
    if options.no_record:
        names = sorted(os.listdir(options.folder))
    else:
        rows = [row for row in all_rows() if row.family in options.family]
        names = [row.name for row in rows]
    names = [name for name in names if re.search(options.only, name)]
    if not options.no_record:
        record([row for row in rows if row.name in names], options)
    if options.goldens:
        write_goldens([row for row in rows if row.recorded and row.name in names], options)
    if options.record:
        return 0
    known = run(names, options)
    if options.page:
        import modules_page
        modules_page.write(known, all_rows(), options.page)
    counts = collections.Counter(result["result"] for result in known.values())
    print(", ".join(f"{count} {text}" for text, count in counts.most_common()))
    return 1 if any(counts[text] for text in BAD) else 0


if __name__ == "__main__":
    sys.exit(main())
