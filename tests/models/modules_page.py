"""Makes docs/modules.md of the results of modules.py: every entry of torch.nn and torch.nn.functional, enumerated from torch
itself."""

import collections
import datetime
import inspect
import re

from results import version

HEAD = """# Modules of torch.nn

What of `torch.nn` and `torch.nn.functional` trains as in PyTorch. Written on {date} with torch {torch}, onnx {onnx}, onnxscript
{onnxscript} by

```sh
tests/models/modules.py --page docs/modules.md
```

The entries are those of `torch.nn` and `torch.nn.functional` themselves. Each stands for small modules of the catalogue
(`tests/models/catalogue`, {modules} modules: odd sizes, groups, dilation, masks, ties, shared and packed parameters). A module
is exported by both of PyTorch's exporters and trained for three AdamW steps in five configurations: one rank, ZeRO-3 on two,
two micro-batches, full recomputation, and bf16. *Same* means: losses within 1e-5, every gradient of the first step within 1e-4
of its largest element, the same parameters trained; in bf16 as far off as PyTorch in bf16 is (`catalogue/running.py`).

An entry *trains* if a module of its kind is the same in every configuration in which it was compared, as one exporter or the
other writes it, and none is wrong. What does not is refused, with the reason. A part of the modules with the goldens of PyTorch is in CI
(`tests/models/test_modules.py`).

{counts}

{checks}

"""
# Entries that are no computation of their own, and why.
CONTAINERS = {name: "a container, or a base of others" for name in (
    "nn.Module", "nn.Container", "nn.ModuleDict", "nn.ModuleList", "nn.ParameterDict", "nn.ParameterList", "nn.Sequential",
    "nn.RNNBase", "nn.RNNCellBase")}
NOT_APPLICABLE = CONTAINERS | {
    "nn.DataParallel": "ranks are the compiler's",
    "F.assert_int_or_pair": "a helper", "F.boolean_dispatch": "a helper", "F.handle_torch_function": "a helper",
    "F.has_torch_function": "a helper", "F.has_torch_function_unary": "a helper", "F.has_torch_function_variadic": "a helper",
    "F.Optional": "a name of typing", "F.grouped_mm": "runs on GPUs only", "F.scaled_mm": "FP8, on GPUs only",
    "F.scaled_grouped_mm": "FP8, on GPUs only", "F.scaled_addmm": "FP8, on GPUs only", "F.scaled_addmm_": "FP8, on GPUs only",
    "F.native_channel_shuffle": "PyTorch has no gradient for it"}
ORDER = ("DIFFERENT", "internal error", "refused", "exporter refuses", "not in PyTorch", "not compared")


def entries():
    """Names of all modules of torch.nn and all functions of torch.nn.functional."""
    import torch.nn.functional as functional
    from torch import nn
    modules = ["nn." + name for name in dir(nn) if inspect.isclass(getattr(nn, name)) and issubclass(getattr(nn, name), nn.Module)]
    functions = ["F." + name for name in dir(functional) if not name.startswith("_")
                 and callable(getattr(functional, name)) and not inspect.isclass(getattr(functional, name))]
    return modules, functions


def of_module(name, results):
    """(kind, text) of a module of the catalogue: "trains" if an exporter's file is the same wherever it was compared."""
    best = None
    for exporter in ("torchscript", "dynamo"):
        own = {config: result for (_, other, config), result in results.items() if other == exporter}
        compared = [result for result in own.values() if result["result"] != "not compared"]
        if compared and all(result["result"] == "same" for result in compared):
            largest = max(result["gradient_difference"] for config, result in own.items()
                          if result["result"] == "same" and config != "bf16")
            return "trains", f"gradients within {largest:.0e}"
        for kind in ORDER:
            bad = {config: result for config, result in own.items() if result["result"] == kind}
            if bad and best is None:
                config = next(iter(bad))
                where = "" if len(bad) == len(own) else f" ({config})"
                best = kind, f"{name}{where}: {short(bad[config]['reason'])}"
    return best or ("not run", f"{name}: not run")


def short(reason):
    """A reason without folders, in one line."""
    reason = re.sub(r"\S*/(torchscript|dynamo)\.onnx: ", "", reason).replace("|", "\\|")
    return " ".join(reason.split())[:220]


def line(entry, rows, kinds):
    """(kind, line) of an entry; rows: the modules that cover it."""
    if entry in NOT_APPLICABLE:
        return "not applicable", f"| `{entry}` | not applicable | {NOT_APPLICABLE[entry]} |"
    good = [row for row in rows if kinds[row][0] == "trains"]
    bad = [row for row in rows if kinds[row][0] != "trains"]
    wrong = [row for row in bad if kinds[row][0] in ORDER[:2]]
    if wrong:
        kind, text = kinds[wrong[0]][0], "; ".join(kinds[row][1] for row in wrong[:3])
    elif good:
        kind = "trains"
        text = f"{len(good)} of {len(rows)} modules" if bad else ", ".join(good[:4]) + (", …" if len(good) > 4 else "")
        text += "".join(f"; {kinds[row][1]}" for row in bad[:3])
    else:
        kind = kinds[rows[0]][0] if rows else "not tried"
        text = "; ".join(kinds[row][1] for row in bad[:2])
    return kind, f"| `{entry}` | {'**' + kind + '**' if kind in ORDER[:2] else kind} | {text} |"


def write(results, rows, path):
    """Writes the page. results: as modules.read; rows: of the catalogue."""
    by_row = collections.defaultdict(dict)
    for key, result in results.items():
        by_row[key[0]][key] = result
    kinds = {row.name: of_module(row.name, by_row[row.name]) for row in rows}
    covered = collections.defaultdict(list)
    for row in rows:
        for entry in row.covers.split():
            covered[entry].append(row.name)
    tables, counts = [], ["| | entries | train | share | refused | the exporters refuse | other | not applicable |",
                          "|---|---|---|---|---|---|---|---|"]
    for title, names in zip(("torch.nn", "torch.nn.functional"), entries()):
        lines = [line(name, covered[name], kinds) for name in names]
        count = collections.Counter(kind for kind, _ in lines)
        real = len(lines) - count["not applicable"]
        other = real - count["trains"] - count["refused"] - count["exporter refuses"]
        counts.append(f"| `{title}` | {len(lines)} | {count['trains']} | {count['trains'] / real:.1%} of {real} | {count['refused']} "
                      f"| {count['exporter refuses']} | {other} | {count['not applicable']} |")
        tables.append("\n".join([f"## {title}", "", "| entry | | modules and reasons |", "|---|---|---|",
                                 *(text for _, text in lines)]))
    modules = collections.Counter(kind for kind, _ in kinds.values())
    counts.append(f"| modules of the catalogue | {len(rows)} | {modules['trains']} | {modules['trains'] / len(rows):.1%} of {len(rows)} "
                  f"| {modules['refused']} | {modules['exporter refuses']} "
                  f"| {len(rows) - modules['trains'] - modules['refused'] - modules['exporter refuses']} | 0 |")
    configs = list(dict.fromkeys(config for _, _, config in results))
    checks = ["| checks | same | DIFFERENT | internal error | refused | exporter refuses | not compared |", "|---|---|---|---|---|---|---|"]
    for config in [*configs, None]:
        own = collections.Counter(result["result"] for key, result in results.items() if config in (key[2], None))
        checks.append(f"| {config or 'all'} | {own['same']} | {own['DIFFERENT']} | {own['internal error']} | {own['refused']} "
                      f"| {own['exporter refuses']} | {own['not compared'] + own['not in PyTorch']} |")
    rest = [row for row in rows if kinds[row.name][0] != "trains"]
    listed = ["## Modules of the catalogue that do not train", "", "| module | | reason |", "|---|---|---|"]
    listed += [f"| {row.family}/{row.name} | {kinds[row.name][0]} | {kinds[row.name][1]} |" for row in rest]
    versions = {name: version(name) for name in ("torch", "onnx", "onnxscript")}
    text = HEAD.format(date=datetime.date.today().isoformat(), modules=len(rows), counts="\n".join(counts),
                       checks="\n".join(checks), **versions)
    with open(path, "w") as file:
        file.write(text + "\n\n".join([*tables, "\n".join(listed)]) + "\n")
