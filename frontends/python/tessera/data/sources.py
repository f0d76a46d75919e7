"""Finds the files that a build reads."""

import dataclasses
import glob
import os

from .errors import DataError

KINDS = {".txt": "text", ".json": "document", ".jsonl": "lines", ".ndjson": "lines"}  # each may also end in .gz or .zst
PACKED = (".gz", ".zst")
ENDINGS = ".txt, .json, .jsonl, .ndjson (each also with .gz or .zst behind it) and .parquet"


@dataclasses.dataclass(frozen=True)
class Source:
    """A file to read. kind: "text", "document", "lines" or "table"; packing: "", ".gz" or ".zst"; size: in bytes; mtime: of its
    last change, in nanoseconds."""
    path: str
    kind: str
    packing: str
    size: int
    mtime: int

    def unchanged(self):
        """Raises DataError if the file has another size or time than when it was found."""
        found = os.stat(self.path)
        if (found.st_size, found.st_mtime_ns) != (self.size, self.mtime):
            raise DataError(f"{self.path} was changed while it was read; start again when it is complete")


def kind_of(path):
    """(kind, packing) by the ending of a name; None if it is another one."""
    base, ending = os.path.splitext(path)
    if ending == ".parquet":
        return "table", ""
    packing = ending if ending in PACKED else ""
    kind = KINDS.get(os.path.splitext(base)[1] if packing else ending)
    return (kind, packing) if kind else None


def find(words, output):
    """(sources, number of other files by ending) of the inputs on the command line, in their order; folders and globs in the
    order of their paths. output: the folder to make, which must lie in no input. Raises DataError, OSError."""
    sources, others, seen = [], {}, {}
    for word in words:
        for path, asked_for in files_of(word, output):
            kind = kind_of(path)
            if not kind and asked_for:
                raise DataError(f"{path} ends in none of {ENDINGS}")
            if not kind:
                ending = os.path.splitext(path)[1] or "no ending"
                others[ending] = others.get(ending, 0) + 1
                continue
            real = os.path.realpath(path)
            if real in seen:
                same = "" if seen[real] == path else f", which is {seen[real]},"
                raise DataError(f"{path}{same} is given twice; its documents would be there twice")
            seen[real] = path
            found = os.stat(path)
            if not os.access(path, os.R_OK):
                raise DataError(f"{path} cannot be read: permission denied")
            sources.append(Source(os.path.abspath(path), *kind, found.st_size, found.st_mtime_ns))
    if not sources:
        raise DataError(f"no file to read in {', '.join(words)}: none ends in {ENDINGS}")
    return sources, others


def files_of(word, output):
    """Yields (path, whether the user named this very file) of one input."""
    if os.path.isdir(word):
        yield from ((path, False) for path in walk(word, output))
    elif os.path.exists(word):
        if not os.path.isfile(word):
            raise DataError(f"{word} is neither a file nor a folder")
        yield word, True
    elif glob.has_magic(word):
        found = sorted(glob.glob(word, recursive=True))
        if not found:
            raise DataError(f"{word} matches no file")
        inside = set()
        for path in found:
            if os.path.isdir(path):
                inside.update(walk(path, output))
            else:
                inside.add(path)
        yield from ((path, False) for path in sorted(inside))
    else:
        raise DataError(f"{word} does not exist")


def walk(folder, output):
    """The files in a folder and the folders in it, in the order of their paths; links are followed. Raises DataError."""
    place = os.path.realpath(folder)
    if os.path.commonpath([place, os.path.realpath(output)]) == place:
        raise DataError(f"the output {output} lies in the input {folder}: it would be read itself the next time; choose "
                        "another place")
    found, seen = [], {}
    for directory, _, names in os.walk(folder, followlinks=True, onerror=stop):
        real = os.path.realpath(directory)
        if real in seen:
            raise DataError(f"{directory} is a link to {seen[real]}, which is read, too; its documents would be there twice")
        seen[real] = directory
        found += [os.path.join(directory, name) for name in names]
    return sorted(found)


def stop(why):
    raise why
