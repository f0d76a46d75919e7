"""What programs of tools/ have in common on their command line: every error is one line."""

import argparse
import os
import sys


def program():
    """What errors begin with: the name of the program; of a main.py, the name of its folder."""
    path, _ = os.path.splitext(os.path.realpath(sys.argv[0]))
    return os.path.basename(os.path.dirname(path) if path.endswith("/main") else path)


def fail(message, status=1):
    """Ends the program with one line on stderr."""
    print(f"{program()}: error: {message}", file=sys.stderr)
    sys.exit(status)


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command line in one line."""

    def __init__(self, description):
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def error(self, message):
        fail(message, 2)


def number(least):
    """The type of a flag: a whole number of at least `least`."""
    def read(text):
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a number of at least {least}, got '{text}'")
        return int(text)
    return read
