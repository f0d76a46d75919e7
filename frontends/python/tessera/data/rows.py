"""The .rows files: which pieces each row has."""

import os
import struct

import numpy

MAGIC, VERSION, HEADER = b"TSSRROWS", 1, 40


def write(path, first, begin, count, sequence):
    """first: int64[rows + 1], index of each row's first piece; begin, count: int64[pieces], in tokens."""
    pieces = numpy.stack([begin, count], axis=1).astype("<u8")
    with open(path, "wb") as file:
        file.write(MAGIC + struct.pack("<4Q", VERSION, len(first) - 1, len(pieces), sequence))
        file.write(first.astype("<u8").tobytes())
        file.write(pieces.tobytes())


class Rows:
    """Reads a file that write() made: first: [rows + 1], begin, count: [pieces], sequence. Raises ValueError for any other file."""

    def __init__(self, path):
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            header = file.read(HEADER)
        if len(header) < HEADER or header[:8] != MAGIC:
            raise ValueError(f"{path} is not a file of rows")
        version, rows, pieces, self.sequence = struct.unpack("<4Q", header[8:])
        if version != VERSION:
            raise ValueError(f"{path} is of version {version}, this program reads {VERSION}")
        if size != HEADER + 8 * (rows + 1) + 16 * pieces:
            raise ValueError(f"{path} has {size} bytes, not those of {rows} rows and {pieces} pieces")
        self.first = numpy.memmap(path, "<u8", "r", HEADER, (rows + 1,)).astype(numpy.int64)
        pairs = numpy.memmap(path, "<u8", "r", HEADER + 8 * (rows + 1), (pieces, 2)) if pieces else numpy.zeros((0, 2))
        self.begin, self.count = pairs.astype(numpy.int64).T

    def __len__(self):
        return len(self.first) - 1

    def pieces(self, row):
        """[(begin, count)] of a row."""
        part = slice(self.first[row], self.first[row + 1])
        return list(zip(self.begin[part].tolist(), self.count[part].tolist()))
