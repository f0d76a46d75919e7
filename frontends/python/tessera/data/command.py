"""The command line of python -m tessera data."""

import argparse
import os
import sys

from ..command_line import fail, own_parser
from ..errors import CommandError, MissingPackage
from ..signals import ended_in_order
from .errors import Stopped, UsageError

DESCRIPTION = """Makes a folder of tokens for tessera-run of text and conversations, with a model's own tokenizer and chat
template (docs/data-build.md).

  python -m tessera data build corpus/ --model llama/ --seq 2048 --split valid=1% -o data/
  python -m tessera data build 'chats/*.jsonl.zst' --model llama/ --seq 4096 --train-on answers -o chats-4096/
  python -m tessera data inspect data/ --split valid --rows 3
  python -m tessera data mix web/=0.7 code/=0.3 -o mixed/"""


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return value


def natural(text):
    value = int(text)
    if not 0 <= value < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text} is not in [0, 2^64)")
    return value


def field(text):
    from .records import FIELDS
    name, _, given = text.partition("=")
    if name not in FIELDS or not given:
        raise argparse.ArgumentTypeError(f"{text}: expected {', '.join(FIELDS)} with =NAME")
    return name, given


def parser():
    made = own_parser("data", DESCRIPTION)
    commands = made.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="make a token folder")
    build.add_argument("input", nargs="+", metavar="INPUT", help="files, folders or quoted globs: .txt, .json, .jsonl, "
                       ".ndjson, each also with .gz or .zst, and .parquet")
    build.add_argument("--model", metavar="FOLDER", required=True, help="the folder of a model, with its tokenizer")
    build.add_argument("--seq", type=positive, metavar="T", required=True, help="positions of a row")
    build.add_argument("-o", "--output", metavar="FOLDER", required=True, help="the folder to make")
    build.add_argument("--split", action="append", default=[], metavar="NAME=2%|NAME=500",
                       help="documents that are not trained on")
    build.add_argument("--pack", choices=["best-fit", "windows", "none"], default="best-fit",
                       help="whole documents side by side, consecutive windows, or a piece a row")
    build.add_argument("--long", choices=["cut", "drop"], default="cut", help="what becomes of documents longer than a row")
    build.add_argument("--train-on", choices=["answers", "last", "all"], default="answers",
                       help="of conversations and completions: all answers, the last one, or all tokens")
    build.add_argument("--format", choices=["auto", "text", "prompt-completion", "messages"], default="auto",
                       help="of the records")
    build.add_argument("--field", type=field, action="append", default=[], metavar="text=NAME",
                       help="the name of a field: text, prompt, completion or messages")
    build.add_argument("--template", metavar="FILE", help="a chat template instead of the folder's")
    build.add_argument("--eos", metavar="TOKEN", help="the token that ends a text, instead of the tokenizer's; none: add none")
    build.add_argument("--workers", type=positive, default=len(os.sched_getaffinity(0)), metavar="N",
                       help="processes that tokenize (default: the cores that this process may use)")
    build.add_argument("--seed", type=natural, default=0, help="of the choice of split documents")
    build.add_argument("--restart", action="store_true", help="delete what an earlier build has left unfinished")
    inspect = commands.add_parser("inspect", help="show a token folder")
    inspect.add_argument("folder")
    inspect.add_argument("--split", default="train", metavar="NAME")
    inspect.add_argument("--rows", type=positive, metavar="N", help="show N rows as text")
    inspect.add_argument("--first", type=natural, default=0, metavar="N", help="the first of them (default: 0)")
    inspect.add_argument("--check", action="store_true", help="compare all files with the manifest")
    mix = commands.add_parser("mix", help="a mixture of token folders by weights")
    mix.add_argument("sources", nargs="+", metavar="FOLDER=WEIGHT")
    mix.add_argument("-o", "--output", metavar="FOLDER", required=True, help="the folder to make")
    return made


def main(words):
    """The exit status of `data` with these words behind it."""
    options = parser().parse_args(words)
    if options.command == "build" and len(dict(options.field)) < len(options.field):
        return fail("--field names a field twice", 2)
    try:
        with ended_in_order():
            return run(options)
    except UsageError as why:
        return fail(why, 2)
    except (Stopped, MissingPackage) as why:
        return fail(f"{why}{kept(options)}")
    except CommandError as why:
        return fail(why)
    except BrokenPipeError:  # of a pager
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as why:
        return fail(f"{why.filename}: {why.strerror}{kept(options)}" if why.filename else f"{why}{kept(options)}")
    except KeyboardInterrupt:
        return fail(f"interrupted{kept(options)}", 130)
    except SystemExit as end:
        if isinstance(end.code, int) and end.code > 128:
            fail(f"ended by signal {end.code - 128}{kept(options)}")
        raise


def kept(options):
    """What to say of an unfinished build."""
    partial = f"{os.path.normpath(options.output)}.partial" if options.command == "build" else ""
    return f"; {partial} is kept, and the same command goes on from it" if os.path.exists(partial) else ""


def run(options):
    if options.command == "build":
        from .build import build
        build(options, say)
        return 0
    if options.command == "inspect":
        from .inspection import inspect
        return inspect(options, say)
    from .mix import mix
    mix(options, say)
    return 0


def say(line):
    print(line, flush=True)
