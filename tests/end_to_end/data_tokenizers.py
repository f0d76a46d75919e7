"""Tokenizers and chat templates for tests of `python -m tessera data`, trained on a little text of several scripts. Needs
tokenizers and transformers."""

import json
import os

import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

TEXTS = [
    "The quick brown fox jumps over the lazy dog. It doesn't care; 3.14 and 2,718 are numbers.\n\nA new paragraph\twith a tab.",
    "Быстрая лиса перепрыгивает через ленивую собаку. Ёлка — зелёная.",
    "الثعلب البني السريع يقفز فوق الكلب الكسول. السَّلامُ عَلَيْكُمْ",
    "तेज़ भूरी लोमड़ी आलसी कुत्ते के ऊपर कूदती है। क्षत्रिय ज्ञान",
    "敏捷的棕色狐狸跳过了懒狗。日本語の文章もあります。한국어 문장.",
    "Emoji: 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇩🇪 and text ☃.",
    "Combining: e\u0301 a\u0308 o\u0302\u0323 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324 ﬁne Å Å",
    "def f(x):\n    return x ** 2  # code\n\n\n\tif x:\n\t\tpass\n",
    "   leading and trailing spaces   ",
]

CHATML = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>' + '\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
MARKED = """{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' }}{% if m.role == 'assistant' %}{% generation %}\
{{ m.content + '<|im_end|>' }}{% endgeneration %}{% else %}{{ m.content + '<|im_end|>' }}{% endif %}{{ '\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
LLAMA = """{{ bos_token }}{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}\
{% if m.role == 'assistant' and loop.first %}{{ raise_exception('a user speaks first') }}{% endif %}\
{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content | trim + '<|eot_id|>' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"""
THINKING = """{% for m in messages %}{% set c = m.content %}{% if '</think>' in c and not loop.last %}\
{% set c = c.split('</think>')[-1] %}{% endif %}{{ '<|im_start|>' + m.role + '\n' + c + '<|im_end|>' + '\n' }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"""
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>",
           "<|eot_id|>"]


def save(tokenizer, folder, template=None, bound=None, **special):
    """Writes a folder as a model has it. bound: vocab_size of its config.json."""
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    fast.chat_template = template
    fast.save_pretrained(folder)
    if bound is not None:
        with open(os.path.join(folder, "config.json"), "w") as file:
            json.dump({"model_type": "gpt2", "vocab_size": bound}, file)
    return folder


def byte_level(trim, begin=None):
    """A BPE of bytes; trim: whether offsets leave out white space; begin: a token that it puts before each text."""
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(TEXTS * 2, trainers.BpeTrainer(vocab_size=420, special_tokens=SPECIAL, show_progress=False,
                                                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.post_processor = processors.ByteLevel(trim_offsets=trim)
    if begin:
        made.post_processor = processors.Sequence([made.post_processor, processors.TemplateProcessing(
            single=f"{begin} $A", special_tokens=[(begin, made.token_to_id(begin))])])
    return made


def gpt(folder, template=CHATML, bound=None):
    return save(byte_level(False), folder, template, bound, eos_token="<|endoftext|>")


def llama(folder):
    return save(byte_level(True, "<|begin_of_text|>"), folder, LLAMA, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>")


def word_piece(folder):
    """With a normalizer that drops accents, [CLS] and [SEP]; no eos."""
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made.train_from_iterator(TEXTS * 2, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False))
    made.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[
        (token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return save(made, folder, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")


def unigram(folder):
    made = tokenizers.Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    special = ["<unk>", "</s>"]
    made.train_from_iterator(TEXTS * 2,
                             trainers.UnigramTrainer(vocab_size=200, special_tokens=special, unk_token="<unk>",
                                                     show_progress=False))
    made.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", made.token_to_id("</s>"))])
    return save(made, folder, unk_token="<unk>", eos_token="</s>")
