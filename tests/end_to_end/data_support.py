"""Runs `python -m tessera data` in this process and reads what it makes; needs transformers, not torch."""

import contextlib
import io
import json
import os
import re

import numpy as np
from tessera.data import command


def call(*words):
    """(status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = command.main([str(word) for word in words])
        except SystemExit as end:
            status = end.code
    return status, out.getvalue(), err.getvalue()


def build(test, output, *words, workers=1):
    """Builds a folder and returns it as Built."""
    status, out, err = call("build", *words, "-o", output, "--workers", workers)
    test.assertEqual(status, 0, out + err)
    test.assertEqual(err, "")
    test.assertFalse(os.path.exists(f"{output}.partial"))
    return Built(output, out)


def refused(test, message, output, *words, status=1):
    """The build ends with one line of error that `message` (a regular expression) is found in, and leaves nothing."""
    got, out, err = call("build", *words, "-o", output, "--workers", 1)
    test.assertEqual((got, out), (status, ""), err)
    test.assertRegex(err, re.compile(r"^tessera: error: [^\n]*" + message + r"[^\n]*\n$"))
    test.assertFalse(os.path.exists(output))
    test.assertFalse(os.path.exists(f"{output}.partial"))


class Built:
    """A token folder, read by the description of its files in docs/data-build.md. documents: [(ids, mask)]; splits:
    {name: [[(begin, count), …], …]}."""

    def __init__(self, folder, printed=""):
        self.folder, self.printed = folder, printed
        with open(os.path.join(folder, "manifest.json")) as file:
            self.manifest = json.load(file)
        self.tokens, self.mask, self.starts, self.documents = [], [], [], []
        for shard in self.manifest["shards"]:
            name = os.path.join(folder, "tokens", shard["name"])
            tokens = np.fromfile(name + ".tokens", f"<u{self.manifest['token_bytes']}")
            packed = np.fromfile(name + ".mask", np.uint8)
            starts = np.fromfile(name + ".docs", "<u8").astype(int)
            assert len(tokens) == shard["tokens"] == starts[-1] and len(starts) == shard["documents"] + 1
            assert len(packed) == (len(tokens) + 7) // 8
            mask = np.array([packed[k >> 3] >> (k & 7) & 1 for k in range(len(tokens))])
            self.starts += [len(self.tokens) + start for start in starts[:-1].tolist()]
            self.documents += [(tokens[a:b].tolist(), mask[a:b].tolist()) for a, b in zip(starts, starts[1:])]
            self.tokens += tokens.tolist()
            self.mask += mask.tolist()
        self.splits = {name: self.rows(name) for name in self.manifest["splits"]}

    def rows(self, name):
        with open(os.path.join(self.folder, f"{name}.rows"), "rb") as file:
            data = file.read()
        assert data[:8] == b"TSSRROWS"
        version, rows, pieces, sequence = np.frombuffer(data[8:40], "<u8").tolist()
        assert version == 1 and sequence == self.manifest["sequence"]
        first = np.frombuffer(data[40:40 + 8 * (rows + 1)], "<u8").tolist()
        each = np.frombuffer(data[40 + 8 * (rows + 1):], "<u8").reshape(-1, 2).tolist()
        assert first[-1] == len(each) == pieces
        return [[tuple(piece) for piece in each[a:b]] for a, b in zip(first, first[1:])]

    def targets(self, begin, count):
        """How many positions of a piece have a target."""
        return sum(self.mask[begin + 1:begin + count + 1])

    def files(self):
        """{path within the folder: content}."""
        found = {}
        for directory, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(directory, name)
                with open(path, "rb") as file:
                    found[os.path.relpath(path, self.folder)] = file.read()
        return found


def write_lines(path, records):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    return path
