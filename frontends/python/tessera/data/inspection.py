"""Shows token folders, and checks that they are whole."""

import os
import sys
import unicodedata

import numpy

from ..whole_file import sha256_of
from . import manifest, rows
from .errors import DataError, UsageError
from .store import Shards
from .tokenizer import TEMPLATE, Tokenizer

GREEN, PLAIN = ("\x1b[32m", "\x1b[0m"), ("‹", "›")


def inspect(options, say):
    """Does `data inspect`; returns the exit status. Raises DataError, UsageError."""
    found = manifest.read(options.folder)
    if found["format"] == manifest.MIXTURE:
        return mixture(options, found, say)
    if options.check:
        return check(options.folder, found, say)
    if options.rows is None:
        for line in manifest.summary(options.folder, found):
            say(line)
        return 0
    if options.split not in found["splits"]:
        raise UsageError(f"{options.folder} has no split {options.split!r}; it has {', '.join(found['splits'])}")
    show(options, found, say)
    return 0


def mixture(options, found, say):
    if options.rows is not None:
        raise UsageError(f"{options.folder} is a mixture; show one of its sources")
    status = 0
    for source in found["sources"]:
        path = os.path.normpath(os.path.join(options.folder, source["path"]))
        say(f"{source['weight']:7.2%}  {path}")
        if options.check:
            status |= check(path, manifest.read(path), say)
    return status


def read_rows(folder, name):
    try:
        return rows.Rows(os.path.join(folder, f"{name}.rows"))
    except ValueError as why:
        raise DataError(why) from why


def show(options, found, say):
    """Prints rows as text."""
    table = read_rows(options.folder, options.split)
    if options.first >= len(table):
        raise UsageError(f"--first {options.first}: {options.split} has the rows 0 to {len(table) - 1}")
    shards = Shards(os.path.join(options.folder, "tokens"), found["shards"], found["token_bytes"])
    starts = shards.starts()
    tokenizer = Tokenizer(os.path.join(options.folder, "tokenizer"), end="none").tokenizer
    marks = GREEN if sys.stdout.isatty() and "NO_COLOR" not in os.environ else PLAIN
    for row in range(options.first, min(options.first + options.rows, len(table))):
        pieces = table.pieces(row)
        padding = found["sequence"] - sum(count for _, count in pieces)
        say(f"══ row {row} of {options.split}: {len(pieces)} pieces, {padding} positions of padding")
        for begin, count in pieces:
            document = int(numpy.searchsorted(starts, begin, "right")) - 1
            shard_end = shards.begins[numpy.searchsorted(shards.begins, begin, "right")]
            mask = shards.mask(begin, min(begin + count + 1, shard_end))
            offset = begin - starts[document]
            part = f" from token {offset}" if offset else ""
            say(f"── document {document}{part}, {count} tokens, {int(mask[1:].sum())} trained")
            trained = mask[:count].copy()
            trained[0] = 0  # it is the target of no position here
            say(marked(tokenizer, shards.tokens(begin, begin + count), trained, marks))


def marked(tokenizer, tokens, trained, marks):
    """The text of tokens, with marks around those that are trained."""
    edges = [0, *(numpy.flatnonzero(numpy.diff(trained)) + 1).tolist(), len(tokens)]
    parts = []
    for begin, end in zip(edges, edges[1:]):
        before, text = (tokenizer.decode(tokens[max(begin - 1, 0):at].tolist(), skip_special_tokens=False,
                                         clean_up_tokenization_spaces=False) for at in (begin, end))
        if text.startswith(before):  # the token before it is there as some tokenizers drop the space of the first one
            text = text[len(before):]
        else:
            text = tokenizer.decode(tokens[begin:end].tolist(), skip_special_tokens=False, clean_up_tokenization_spaces=False)
        text = "".join(each if each in "\n\t" or unicodedata.category(each) != "Cc" else f"\\x{ord(each):02x}" for each in text)
        parts.append(text.join(marks) if trained[begin] else text)
    return "".join(parts)


def check(folder, found, say):
    """Compares the files of a token folder with its manifest; returns the exit status."""
    wrong = []
    for shard in found["shards"]:
        size = {"tokens": shard["tokens"] * found["token_bytes"], "mask": (shard["tokens"] + 7) // 8,
                "docs": (shard["documents"] + 1) * 8}
        for kind, digest in shard["sha256"].items():
            wrong += differences(folder, f"tokens/{shard['name']}.{kind}", digest, size[kind])
    for name, split in found["splits"].items():
        wrong += differences(folder, f"{name}.rows", split["sha256"])
    for name, digest in found["tokenizer"]["files"].items():
        wrong += differences(folder, f"tokenizer/{name}", digest)
    if template := found["tokenizer"].get("template"):
        wrong += differences(folder, f"tokenizer/{TEMPLATE}", template)
    total = sum(shard["tokens"] for shard in found["shards"])
    for name, split in found["splits"].items():
        wrong += [f"{name}.rows: {each}" for each in ranges(folder, name, split, total, found["sequence"])]
    for each in wrong:
        print(f"tessera: error: {os.path.join(folder, each)}", file=sys.stderr)
    if not wrong:
        say(f"{folder}: all files are as the manifest says")
    return 1 if wrong else 0


def differences(folder, name, digest, size=None):
    """What is wrong with a file, [] if nothing is."""
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        return [f"{name} is missing"]
    if size is not None and os.path.getsize(path) != size:
        return [f"{name} has {os.path.getsize(path)} bytes, expected {size}"]
    return [] if sha256_of(path) == digest else [f"{name} has other content than the manifest says"]


def ranges(folder, name, split, total, sequence):
    """What is wrong with the pieces of a split."""
    try:
        table = rows.Rows(os.path.join(folder, f"{name}.rows"))
    except (ValueError, OSError) as why:
        return [str(why)]
    ends = numpy.concatenate([[0], numpy.cumsum(table.count)])
    first, total_pieces = table.first, len(table.count)
    ordered = bool(first[0] == 0 and first[-1] == total_pieces and (numpy.diff(first) > 0).all())
    numbers = (len(table), total_pieces, table.sequence) == (split["rows"], split["pieces"], sequence)
    tests = {"its numbers of rows and pieces": numbers, "the first pieces of rows": ordered,
             "pieces": bool(((table.count > 0) & (table.begin >= 0) & (table.begin + table.count <= total)).all()),
             "lengths of rows": ordered and bool((numpy.diff(ends[first]) <= sequence).all())}
    return [f"{what} are out of range or differ from the manifest" for what, good in tests.items() if not good]
