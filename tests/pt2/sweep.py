#!/usr/bin/env python3
"""Trains the modules of tests/models/catalogue from exported programs (torch.export, .pt2) and compares losses and every
gradient with PyTorch's. Needs torch.

usage: sweep.py [--only REGEX] [--family F ...] [--jobs 2] [--results FILE]

Each module is exported with its batch open, saved with weights, compiled and trained for the catalogue's three steps on one
rank. Exit status: 0; 1 if a module trains otherwise than in PyTorch, or an internal error was met.
"""

import argparse
import collections
import json
import os
import re
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "models"), os.path.join(HERE, "..", "..", "frontends", "python")]
import catalogue  # noqa: E402
import pool  # noqa: E402
import tessera  # noqa: E402
import torch  # noqa: E402
from catalogue import recording, running  # noqa: E402
from tessera.dimensions import axes_of  # noqa: E402
from tessera.dropout import without_dropout  # noqa: E402
from tessera.safetensors import load  # noqa: E402


def run(name, folder):
    """The result of one row, as catalogue.running gives it."""
    warnings.simplefilter("ignore")
    row = next(row for row in catalogue.all_rows() if row.name == name)
    torch.manual_seed(0)
    model = row.build().train()
    try:
        examples, case = recording.reference(row, model, folder)
    except Exception as why:  # noqa: BLE001
        return {"result": "not in PyTorch", "reason": str(why)[:200]}
    case = json.loads(json.dumps(case))  # keys as in a file
    program = os.path.join(folder, "model.pt2")
    try:
        with without_dropout(model):
            made = tessera.export(model, examples, check=False)
        made.save(program)
    except tessera.ExportError as why:
        return {"result": "exporter refuses", "reason": str(why)[:200]}
    data = load(os.path.join(folder, "data.safetensors"))
    renamed = dict(zip(row.names, made.inputs))
    recording.save_arrays({renamed.get(name, name): value.copy() for name, value in data.items()},
                          os.path.join(folder, "renamed.safetensors"))
    lengths = {x.shape[1] for x, axes in zip(examples, axes_of(examples)) if 1 in axes}
    flags = ("--seq", str(lengths.pop())) if len(lengths) == 1 else ()
    return running.train(folder, case, program, os.path.join(folder, "renamed.safetensors"), flags, folder, 120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--family", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results")
    options = parser.parse_args()
    rows = [row for row in catalogue.all_rows() if re.search(options.only, row.name) and
            (not options.family or row.family in options.family)]
    results = {}

    def done(case, result):
        results[case[0]] = result
        print(f"{result['result']:18} {case[0]}  {result.get('reason', '')}", flush=True)

    torch.set_num_threads(1)
    jobs = pool.Pool(options.jobs, 300, 16, run, done)
    for row in rows:
        jobs.start((row.name,))
    jobs.finish()
    if options.results:
        with open(options.results, "w") as file:
            json.dump(results, file, indent=1, sort_keys=True)
    counts = collections.Counter(result["result"] for result in results.values())
    print(dict(counts))
    return 1 if counts["DIFFERENT"] + counts["internal error"] + counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
