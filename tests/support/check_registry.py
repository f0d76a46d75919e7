#!/usr/bin/env python3
"""Checks that every op and every pass is documented and tested.

An op needs a summary and must occur in a test. A pass needs a summary, a description with its pre- and postcondition and an
example of the IR before and after (or, as a check, of what it refuses), options with a description, and test files
tests/passes/<phase>/<mnemonic>*.mlir. These must hold a case where the pass complains or says why it was not applied
(expected-error, expected-remark, or a run that fails), or a comment `No diagnostic: <reason>`. Reads the generated
documentation (tools/gen-docs.sh), so it needs no build.

usage: tests/support/check_registry.py [repository root]
"""

import pathlib
import re
import sys


def sections(text):
    """Yields (name, body) of each `### \\`name\\`` section, and the phase it is in."""
    phase = ""
    for part in re.split(r"^(?=#{2,3} )", text, flags=re.M):
        heading = re.match(r"## (\w+)\n", part)
        if heading:
            phase = heading.group(1)
        item = re.match(r"### `-?([\w.-]+)`[^\n]*\n(.*)", part, flags=re.S)
        if item:
            yield phase, item.group(1), item.group(2).strip()


DIAGNOSTIC = re.compile(r"expected-(?:error|remark|warning)|\b(?:error|remark|warning): |RUN: not |No diagnostic: \S")


def pass_problems(root, phase, name, body):
    """What the documentation and the tests of one pass lack."""
    lines = [line for line in body.split("\n") if line.strip()]
    if not lines or not re.match(r"_.+_$", lines[0]):
        yield "no summary"
    if len(lines) < 2 or lines[1].startswith("#"):
        yield "no description"
    description, _, options = body.partition("#### Options")
    for word in ("precondition", "postcondition"):
        if word not in description.lower():
            yield f"no {word} in its description"
    if "```" not in description:
        yield "no example in its description"
    for option, text in re.findall(r"^-([\w-]+) *:(.*)$", options, flags=re.M):
        if not text.strip():
            yield f"no description of its option '{option}'"
    tests = list((root / "tests/passes" / phase).glob(f"{name}*.mlir"))
    if not tests:
        yield f"no test tests/passes/{phase}/{name}.mlir"
    elif not any(DIAGNOSTIC.search(test.read_text(errors="replace")) for test in tests):
        yield "no test with a diagnostic, nor a comment 'No diagnostic: <reason>'"


def main(root):
    tests = root / "tests"
    sources = [path for suffix in ("*.mlir", "*.onnxtxt", "*.test", "*.cpp", "*.py", "*.sh") for path in tests.rglob(suffix)]
    text = "\n".join(path.read_text(errors="replace") for path in sources)
    problems = []
    ops = 0
    for path in sorted((root / "docs/ops").glob("*.md")):
        for _, name, body in sections(path.read_text()):
            if "." not in name:
                continue
            ops += 1
            if not re.match(r"_.+_$", body.split("\n", 1)[0]):
                problems.append(f"op {name} has no summary")
            if not re.search(re.escape(name) + r"\b", text):
                problems.append(f"op {name} occurs in no test")
    passes = 0
    for phase, name, body in sections((root / "docs/passes.md").read_text()):
        passes += 1
        problems += [f"pass {name} has {problem}" for problem in pass_problems(root, phase, name, body)]
    if not ops or not passes:
        problems.append(f"found {ops} ops and {passes} passes in docs/")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{ops} ops, {passes} passes, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
