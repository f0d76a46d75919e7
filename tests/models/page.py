"""Makes docs/models.md of the results of sweep.py."""

import datetime
import os
import re

from results import version

HEAD = """# Causal language models of transformers

Which of the {families} families that `AutoModelForCausalLM` of transformers {transformers} knows can be exported and
trained by each entrance, and whether they train as in PyTorch. Written by sweeps:

```sh
tests/models/sweep.py --resume --table docs/models.md
tests/models/sweep.py --entrance pt2 --resume --table docs/models.md
```

{notes}

Each model is made at d=64 with two layers (more where there are more kinds of layers) and 128 tokens, exported,
compiled, and trained for three AdamW steps, on one rank and with ZeRO-3 on two ranks. *Same* means: losses within 1e-5,
every gradient of the first step within 1e-4 of its largest element, and the same parameters trained
(`frontends/python/tessera/compare.py`). Shown are the largest relative differences of a loss and of a gradient. Dropout
rates are 0. Whatever is not *same* is refused, with the reason.

By ONNX a model is exported as `python -m tessera export hf:<family>` does, and checked without a padding token, from fresh
weights, and with one, from weights with noise on them; what lacks an op or time without a padding token is not tried
with one. By `.pt2` it is exported by `torch.export`, saved with its weights and trained from these, with a padding
token and noise, or without where a family cannot be made with one. A gradient that is 0 but for rounding (the biases of
keys in attention) is told from a difference by running the module in float64; where it does not run so, it
counts as DIFFERENT. PyTorch leaves open which of equal
numbers `topk` takes; in the comparison it takes the first (`frontends/python/tessera/ties.py`), as Tessera does.

A model of your own: `python -m tessera verify`.

{counts}

{share}

| family | class | parameters | .pt2 | ONNX without a padding token | ONNX with a padding token |
|---|---|---|---|---|---|
"""
STAGES = {"model": "not made", "export": "export refused",
    "compile": "compiler refused", "run": "run refused", "check": "failed"}
OTHERS = " Other families as before: "
COLUMNS = ("pt2", "onnx None", "onnx 0")


def case_of(result):
    """What identifies a case: family, padding token, entrance."""
    return result["family"], result["pad"], result.get("entrance", "onnx")


def settings_of(result):
    """{name: summary} of the settings that a case was trained in."""
    return {name: value for name, value in result.items() if isinstance(value, dict) and "problems" in value}


def worst(result):
    """(largest difference of a loss, of a gradient, its name) over the settings of a case."""
    runs = settings_of(result).values()
    gradient, name = max((run["gradient_difference"], run["largest"]) for run in runs)
    return max(run["loss_difference"] for run in runs), gradient, name


def cell(result):
    """What the table says of one case."""
    if result["result"] == "same":
        loss, gradient, name = worst(result)
        return f"same: loss {loss:.0e}, gradients {gradient:.0e} ({name.removeprefix('model.')})"
    if result["result"] == "DIFFERENT":
        name, run = next((name, run) for name, run in settings_of(result).items() if run["problems"])
        return f"**DIFFERENT** ({name}): {'; '.join(run['problems'])}"
    reason = re.sub(r"\S*/model\.(onnx|pt2): ", "", result["reason"])  # a temporary folder's
    reason = re.sub(r"\S*/site-packages/", "", reason)
    return f"{STAGES.get(result.get('stage'), 'failed')}: {reason[:300]}"


def line(result):
    """One case in one line."""
    pad = "no pad" if result["pad"] is None else "pad"
    entrance = result.get("entrance", "onnx")
    return f"{result['family']:24} {entrance:4} {pad:6} {result.get('seconds', 0):5.0f} s  {cell(result)}"[:400]


def plain(text):
    return text.replace("|", "\\|").replace("\n", " ")


def page_before(path):
    """({family: {column: cell}}, {entrance: note}) of the page as it is: sweeps of one entrance keep the other's cells."""
    cells, notes = {}, {}
    if not os.path.exists(path):
        return cells, notes
    with open(path) as file:
        for text in file:
            parts = re.split(r"(?<!\\) ?\| ?", text.strip())[1:-1]
            if re.match(r"By (ONNX|\.pt2), on ", text):
                notes["pt2" if text.startswith("By .pt2") else "onnx"] = text.strip()
            elif len(parts) == 6 and parts[0] != "family" and not parts[0].startswith("-"):
                cells[parts[0]] = dict(zip(COLUMNS, parts[3:]), **{"class": parts[1], "parameters": parts[2]})
    return cells, notes


def column_of(result):
    return "pt2" if result.get("entrance") == "pt2" else f"onnx {result['pad']}"


def add(results, cells):
    """Puts results into the cells of the page."""
    for result in sorted(results, key=lambda result: result["pad"] is None and result.get("entrance") == "pt2"):
        own = cells.setdefault(result["family"], {})
        if column_of(result) == "pt2" and result["pad"] is None and result.get("stage") == "model":
            continue  # it could not be made either way
        own[column_of(result)] = plain(cell(result))
        own |= {key: str(result[key]) for key in ("class", "parameters") if key in result}


def counts(cells, families):
    """Text: how many cases of each outcome."""
    lines = ["| | .pt2 | ONNX without a padding token | ONNX with a padding token |", "|---|---|---|---|"]
    for text in ("same", "**DIFFERENT**", *STAGES.values()):
        numbers = [sum(cells.get(family, {}).get(column, "not run").startswith(text) for family in families)
                   for column in COLUMNS]
        if any(numbers) or text == "**DIFFERENT**":
            lines.append(f"| {text} | " + " | ".join(map(str, numbers)) + " |")
    return "\n".join(lines)


def share(cells, families):
    """Text: how many of the families that torch.export exports are the same by .pt2."""
    found = [cells.get(family, {}).get("pt2", "not run") for family in families]
    exported = [text for text in found if not text.startswith(("not run", STAGES["model"], STAGES["export"]))]
    same = sum(text.startswith("same") for text in exported)
    return (f"Of the {len(exported)} families that `torch.export` itself exports, {same} train the same by .pt2 "
            f"({same / max(len(exported), 1):.0%}).")


def note(entrance, results):
    """What wrote the results of an entrance."""
    dates = sorted(result.get("date", "") for result in results)
    packages = ("torch", "transformers") if entrance == "pt2" else ("torch", "transformers", "onnx", "onnxscript")
    name = ".pt2" if entrance == "pt2" else "ONNX"
    return (f"By {name}, on {dates[-1] or datetime.date.today().isoformat()}: "
            + ", ".join(f"{package} {version(package)}" for package in packages) + ".")


def write(results, families, path):
    """Writes the page: what it had, and the results. families: {family: class}."""
    cells, notes = page_before(path)
    add(results, cells)
    for entrance in ("pt2", "onnx"):
        own = [result for result in results if result.get("entrance", "onnx") == entrance]
        if own:
            earlier = notes.get(entrance, "").removeprefix("By ONNX, ").removeprefix("By .pt2, ")
            notes[entrance] = note(entrance, own)
            if earlier and {result["family"] for result in own} < set(families):
                notes[entrance] += OTHERS + earlier
    text = HEAD.format(families=len(families), counts=counts(cells, families), share=share(cells, families),
                       transformers=version("transformers"), notes="\n\n".join(notes.values()))
    for family, name in sorted(families.items()):
        own = cells.get(family, {})
        text += (f"| {family} | {own.get('class', name)} | {own.get('parameters', '')} | "
                 + " | ".join(own.get(column, "not run") for column in COLUMNS) + " |\n")
    with open(path, "w") as file:
        file.write(text)
