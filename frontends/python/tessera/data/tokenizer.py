"""The tokenizer and chat template of a model's folder."""

import json
import os
import re
import shutil

from ..errors import in_a_line, need
from ..whole_file import sha256_of
from .errors import DataError

FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
         "chat_template.json", "config.json")
MORE_TEMPLATES = "additional_chat_templates"
GENERATION = re.compile(r"\{%-?\s*generation\s*-?%\}")
TEMPLATE = "template.jinja"  # the name that a copy of --template gets


def libraries():
    """The module transformers, quiet and without a network. Raises DataError."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # else it says that there is no PyTorch
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # processes work in parallel, not threads
    need("jinja2")
    return need("transformers")


class Tokenizer:
    """tokenizer: of transformers; folder: where it came from; size: its largest id + 1; bound: all ids of the model are below
    it, None if its config.json has none; end: the id that ends a text, None if there is none; template: the text of
    --template, or None; special: ids of special tokens but the unknown one."""

    def __init__(self, folder, template=None, end=None):
        """template: a file; end: the word of --eos. Raises DataError."""
        self.folder, self.end_word = folder, end
        if not os.path.isdir(folder):
            raise DataError(f"--model {folder} is not a folder; it must be one with a tokenizer (tokenizer.json, "
                            "tokenizer_config.json)")
        transformers = libraries()
        try:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        except Exception as why:  # whatever damaged files make of it
            raise DataError(f"--model {folder} has no tokenizer that transformers {transformers.__version__} loads: "
                            f"{in_a_line(why)}") from why
        names = set(self.tokenizer.vocab_files_names.values())
        self.files = sorted(name for name in {*FILES, *names} if os.path.isfile(os.path.join(folder, name)))
        more = os.path.join(folder, MORE_TEMPLATES)
        self.files += [f"{MORE_TEMPLATES}/{name}" for name in sorted(os.listdir(more))] if os.path.isdir(more) else []
        if names and not names & set(self.files) and "tokenizer.json" not in self.files:
            raise DataError(f"--model {folder} has no file with a vocabulary ({', '.join(sorted(names))})")
        self.size = max(self.tokenizer.get_vocab().values()) + 1
        self.bound = self.model_bound()
        self.template = read_template(template) if template else None
        self.end = self.end_of_text(end)
        self.special = {at for at, token in self.tokenizer.added_tokens_decoder.items() if token.special}
        self.special |= set(self.tokenizer.all_special_ids)
        self.special.discard(self.tokenizer.unk_token_id)
        self.keep_spaces()

    def model_bound(self):
        path = os.path.join(self.folder, "config.json")
        if not os.path.exists(path):
            return None
        try:
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
            bound = config.get("vocab_size", (config.get("text_config") or {}).get("vocab_size"))
        except (ValueError, AttributeError) as why:
            raise DataError(f"{path}: {why}") from why
        if bound is not None and (not isinstance(bound, int) or bound < 1):
            raise DataError(f"{path}: vocab_size is {bound!r}, expected a positive integer")
        return bound

    def end_of_text(self, word):
        if word == "none":
            return None
        if word is None:
            return self.tokenizer.eos_token_id
        if word not in self.tokenizer.get_vocab():
            raise DataError(f"--eos {word!r} is not a token of {self.folder}")
        return self.tokenizer.convert_tokens_to_ids(word)

    def needs_end(self):
        """Raises DataError if texts are to end with a token and it is not known which."""
        if self.end is None and self.end_word != "none":
            raise DataError(f"the tokenizer of {self.folder} has no eos token, which ends a text; --eos TOKEN names one, --eos "
                            "none adds none")

    def needs_offsets(self, why):
        """Raises DataError if the tokenizer cannot say which characters a token holds."""
        if not self.tokenizer.is_fast:
            raise DataError(f"{why}, but the tokenizer of {self.folder} ({type(self.tokenizer).__name__}) does not say which "
                            "characters a token holds; save a fast one (tokenizer.json) there, or --train-on all")

    def keep_spaces(self):
        """Lets the tokenizer's offsets count the white space that a token holds; its ids do not change."""
        if not self.tokenizer.is_fast:
            return
        backend = self.tokenizer.backend_tokenizer
        state = json.loads(backend.to_str())
        found = False

        def change(part):
            nonlocal found
            if isinstance(part, dict):
                found |= part.get("trim_offsets") is True
                return {key: False if key == "trim_offsets" else change(value) for key, value in part.items()}
            return [change(each) for each in part] if isinstance(part, list) else part

        processor = change(state.get("post_processor"))
        if found:
            empty = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                     "pre_tokenizer": None, "post_processor": processor, "decoder": None,
                     "model": {"type": "BPE", "vocab": {}, "merges": []}}
            backend.post_processor = need("tokenizers").Tokenizer.from_str(json.dumps(empty)).post_processor

    def template_of(self, tools):
        """The chat template for a record. Raises DataError."""
        if self.template is not None:
            return self.template
        if not self.tokenizer.chat_template:
            raise DataError(f"{self.folder} has no chat template; --template FILE gives one")
        try:
            return self.tokenizer.get_chat_template(None, tools)
        except ValueError as why:  # several templates without a default
            raise DataError(f"{self.folder}: {in_a_line(why)}; --template FILE gives one") from why

    def padding(self):
        """The id at positions that hold no token: pad, else eos, if the model has it, else 0."""
        found = [each for each in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id) if each is not None]
        return next((each for each in found if self.bound is None or each < self.bound), 0)

    def hashes(self):
        """{file: sha256 in hexadecimal}."""
        return {name: sha256_of(os.path.join(self.folder, name)) for name in self.files}

    def copy(self, folder):
        """Writes copies of the files and of --template into a folder."""
        for name in self.files:
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copyfile(os.path.join(self.folder, name), path)
        if self.template is not None:
            with open(os.path.join(folder, TEMPLATE), "w", encoding="utf-8", newline="") as file:
                file.write(self.template)


def read_template(path):
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as why:
        raise DataError(f"--template {path} is not UTF-8") from why
