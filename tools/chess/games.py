#!/usr/bin/env python3
"""Makes chess games: random legal moves that prefer captures and checks, one game a line of JSON. Needs the package chess.

  python tools/chess/games.py --games 2000 --seed 0 -o games.jsonl            # {"text": "1. e4 e5 2. Nf3 …"}
  python tools/chess/games.py --games 2000 --prompt 4 -o games.jsonl          # {"prompt": "1. e4 … 4. O-O Be7", "completion": " 5. …"}

Equal flags make equal bytes, and game 7 of a seed is the same in a file of 10 and of 2000.
"""

import json
import os
import random
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from command_line import Parser, fail, number  # noqa: E402


def rules():
    """The package chess."""
    try:
        import chess
    except ImportError as why:
        fail(f"{why}: pip install chess")
    return chess


def play(seed, most):
    """The moves of a game in SAN, until it ends or each side has made `most`. Of three random legal moves, the first is made
    that captures or gives check, else the first."""
    board, draw, moves = rules().Board(), random.Random(seed), []
    while len(moves) < 2 * most and not board.is_game_over():
        legal = list(board.legal_moves)
        drawn = [draw.choice(legal) for _ in range(3)]
        moves.append(board.san_and_push(next((move for move in drawn if board.is_capture(move) or board.gives_check(move)), drawn[0])))
    return moves


def text_of(moves):
    """Moves with their numbers: 1. e4 e5 2. Nf3"""
    return " ".join(f"{at // 2 + 1}. {move}" if at % 2 == 0 else move for at, move in enumerate(moves))


def record(moves, prompt):
    """What a line has: the whole game as a text, or its first moves of each side as a prompt."""
    begin, whole = text_of(moves[:2 * prompt]), text_of(moves)
    return {"prompt": begin, "completion": whole[len(begin):]} if prompt else {"text": whole}


def main():
    parser = Parser(__doc__)
    parser.add_argument("--games", type=number(1), default=2000, help="games (default: 2000)")
    parser.add_argument("--moves", type=number(1), default=30, help="moves of each side at most (default: 30)")
    parser.add_argument("--seed", type=number(0), default=0)
    parser.add_argument("--prompt", type=number(1), default=0, metavar="MOVES",
                        help="write prompt and completion; the prompt has this many moves of each side")
    parser.add_argument("-o", "--output", required=True, help="the file to write")
    options = parser.parse_args()
    if os.path.lexists(options.output):
        fail(f"{options.output} exists; remove it, or name another file")
    games = [record(play(f"{options.seed} {at}", options.moves), options.prompt) for at in range(options.games)]
    try:
        with open(options.output, "x", encoding="utf-8") as file:
            file.writelines(json.dumps(game) + "\n" for game in games)
    except OSError as why:
        fail(f"{options.output}: {why.strerror}")
    print(f"{options.output}: {options.games} games")


if __name__ == "__main__":
    main()
