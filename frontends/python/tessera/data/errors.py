"""Errors of `python -m tessera data`, each one line for the user."""

import importlib


class DataError(Exception):
    """The command cannot do what it was asked to. str() is the reason with its place and the way out."""


class Stopped(DataError):
    """The command was stopped by something that is no fault of its inputs: it can go on from there."""


class UsageError(Exception):
    """The command line is wrong. str() is the reason."""


def in_a_line(why):
    """The class and the text of an exception that some library raised."""
    return f"{type(why).__name__}: {' '.join(str(why).split())[:400]}"


def need(module, package=None):
    """Imports a module that the package `tessera` does not require. package: what pip calls it, if not `module`.
    Raises DataError if it is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as why:
        raise DataError(f"{why}: `pip install {package or module.partition('.')[0]}` has it") from why
