"""Makes docs/models.md of the results of sweep.py."""

import datetime
import importlib.metadata
import json
import os
import re

HEAD = """# Causal language models of transformers

Which of the {families} families that `AutoModelForCausalLM` of transformers {transformers} knows can be exported and
trained, and whether they train as in PyTorch. Written by a sweep on {date} with torch {torch}, onnx {onnx},
onnxscript {onnxscript}:

```sh
tests/models/sweep.py --resume --table docs/models.md
```

Each model is made at d=64 with two layers (more where there are more kinds of layers) and 128 tokens, exported as
`python -m tessera export` does to ONNX, compiled, and trained for three AdamW steps, on one rank and with ZeRO-3 on
two ranks. *Same* means: losses within 1e-5, every gradient of the first step within 1e-4 of its largest element, and
the same parameters trained (`frontends/python/tessera/compare.py`). A case is checked without a padding token, from fresh
weights, and with one, from weights with noise on them. Shown are the largest relative differences of a loss and of a
gradient. Dropout rates are 0. Whatever is not *same* is refused, with the reason; what lacks an op or time without a
padding token is not tried with one. A gradient that is 0 but for rounding (the biases of keys in attention) is told from
a difference by running the module in float64; where it does not run so, as xglm, it counts as DIFFERENT.

A model of your own: `python -m tessera verify`.

{counts}

| family | class | parameters | without a padding token | with a padding token |
|---|---|---|---|---|
"""
STAGES = {"model": "not made", "export": "export refused",
    "compile": "compiler refused", "run": "run refused", "check": "failed"}


def read(path):
    """The results in a file, the last one of each case."""
    if not os.path.exists(path):
        return []
    with open(path) as file:
        results = [json.loads(line) for line in file if line.strip()]
    return list({(result["family"], result["pad"]): result for result in results}.values())


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
    if result is None:
        return "not run"
    if result["result"] == "same":
        loss, gradient, name = worst(result)
        return f"same: loss {loss:.0e}, gradients {gradient:.0e} ({name.removeprefix('model.')})"
    if result["result"] == "DIFFERENT":
        name, run = next((name, run) for name, run in settings_of(result).items() if run["problems"])
        return f"**DIFFERENT** ({name}): {'; '.join(run['problems'])}"
    reason = re.sub(r"\S*/model\.onnx: ", "", result["reason"])  # a temporary folder's
    return f"{STAGES.get(result.get('stage'), 'failed')}: {reason[:300]}"


def line(result):
    """One case in one line."""
    pad = "no pad" if result["pad"] is None else "pad"
    return f"{result['family']:24} {pad:6} {result.get('seconds', 0):5.0f} s  {cell(result)}"[:400]


def counts(results, families):
    """Text: how many cases of each outcome."""
    lines = ["| | without a padding token | with a padding token |", "|---|---|---|"]
    kinds = [("same", lambda r: r["result"] == "same"), ("**DIFFERENT**", lambda r: r["result"] == "DIFFERENT")]
    kinds += [(text, lambda r, stage=stage: r["result"] in ("refused", "failed") and r.get("stage") == stage)
              for stage, text in STAGES.items()]
    for text, test in kinds:
        numbers = [sum(test(r) for r in results if r["pad"] == pad) for pad in (None, 0)]
        if any(numbers) or text == "**DIFFERENT**":
            lines.append(f"| {text} | {numbers[0]} | {numbers[1]} |")
    return "\n".join(lines)


def version(package):
    return importlib.metadata.version(package).split("+")[0]


def write(results, families, path):
    """Writes the page. families: {family: class}."""
    found = {(result["family"], result["pad"]): result for result in results}
    versions = {name: version(name) for name in ("torch", "transformers", "onnx", "onnxscript")}
    text = HEAD.format(families=len(families), counts=counts(results, families),
                       date=datetime.date.today().isoformat(), **versions)
    for family, name in sorted(families.items()):
        cases = [found.get((family, pad)) for pad in (None, 0)]
        made = next((case for case in cases if case and "class" in case), {})
        cells = [cell(case).replace("|", "\\|").replace("\n", " ") for case in cases]
        text += f"| {family} | {made.get('class', name)} | {made.get('parameters', '')} | {cells[0]} | {cells[1]} |\n"
    with open(path, "w") as file:
        file.write(text)
