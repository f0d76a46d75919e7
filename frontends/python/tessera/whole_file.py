"""Files that are either complete or as they were before, and what they hold."""

import contextlib
import hashlib
import os
import tempfile


@contextlib.contextmanager
def whole_file(path):
    """Yields the path to write to, in a temporary folder beside `path`; what is there at the end, files beside it too, moves to
    the folder of `path`. After an exception nothing does. Raises OSError."""
    folder, name = os.path.split(os.path.abspath(path))
    with tempfile.TemporaryDirectory(dir=folder, prefix=".export-") as place:
        yield os.path.join(place, name)
        for other in sorted(os.listdir(place), key=lambda each: each == name):  # the file itself is last
            os.replace(os.path.join(place, other), os.path.join(folder, other))


def sha256_of(path):
    """The sha256 of a file, in hexadecimal."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()
