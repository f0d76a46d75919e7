#!/usr/bin/env python3
"""Makes a small Llama with random weights and a tokenizer that is trained on games. Needs torch, transformers and tokenizers.

  python tools/chess/model.py games.jsonl -o hf/
  python tools/chess/model.py games.jsonl --hidden 256 --layers 6 -o larger/
"""

import json
import os
import sys

sys.path.insert(1, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
from command_line import Parser, fail, number  # noqa: E402

END = "</s>"


def texts_of(path):
    """The games of a file that games.py wrote."""
    try:
        with open(path, encoding="utf-8") as lines:
            records = [json.loads(line) for line in lines]
        texts = [record["text"] if "text" in record else record["prompt"] + record["completion"] for record in records]
    except OSError as why:
        fail(f"{path}: {why.strerror}")
    except (ValueError, KeyError, TypeError) as why:
        fail(f"{path}: not a file of games.py: {' '.join(str(why).split())}")
    if not texts or not all(isinstance(text, str) for text in texts):
        fail(f"{path}: not a file of games.py: {'a game is not a text' if texts else 'no games'}")
    return texts


def tokenizer_of(texts, size):
    """A BPE of bytes, with the end of a text as its only special token."""
    import tokenizers
    import transformers
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(texts, tokenizers.trainers.BpeTrainer(vocab_size=size, special_tokens=[END], initial_alphabet=alphabet,
                                                                   show_progress=False))
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token=END, pad_token=END, padding_side="left")


def main():
    parser = Parser(__doc__)
    parser.add_argument("games", help="a file of games.py")
    parser.add_argument("--vocabulary", type=number(257), default=512, help="tokens at most (default: 512)")
    parser.add_argument("--hidden", type=number(1), default=64, help="hidden size, a multiple of 32 (default: 64)")
    parser.add_argument("--layers", type=number(1), default=2, help="layers (default: 2)")
    parser.add_argument("--seed", type=number(0), default=0, help="of the weights")
    parser.add_argument("-o", "--output", required=True, help="the folder to make")
    options = parser.parse_args()
    if options.hidden % 32:
        fail(f"--hidden {options.hidden} is not a multiple of 32", 2)
    if os.path.lexists(options.output):
        fail(f"{options.output} exists; remove it, or name another folder")
    texts = texts_of(options.games)
    try:
        import torch
        import transformers
        tokenizer = tokenizer_of(texts, options.vocabulary)
    except ImportError as why:
        fail(f"{why}: pip install torch transformers")
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(options.seed)
    end = tokenizer.eos_token_id
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=options.hidden, num_hidden_layers=options.layers, num_attention_heads=options.hidden // 32,
        num_key_value_heads=options.hidden // 32, intermediate_size=3 * options.hidden, max_position_embeddings=1024,
        bos_token_id=None, eos_token_id=end, pad_token_id=end))
    try:
        model.save_pretrained(options.output)
        tokenizer.save_pretrained(options.output)
    except OSError as why:
        fail(f"{options.output}: {why.strerror}")
    print(f"{options.output}: {model.num_parameters():,} parameters, {len(tokenizer)} tokens")


if __name__ == "__main__":
    main()
