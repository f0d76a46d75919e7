"""Which documents are split off."""

import re

import numpy

from .errors import DataError, UsageError

TAKEN = ("train", "manifest", "tokens", "tokenizer")


def parse(words):
    """[(name, percent or None, number or None)] of --split. Raises UsageError."""
    splits, percents = [], 0.0
    for word in words:
        name, _, size = word.partition("=")
        if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name in TAKEN:
            raise UsageError(f"--split {word}: a name begins with a letter and has a-z, 0-9, _ and - only, and is not one of "
                             f"{', '.join(TAKEN)}")
        if name in [each[0] for each in splits]:
            raise UsageError(f"--split {word}: {name} is given twice")
        found = re.fullmatch(r"(\d+(?:\.\d+)?)(%?)", size)
        if not found or float(found[1]) == 0:
            raise UsageError(f"--split {word}: expected NAME=2% or NAME=500")
        if found[2]:
            splits.append((name, float(found[1]), None))
            percents += float(found[1])
        elif "." in found[1]:
            raise UsageError(f"--split {word}: a number of documents is whole")
        else:
            splits.append((name, None, int(found[1])))
    if percents >= 100:
        raise UsageError(f"--split: {percents:g}% leave nothing for train")
    return splits


def choose(splits, hashes):
    """{name: indices of documents, ascending}, train first. hashes: uint64[documents]; the lowest make the first split, and
    documents of equal hashes stay together. Raises DataError."""
    order = numpy.argsort(hashes, kind="stable")
    ranked, chosen, at = hashes[order], {}, 0
    for name, percent, number in splits:
        wanted = number if percent is None else max(1, round(len(hashes) * percent / 100))
        end = at + wanted
        if end < len(ranked):
            end = int(numpy.searchsorted(ranked, ranked[end - 1], "right"))
        if end >= len(ranked):
            raise DataError(f"--split {name}: of {len(ranked)} documents {wanted} (and their duplicates) leave nothing for "
                            "train")
        chosen[name] = numpy.sort(order[at:end])
        at = end
    return {"train": numpy.sort(order[at:]), **chosen}
