"""Cases of test_data_build.py: rows, splits, sources of all kinds, shards."""

import gzip
import json
import os
import random

import cases
import data_tokenizers
import numpy as np
import pyarrow
import pyarrow.parquet
import tokenizers
import zstandard
from data_support import build, call, write_lines
from tessera.data import build as building
from tessera.data import packing
from transformers import AutoTokenizer


def reference_best_fit(counts, room):
    """The row of each piece by the plainest means: the fullest row with room, the first one of several."""
    rest, rows = [], [None] * len(counts)
    for piece in sorted(range(len(counts)), key=lambda k: (-counts[k], k)):
        fits = [row for row, left in enumerate(rest) if left >= counts[piece]]
        row = min(fits, key=lambda row: (rest[row], row), default=len(rest))
        rest[row:row + 1] = [(rest[row] if fits else room) - counts[piece]]
        rows[piece] = row
    return rows


def best_fit_is_exact(test, folder):
    draw = np.random.default_rng(0)
    for trial in range(150):
        room, many = int(draw.integers(1, 50)), int(draw.integers(1, 120))
        counts = draw.integers(1, room + 1, many) if trial % 2 else np.minimum(room, draw.geometric(0.2, many))
        test.assertEqual(packing.best_fit(counts, room).tolist(), reference_best_fit(counts.tolist(), room), (room, counts))


def corpus(count=120):
    """Records of three kinds and many lengths, each another one."""
    draw = random.Random(0)
    texts = ["".join(draw.choice(data_tokenizers.TEXTS)[:draw.randrange(1, 40)] for _ in range(draw.randrange(1, 6))) + str(k)
             for k in range(3 * count)]
    return [{"text": texts[k]} if k % 3 == 0 else {"prompt": texts[k], "completion": texts[k + count]} if k % 3 == 1 else
            {"messages": [{"role": "user", "content": texts[k]}, {"role": "assistant", "content": texts[k + count]}]}
            for k in range(count)]


def pieces_of(made, sequence):
    """{(begin, count)} of the pieces by the rule for whole documents, without those that have no target."""
    found = set()
    for start, (ids, _) in zip(made.starts, made.documents):
        parts = range(0, max(len(ids) - 1, 1), sequence)
        found |= {(start + at, min(sequence, len(ids) - at)) for at in parts
                  if made.targets(start + at, min(sequence, len(ids) - at))}
    return found


def check_rows(test, made, sequence):
    """What holds of every folder."""
    test.assertTrue(all(mask[0] == 0 for _, mask in made.documents))
    split = made.manifest["splits"]["train"]
    pieces = [piece for row in made.splits["train"] for piece in row]
    test.assertTrue(all(0 < sum(count for _, count in row) <= sequence for row in made.splits["train"]))
    test.assertEqual(split["tokens"], sum(count for _, count in pieces))
    test.assertEqual(split["padding"], split["rows"] * sequence - split["tokens"])
    test.assertEqual(split["targets"], sum(made.targets(*piece) for piece in pieces))
    test.assertEqual(call("inspect", made.folder, "--check")[0], 0)
    return pieces


def rows_of_each_packing(test, folder):
    data_tokenizers.gpt("gpt")
    write_lines("corpus.jsonl", corpus())
    for sequence in (16, 90):
        flags = ("corpus.jsonl", "--model", "gpt", "--seq", sequence)
        made = build(test, f"fit-{sequence}", *flags)
        pieces = check_rows(test, made, sequence)
        test.assertEqual(len(pieces), len(set(pieces)))
        wanted = sorted(pieces_of(made, sequence))
        test.assertEqual(sorted(pieces), wanted)
        rows = reference_best_fit([count for _, count in wanted], sequence)
        want = [[] for _ in range(max(rows) + 1)]
        for piece, row in sorted(zip(wanted, rows), key=lambda each: (-each[0][1], each[0][0])):
            want[row].append(piece)
        test.assertEqual(made.splits["train"], want)
        test.assertEqual(made.manifest["counts"]["cut"], sum(len(ids) > sequence + 1 for ids, _ in made.documents))

        made = build(test, f"none-{sequence}", *flags, "--pack", "none")
        test.assertEqual(check_rows(test, made, sequence), wanted)
        test.assertEqual(len(made.splits["train"]), len(wanted))

        made = build(test, f"windows-{sequence}", *flags, "--pack", "windows")
        check_rows(test, made, sequence)
        total = len(made.tokens) // sequence
        want = [row for k in range(total) if made.targets(k * sequence, sequence)
                for row in [range(k * sequence, (k + 1) * sequence)]]
        test.assertEqual([[at for begin, count in row for at in range(begin, begin + count)] for row in made.splits["train"]],
                         [list(row) for row in want])
        for begin, count in (piece for row in made.splits["train"] for piece in row):
            test.assertFalse([start for start in made.starts if begin < start < begin + count])
        dropped = made.manifest["counts"]["dropped"]
        test.assertEqual((dropped["tokens of the last window"], dropped["windows without a target"]),
                         (len(made.tokens) % sequence, total - len(want)))

        short = build(test, f"short-{sequence}", *flags, "--long", "drop")
        test.assertEqual(short.documents, [each for each in made.documents if len(each[0]) <= sequence + 1])
        test.assertEqual(short.manifest["counts"]["dropped"]["long"], len(made.documents) - len(short.documents))


def splits_keep_duplicates_together(test, folder):
    data_tokenizers.gpt("gpt")
    texts = [f"document {k % 80}" for k in range(200)]
    write_lines("corpus.jsonl", [{"text": text} for text in texts])
    flags = ("corpus.jsonl", "--model", "gpt", "--seq", 64)
    made = build(test, "data", *flags, "--split", "valid=10%", "--split", "test=7")
    of_split = {name: [made.starts.index(begin) for row in rows for begin, _ in row] for name, rows in made.splits.items()}
    test.assertEqual(sorted(sum(of_split.values(), [])), list(range(200)))
    contents = {name: {texts[k] for k in documents} for name, documents in of_split.items()}
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        test.assertFalse(contents[one] & contents[other])
    test.assertTrue(20 <= len(of_split["valid"]) <= 22 and 7 <= len(of_split["test"]) <= 9,
                    {name: len(each) for name, each in of_split.items()})
    test.assertEqual(build(test, "again", *flags, "--split", "valid=10%", "--split", "test=7").splits, made.splits)
    test.assertNotEqual(build(test, "other", *flags, "--split", "valid=10%", "--split", "test=7", "--seed", 1).splits,
                        made.splits)


def sources_of_all_kinds(test, folder):
    data_tokenizers.gpt("gpt")
    records = corpus()
    flags = ("--model", "gpt", "--seq", 64)
    want = build(test, "lines", write_lines("lines.jsonl", records), *flags).documents
    with open("lines.jsonl", "rb") as file:
        data = file.read()
    half = len(data) // 2
    with open("members.ndjson.gz", "wb") as file:  # two members, and the zeros that some tapes add
        file.write(gzip.compress(data[:half]) + gzip.compress(data[half:]) + bytes(100))
    with open("frames.jsonl.zst", "wb") as file:
        for part in (data[:half], data[half:]):
            file.write(zstandard.ZstdCompressor().compress(part))
    with open("array.json", "w") as file:
        json.dump(records, file, indent=1)
    columns = {name: [record.get(name) for record in records] for name in ("text", "prompt", "completion", "messages")}
    pyarrow.parquet.write_table(pyarrow.table(columns), "table.parquet", row_group_size=7)
    with open("odd.jsonl", "wb") as file:
        file.write(b"\xef\xbb\xbf\n\r\n" + data.replace(b"\n", b"\r\n\n").strip())
    for name in ("members.ndjson.gz", "frames.jsonl.zst", "array.json", "table.parquet", "odd.jsonl"):
        test.assertEqual(build(test, name + "-data", name, *flags).documents, want, name)
    os.makedirs("many/inner")
    for k, text in enumerate(data_tokenizers.TEXTS):
        with open(f"many/{'inner/' if k % 2 else ''}{k}.txt", "w", newline="") as file:
            file.write(text)
    with open("many/readme.md", "w") as file:
        file.write("not read")
    os.symlink("../lines.jsonl", "many/z.jsonl")
    order = sorted(range(len(data_tokenizers.TEXTS)), key=lambda k: f"many/{'inner/' if k % 2 else ''}{k}.txt")
    write_lines("same.jsonl", [{"text": data_tokenizers.TEXTS[k]} for k in order] + records)
    want = build(test, "same", "same.jsonl", *flags).documents
    for name in ("many", "man*"):
        made = build(test, f"from-{name}".replace("*", "-glob"), name, *flags)
        test.assertIn("note: not read: 1 .md\n", made.printed)
        test.assertEqual(made.documents, want)


def tables_of_conversations(test, folder):
    data_tokenizers.save(data_tokenizers.byte_level(False), "model", data_tokenizers.CHATML.replace(
        "m.content", "(m.content or (m.tool_calls | tojson))"), eos_token="<|endoftext|>")
    chat = [{"role": "user", "content": "a"},
            {"role": "assistant", "content": None, "tool_calls": [{"arguments": {"x": 1}, "name": "f"}]},
            {"role": "tool", "content": "b"},
            {"role": "assistant", "content": "c", "tool_calls": [{"arguments": {"y": "z"}, "name": "g"}]}]
    pairs = [{"messages": chat}, {"messages": chat[:2]}]
    write_lines("chats.jsonl", pairs)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(pairs), "chats.parquet")
    made = [build(test, name + "-data", name, "--model", "model", "--seq", 64).documents
            for name in ("chats.jsonl", "chats.parquet")]
    test.assertEqual(*made)
    test.assertEqual(len(made[0]), 2)


def shards_of_whole_documents(test, folder):
    data_tokenizers.gpt("gpt")
    write_lines("corpus.jsonl", corpus())
    flags = ("corpus.jsonl", "--model", "gpt", "--seq", 32, "--split", "valid=5")
    one = build(test, "one", *flags)
    make = building.build
    try:
        building.build = lambda options, say: make(options, say, shard_bytes=300)
        many = build(test, "many", *flags)
    finally:
        building.build = make
    test.assertGreater(len(many.manifest["shards"]), 5)
    test.assertTrue(all(shard["tokens"] <= 150 or shard["documents"] == 1 for shard in many.manifest["shards"]))
    test.assertEqual((many.documents, many.starts, many.splits), (one.documents, one.starts, one.splits))
    test.assertEqual(call("inspect", "many", "--check")[0], 0)


def large_vocabularies_take_four_bytes(test, folder):
    words = {f"w{k}": k for k in range(70000)} | {"<eos>": 70000}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    data_tokenizers.save(made, "model", unk_token="w0", eos_token="<eos>")
    write_lines("text.jsonl", ["w1 w65535 w65536 w69999"])
    made = build(test, "data", "text.jsonl", "--model", "model", "--seq", 8)
    test.assertEqual(made.documents, [([1, 65535, 65536, 69999, 70000], [0, 1, 1, 1, 1])])
    test.assertEqual((made.manifest["token_bytes"], made.manifest["vocabulary"], made.manifest["largest_token"]),
                     (4, 70001, 70000))


def a_folder_is_shown(test, folder):
    data_tokenizers.gpt("gpt")
    write_lines("corpus.jsonl",
                [{"messages": [{"role": "user", "content": "Hi\x1b[0m"}, {"role": "assistant", "content": "Ho"}]},
                 {"text": "plain"}])
    made = build(test, "data", "corpus.jsonl", "--model", "gpt", "--seq", 64)
    (chat, _), (text, _) = made.documents
    padding = 64 - len(chat) - len(text)
    first = AutoTokenizer.from_pretrained("gpt").decode(text[:1])
    plain = f"{first}‹{'plain'[len(first):]}<|endoftext|>›"
    status, out, err = call("inspect", "data", "--rows", 3)
    test.assertEqual((status, out, err), (0, f"""══ row 0 of train: 2 pieces, {padding} positions of padding
── document 0, {len(chat)} tokens, {sum(made.documents[0][1])} trained
<|im_start|>user
Hi\\x1b[0m<|im_end|>
<|im_start|>assistant
‹Ho<|im_end|>
›
── document 1, {len(text)} tokens, {len(text) - 1} trained
{plain}
""", ""))
    test.assertIn("train                  1             2", call("inspect", "data")[1])
    test.assertEqual(call("inspect", "data", "--rows", 1, "--split", "valid")[0], 2)
    with open("data/tokens/00000.tokens", "r+b") as file:
        file.write(b"\xff\xff")
    status, _, err = call("inspect", "data", "--check")
    test.assertEqual((status, err), (1, "tessera: error: data/tokens/00000.tokens has other content than the manifest says\n"))


def mixtures(test, folder):
    data_tokenizers.gpt("gpt")
    data_tokenizers.llama("llama")
    write_lines("a.jsonl", corpus(9))
    write_lines("b.jsonl", corpus(12))
    for name, source, model, sequence in (("a", "a", "gpt", 32), ("b", "b", "gpt", 32), ("long", "b", "gpt", 33),
                                          ("other", "b", "llama", 32)):
        build(test, name, source + ".jsonl", "--model", model, "--seq", sequence)
    os.mkdir("sub")
    status, out, err = call("mix", "a/=3", f"{folder}/b=1", "-o", "sub/mixed")
    test.assertEqual((status, err), (0, ""))
    with open("sub/mixed/manifest.json") as file:
        test.assertEqual(json.load(file), {"format": "tessera-data-mixture", "version": 1, "sequence": 32, "sources": [
            {"path": "../../a", "weight": 0.75}, {"path": f"{folder}/b", "weight": 0.25}]})
    test.assertEqual(os.listdir("sub"), ["mixed"])
    test.assertEqual(call("inspect", "sub/mixed", "--check")[0], 0)
    for words, message, status in ((("a=1", "long=1"), "long has rows of 33 tokens, a of 32", 1),
                                   (("a=1", "other=1"), "another tokenizer", 1),
                                   (("a=1", "sub/mixed=1"), "is a mixture itself", 1), (("a=1", "a/=1"), "given twice", 1),
                                   (("a=0",), "positive weight", 2), (("a",), "expected FOLDER=WEIGHT", 2),
                                   (("gpt=1",), "no manifest.json", 1)):
        got, _, err = call("mix", *words, "-o", "refused")
        test.assertEqual(got, status)
        test.assertIn(message, err)
        test.assertFalse(os.path.exists("refused"))


if __name__ == "__main__":
    cases.run((best_fit_is_exact, rows_of_each_packing, splits_keep_duplicates_together, sources_of_all_kinds, tables_of_conversations,
               shards_of_whole_documents, large_vocabularies_take_four_bytes, a_folder_is_shown, mixtures))
