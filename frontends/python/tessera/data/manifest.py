"""manifest.json of token folders, and what it says in words."""

import json
import os

from .errors import DataError

NAME, FORMAT, MIXTURE, VERSION = "manifest.json", "tessera-data", "tessera-data-mixture", 1
REASONS = {"empty": "empty", "no answer": "no answer, or no token that is trained", "long": "longer than a window",
           "pieces without a target": "pieces without a target", "windows without a target": "windows without a target",
           "tokens of the last window": "tokens at the end that fill no window"}


# What readers rely on; a list has the form of each of its entries, "" that of any key.
FORM = {"sequence": int, "packing": str, "token_bytes": int, "vocabulary": int, "largest_token": int, "padding_token": int,
        "tokenizer": {"class": str, "files": {"": str}}, "options": {"train_on": str}, "sources": [{"bytes": int}],
        "shards": [{"name": str, "tokens": int, "documents": int, "sha256": {"": str}}],
        "splits": {"": {"rows": int, "pieces": int, "documents": int, "tokens": int, "targets": int, "sha256": str}},
        "counts": {"records": int, "documents": int, "longest": int, "cut": int, "tokens": int, "targets": int, "straddling": int,
                   "special tokens in text": int, "documents with special tokens": int, "dropped": {"": int}}}
MIXTURE_FORM = {"sequence": int, "sources": [{"path": str, "weight": (int, float)}]}


def misfit(value, form, place="it"):
    """Where a value is not of a form, in words; None if it is."""
    if isinstance(form, dict):
        if not isinstance(value, dict):
            return f"{place} is not an object"
        if missing := [key for key in form if key and key not in value]:
            return f"{place} has no {missing[0]!r}"
        parts = [(key, value[key], form[key]) for key in form if key] or [(key, each, form[""]) for key, each in value.items()]
    elif isinstance(form, list):
        if not isinstance(value, list):
            return f"{place} is not a list"
        parts = [(at, each, form[0]) for at, each in enumerate(value)]
    else:
        return None if isinstance(value, form) else f"{place} is {value!r}"
    return next(filter(None, (misfit(each, part, repr(key)) for key, each, part in parts)), None)


def read(folder):
    """The manifest of a token folder or mixture. Raises DataError."""
    path = os.path.join(folder, NAME)
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError as why:
        raise DataError(f"{folder} has no {NAME}: `python -m tessera data build` did not make it") from why
    except (ValueError, NotADirectoryError) as why:
        raise DataError(f"{path}: {why}") from why
    if not isinstance(found, dict) or found.get("format") not in (FORMAT, MIXTURE):
        raise DataError(f"{path} is not a manifest of {FORMAT}")
    if found.get("version") != VERSION:
        raise DataError(f"{path} is of version {found.get('version')}, this program reads {VERSION}")
    if problem := misfit(found, FORM if found["format"] == FORMAT else MIXTURE_FORM):
        raise DataError(f"{path} is damaged: {problem}")
    return found


def write(folder, manifest):
    with open(os.path.join(folder, NAME), "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=2, ensure_ascii=False)
        file.write("\n")


def summary(folder, manifest):
    """Lines for a user."""
    counts, trained = manifest["counts"], manifest["options"]["train_on"]
    lines = [f"{folder}: rows of {manifest['sequence']} tokens, packed by {manifest['packing']}, trained: {trained}",
             f"  sources     {len(manifest['sources'])} files, {sum(each['bytes'] for each in manifest['sources']):,} bytes, "
             f"{counts['records']:,} records",
             f"  tokenizer   {manifest['tokenizer']['class']}, {manifest['vocabulary']:,} ids, largest in the data "
             f"{manifest['largest_token']:,}",
             f"  documents   {counts['documents']:,}, the longest of {counts['longest']:,} tokens, {counts['cut']:,} cut"]
    lines += [f"  dropped     {number:,} {REASONS[reason]}" for reason, number in counts["dropped"].items() if number]
    lines.append(f"  tokens      {counts['tokens']:,}, of which {counts['targets']:,} trained")
    if counts["straddling"]:
        lines.append(f"  straddling  {counts['straddling']:,} trained tokens hold characters before or behind the answer, too")
    if counts["special tokens in text"]:
        lines.append(f"  special     {counts['special tokens in text']:,} special tokens are spelled out in the text of "
                     f"{counts['documents with special tokens']:,} documents")
    lines.append(f"  {'split':10}  {'rows':>12}  {'documents':>12}  {'tokens':>14}  {'trained':>14}  {'fill':>7}")
    for name, split in manifest["splits"].items():
        fill = split["tokens"] / (split["rows"] * manifest["sequence"])
        lines.append(f"  {name:10}  {split['rows']:12,}  {split['documents']:12,}  {split['tokens']:14,}  "
                     f"{split['targets']:14,}  {fill:7.2%}")
    return lines
