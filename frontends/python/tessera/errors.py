"""The errors of the package, each with a text for the user."""

import importlib
import os
import re
import traceback


class CommandError(Exception):
    """A command cannot do what it was asked to. str() is the reason with its place and the way out."""


class MissingPackage(CommandError):
    """A package that is not installed is needed, which `tessera` does not require."""


class ExportError(CommandError):
    """The model cannot be exported so that it trains as in PyTorch, or not at all."""


class ToolError(Exception):
    """A tool ended with an error.

    str() is what it said; tool is its name, status what it ended with (negative: a signal); reason is the text in one
    line, and crashed is set if a signal ended it.
    """

    def __init__(self, tool, status, output):
        self.tool, self.status, self.crashed = tool, status, status < 0 or status >= 126
        super().__init__(output.strip() or f"{tool} ended with status {status}")

    @property
    def reason(self):
        return ("crash: " if self.crashed else "") + short(str(self))


class CompileError(ToolError):
    """tessera-compile refuses the model or the flags."""


class CannotCompare(Exception):
    """There is nothing to compare. stage: "model", "export", "file", "compile" or "run"; str() is the message, short one
    line of it."""

    def __init__(self, stage, message, short=None):
        self.stage, self.short = stage, short or message
        super().__init__(message)


def short(output, length=300):
    """One line of what a tool printed: the error and the notes under it, without positions and without what repeats."""
    lines = [re.sub(r"^\S+:\d+:\d+: |^loc\(.*?\): ", "", line.strip()) for line in output.splitlines()]
    at = next((i for i, line in enumerate(lines) if "error" in line), 0)
    errors = [line for line in lines[at:] if re.match(r"(\S+: )?(error|note):", line)] or lines[at:at + 1]
    text = "; ".join(re.sub(r"^(\S+: )?(error|note): ", "", line) for line in dict.fromkeys(errors))
    return text[:length - 1] + "…" if len(text) > length else text


def first_line(why, length=300):
    """The first line of an exception that some library raised, at most `length` characters; its class if it has no text."""
    lines = [line.strip() for line in str(why).splitlines() if line.strip()]
    return (lines[0] if lines else type(why).__name__)[:length]


def in_a_line(why):
    """The class and the text of an exception that some library raised."""
    return f"{type(why).__name__}: {' '.join(str(why).split())[:400]}"


def need(module, package=None):
    """Imports a module that the package `tessera` does not require. package: what pip calls it, if not `module`.
    Raises MissingPackage."""
    try:
        return importlib.import_module(module)
    except ImportError as why:
        raise MissingPackage(f"{why}: `pip install {package or module.partition('.')[0]}` has it") from why


def user_line(why):
    """The innermost line outside of PyTorch at which an exception was raised, " (file:line: code)" as tessera-compile writes it;
    an empty text if there is none."""
    line = innermost(traceback.extract_tb(why.__traceback__))
    return f" ({line})" if line else ""


def outside_line():
    """The innermost line outside of PyTorch and of this package that is being run, "file:line: code"."""
    return innermost(traceback.extract_stack())


def innermost(frames):
    """The last of some frames that is outside, "file:line: code"; an empty text if there is none."""
    import torch
    inside = tuple(os.path.dirname(os.path.abspath(path)) + os.sep for path in (torch.__file__, __file__))
    for frame in reversed(frames):
        if os.path.isfile(frame.filename) and not frame.filename.startswith(inside):
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return ""


def listed(names, most=5):
    """Names as text: the first `most` of them, and how many there are if there are more."""
    names = list(names)
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")
