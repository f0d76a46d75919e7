#!/usr/bin/env python3
"""Records the rows of the operators' table, or compares them with PyTorch at once. Needs torch.

usage: record.py [family ...]                  writes recorded/<family>.pt2, .gz and .json, and core.json
       record.py --check [--only REGEX] [family ...]
                                               trains each row alone, writes nothing

  <family>.pt2          one program of all rows that are supported, without stack traces
  <family>.gz           safetensors: "losses", and "weight/…", "gradient/…", "data/…" (of all steps) by name, "rounding/…" where a
                        gradient is rounding
  <family>-refused.pt2  one program of all rows that are refused
  <family>.json         [[name, overloads, what the refusal must match or null], …]
  core.json             {"torch": version, "overloads": …}: the names of all operators with the tag "core" of this torch
"""

import argparse
import gzip
import io
import json
import os
import re
import sys
import tempfile
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
RECORDED = os.path.join(HERE, "recorded")
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "support"), os.path.join(ROOT, "frontends", "python")]
import numpy  # noqa: E402
import archives  # noqa: E402
import safetensors as files  # noqa: E402
import table  # noqa: E402
import torch  # noqa: E402
import settings  # noqa: E402
from rows import BATCH, SCALES, STEPS, Family, data_of  # noqa: E402
from tessera import compare, tools, training, twin  # noqa: E402
from tessera.draws import TesseraRandom  # noqa: E402

LOSS = training.Loss(settings.LOSS)


def build(rows):
    """(module, {name: array of all steps}) of a family; the names are the exporter's."""
    model = Family(rows).train()
    data = {"x": numpy.repeat(numpy.float32(SCALES), BATCH)}
    data |= {f"integers_{at}": tensor.numpy() for at, tensor in enumerate(data_of(rows).values())}
    return model, data


def export(model, data):
    examples = tuple(torch.from_numpy(array[:BATCH].copy()) for array in data.values())
    program = torch.export.export(model, examples)
    names = list(program.graph_signature.user_inputs)
    if names != list(data):
        raise RuntimeError(f"the inputs are {names}, not {list(data)}")
    return program


def check_overloads(program, rows):
    """Each row's nodes call what it says."""
    for row in rows:
        called = {str(node.target).removeprefix("aten.") for node in program.graph.nodes if node.op == "call_function"
                  and any(frame[0] == f"rows.{row.name}" for frame in node.meta.get("nn_module_stack", {}).values())}
        called = {name.removeprefix("<built-in function ").removesuffix(">") for name in called}
        missing = [name for name in row.overloads.split() if name.removeprefix("aten.") not in called]
        if missing:
            raise RuntimeError(f"{row.name}: the program has no {missing}, but {sorted(called)}")


def reference(model, data):
    """(PyTorch's training, what is rounding)."""
    names = list(data)
    examples = [torch.from_numpy(array[:BATCH]) for array in data.values()]
    setting = (model, examples, names, ["output"], training.Samples(data), LOSS, STEPS)
    random = TesseraRandom()
    want = training.reference(*setting, random=random)
    if not numpy.all(numpy.isfinite(want.losses)):
        raise RuntimeError(f"PyTorch's losses are {want.losses}")
    noise = twin.rounding(*setting, want.gradients, kinds=random.kinds)
    return want, compare.notable(noise, want.gradients)


def drop_traces(part):
    """Drops stack traces from a part of a program's JSON, and from the graphs in it."""
    if isinstance(part, dict):
        part.pop("stack_trace", None)
        if "target" in part and isinstance(part.get("metadata"), dict):
            part["metadata"] = {key: value for key, value in part["metadata"].items() if key == "nn_module_stack"}
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        drop_traces(inner)


def stripped(program):
    """The archive, compressed, without stack traces and sample inputs."""
    buffer, kept = io.BytesIO(), []
    torch.export.save(program, buffer)
    for name, content in sorted(archives.entries(buffer)):
        if "/sample_inputs/" in name or "/.data/" in name or name.endswith("/byteorder"):
            continue
        if "/models/" in name:
            text = json.loads(content)
            drop_traces(text["graph_module"])
            content = json.dumps(text, separators=(",", ":")).encode()
        kept.append((name, content))
    return archives.packed(kept)


def write_compressed(arrays, path):
    with tempfile.TemporaryDirectory() as folder:
        files.save(arrays, os.path.join(folder, "arrays"))
        with open(os.path.join(folder, "arrays"), "rb") as file, open(path, "wb") as target:
            target.write(gzip.compress(file.read(), 9, mtime=0))


def record(family, rows):
    """Writes the files of a family."""
    for suffix, part in (("", [row for row in rows if not row.refused]), ("-refused", [row for row in rows if row.refused])):
        path = os.path.join(RECORDED, family + suffix)
        for name in (path + ".pt2", path + ".gz"):
            if os.path.exists(name):
                os.remove(name)
        if not part:
            continue
        model, data = build(part)
        program = export(model, data)
        check_overloads(program, part)
        with open(path + ".pt2", "wb") as file:
            file.write(stripped(program))
        if suffix:
            continue
        arrays = {f"weight/{name}": value.detach().numpy().copy() for name, value in model.named_parameters()}
        want, noise = reference(model, data)
        arrays |= {f"gradient/{name}": value for name, value in want.gradients.items()}
        arrays |= {f"data/{name}": value for name, value in data.items()}
        arrays |= {f"rounding/{name}": numpy.float64(value) for name, value in noise.items()}
        write_compressed({"losses": numpy.float64(want.losses), **arrays}, path + ".gz")
        print(f"{family}: {len(rows)} rows, {os.path.getsize(path + '.pt2')} + {os.path.getsize(path + '.gz')} bytes",
              flush=True)


def check(family, row, folder):
    """What becomes of one row."""
    try:
        model, data = build([row])
        program = export(model, data)
        check_overloads(program, [row])
    except Exception as why:  # noqa: BLE001: torch has no common class for what its exporter raises
        return "not exported", " ".join(str(why).split())[:300]
    path = {name: os.path.join(folder, name) for name in ("model.pt2", "model.tessera", "data.safetensors", "run", "kept",
                                                          "weights.safetensors")}
    torch.export.save(program, path["model.pt2"])
    files.save(data, path["data.safetensors"])
    files.save({name: value.detach().numpy() for name, value in model.named_parameters()}, path["weights.safetensors"])
    stage = "refused"
    try:
        tools.compile_model(path["model.pt2"], path["model.tessera"], settings.FLAGS, 120)
        if row.refused:
            return "DIFFERENT", "it is not refused"
        stage = "failed"
        files_of_run = path["data.safetensors"], path["weights.safetensors"]
        got = tools.train(path["model.tessera"], *files_of_run, STEPS, path["run"], 120)
        got = tools.with_all_gradients(got, path["model.pt2"], path["model.tessera"], settings.FLAGS, *files_of_run,
                                       path["kept"], 120)
    except tools.ToolError as why:
        if row.refused and stage == "refused" and not why.crashed:
            good = re.search(row.refused, str(why))
            return ("as expected" if good else "other refusal"), why.reason
        return ("CRASH" if why.crashed else stage), str(why) if stage == "failed" else why.reason
    try:
        want, noise = reference(model, data)
    except RuntimeError as why:
        return "not in PyTorch", str(why)
    verdict = compare.compare(want, got, lambda: noise, *settings.TOLERANCES.get(family, ()))
    return ("same" if verdict.same else "DIFFERENT"), verdict.line()


def core():
    """Names of all operators that PyTorch calls core."""
    import yaml
    path = os.path.join(os.path.dirname(torch.__file__), "..", "torchgen", "packaged", "ATen", "native",
                        "native_functions.yaml")
    with open(path) as file:
        functions = yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    tagged = [entry["func"].split("(")[0] for entry in functions
              if "core" in ([entry["tags"]] if isinstance(entry.get("tags"), str) else entry.get("tags", ()))]
    return sorted(f"aten.{name}" if "." in name else f"aten.{name}.default" for name in tagged)


def write_json(name, content):
    with open(os.path.join(RECORDED, name), "w") as file:
        json.dump(content, file, indent=0)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="family")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="rows whose name or overloads match")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    chosen = {name: rows for name, rows in table.FAMILIES.items() if not options.families or name in options.families}
    if options.check:
        bad = 0
        for family, rows in chosen.items():
            for row in rows:
                if re.search(options.only, f"{row.name} {row.overloads}"):
                    with tempfile.TemporaryDirectory() as folder:
                        result, text = check(family, row, folder)
                    bad += result not in ("same", "as expected")
                    print(f"{result:14} {family}/{row.name}: {text}", flush=True)
        return 1 if bad else 0
    os.makedirs(RECORDED, exist_ok=True)
    for family, rows in chosen.items():
        record(family, rows)
        write_json(family + ".json", [[row.name, row.overloads, row.refused] for row in rows])
    write_json("core.json", {"torch": torch.__version__.split("+")[0], "overloads": core()})
    return 0


if __name__ == "__main__":
    sys.exit(main())
