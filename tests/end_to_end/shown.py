"""What pages show of a program's output."""

import re


def comparable(line):
    """A line without the width of columns, and without the time that a run writes off a terminal."""
    return re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ", "", " ".join(line.split()))


def missing(lines, printed):
    """The first of some lines that was not printed, None if all were. What ends in an ellipsis is a beginning."""
    found = [comparable(line) for line in printed.splitlines()]
    for line in map(comparable, lines):
        beginning = line[:-1] if line.endswith("…") else None
        if line != "…" and not any(other.startswith(beginning) if beginning else other == line for other in found):
            return line
    return None
