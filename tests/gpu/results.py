"""The results of run.py as files, and as a section of docs/benchmarks/gpu.md.

usage: results.py RESULTS.json... [--page docs/benchmarks/gpu.md]    appends a section to the page: of one run, or of several
                                                                    calls on one machine and one build, together

results.json and results.md are written anew after each case, in one move: a run that is killed leaves all that it did.
"""

import argparse
import collections
import json
import os
import re
import sys

import cases

PAGE = os.path.join(cases.ROOT, "docs", "benchmarks", "gpu.md")
NOTHING = "Nothing has been run on hardware yet.\n"
HEAD = """# On a GPU

Written by `tests/gpu/results.py` from what [tests/gpu/run.sh](../gpu-tests.md) measured, a section a run.

"""


def gib(size):
    return "" if size is None else f"{size / 2**30:.1f}"


def ms(seconds, digits=2):
    return "" if seconds is None else f"{1e3 * seconds:.{digits}f}"


def benchmarks(rows):
    """The tables of benchmarks: all systems on one model, and Tessera's time by class beside its prediction."""
    if not rows:
        return ""
    lines = ["| model | system | tokens/s | step, ms (least to most) | MFU | peak memory, GiB: planned or reserved | on the GPU | launch, first step, s "
             "| launcher's CPU, ms a step | attention's gradient | ratio |", "|---" * 11 + "|"]
    own = {row["model"]: row["tokens_per_second"] for row in reversed(rows) if row["system"] == "tessera"}
    for row in rows:
        ratio = f"{own[row['model']] / row['tokens_per_second']:.2f}" if row["model"] in own else ""
        mfu = "" if row["mfu"] is None else f"{100 * row['mfu']:.1f} %"
        what = "; ".join(filter(None, (row["what"], " ".join(row["note"].split()))))
        start = ", ".join(f"{seconds:.1f}" for seconds in (row["launch"], row["first_step"]) if seconds is not None)
        lines.append(f"| {row['title']}, {row['precision']}, B={row['batch']}, T={row['sequence']} | {what} | "
                     f"{row['tokens_per_second']:,.0f} | {ms(row['step_seconds'])} ({' to '.join(map(ms, row['step_range']))}) | {mfu} | {gib(row['own_memory'])} | "
                     f"{gib(row['gpu_memory'])} | {start} | {ms(row['launcher_cpu'])} | {row['attention_gradient']} | {ratio} |")
    lines += ["", "Ratio: tokens/s of Tessera (the first row `Tessera`) over those of the row's system. MFU counts causal attention by "
              "half. Padded: the vocabulary is larger, so that PyTorch's rows of logits are aligned; Tessera pads its own rows. "
              "PyTorch's steps are timed in blocks of eight, Tessera's one by one."]
    for row in rows:
        if not row.get("breakdown"):
            continue
        lines += ["", f"{row['title']}, {row['what']}: one step, issued one instruction after the other, by class, beside the prediction for "
                  f"{row['predicted_for']}", "", "| class | instructions | measured, ms | predicted, ms | measured / predicted |",
                  "|---|---|---|---|---|"]
        for part in row["breakdown"]:
            relation = f"{part['seconds'] / part['predicted']:.2f}" if part["predicted"] else ""
            lines.append(f"| {part['class']} | {part['count']} | {ms(part['seconds'])} | {ms(part['predicted'])} | {relation} |")
    return "\n".join(lines) + "\n"


def text(results):
    """Facts, counts, benchmarks and failures of one run, in Markdown."""
    facts = "".join(f"- {name}: {value}\n" for name, value in results["facts"].items())
    counts = f"\n{results['passed']} passed, {results['failed']} failed" + ("" if results["complete"] else " so far: the run was cut off")
    notes = "".join(f"- {part['name']}: {part['note']}\n" for part in results["parts"]
                      if part["passed"] and part["note"] and not part["name"].startswith(("benchmark ", "kernels of ")))
    failures = collections.Counter(f"{part['name']}: {' '.join(part['why'].split())[:500]}" for part in results["parts"]
                                   if not part["passed"])
    failed = "".join(f"- failed: {line}{f' ({count} times)' if count > 1 else ''}\n" for line, count in failures.items())
    return f"{facts}{counts}\n\n{notes}{failed}\n{benchmarks(results['benchmarks'])}"


def replace(path, content):
    """Writes the file in one move."""
    with open(path + ".new", "w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".new", path)


def write(suite, complete):
    """results.json and results.md in the suite's folder, if it has one."""
    if not suite.out:
        return
    passed = sum(part.passed for part in suite.parts)
    results = {"facts": suite.facts, "complete": complete, "passed": passed, "failed": len(suite.parts) - passed,
               "benchmarks": suite.rows, "parts": [part.__dict__ for part in suite.parts]}
    os.makedirs(suite.out, exist_ok=True)
    replace(os.path.join(suite.out, "results.json"), json.dumps(results, indent=1))
    replace(os.path.join(suite.out, "results.md"), text(results))


def public(facts):
    """Facts for a page: versions, and not where on that machine something was."""
    found = {name: re.sub(r", /[^ ,]*", "", value) for name, value in facts.items()}
    if "machine" in found:
        found["machine"] = ", ".join(found["machine"].split(", ")[:2])
    found["command"] = re.sub(r" --out \S+", "", found["command"])
    return found


def together(runs):
    """Several calls as one run: what passed once, whatever failed, with the facts of the first. Raises where GPU, driver or libraries differ."""
    whole = {**runs[0], "facts": public(runs[0]["facts"])}
    differs = ("date", "command")
    for run in runs[1:]:
        facts = public(run["facts"])
        if other := [name for name, value in facts.items() if name not in differs and whole["facts"].get(name) != value]:
            raise ValueError(f"runs of different machines or builds: {', '.join(other)}")
        known = {part["name"] for part in whole["parts"] if part["passed"]}
        whole["parts"] = whole["parts"] + [part for part in run["parts"] if not part["passed"] or part["name"] not in known]
        whole["benchmarks"] = whole["benchmarks"] + run["benchmarks"]
        whole["complete"] = whole["complete"] and run["complete"]
        whole["facts"]["command"] += "; " + facts["command"]
    whole["passed"] = sum(part["passed"] for part in whole["parts"])
    whole["failed"] = len(whole["parts"]) - whole["passed"]
    return whole


def append(results, page):
    """Adds the section of a run to the page, which is made if need be. Raises for a run without a GPU."""
    facts = results["facts"]
    if facts.get("device") != "cuda" or "gpu" not in facts:
        raise ValueError(f"the run was on '{facts.get('device')}' and used no GPU: it is not for {os.path.basename(page)}")
    before = HEAD
    if os.path.exists(page):
        with open(page) as file:
            before = file.read().replace(NOTHING, "")
    facts = public(facts)
    section = f"## {facts['date']}, {facts['gpu'].split(',')[0]}\n\n{text({**results, 'facts': facts})}"
    if section in before:
        raise ValueError(f"{os.path.basename(page)} has this run already")
    replace(page, before.rstrip("\n") + "\n\n" + section.rstrip("\n") + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    parser.add_argument("--page", default=PAGE)
    options = parser.parse_args()
    runs = []
    for path in options.results:
        with open(path) as file:
            runs.append(json.load(file))
    try:
        append(together(runs), options.page)
    except ValueError as error:
        sys.exit(f"results: {error}")


if __name__ == "__main__":
    main()
