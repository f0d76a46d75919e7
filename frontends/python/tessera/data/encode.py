"""Makes tokens of blocks of records: what a worker does."""

import collections
import dataclasses
import hashlib
import re
import typing

import numpy

from ..errors import in_a_line
from . import records
from .chat import Renderer
from .errors import DataError
from .records import Text


@dataclasses.dataclass
class Encoded:
    """The documents of a block: their tokens in a row, the length of each, a 0 or 1 for each token that says whether
    it is a target, a hash of each document (None where nothing is split off), and counts of what the manifest reports."""
    tokens: numpy.ndarray
    lengths: numpy.ndarray
    mask: numpy.ndarray
    hashes: typing.Optional[numpy.ndarray]
    counts: collections.Counter


@dataclasses.dataclass
class Document:
    """A record on its way. ids: once it has been tokenized; spans: characters that are trained, None for all; mask: of 0 and 1,
    where the template made it; special: special tokens that its text spells out."""
    place: str
    text: str
    plain: bool
    spans: typing.Optional[list] = None
    ids: typing.Optional[list] = None
    mask: typing.Optional[numpy.ndarray] = None
    offsets: typing.Optional[list] = None
    special: int = 0


class Encoder:
    """tokenizer: a Tokenizer; fields: a Fields; train_on: "answers", "last" or "all"; longest: documents with more tokens are
    dropped, None for none; key: bytes that the hashes of documents depend on, None for no hashes."""

    def __init__(self, tokenizer, fields, train_on, longest, key):
        self.tokenizer, self.fields, self.train_on = tokenizer, fields, train_on
        self.longest, self.key = longest, key
        self.renderer = Renderer(tokenizer, train_on)
        self.type = numpy.dtype("<u2" if tokenizer.size <= 1 << 16 else "<u4")
        tokens = tokenizer.tokenizer.convert_ids_to_tokens(sorted(tokenizer.special))
        self.special_texts = re.compile("|".join(map(re.escape, sorted(tokens, key=len, reverse=True))) or r"(?!)")
        self.added = tokenizer.tokenizer.num_special_tokens_to_add(pair=False)

    def __call__(self, block):
        """The Encoded of a Block. Raises DataError."""
        counts, documents = collections.Counter(), []
        for place, record in records.of_block(block):
            counts["records"] += 1
            try:
                if (document := self.document(place, self.fields.read(record), counts)) is not None:
                    documents.append(document)
            except DataError as why:
                raise DataError(f"{place}: {why}") from why
        self.tokenize([each for each in documents if each.ids is None])
        tokens, masks = [], []
        for document in documents:
            if (found := self.finish(document, counts)) is not None:
                tokens.append(found[0])
                masks.append(found[1])
        hashes = numpy.array([self.hash(*each) for each in zip(tokens, masks)], "<u8") if self.key is not None else None
        lengths = numpy.array([len(each) for each in tokens], numpy.int64)
        joined = numpy.concatenate(tokens) if tokens else numpy.zeros(0, self.type)
        mask = numpy.concatenate(masks) if masks else numpy.zeros(0, numpy.uint8)
        counts["longest"] = int(lengths.max(initial=0))
        return Encoded(joined, lengths, mask, hashes, counts)

    def document(self, place, found, counts):
        """A Document, or None if there is nothing to train in the record."""
        if isinstance(found, Text):
            return self.text(place, found, counts)
        if not found.messages or self.train_on != "all" and not found.answers:
            counts["no answer" if found.messages else "empty"] += 1
            return None
        document = Document(place, "", False, special=self.special_in(found.messages))
        if self.renderer.marks_answers(found):
            document.ids, document.mask = self.renderer.marked(found)
        else:
            document.text = self.renderer.render(found)
            document.spans = None if self.train_on == "all" else self.renderer.answers(found, document.text)
        return document

    def text(self, place, found, counts):
        self.tokenizer.needs_end()
        if not found.text:
            counts["empty"] += 1
            return None
        document = Document(place, found.text, True, special=len(self.special_texts.findall(found.text)))
        if found.answer is not None and self.train_on != "all":
            self.tokenizer.needs_offsets("completions are trained")
            if found.answer == len(found.text):
                counts["no answer"] += 1
                return None
            document.spans = [(found.answer, len(found.text))]
        return document

    def special_in(self, messages):
        """The number of special tokens that messages spell out."""
        count = 0
        for message in messages:
            content = message.get("content")
            parts = [{"text": content}] if isinstance(content, str) else content or ()
            parts = [part.get("text") for part in parts if isinstance(part, dict)]
            count += sum(len(self.special_texts.findall(part)) for part in parts if isinstance(part, str))
        return count

    def tokenize(self, documents):
        """Sets ids, and offsets where they are needed."""
        for plain in (True, False):
            for exact in (True, False):
                group = [each for each in documents if each.plain == plain and (each.spans is not None) == exact]
                if not group:
                    continue
                found = self.call(group, plain, exact)
                for at, document in enumerate(group):
                    document.ids = found["input_ids"][at]
                    document.offsets = found["offset_mapping"][at] if exact else None

    def call(self, group, plain, exact):
        """What transformers makes of the texts of documents. Raises DataError with the place of the first one that it refuses."""
        options = {"add_special_tokens": plain, "return_attention_mask": False, "return_token_type_ids": False,
                   "verbose": False}
        if exact:
            options["return_offsets_mapping"] = True
        try:
            return self.tokenizer.tokenizer([each.text for each in group], **options)
        except Exception as why:  # whatever a tokenizer makes of a text
            if len(group) > 1:
                for document in group:
                    self.call([document], plain, exact)
            those = " and the documents behind it, together" if len(group) > 1 else ""
            raise DataError(f"{group[0].place}{those}: the tokenizer fails: {in_a_line(why)}") from why

    def finish(self, document, counts):
        """(tokens, mask) of a document; None if it is dropped."""
        ids = numpy.asarray(document.ids, numpy.int64)
        if document.plain and len(ids) <= self.added:
            counts["empty"] += 1
            return None
        mask, straddling = document.mask, 0
        if document.spans is not None:
            mask, straddling = self.spans(document, len(ids))
        elif mask is None:
            mask = numpy.ones(len(ids), numpy.uint8)
        end = self.tokenizer.end
        if document.plain and end is not None:
            if ids[-1] != end:
                ids, mask = numpy.append(ids, end), numpy.append(mask, numpy.uint8(1))
            mask[-1] = 1
        bound = self.tokenizer.bound
        if bound is not None and len(ids) and ids.max() >= bound:
            token = self.tokenizer.tokenizer.convert_ids_to_tokens(int(ids.max()))
            raise DataError(f"{document.place}: token {token!r} has the id {ids.max()}, but the model's vocab_size is {bound}: "
                            "the tokenizer has more ids than the model; model.resize_token_embeddings(len(tokenizer)) makes "
                            "room")
        mask[:1] = 0
        if not mask.any():
            counts["no answer"] += 1
            return None
        if self.longest is not None and len(ids) > self.longest:
            counts["long"] += 1
            return None
        counts["straddling"] += straddling
        counts["conversations"] += not document.plain
        counts["special tokens in text"] += document.special
        counts["documents with special tokens"] += document.special > 0
        counts["documents"] += 1
        counts["tokens"] += len(ids)
        counts["targets"] += int(mask.sum())
        return ids.astype(self.type), mask

    def spans(self, document, length):
        """(the mask of the tokens that hold a trained character, how many of these hold another one, too)."""
        offsets = numpy.asarray(document.offsets, numpy.int64).reshape(-1, 2)
        mask, straddling = numpy.zeros(length, numpy.uint8), 0
        for begin, end in document.spans:
            inside = (offsets[:, 1] > begin) & (offsets[:, 0] < end)
            mask[inside] = 1
            straddling += int((inside & ((offsets[:, 0] < begin) | (offsets[:, 1] > end))).sum())
        return mask, straddling

    def hash(self, ids, mask):
        found = hashlib.blake2b(ids.tobytes(), digest_size=8, key=self.key)
        found.update(mask.tobytes())
        return int.from_bytes(found.digest(), "little")
