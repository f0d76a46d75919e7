"""Reads sources in blocks of records, which workers take apart."""

import dataclasses
import hashlib
import json
import typing
import zlib

from ..errors import need
from .errors import DataError

BLOCK = 2 << 20  # bytes of text that a block has at least, unless its source ends
CHUNK = 1 << 20  # bytes of one read
PACKED_CHUNK = 1 << 16  # bytes of one read of a compressed file


@dataclasses.dataclass
class Block:
    """Records that follow each other in a source.

    kind: of `data`: "lines" (bytes of whole lines), "text" (bytes of one document), "records" (list), "table" (a
    pyarrow.RecordBatch). first: number of the first line or record, from 1. size: about the bytes of text. position: bytes of
    the file on disk that have been read up to the end of the block."""
    path: str
    kind: str
    data: typing.Any
    first: int
    size: int
    position: int


class Reader:
    """Reads one source. sha256: of the file, in hexadecimal, once blocks() has ended."""

    def __init__(self, source, columns):
        """columns: names of the columns of a table that are read, if it has them."""
        self.source, self.columns, self.hash, self.position = source, columns, hashlib.sha256(), 0

    @property
    def sha256(self):
        return self.hash.hexdigest()

    def blocks(self):
        """Yields the Blocks; the same ones each time. Raises DataError, OSError."""
        yield from {"text": self.text, "document": self.document, "lines": self.lines, "table": self.table}[self.source.kind]()
        self.source.unchanged()

    def raw(self, size):
        """Yields the bytes of the file as they are."""
        with open(self.source.path, "rb") as file:
            while data := file.read(size):
                self.hash.update(data)
                self.position += len(data)
                yield data

    def chunks(self):
        """Yields the bytes of the file, decompressed."""
        packing = self.source.packing
        if not packing:
            yield from self.raw(CHUNK)
            return
        broken, begin = decompressor(packing)
        part, fed = begin(), False
        try:
            for data in self.raw(PACKED_CHUNK):
                while data:
                    if not fed and packing == ".gz" and self.position > len(data):
                        data = data.lstrip(b"\0")  # gzip allows zeros behind the last member
                        if not data:
                            break
                    fed = True
                    if unpacked := part.decompress(data):
                        yield unpacked
                    data = part.unused_data if part.eof else b""
                    if part.eof:
                        part, fed = begin(), False
        except broken as why:
            raise DataError(f"{self.source.path} is not intact {packing[1:]} data: {why}") from why
        if fed or not self.position:
            raise DataError(f"{self.source.path} is not intact {packing[1:]} data: it ends too early")

    def block(self, kind, data, first, size):
        return Block(self.source.path, kind, data, first, size, self.position)

    def text(self):
        data = b"".join(self.chunks())
        yield self.block("text", data, 1, len(data))

    def lines(self):
        held, size, first = [], 0, 1
        for chunk in self.chunks():
            held.append(chunk)
            size += len(chunk)
            if size < BLOCK or (end := chunk.rfind(b"\n") + 1) == 0:
                continue
            held[-1] = chunk[:end]
            data = b"".join(held)
            yield self.block("lines", data, first, len(data))
            first += data.count(b"\n")
            held, size = [chunk[end:]], len(chunk) - end
        if size:
            yield self.block("lines", b"".join(held), first, size)

    def document(self):
        data = b"".join(self.chunks())
        records = parse(data, self.source.path, 1)
        records = records if isinstance(records, list) else [records]
        each = max(1, len(records) * BLOCK // max(len(data), 1))
        for at in range(0, len(records), each):
            part = records[at:at + each]
            yield self.block("records", part, at + 1, len(data) * len(part) // len(records))

    def table(self):
        for _ in self.raw(CHUNK):
            pass
        arrow, parquet = need("pyarrow"), need("pyarrow.parquet", "pyarrow")
        try:
            with parquet.ParquetFile(self.source.path, pre_buffer=False) as file:
                columns = [name for name in self.columns if name in file.schema_arrow.names]
                if not columns:
                    raise DataError(f"{self.source.path} has no column of {', '.join(self.columns)}; it has "
                                    f"{', '.join(file.schema_arrow.names)}; --field text=NAME names another")
                count = file.metadata.num_rows
                size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
                first = 1
                for batch in file.iter_batches(max(1, count * BLOCK // max(size, 1)), columns=columns, use_threads=False):
                    self.position = self.source.size * (first - 1 + batch.num_rows) // count
                    yield self.block("table", batch, first, size * batch.num_rows // count)
                    first += batch.num_rows
        except (arrow.ArrowException, OSError) as why:
            if isinstance(why, OSError) and why.errno:
                raise
            raise DataError(f"{self.source.path} is not intact Parquet data: {' '.join(str(why).split())}") from why


def decompressor(packing):
    """(the exception of damaged data, a function that returns an object which decompresses one member or frame)."""
    if packing == ".gz":
        return zlib.error, lambda: zlib.decompressobj(wbits=31)
    zstandard = need("zstandard")
    return zstandard.ZstdError, zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj


def decode(data, path, line):
    """The text of UTF-8 bytes; line: the number of their first line. Raises DataError."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as why:
        at = line + data.count(b"\n", 0, why.start)
        raise DataError(f"{path}:{at}: not UTF-8 (byte {data[why.start]:#04x}); convert the file (iconv)") from why


def parse(data, path, line):
    """The value of JSON bytes; line: the number of their first line. Raises DataError."""
    text = decode(data, path, line)
    try:
        return json.loads(text[1:] if text.startswith("\ufeff") else text)
    except (ValueError, RecursionError) as why:
        at = line + getattr(why, "lineno", 1) - 1
        raise DataError(f"{path}:{at}: invalid JSON: {getattr(why, 'msg', why)}, column {getattr(why, 'colno', 1)}") from why
