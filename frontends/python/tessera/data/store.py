"""The shards of a token folder: files that only grow."""

import os

import numpy

SHARD = 4 << 30  # bytes of tokens in a shard, at most, if it has more than one document
OFFSET = numpy.dtype("<u8")


class Store:
    """Writes tokens, masks and starts of documents into `folder`, in shards of whole documents.

    shards: [{"name", "tokens", "documents"}], the last one open. bits: those of the open shard's mask that fill no byte yet."""

    def __init__(self, folder, token_type, hashes=None, limit=SHARD):
        """hashes: the file that hashes of documents are written to, None for none; limit: bytes of tokens."""
        self.folder, self.type, self.limit = folder, numpy.dtype(token_type), limit // numpy.dtype(token_type).itemsize
        self.hashes = hashes
        self.shards, self.bits, self.files = [], numpy.zeros(0, numpy.uint8), {}

    def state(self):
        """What go_on() takes, once all that was written is on the disk."""
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        return {"shards": self.shards, "bits": self.bits.tolist()}

    def go_on(self, state):
        """Cuts the files to a state(), None for an empty one."""
        os.makedirs(self.folder, exist_ok=True)
        self.shards = state["shards"] if state else []
        self.bits = numpy.array(state["bits"] if state else [], numpy.uint8)
        for name in os.listdir(self.folder):
            if os.path.splitext(name)[0] not in [shard["name"] for shard in self.shards]:
                os.remove(os.path.join(self.folder, name))
        if self.shards:
            self.open(self.shards[-1])
        if self.hashes:
            self.files["hashes"] = cut(self.hashes, sum(shard["documents"] for shard in self.shards) * OFFSET.itemsize)

    def open(self, shard):
        sizes = {"tokens": shard["tokens"] * self.type.itemsize, "mask": shard["tokens"] // 8,
                 "docs": shard["documents"] * OFFSET.itemsize}
        for kind, size in sizes.items():
            self.files[kind] = cut(os.path.join(self.folder, f"{shard['name']}.{kind}"), size)

    def begin(self):
        self.shards.append({"name": f"{len(self.shards):05}", "tokens": 0, "documents": 0})
        self.open(self.shards[-1])

    def end(self):
        """Completes the open shard."""
        if self.shards and "tokens" in self.files:
            self.files["mask"].write(numpy.packbits(self.bits, bitorder="little").tobytes())
            self.files["docs"].write(numpy.array([self.shards[-1]["tokens"]], OFFSET).tobytes())
            self.bits = self.bits[:0]
            for kind in ("tokens", "mask", "docs"):
                self.files.pop(kind).close()

    def close(self):
        """Completes all files."""
        self.end()
        for file in self.files.values():
            file.close()
        self.files = {}

    def drop(self):
        """Closes the files as they are."""
        for file in self.files.values():
            try:
                file.close()
            except OSError:  # no space: go_on() cuts what is there
                pass

    def append(self, encoded):
        """Appends the documents of an Encoded."""
        ends = numpy.cumsum(encoded.lengths)
        done = 0
        while done < len(ends):
            if not self.shards:
                self.begin()
            begin = int(ends[done - 1]) if done else 0
            room = self.limit - self.shards[-1]["tokens"]
            until = int(numpy.searchsorted(ends, begin + room, "right"))
            if until == done and self.shards[-1]["documents"] == 0:
                until += 1
            if until > done:
                self.write(encoded, done, until, begin, int(ends[until - 1]))
                done = until
            if done < len(ends):
                self.end()
                self.begin()
        if self.hashes:
            self.files["hashes"].write(encoded.hashes.tobytes())

    def write(self, encoded, first, last, begin, end):
        shard = self.shards[-1]
        starts = shard["tokens"] + numpy.cumsum(encoded.lengths[first:last]) - encoded.lengths[first:last]
        self.files["tokens"].write(encoded.tokens[begin:end].astype(self.type, copy=False).tobytes())
        self.files["docs"].write(starts.astype(OFFSET).tobytes())
        bits = numpy.concatenate([self.bits, encoded.mask[begin:end]])
        whole = len(bits) // 8 * 8
        self.files["mask"].write(numpy.packbits(bits[:whole], bitorder="little").tobytes())
        self.bits = bits[whole:].copy()
        shard["tokens"] += end - begin
        shard["documents"] += last - first


def cut(path, size):
    """The file, opened to be written on behind its first `size` bytes. Raises OSError if it has fewer."""
    file = open(path, "r+b" if os.path.exists(path) else "w+b")
    if file.seek(0, os.SEEK_END) < size:
        file.close()
        raise OSError(f"{path} is shorter than the build left it; --restart begins again")
    file.truncate(size)
    file.seek(size)
    return file


class Shards:
    """Reads the shards of a finished store. begins: the global index of each shard's first token, and the number of all."""

    def __init__(self, folder, shards, token_bytes):
        """shards: [{"name", "tokens", …}]."""
        self.folder, self.names = folder, [shard["name"] for shard in shards]
        self.type = numpy.dtype(f"<u{token_bytes}")
        self.begins = numpy.cumsum([0, *(shard["tokens"] for shard in shards)])

    def file(self, shard, kind, dtype):
        return numpy.memmap(os.path.join(self.folder, f"{self.names[shard]}.{kind}"), dtype, "r")

    def starts(self):
        """The global index of each document's first token, and the number of all tokens: int64[documents + 1]."""
        each = [self.file(at, "docs", OFFSET)[:-1].astype(numpy.int64) + self.begins[at] for at in range(len(self.names))]
        return numpy.concatenate([*each, self.begins[-1:]])

    def find(self, begin, end):
        """(shard, begin, end) of a range that lies in one shard, within it."""
        shard = int(numpy.searchsorted(self.begins, begin, "right")) - 1
        return shard, int(begin - self.begins[shard]), int(end - self.begins[shard])

    def tokens(self, begin, end):
        """The tokens of a range that lies in one shard."""
        shard, begin, end = self.find(begin, end)
        return numpy.array(self.file(shard, "tokens", self.type)[begin:end])

    def mask(self, begin, end):
        """A 0 or 1 for each token of a range that lies in one shard: uint8."""
        shard, begin, end = self.find(begin, end)
        packed = self.file(shard, "mask", numpy.uint8)[begin >> 3:(end + 7) >> 3]
        return numpy.unpackbits(packed, bitorder="little")[begin & 7:(begin & 7) + end - begin]
