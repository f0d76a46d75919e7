#!/usr/bin/env python3
"""Counts how many moves of models are legal: each continues games of another seed by one move. Needs chess, torch, transformers.

  python tools/chess/legal.py hf/ out/
"""

import os

from games import play, rules, text_of  # and the path of command_line
from command_line import Parser, fail, number

SEED = "held out"  # seeds of games.py are numbers


def positions(count, most):
    """(moves made, prompt) of `count` games, each stopped elsewhere; a prompt before a move of White ends with its number."""
    for at in range(count):
        moves = play(f"{SEED} {at}", most)
        moves = moves[:at % len(moves)]
        yield moves, text_of([*moves, ""]).rstrip()


def is_legal(moves, text):
    """Whether a text begins with a move that is legal after these."""
    board = rules().Board()
    for move in moves:
        board.push_san(move)
    try:
        return bool(board.parse_san(text.split()[0]))
    except (ValueError, IndexError):
        return False


def continued(folder, prompts):
    """What the model writes after each prompt: 8 tokens, the likeliest each time."""
    if not os.path.isdir(folder):
        fail(f"{folder}: no such folder")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        import transformers
    except ImportError as why:
        fail(f"{why}: pip install torch transformers")
    transformers.utils.logging.disable_progress_bar()
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, padding_side="left")
        model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    except Exception as why:  # what transformers raises of a folder has no common class
        fail(f"{folder}: {' '.join(str(why).split())}")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    given = tokenizer(prompts, return_tensors="pt", padding=True)
    with torch.no_grad():
        made = model.generate(input_ids=given["input_ids"], attention_mask=given["attention_mask"], max_new_tokens=8, do_sample=False,
                              pad_token_id=tokenizer.pad_token_id)
    return tokenizer.batch_decode(made[:, given["input_ids"].shape[1]:], skip_special_tokens=True)


def main():
    parser = Parser(__doc__)
    parser.add_argument("model", nargs="+", help="a folder of Hugging Face's")
    parser.add_argument("--positions", type=number(1), default=200, help="moves that each is asked for (default: 200)")
    parser.add_argument("--moves", type=number(1), default=30, help="moves of each side before them at most (default: 30)")
    options = parser.parse_args()
    asked = list(positions(options.positions, options.moves))
    for model in options.model:
        written = continued(model, [prompt for _, prompt in asked])
        count = sum(is_legal(moves, text) for (moves, _), text in zip(asked, written))
        print(f"{model}: {count} of {len(asked)} moves are legal ({count / len(asked):.0%})", flush=True)


if __name__ == "__main__":
    main()
