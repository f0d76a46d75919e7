"""What a record is: a text, a prompt with its completion, or a conversation."""

import dataclasses
import typing

from .errors import DataError
from .reading import decode, parse

FIELDS = ("text", "prompt", "completion", "messages")  # which --field renames
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython", "observation")
SHAREGPT = {"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "system": "system", "tool": "tool",
            "function": "function", "observation": "observation"}
MARK = b"\xef\xbb\xbf"  # that some programs write in front of UTF-8


@dataclasses.dataclass
class Text:
    """A document of text. answer: index of the first character that is trained; None if all are."""
    text: str
    answer: typing.Optional[int] = None


@dataclasses.dataclass
class Chat:
    """A conversation. messages: as the template gets them; answers: indices of the assistant's messages that are trained;
    tools: list or None; variables: further ones of the template."""
    messages: list
    answers: list
    tools: typing.Optional[list]
    variables: dict


class Fields:
    """Where records keep what. names: {field of FIELDS: name in the record}; form: "auto", "text", "prompt-completion" or
    "messages"."""

    def __init__(self, names, form):
        self.names, self.form = {field: names.get(field, field) for field in FIELDS}, form
        conversations = [] if "messages" in names else ["conversations"]
        self.of_form = {"text": [self.names["text"]], "prompt-completion": [self.names["prompt"], self.names["completion"]],
                        "messages": [self.names["messages"], *conversations]}
        if form != "auto":
            self.of_form = {form: self.of_form[form]}

    def columns(self):
        """The columns of tables that may be read."""
        return [*dict.fromkeys(name for names in self.of_form.values() for name in names), "tools", "chat_template_kwargs"]

    def read(self, record):
        """A Text or Chat of one record. Raises DataError without the record's place."""
        if isinstance(record, str):
            if "text" not in self.of_form:
                raise DataError(f"the record is a text, expected one of --format {self.form}")
            return Text(record)
        if not isinstance(record, dict):
            raise DataError(f"the record is {name_of(record)}, expected an object or a text")
        forms = [form for form, names in self.of_form.items() if any(name in record for name in names)]
        if not forms:
            wanted = " or ".join(repr(name) for names in self.of_form.values() for name in names)
            raise DataError(f"the record has no field {wanted}; it has {', '.join(map(repr, record)) or 'none'}; "
                            "--field text=NAME (or prompt, completion, messages) names another")
        if len(forms) > 1:
            raise DataError(f"the record has fields of {' and of '.join(forms)}; --format {'|'.join(forms)} says what to read")
        return {"text": self.text, "prompt-completion": self.completion, "messages": self.conversation}[forms[0]](record)

    def text(self, record):
        return Text(string(record, self.names["text"]))

    def completion(self, record):
        parts = []
        for name in self.of_form["prompt-completion"]:
            if name not in record:
                raise DataError(f"the record has no field {name!r}; it has {', '.join(map(repr, record))}")
            parts.append(record[name])
        if all(isinstance(part, list) for part in parts):
            prompt, completion = (messages(part) for part in parts)
            return chat(prompt + completion, range(len(prompt), len(prompt) + len(completion)), record)
        if any(isinstance(part, list) for part in parts):
            raise DataError("one of prompt and completion is a text and the other a list of messages")
        prompt, completion = (string(record, name) for name in self.of_form["prompt-completion"])
        return Text(prompt + completion, len(prompt))

    def conversation(self, record):
        names = [name for name in self.of_form["messages"] if name in record]
        if len(names) > 1:
            raise DataError(f"the record has both fields {names[0]!r} and {names[1]!r}; --field messages=NAME says which to "
                            "read")
        found = messages(record[names[0]], names[0])
        return chat(found, range(len(found)), record)


def name_of(value):
    """What a value of JSON is, in words."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number",
             type(None): "null"}
    return names.get(type(value), f"of type {type(value).__name__}")


def string(record, name):
    """A field that is text. Raises DataError."""
    value = record[name]
    if not isinstance(value, str):
        raise DataError(f"field {name!r} is {name_of(value)}, expected a text")
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError as why:
        raise DataError(f"field {name!r} has half of a surrogate pair ({value[why.start]!a}), which is not a character") from why
    return value


def messages(value, field="prompt and completion"):
    """Messages as {"role", "content", …} of either form. Raises DataError."""
    if not isinstance(value, list):
        raise DataError(f"{field}: {name_of(value)}, expected a list of messages")
    return [message(each, number) for number, each in enumerate(value, 1)]


def message(value, number):
    if not isinstance(value, dict):
        raise DataError(f"message {number} is {name_of(value)}, expected an object")
    if "from" in value and "role" not in value:
        role = value["from"]
        if not isinstance(role, str) or role not in SHAREGPT:
            raise DataError(f"message {number} is from {role!r}, expected one of {', '.join(SHAREGPT)}")
        if "value" not in value:
            raise DataError(f"message {number} has no 'value'")
        rest = {key: each for key, each in value.items() if key not in ("from", "value")}
        value = {"role": SHAREGPT[role], "content": string(value, "value"), **rest}
    elif "role" not in value:
        raise DataError(f"message {number} has neither 'role' nor 'from'")
    role, content = value["role"], value.get("content")
    if role not in ROLES:
        raise DataError(f"message {number} has the role {role!r}, expected one of {', '.join(ROLES)}")
    if isinstance(content, str):
        string(value, "content")
    elif not isinstance(content, list) and not (content is None and role == "assistant" and value.get("tool_calls")):
        raise DataError(f"message {number} ({role}): "
                        + (f"'content' is {name_of(content)}, expected a text" if "content" in value
                           else "there is no 'content'"))
    if "weight" in value and (value["weight"] not in (0, 1) or value["weight"] == 1 and role != "assistant"):
        raise DataError(f"message {number} ({role}) has weight {value['weight']!r}; an assistant's may be 0 or 1, others' only "
                        "0")
    return value


def chat(found, trained, record):
    """A Chat. trained: indices of messages among which answers are."""
    tools, variables = record.get("tools"), record.get("chat_template_kwargs") or {}
    if tools is not None and not isinstance(tools, list):
        raise DataError(f"field 'tools' is {name_of(tools)}, expected a list")
    if not isinstance(variables, dict):
        raise DataError(f"field 'chat_template_kwargs' is {name_of(variables)}, expected an object")
    answers = [at for at in trained if found[at]["role"] == "assistant" and found[at].get("weight", 1) != 0]
    return Chat(found, answers, tools, variables)


def of_block(block):
    """Yields (place as "file:number", record) of a Block. Raises DataError."""
    if block.kind == "text":
        yield f"{block.path}:1", decode(block.data.removeprefix(MARK), block.path, 1)
    elif block.kind == "lines":
        data = block.data.removeprefix(MARK) if block.first == 1 else block.data
        for number, line in enumerate(data.split(b"\n"), block.first):
            if line.strip():
                yield f"{block.path}:{number}", parse(line, block.path, number)
    else:
        records = block.data if block.kind == "records" else rows_of(block.data, block.path)
        for number, record in enumerate(records, block.first):
            yield f"{block.path}:{number}", record


def rows_of(batch, path):
    """The rows of a pyarrow.RecordBatch as objects; what is null is left out, but for a message's content."""
    for field in batch.schema:
        if not is_readable(field.type):
            raise DataError(f"{path}: column {field.name!r} is of type {field.type}, expected text or a list of messages")
    for row in batch.to_pylist():
        yield without_nulls(row)


def is_readable(kind):
    import pyarrow.types as types
    if types.is_dictionary(kind):
        kind = kind.value_type
    return (types.is_string(kind) or types.is_large_string(kind) or getattr(types, "is_string_view", lambda _: False)(kind)
            or types.is_list(kind) or types.is_large_list(kind) or types.is_struct(kind) or types.is_null(kind))


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items()
                if each is not None or key == "content" and ("role" in value or "from" in value)}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value
