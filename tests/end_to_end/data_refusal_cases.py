"""Cases of test_data_build.py: what cannot be done is one line of error, and nothing is left of it."""

import gzip
import json
import os

import cases
import data_tokenizers
import pyarrow
import pyarrow.parquet
import zstandard
from data_support import build, call, refused, write_lines

USER, ANSWER = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}


def bad_records(test, folder):
    data_tokenizers.gpt("gpt")
    data_tokenizers.llama("llama")
    good = json.dumps({"text": "good"}).encode()
    for number, (line, message) in enumerate((
            (b'{"text": "\xff"}', r"2: not UTF-8 \(byte 0xff\)"), (b'{"text": "a"', "2: invalid JSON: .*, column 13"),
            (b"{} x", "2: invalid JSON"),
            (b'{"body": "a"}', "2: the record has no field 'text' or .*; it has 'body'; --field text=NAME"),
            (b"{}", "2: .*it has none"),
            (b'{"text": 3}', "2: field 'text' is a number, expected a text"), (b'{"text": null}', "2: field 'text' is null"),
            (b"[]", "2: the record is a list"),
            (rb'{"text": "x\ud800"}', r"2: field 'text' has half of a surrogate pair \('\\ud800'\)"),
            (b'{"text": "a", "messages": []}', r"2: the record has fields of text and of messages; --format text\|messages"),
            (b'{"messages": [], "conversations": []}', "2: the record has both fields 'messages' and 'conversations'"),
            (b'{"prompt": "a"}', "2: the record has no field 'completion'"),
            (b'{"prompt": "a", "completion": []}', "2: one of prompt and completion"),
            (b'{"prompt": "a", "completion": 1}', "2: field 'completion' is a number"),
            (b'{"messages": "a"}', "2: messages: a text, expected a list"),
            (b'{"messages": ["a"]}', "2: message 1 is a text"),
            (b'{"messages": [{"content": "a"}]}', "2: message 1 has neither 'role' nor 'from'"),
            (b'{"messages": [{"role": "asistant", "content": "a"}]}', "2: message 1 has the role 'asistant', expected one of"),
            (b'{"messages": [{"role": ["user"], "content": "a"}]}', "2: message 1 has the role"),
            (b'{"messages": [{"role": "user"}]}', r"2: message 1 \(user\): there is no 'content'"),
            (b'{"messages": [{"role": "user", "content": 1}]}', r"2: message 1 \(user\): 'content' is a number"),
            (b'{"conversations": [{"from": "robot", "value": "a"}]}', "2: message 1 is from 'robot', expected one of human"),
            (b'{"conversations": [{"from": "gpt"}]}', "2: message 1 has no 'value'"),
            (json.dumps({"messages": [USER, ANSWER | {"weight": 0.5}]}).encode(), r"2: message 2 \(assistant\) has weight 0.5"),
            (json.dumps({"messages": [USER, ANSWER], "tools": "f"}).encode(), "2: field 'tools' is a text"),
            (json.dumps({"messages": [USER, ANSWER], "chat_template_kwargs": {"tokenize": 1}}).encode(),
             "2: .*'tokenize', which is not a variable"),
            (json.dumps({"messages": [ANSWER]}).encode(), "2: message 1 is the assistant's"))):
        name = f"bad-{number}.jsonl"
        with open(name, "wb") as file:
            file.write(good + b"\n" + line + b"\n" + good)
        refused(test, name + ":" + message, "data", name, "--model", "gpt", "--seq", 8)
    write_lines("first.jsonl", [{"messages": [ANSWER, USER]}])
    refused(test, "first.jsonl:1: the chat template fails: TemplateError: a user speaks first", "data", "first.jsonl",
            "--model", "llama", "--seq", 8,
            "--train-on", "all")
    with open("bad.txt", "wb") as file:
        file.write(b"one\ntwo\nth\xffree")
    refused(test, r"bad.txt:3: not UTF-8", "data", "bad.txt", "--model", "gpt", "--seq", 8)
    with open("bad.json", "w") as file:
        file.write('[{"text": "a"},\n {"text": "b"},\n {"body": "c"}]')
    refused(test, "bad.json:3: the record has no field", "data", "bad.json", "--model", "gpt", "--seq", 8)
    with open("broken.json", "w") as file:
        file.write('[{"text": "a"},\n {"text": b}]')
    refused(test, "broken.json:2: invalid JSON", "data", "broken.json", "--model", "gpt", "--seq", 8)


def damaged_files(test, folder):
    data_tokenizers.gpt("gpt")
    data = b'{"text": "some text that is long enough"}\n' * 50
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"] * 100}), "good.parquet")
    with open("good.parquet", "rb") as file:
        table = file.read()
    for name, content in (("short.jsonl.gz", gzip.compress(data)[:-20]), ("junk.jsonl.gz", gzip.compress(data) + b"junk"),
                          ("no.txt.gz", data),
                          ("crc.json.gz", gzip.compress(data)[:-8] + b"12345678"), ("empty.jsonl.gz", b""),
                          ("short.jsonl.zst", zstandard.compress(data)[:-5]), ("no.jsonl.zst", data),
                          ("short.parquet", table[:-9]), ("no.parquet", data)):
        with open(name, "wb") as file:
            file.write(content)
        kind = {"gz": "gz", "zst": "zst", "parquet": "Parquet"}[name.rpartition(".")[2]]
        refused(test, f"{name} is not intact {kind} data: .", "data", name, "--model", "gpt", "--seq", 8)
    pyarrow.parquet.write_table(pyarrow.table({"text": [1, 2]}), "numbers.parquet")
    refused(test, "numbers.parquet: column 'text' is of type int64, expected text", "data", "numbers.parquet", "--model",
            "gpt", "--seq", 8)
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", None]}), "null.parquet")
    refused(test, "null.parquet:2: the record has no field 'text'", "data", "null.parquet", "--model", "gpt", "--seq", 8)
    pyarrow.parquet.write_table(pyarrow.table({"body": ["a"]}), "other.parquet")
    refused(test, "other.parquet has no column of text, .*; it has body; --field text=NAME", "data", "other.parquet",
            "--model", "gpt", "--seq", 8)


def inputs_and_models(test, folder):
    data_tokenizers.gpt("gpt")
    data_tokenizers.word_piece("pieces")
    text = write_lines("text.jsonl", ["a text", "another"])
    chats = write_lines("chats.jsonl", [{"messages": [USER, ANSWER]}])
    flags = ("--model", "gpt", "--seq", 8)
    os.makedirs("folder/inner")
    os.makedirs("nothing")
    with open("nothing/readme.md", "w"):
        pass
    write_lines("folder/a.jsonl", ["a"])
    os.symlink("a.jsonl", "folder/b.jsonl")
    os.symlink("missing", "nothing/c.jsonl")
    for words, message in ((("*.txt",), r"\*.txt matches no file"), (("no.jsonl",), "no.jsonl does not exist"),
                           ((text, "./" + text), "is given twice"),
                           (("folder",), "folder/b.jsonl, which is folder/a.jsonl, is given twice"),
                           (("nothing/readme.md",), "ends in none of .txt"),
                           ((".",), "the output data lies in the input ."), (("/dev/null",), "neither a file nor a folder")):
        refused(test, message.replace("data lies", r"\S*data lies"), "data", *words, *flags)
    refused(test, "nothing/c.jsonl: No such file", "data", "nothing", *flags)
    os.remove("nothing/c.jsonl")
    refused(test, "no file to read in nothing", "data", "nothing", *flags)
    os.makedirs("bare")
    for model, message in (("bare", "no tokenizer that transformers .* loads"), ("none", "--model none is not a folder")):
        refused(test, message, "data", text, "--model", model, "--seq", 8)
    refused(test, "text.jsonl:1: the tokenizer of pieces has no eos token, .*--eos TOKEN.*--eos none", "data", text, "--model",
            "pieces", "--seq", 8)
    refused(test, "--eos '<x>' is not a token", "data", text, *flags, "--eos", "<x>")
    refused(test, "chats.jsonl:1: pieces has no chat template; --template FILE", "data", chats, "--model", "pieces", "--seq", 8)
    data_tokenizers.gpt("small", bound=300)
    refused(test, r"text.jsonl:1: token '.*' has the id \d+, but the model's vocab_size is 300: .*resize_token_embeddings",
            "data", text, "--model",
            "small", "--seq", 8)
    build(test, "fits", write_lines("bytes.jsonl", ["b"]), "--model", data_tokenizers.gpt("enough", bound=420), "--seq", 8)
    write_lines("empty.jsonl", ["", {"prompt": "", "completion": ""}, {"messages": [USER]}])
    refused(test, "no document is left of 3 records: 2 empty, 1 no answer", "data", "empty.jsonl", *flags)
    refused(test, "no row is left for train: its 2 documents of .* fill no window", "data", text, "--model", "gpt", "--seq",
            500, "--pack", "windows")
    refused(test, "--split valid: of 2 documents 2 .* leave nothing for train", "data", text, *flags, "--split", "valid=2")
    for split, message in (("train=5", "not one of train"), ("Valid=5", "a name begins"), ("valid", "expected NAME=2%"),
                           ("valid=0%", "expected NAME=2%"),
                           ("valid=100%", "leave nothing for train"), ("valid=1.5", "whole")):
        refused(test, message, "data", text, *flags, "--split", split, status=2)


def folders_that_exist(test, folder):
    data_tokenizers.gpt("gpt")
    text = write_lines("text.jsonl", ["a text", "another"])
    flags = (text, "--model", "gpt", "--seq", 8)
    made = build(test, "data", *flags)
    before = made.files()
    test.assertEqual(call("build", *flags, "-o", "data/"), (0, "data/ is already what this command makes\n", ""))
    status, _, err = call("build", *flags, "--train-on", "all", "-o", "data")
    test.assertEqual((status, err),
                     (1, "tessera: error: data exists, and this command would make something else; give another -o, or remove "
                         "it\n"))
    test.assertEqual(made.files(), before)


if __name__ == "__main__":
    cases.run((bad_records, damaged_files, inputs_and_models, folders_that_exist))
