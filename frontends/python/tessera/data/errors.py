"""Errors of `python -m tessera data`, each one line for the user."""

from ..errors import CommandError


class DataError(CommandError):
    """Data, or what they are to become, are not as `data` needs them."""


class Stopped(DataError):
    """The command was stopped, but its inputs are intact: it can go on from there."""


class UsageError(Exception):
    """The command line is wrong. str() is the reason."""
