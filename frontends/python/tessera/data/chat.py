"""Renders conversations with the template of a tokenizer, and finds the answers in them."""

import inspect

import numpy

from ..errors import in_a_line
from .errors import DataError
from .tokenizer import GENERATION

ONLY_LAST = "--train-on last needs only what comes before the last answer"
MARKED = "--template FILE can mark answers with {% generation %}"


class Renderer:
    """tokenizer: a Tokenizer; train_on: "answers", "last" or "all"."""

    def __init__(self, tokenizer, train_on):
        self.tokenizer, self.train_on = tokenizer, train_on
        self.arguments = set(inspect.signature(tokenizer.tokenizer.apply_chat_template).parameters)

    def render(self, chat, count=None, prompt=False):
        """The text of the first `count` messages; prompt: with the beginning of an answer. Raises DataError."""
        return self.apply(chat, chat.messages[:count], tokenize=False, add_generation_prompt=prompt)

    def apply(self, chat, messages, **options):
        if taken := self.arguments & set(chat.variables):
            raise DataError(f"field 'chat_template_kwargs' has {min(taken)!r}, which is not a variable of a template")
        template = self.tokenizer.template_of(chat.tools)
        try:
            return self.tokenizer.tokenizer.apply_chat_template(messages, tools=chat.tools, chat_template=template,
                                                                **options, **chat.variables)
        except DataError:
            raise
        except Exception as why:  # what a template raises, and what it makes of fields that it does not expect
            raise DataError(f"the chat template fails: {in_a_line(why)}") from why

    def marks_answers(self, chat):
        return self.train_on != "all" and GENERATION.search(self.tokenizer.template_of(chat.tools)) is not None

    def marked(self, chat):
        """(ids, mask) of a conversation whose template marks answers. Raises DataError."""
        self.tokenizer.needs_offsets("answers are trained")
        found = self.apply(chat, chat.messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True)
        ids, mask = found["input_ids"], numpy.asarray(found["assistant_masks"], numpy.uint8)
        wanted = self.trained(chat)
        every = [at for at, message in enumerate(chat.messages) if message["role"] == "assistant"]
        if wanted == every:
            return ids, mask
        edges = numpy.flatnonzero(numpy.diff(mask, prepend=0, append=0)).reshape(-1, 2)
        if wanted and len(edges) != len(every):
            raise DataError(f"the chat template marks {len(edges)} parts as answers of {len(every)} messages of the assistant: "
                            "which part is whose is not known; give a template with one {% generation %} a message")
        for at, (begin, end) in zip(every, edges):
            mask[begin:end] = at in wanted
        return ids, mask if wanted else numpy.zeros_like(mask)

    def answers(self, chat, text):
        """[(begin, end)] of the characters of the trained answers in the whole text. Raises DataError."""
        self.tokenizer.needs_offsets("answers are trained")
        return [self.answer(chat, at, text) for at in self.trained(chat)]

    def trained(self, chat):
        """The indices of the messages that are trained."""
        last = max(at for at, message in enumerate(chat.messages) if message["role"] == "assistant")
        return [at for at in chat.answers if self.train_on == "answers" or at == last]

    def answer(self, chat, at, text):
        """(begin, end) of the characters of message `at` in the whole text. Raises DataError."""
        number = at + 1
        if at == 0:
            raise DataError("message 1 is the assistant's: transformers renders no empty conversation, so where the answer "
                            f"begins is not known; {MARKED}, or put a message before it")
        way_out = f"{ONLY_LAST}, and {MARKED}" if self.train_on == "answers" else MARKED
        before = self.render(chat, at, prompt=True)
        until = text if number == len(chat.messages) else self.render(chat, number)
        if not until.startswith(before):
            raise DataError(f"message {number}, an answer, does not begin in the conversation as the chat template begins an "
                            f"answer: {where(before, until)}; {way_out}")
        if not text.startswith(until):
            raise DataError(f"the chat template changes messages up to {number} when others follow: {where(until, text)}; "
                            f"{way_out}")
        return len(before), len(until)


def where(one, other):
    """The first difference of two texts, of which the first should begin the second."""
    at = next((at for at, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"at character {at} there is {one[at:at + 20]!r} in one and {other[at:at + 20]!r} in the other"
