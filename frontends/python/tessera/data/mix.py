"""Mixes token folders by weights: a manifest that names them."""

import math
import os
import tempfile

from . import manifest
from .errors import DataError, UsageError
from .partial import sync


LEAST = 1e-6  # share of a source, as the runtime takes it


def parse(words):
    """[(folder, weight)] of FOLDER=WEIGHT. Raises UsageError."""
    found = []
    for word in words:
        folder, sign, text = word.rpartition("=")
        try:
            weight = float(text)
        except ValueError:
            weight = math.nan
        if not sign or not folder or not 0 < weight < math.inf:
            raise UsageError(f"{word}: expected FOLDER=WEIGHT with a positive weight")
        found.append((folder, weight))
    return found


def mix(options, say):
    """Does `data mix`. Raises DataError, UsageError, OSError."""
    pairs = parse(options.sources)
    output = os.path.abspath(options.output)
    if os.path.lexists(output):
        raise DataError(f"{options.output} exists; give another -o, or remove it")
    first, seen = None, set()
    for folder, _ in pairs:
        found = manifest.read(folder)
        if found["format"] == manifest.MIXTURE:
            raise DataError(f"{folder} is a mixture itself; give its sources with their weights")
        if os.path.realpath(folder) in seen:
            raise DataError(f"{folder} is given twice; give the sum of its weights once")
        seen.add(os.path.realpath(folder))
        if "train" not in found["splits"]:
            raise DataError(f"{folder} has no split 'train'")
        first = first or (folder, found)
        compare(*first, folder, found)
    total = sum(weight for _, weight in pairs)
    for folder, weight in pairs:
        if not weight / total >= LEAST:
            raise UsageError(f"the weight of {folder} is less than a millionth of all, or the sum of the weights overflows")
    sources = [{"path": folder if os.path.isabs(folder) else os.path.relpath(folder, output), "weight": weight / total}
               for folder, weight in pairs]
    made = {"format": manifest.MIXTURE, "version": manifest.VERSION, "sequence": first[1]["sequence"], "sources": sources}
    parent = os.path.dirname(output)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".mix-") as place:
        folder = os.path.join(place, "made")
        os.mkdir(folder)
        manifest.write(folder, made)
        sync(os.path.join(folder, manifest.NAME))
        os.rename(folder, output)
    sync(parent)
    for source in made["sources"]:
        say(f"{source['weight']:7.2%}  {source['path']}")


def compare(folder, found, other, its):
    """Raises DataError if two token folders cannot be mixed."""
    if found["sequence"] != its["sequence"]:
        raise DataError(f"{other} has rows of {its['sequence']} tokens, {folder} of {found['sequence']}; build one again with "
                        "--seq")
    mine, theirs = (each["tokenizer"]["files"] for each in (found, its))
    names = sorted(name for name in {*mine, *theirs} if name != "config.json" and mine.get(name) != theirs.get(name))
    if names:
        raise DataError(f"{other} was made with another tokenizer than {folder}: {', '.join(names)} differ; build one again "
                        "with the other's --model")
