"""Cases of test_data_build.py: tokens and masks are those of transformers."""

import json
import os
import re
import shlex

import cases
import data_tokenizers
from data_support import build, refused, write_lines
from data_tokenizers import TEXTS
from tessera.data import command
from transformers import AutoTokenizer

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "data-build.md")


def chat_of(number):
    """A conversation of one to three turns."""
    messages = [{"role": "system", "content": "Be nice."}]
    for turn in range(number % 3 + 1):
        for more, role in ((0, "user"), (1, "assistant")):
            messages.append({"role": role, "content": TEXTS[(number + 2 * turn + more) % len(TEXTS)]})
    return messages


CHATS = [chat_of(number) for number in range(len(TEXTS))]


def write_chats(chats=CHATS, **fields):
    return write_lines("chats.jsonl", [{"messages": chat, **fields} for chat in chats])


def trained_text(tokenizer, document):
    """The runs of trained tokens, as text."""
    ids, mask = document
    runs, open_run = [], False
    for token, bit in zip(ids, mask):
        if bit:
            runs = runs if open_run else [*runs, []]
            runs[-1].append(token)
        open_run = bool(bit)
    return [tokenizer.decode(run) for run in runs]


def text_is_what_the_tokenizer_makes(test, folder):
    write_lines("text.jsonl", [{"text": text} for text in TEXTS] + TEXTS)
    for name, make, flags in (("gpt", data_tokenizers.gpt, ()), ("llama", data_tokenizers.llama, ()),
                              ("unigram", data_tokenizers.unigram, ()),
                              ("pieces", data_tokenizers.word_piece, ("--eos", "none"))):
        tokenizer = AutoTokenizer.from_pretrained(make(name))
        made = build(test, name + "-data", "text.jsonl", "--model", name, "--seq", 64, *flags)
        end = [] if flags else [tokenizer.eos_token_id]
        for text, (ids, mask) in zip(TEXTS * 2, made.documents, strict=True):
            want = tokenizer(text)["input_ids"]
            test.assertEqual(ids, want + (end if want[-1:] != end else []), (name, text))
            test.assertEqual(mask, [0] + [1] * (len(ids) - 1))
        test.assertEqual(made.manifest["counts"]["special tokens in text"], 0)
        test.assertEqual(made.manifest["largest_token"], max(made.tokens))
    made = build(test, "other-end", "text.jsonl", "--model", "gpt", "--seq", 64, "--eos", "<|im_end|>")
    test.assertEqual(made.documents[0][0][-1],
                     AutoTokenizer.from_pretrained("gpt").convert_tokens_to_ids("<|im_end|>"))


def special_tokens_in_text_are_counted(test, folder):
    write_lines("text.jsonl", [{"text": "a<|endoftext|>b<|im_end|>"}, {"text": "no"}, {"messages": [
        {"role": "user", "content": "<|im_start|>"}, {"role": "assistant", "content": "x"}]}])
    data_tokenizers.gpt("gpt")
    made = build(test, "data", "text.jsonl", "--model", "gpt", "--seq", 64)
    counts = made.manifest["counts"]
    test.assertEqual((counts["special tokens in text"], counts["documents with special tokens"]), (3, 2))
    test.assertEqual(made.documents[0][0],
                     AutoTokenizer.from_pretrained("gpt")("a<|endoftext|>b<|im_end|><|endoftext|>")["input_ids"])


def conversations_are_what_the_template_makes(test, folder):
    write_chats()
    for name, make in (("gpt", data_tokenizers.gpt), ("llama", data_tokenizers.llama)):
        tokenizer = AutoTokenizer.from_pretrained(make(name))
        made = build(test, name + "-data", "chats.jsonl", "--model", name, "--seq", 64)
        end = "<|im_end|>\n" if name == "gpt" else "<|eot_id|>"
        for chat, document in zip(CHATS, made.documents, strict=True):
            test.assertEqual(document[0], tokenizer.apply_chat_template(chat, tokenize=True, return_dict=True)["input_ids"])
            answers = [message["content"] for message in chat if message["role"] == "assistant"]
            answers = answers if name == "gpt" else [answer.strip() for answer in answers]
            test.assertEqual(trained_text(tokenizer, document), [answer + end for answer in answers])


def marked_answers_are_those_of_transformers(test, folder):
    data_tokenizers.gpt("gpt")
    with open("template.jinja", "w") as file:
        file.write(data_tokenizers.MARKED)
    tokenizer = AutoTokenizer.from_pretrained(data_tokenizers.gpt("marked", data_tokenizers.MARKED))
    write_chats()
    made = build(test, "data", "chats.jsonl", "--model", "marked", "--seq", 64)
    for chat, (ids, mask) in zip(CHATS, made.documents, strict=True):
        want = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        test.assertEqual((ids, mask), (want["input_ids"], want["assistant_masks"]))
    same = build(test, "same", "chats.jsonl", "--model", "gpt", "--template", "template.jinja", "--seq", 64)
    test.assertEqual(same.documents, made.documents)


def which_answers_are_trained(test, folder):
    tokenizer = AutoTokenizer.from_pretrained(data_tokenizers.gpt("gpt"))
    data_tokenizers.gpt("marked", data_tokenizers.MARKED)
    data_tokenizers.gpt("thinking", data_tokenizers.THINKING)
    chat = [{"role": "user", "content": "1"}, {"role": "assistant", "content": "<think>2</think>3"},
            {"role": "user", "content": "4"},
            {"role": "assistant", "content": "5"}, {"role": "assistant", "content": "6"}, {"role": "user", "content": "7"}]
    first, second, third = "<think>2</think>3<|im_end|>\n", "5<|im_end|>\n", "6<|im_end|>\n"
    write_chats([chat])
    for model in ("gpt", "marked"):
        for flag, want in (("answers", [first, second, third]), ("last", [third])):
            made = build(test, f"{model}-{flag}", "chats.jsonl", "--model", model, "--seq", 99, "--train-on", flag)
            want = want if model == "gpt" else [each.strip() for each in want]
            test.assertEqual(trained_text(tokenizer, made.documents[0]), want, (model, flag))
        made = build(test, f"{model}-all", "chats.jsonl", "--model", model, "--seq", 99, "--train-on", "all")
        test.assertEqual(made.documents[0][1], [0] + [1] * (len(made.documents[0][0]) - 1))
        weighted = [message | ({"weight": 0} if message["content"] == "5" else {}) for message in chat]
        write_lines("weighted.jsonl", [{"messages": weighted}])
        made = build(test, f"{model}-weight", "weighted.jsonl", "--model", model, "--seq", 99)
        test.assertEqual([text.strip() for text in trained_text(tokenizer, made.documents[0])], [first.strip(), third.strip()])
        last = [message | ({"weight": 0} if message["content"] == "6" else {}) for message in chat]
        write_lines("last.jsonl", [{"messages": last}])
        refused(test, "1 no answer", "refused", "last.jsonl", "--model", model, "--seq", 99, "--train-on", "last")
    refused(test, r"chats.jsonl:1: the chat template changes messages up to 2 .*--train-on last .*\{% generation %\}", "refused",
            "chats.jsonl", "--model", "thinking", "--seq", 99)
    made = build(test, "thinking-last", "chats.jsonl", "--model", "thinking", "--seq", 99, "--train-on", "last")
    test.assertEqual(trained_text(tokenizer, made.documents[0]), [third])


def prompts_and_completions(test, folder):
    pairs = [("Q: ", "foo"), ("Q:", " foo"), ("f(x)", "\n\n\tgo"), ("", TEXTS[2]), ("fo", "x"), ("   ", "   leading"),
             ("👩‍👩‍", "👧‍👦 é"),
             *zip(TEXTS, reversed(TEXTS))]
    write_lines("pairs.jsonl",
                [{"prompt": prompt, "completion": completion} for prompt, completion in pairs]
                + [{"prompt": "x", "completion": ""}])
    for name, make in (("gpt", data_tokenizers.gpt), ("llama", data_tokenizers.llama), ("unigram", data_tokenizers.unigram)):
        tokenizer = AutoTokenizer.from_pretrained(make(name))
        made = build(test, name + "-data", "pairs.jsonl", "--model", name, "--seq", 64)
        straddling = 0
        for (prompt, completion), (ids, mask) in zip(pairs, made.documents, strict=True):
            want = tokenizer(prompt + completion)["input_ids"]
            test.assertEqual(ids, want + [tokenizer.eos_token_id] * (want[-1] != tokenizer.eos_token_id))
            test.assertEqual(mask[-1], 1)
            if name == "unigram":
                continue
            # Tokens of bytes, counted without offsets.
            sizes = [len(bytes_of(tokenizer, token)) for token in ids]
            ends = [sum(sizes[:k + 1]) for k in range(len(ids))]
            border = len(prompt.encode())
            test.assertEqual(mask[1:-1], [int(end > border) for end in ends[1:-1]], (name, prompt, completion))
            straddling += sum(end - size < border < end for size, end in zip(sizes, ends))
        if name != "unigram":
            test.assertEqual(made.manifest["counts"]["straddling"], straddling)
            test.assertGreater(straddling, 0)
        test.assertEqual(made.manifest["counts"]["dropped"]["no answer"], 1)
    made = build(test, "all", "pairs.jsonl", "--model", "gpt", "--seq", 64, "--train-on", "all")
    test.assertEqual(made.documents[0][1], [0] + [1] * (len(made.documents[0][0]) - 1))


def bytes_of(tokenizer, token):
    """The bytes of a token of a byte-level tokenizer; none of a special one."""
    if token in tokenizer.all_special_ids:
        return b""
    letters = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in letters]
    table = {chr(byte): byte for byte in letters} | {chr(256 + k): byte for k, byte in enumerate(others)}
    return bytes(table[letter] for letter in tokenizer.convert_ids_to_tokens(token))


def forms_of_conversations(test, folder):
    tokenizer = AutoTokenizer.from_pretrained(data_tokenizers.llama("llama"))
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"},
                {"role": "assistant", "content": "d"}]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    names = {"user": "human", "assistant": "gpt"}
    shared = [{"from": names[message["role"]], "value": message["content"]} for message in messages]
    write_lines("forms.jsonl", [{"messages": messages, "tools": tools}, {"conversations": shared},
                                {"prompt": messages[:3], "completion": messages[3:]}, {"messages": messages[:1]},
                                {"messages": []}])
    made = build(test, "data", "forms.jsonl", "--model", "llama", "--seq", 512)
    plain = tokenizer.apply_chat_template(messages, return_dict=True)["input_ids"]
    with_tools = tokenizer.apply_chat_template(messages, tools=tools, return_dict=True)["input_ids"]
    test.assertIn("parameters", tokenizer.decode(with_tools))
    test.assertEqual([ids for ids, _ in made.documents], [with_tools, plain, plain])
    test.assertEqual(trained_text(tokenizer, made.documents[1]), ["b<|eot_id|>", "d<|eot_id|>"])
    test.assertEqual(trained_text(tokenizer, made.documents[2]), ["d<|eot_id|>"])
    test.assertEqual(made.manifest["counts"]["dropped"] | {"records": made.manifest["counts"]["records"]},
                     {"empty": 1, "no answer": 1, "long": 0, "pieces without a target": 0, "records": 5})
    with open("variables.jinja", "w") as file:
        file.write("{{ mood }}" + data_tokenizers.CHATML)
    write_lines("variables.jsonl", [{"messages": messages, "chat_template_kwargs": {"mood": "glad"}}])
    made = build(test, "variables", "variables.jsonl", "--model", "llama", "--seq", 64, "--template", "variables.jinja")
    test.assertTrue(tokenizer.decode(made.documents[0][0]).startswith("glad<"))


def fields_and_formats(test, folder):
    data_tokenizers.gpt("gpt")
    write_lines("a.jsonl", [{"content": "one", "messages": "no conversation"}])
    write_lines("b.jsonl", [{"text": "one"}])
    one = build(test, "one", "a.jsonl", "--model", "gpt", "--seq", 8, "--field", "text=content", "--format", "text")
    test.assertEqual(one.documents, build(test, "two", "b.jsonl", "--model", "gpt", "--seq", 8).documents)
    test.assertEqual(one.manifest["options"]["field"], {"text": "content"})


def examples_of_the_page(test, folder):
    """Commands of docs/data-build.md have flags that exist, and its records are read."""
    with open(PAGE) as file:
        page = file.read()
    commands = re.findall(r"^python -m tessera data (.*)$", page, re.M)
    test.assertGreater(len(commands), 4)
    for line in commands:
        command.parser().parse_args(shlex.split(line))
    records = [json.loads(line) for block in re.findall(r"```json\n(.*?)```", page, re.S) for line in block.splitlines()]
    test.assertEqual(len(records), 6)
    made = build(test, "data", write_lines("page.jsonl", records), "--model", data_tokenizers.llama("llama"), "--seq", 128)
    tokenizer = AutoTokenizer.from_pretrained("llama")
    test.assertEqual([trained_text(tokenizer, document) for document in made.documents[1:]], [
        [" Paris.<|eot_id|>"], ["Hello<|eot_id|>"], ["Hello<|eot_id|>"], ["4<|eot_id|>"], ["Hello<|eot_id|>"]])


if __name__ == "__main__":
    cases.run((text_is_what_the_tokenizer_makes, special_tokens_in_text_are_counted, conversations_are_what_the_template_makes,
               marked_answers_are_those_of_transformers, which_answers_are_trained, prompts_and_completions, forms_of_conversations,
               fields_and_formats, examples_of_the_page))
