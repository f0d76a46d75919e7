"""What the sweeps and their pages have in common: files of results, one JSON object in a line, and versions of packages."""

import importlib.metadata
import json
import os


def read(path, key):
    """{key(result): result} of a file of results, the last one of each key; {} if there is no file."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return {key(result): result for result in (json.loads(line) for line in file if line.strip())}


def version(package):
    """The version of an installed package, without what is behind "+"."""
    return importlib.metadata.version(package).split("+")[0]
