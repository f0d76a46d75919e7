"""Makes a token folder."""

import collections
import errno
import hashlib
import json
import os
import time

import numpy

from ..errors import need
from ..whole_file import sha256_of
from . import manifest, packing, rows, sources, splits
from .display import Display
from .encode import Encoder
from .errors import DataError, Stopped
from .partial import HASHES, Partial
from .reading import Reader
from .records import Fields
from .store import SHARD, Shards, Store
from .tokenizer import Tokenizer, libraries
from .workers import Workers

SAVED = 5.0  # seconds between two records of the progress, at least
DROPPED = ("empty", "no answer", "long", "pieces without a target")


def build(options, say, shard_bytes=SHARD):
    """Does `data build`. options: of the command line; say: takes a line for the user; shard_bytes: of a shard's tokens.
    Raises DataError, OSError."""
    output = os.path.abspath(options.output)
    wanted = splits.parse(options.split)
    found, others = sources.find(options.input, output)
    if others:
        say("note: not read: " + ", ".join(f"{number} {ending}" for ending, number in sorted(others.items())))
    tokenizer = Tokenizer(options.model, options.template, options.eos)
    command = command_of(options, tokenizer, found)
    key = hashlib.sha256(json.dumps(command, sort_keys=True).encode()).hexdigest()
    if os.path.lexists(output):
        if is_made(output, key):
            say(f"{options.output} is already what this command makes")
            return
        raise DataError(f"{options.output} exists, and this command would make something else; give another -o, or remove it")
    if any(each.packing == ".zst" for each in found):
        need("zstandard")
    if any(each.kind == "table" for each in found):
        need("pyarrow")
    longest = options.seq + 1 if options.long == "drop" else None
    seed = options.seed.to_bytes(8, "little") if wanted else None
    fields = Fields(dict(options.field), options.format)
    encoder = Encoder(tokenizer, fields, options.train_on, longest, seed)
    begun = time.monotonic()
    with Workers(encoder, options.workers) as workers, Partial(output, command, options.restart) as partial:
        job = Build(partial, found, fields.columns(), encoder, shard_bytes)
        try:
            job.read(workers, say)
            job.finish(options, wanted, tokenizer, command["--model"], key)
            if job.counts["conversations"] and "strftime_now" in str(tokenizer.template or tokenizer.tokenizer.chat_template):
                say("note: the chat template can write today's date: tokens depend on the day of the build")
        except BaseException as why:
            job.store.drop()
            partial.leave(isinstance(why, DataError) and not isinstance(why, Stopped))
            if isinstance(why, OSError) and why.errno in (errno.ENOSPC, errno.EDQUOT):
                raise Stopped(f"no space is left for {partial.folder}") from why
            raise
    seconds = time.monotonic() - begun
    for line in manifest.summary(options.output, manifest.read(output)):
        say(line)
    say(f"  {seconds:.1f} s, {job.made / seconds:,.0f} tokens/s")


def is_made(output, key):
    """Whether a folder is a finished build of a key."""
    try:
        return manifest.read(output).get("key") == key
    except (DataError, OSError):
        return False


def command_of(options, tokenizer, found):
    """All that the bytes of a token folder follow from, by the names of flags."""
    import tokenizers
    return {
        "--seq": options.seq, "--pack": options.pack, "--long": options.long, "--train-on": options.train_on,
        "--format": options.format, "--field": sorted(map(list, options.field)), "--split": options.split, "--seed": options.seed,
        "--eos": options.eos, "--model": tokenizer.hashes(), "--template": text_hash(tokenizer.template),
        "the inputs": [[each.path, each.size, each.mtime] for each in found],
        "the versions of transformers and tokenizers": [libraries().__version__, tokenizers.__version__],
    }


def text_hash(text):
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


class Build:
    """What is being made. made: number of tokens that this process has made."""

    def __init__(self, partial, found, columns, encoder, shard_bytes):
        self.partial, self.sources, self.columns = partial, found, columns
        hashes = partial.path(HASHES) if encoder.key is not None else None
        self.store = Store(partial.path("tokens"), encoder.type, hashes, shard_bytes)
        self.counts, self.read_sources = collections.Counter(), []  # of sources that are done, as the manifest has them
        self.blocks = self.records = 0  # of the next one, done
        self.largest = self.made = 0

    def read(self, workers, say):
        """Makes tokens of the sources, from where an earlier process ended."""
        progress = self.partial.progress
        self.store.go_on(progress and progress["store"])
        if progress:
            self.counts = collections.Counter(progress["counts"])
            self.read_sources, self.blocks, self.records = progress["sources"], progress["blocks"], progress["records"]
            self.largest = progress["largest"]
            say(f"goes on from {self.partial.folder}: {self.counts['documents']:,} documents of {len(self.read_sources)} whole "
                f"files and {self.blocks} blocks of the next one are there")
        display = Display(sum(each.size for each in self.sources), sum(each["bytes"] for each in self.read_sources))
        base, due = display.done, time.monotonic() + SAVED
        try:
            for item, encoded in workers.map(self.items()):
                if encoded is None:
                    self.read_sources.append(item | {"records": self.records})
                    self.blocks = self.records = 0
                    base += item["bytes"]
                    display.to(base)
                    continue
                self.take(encoded)
                display.to(base + item.position)
                if time.monotonic() > due:
                    begun = time.monotonic()
                    self.save()
                    due = time.monotonic() + max(SAVED, 20 * (time.monotonic() - begun))
        finally:
            display.close()
        self.save()
        if not self.counts["documents"]:
            reasons = [f"{self.counts[reason]} {manifest.REASONS[reason]}" for reason in DROPPED if self.counts[reason]]
            why = ", ".join(reasons) or "the files are empty"
            raise DataError(f"no document is left of {self.counts['records']} records: {why}")

    def items(self):
        """Yields the Blocks that are not done, and after the last one of each source what the manifest says of it."""
        skip = self.blocks
        for source in self.sources[len(self.read_sources):]:
            reader = Reader(source, self.columns)
            for at, block in enumerate(reader.blocks()):
                if at >= skip:
                    yield block
            skip = 0
            yield {"path": source.path, "bytes": source.size, "sha256": reader.sha256}

    def take(self, encoded):
        self.store.append(encoded)
        longest = max(self.counts["longest"], encoded.counts.pop("longest"))
        self.counts.update(encoded.counts)
        self.counts["longest"] = longest
        self.blocks += 1
        self.records += encoded.counts["records"]
        self.largest = max(self.largest, int(encoded.tokens.max(initial=0)))
        self.made += len(encoded.tokens)

    def save(self):
        self.partial.save({"store": self.store.state(), "counts": self.counts, "sources": self.read_sources,
                           "blocks": self.blocks, "records": self.records, "largest": self.largest})

    def finish(self, options, wanted, tokenizer, tokenizer_hashes, key):
        """Packs rows, writes the manifest, and gives the folder its name."""
        self.store.close()
        partial, counts = self.partial, self.counts
        shards = Shards(partial.path("tokens"), self.store.shards, self.store.type.itemsize)
        starts = shards.starts()
        lengths = numpy.diff(starts)
        if wanted:
            parts = splits.choose(wanted, numpy.fromfile(partial.path(HASHES), "<u8"))
        else:
            parts = {"train": slice(None)}
        made = {}
        for name, documents in parts.items():
            made[name] = self.split(name, options, shards, starts[:-1][documents], lengths[documents])
        os.makedirs(partial.path("tokenizer"), exist_ok=True)
        tokenizer.copy(partial.path("tokenizer"))
        dropped = {reason: counts[reason] for reason in DROPPED}
        if options.pack == "windows":
            dropped.pop("pieces without a target")
            dropped |= {reason: counts[reason] for reason in ("windows without a target", "tokens of the last window")}
        manifest.write(partial.folder, {
            "format": manifest.FORMAT, "version": manifest.VERSION, "sequence": options.seq, "packing": options.pack,
            "token_bytes": self.store.type.itemsize, "vocabulary": tokenizer.size, "largest_token": self.largest,
            "padding_token": tokenizer.padding(), "key": key,
            "tokenizer": {"class": type(tokenizer.tokenizer).__name__, "files": tokenizer_hashes,
                          "template": text_hash(tokenizer.template)},
            "options": {"split": options.split, "long": options.long, "train_on": options.train_on, "format": options.format,
                        "field": dict(options.field), "eos": options.eos, "seed": options.seed},
            "sources": self.read_sources,
            "shards": [shard | {"sha256": {kind: sha256_of(partial.path("tokens", f"{shard['name']}.{kind}"))
                                           for kind in ("tokens", "mask", "docs")}} for shard in self.store.shards],
            "splits": made,
            "counts": {**{name: counts[name] for name in ("records", "documents", "tokens", "targets")}, "dropped": dropped,
                       **{name: counts[name] for name in ("cut", "straddling", "special tokens in text",
                                                          "documents with special tokens", "longest")}}})
        partial.finish()

    def split(self, name, options, shards, starts, lengths):
        """Writes the rows of a split; returns what the manifest says of it."""
        first, begin, count, targets = packing.pack(options.pack, shards, starts, lengths, options.seq, self.counts)
        if len(first) < 2:
            raise DataError(f"no row is left for {name}: its {len(lengths)} documents of {lengths.sum()} tokens "
                            + ("fill no window" if options.pack == "windows" else "have no target"))
        path = self.partial.path(f"{name}.rows")
        rows.write(path, first, begin, count, options.seq)
        tokens = int(count.sum())
        return {"rows": len(first) - 1, "pieces": len(begin), "documents": len(lengths), "tokens": tokens,
                "targets": int(targets.sum()), "padding": (len(first) - 1) * options.seq - tokens, "sha256": sha256_of(path)}
