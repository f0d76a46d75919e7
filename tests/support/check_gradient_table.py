#!/usr/bin/env python3
"""Checks the table of gradient rules in docs/differentiate.md against the sources.

Every op of the train dialect has a row; a row says "rule" exactly if a rule is attached in passes/differentiate/vjp, and
every rule has a test in tests/differentiate/rules. --print writes the list of ops with and without a rule.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTED_WITH = {"dequantize": "quantize"}


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def main():
    ops, rules, rows = set(), set(), {}
    for path in sorted((ROOT / "compiler/dialect/train").glob("TrainOps*.td")):
        ops.update(re.findall(r'^(?:def\s+\w+\s*\n?\s*:|\s+:)\s*Train_\w+<"(\w+)"', path.read_text(), re.M))
    for path in sorted((ROOT / "passes/differentiate/vjp").glob("Vjp*.cpp")):
        rules.update(snake(name) for name in re.findall(r"attachVjp<(\w+)Op\b", path.read_text()))
    for line in (ROOT / "docs/differentiate.md").read_text().splitlines():
        if match := re.match(r"\| ((?:`\w+`(?:, )?)+) \| (rule|none) \|", line):
            for op in re.findall(r"`(\w+)`", match.group(1)):
                rows[op] = match.group(2)
    if "--print" in sys.argv:
        print("rule:", *sorted(rules), "\nnone:", *sorted(ops - rules))
    tests = {path.stem for path in (ROOT / "tests/differentiate/rules").glob("*.mlir")}
    problems = [f"no row for {op}" for op in sorted(ops - rows.keys())]
    problems += [f"row for {op}, which is no op" for op in sorted(rows.keys() - ops)]
    problems += [f"row of {op} says {rows[op]}" for op in sorted(ops & rows.keys())
                 if (rows[op] != "none") != (op in rules)]
    problems += [f"no test of the rule of {op}" for op in sorted(rules) if TESTED_WITH.get(op, op) not in tests]
    if not ops or not rules:
        problems.append("found no ops or no rules: have the sources moved?")
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
