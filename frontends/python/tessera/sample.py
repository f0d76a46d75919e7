"""python -m tessera sample: what a model of Hugging Face's writes, by transformers."""

import os
import sys

from .command_line import own_parser
from .errors import CommandError, first_line

HELP = """Writes what a folder of Hugging Face's, such as one of tessera-run --export-hf, makes of a prompt; transformers computes it.
With a chat template in the folder the prompt is a user's message, unless --plain.

  python -m tessera sample out/ "what is the capital of France?"
"""


def main(words):
    """The exit status. Raises CommandError, ImportError."""
    parser = own_parser("sample", HELP)
    parser.add_argument("model", help="the folder")
    parser.add_argument("prompt", nargs="?", help="the text (default: standard input)")
    parser.add_argument("--system", help="a system message before it")
    parser.add_argument("--plain", action="store_true", help="the prompt as it is, without the chat template")
    parser.add_argument("--tokens", type=int, default=128, help="new tokens at most (default: 128)")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 (default): the likeliest token each time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--adapter", metavar="FOLDER", help="adapters for it (of --export-lora), by PEFT")
    options = parser.parse_args(words)
    if options.tokens < 1 or options.temperature < 0:
        parser.error("--tokens must be at least 1 and --temperature not negative")
    for folder in filter(None, (options.model, options.adapter)):
        if not os.path.isdir(folder):
            raise CommandError(f"{folder}: no such folder")
    prompt = sys.stdin.read() if options.prompt is None else options.prompt
    try:
        print(sample(options, prompt))
    except (CommandError, ImportError):
        raise
    except Exception as why:  # what transformers raises of a folder has no common class
        raise CommandError(f"{options.model}: {first_line(why)}") from why
    return 0


def sample(options, prompt):
    """The text that the model adds to the prompt."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    pair = getattr(transformers.AutoConfig.from_pretrained(options.model), "is_encoder_decoder", False)
    make = transformers.AutoModelForSeq2SeqLM if pair else transformers.AutoModelForCausalLM
    model = make.from_pretrained(options.model).eval()
    if options.adapter:
        import peft
        model = peft.PeftModel.from_pretrained(model, options.adapter)
    model.to("cuda" if torch.cuda.is_available() else "cpu")
    if tokenizer.chat_template and not options.plain:
        messages = [{"role": "system", "content": options.system}] if options.system else []
        given = tokenizer.apply_chat_template([*messages, {"role": "user", "content": prompt}], add_generation_prompt=True,
                                              return_tensors="pt", return_dict=True)
    elif options.system:
        raise CommandError("--system needs a chat template, which the folder does not have, or which --plain leaves out")
    else:
        given = tokenizer(prompt, return_tensors="pt")
    torch.manual_seed(options.seed)
    # What the folder's generation_config says otherwise is not asked for: beams, penalties, the most likely tokens only.
    how = {"num_beams": 1, "repetition_penalty": 1.0, "do_sample": options.temperature > 0}
    if options.temperature:
        how |= {"temperature": options.temperature, "top_k": 0, "top_p": 1.0}
    with torch.no_grad():
        made = model.generate(**given.to(model.device), max_new_tokens=options.tokens, pad_token_id=tokenizer.pad_token_id or 0, **how)
    return tokenizer.decode(made[0] if pair else made[0, given["input_ids"].shape[1]:], skip_special_tokens=True)
