"""Makes the module and its example inputs from what the command line names: a function, or a Hugging Face model."""

import contextlib
import importlib
import importlib.util
import json
import os
import sys

from .configuration import make_configuration
from .dimensions import input_names
from .errors import ExportError, first_line


def parse_value(text):
    """The value of KEY=VALUE: JSON if it is JSON, otherwise the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def load_target(target, settings=(), batch=2, sequence=16, say=print, weights=True, documents="off"):
    """(module, inputs, names) of a target. inputs: tuple of tensors; names: as many texts.

    settings: ["KEY=VALUE", …], for Hugging Face configurations only; batch (samples) and sequence (tokens): sizes of their
    example; weights: False makes a module whose parameters have shapes only. documents: "on" gives a causal model of Hugging
    Face's an input position_ids, by which it keeps documents of one row apart; "auto": if it does. Raises ExportError.
    """
    values = read_settings(settings)
    if is_hugging_face(target):
        return load_hugging_face(target.removeprefix("hf:"), values, batch, sequence, say, weights, documents)
    if ":" not in target:
        raise ExportError(f"'{target}' is not module:function, file.py:function, hf:<type> or a folder with a config.json")
    if settings or documents == "on":
        raise ExportError("--set and --documents are for hf: targets")
    return load_function(target, weights)


def is_hugging_face(target):
    """Whether a target is hf:…, or a folder of Hugging Face's."""
    return target.startswith("hf:") or os.path.isfile(os.path.join(target, "config.json"))


def has_safetensors(folder):
    return os.path.isdir(folder) and any(file.endswith(".safetensors") for file in os.listdir(folder))


def has_files_of_weights(folder):
    return has_safetensors(folder) or os.path.isdir(folder) and any(
        file.startswith("pytorch_model") and file.endswith(".bin") for file in os.listdir(folder))


def read_settings(settings):
    """{key: value} of ["KEY=VALUE", …]. In "part.key=value" the value is {part: {key: value}}. Raises ExportError."""
    values = {}
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals or not all(path.split(".")):
            raise ExportError("--set expects KEY=VALUE")
        *parts, key = path.split(".")
        place = values
        for part in parts:
            place = place.setdefault(part, {})
            if not isinstance(place, dict):
                raise ExportError(f"--set {setting}: '{part}' was given a value, too")
        if key in place:
            raise ExportError(f"--set {setting}: '{path}' is given twice")
        place[key] = parse_value(value)
    return values


def load_function(target, weights=True):
    """(module, inputs, names) of what `module:function` or `file.py:function` returns. Raises ExportError."""
    place, _, name = target.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
            spec.loader.exec_module(module)
        else:
            sys.path.insert(0, os.getcwd())
            module = importlib.import_module(place)
        function = getattr(module, name)
    except Exception as why:  # whatever the user's file raises
        raise ExportError(f"{target}: {first_line(why)}") from why
    try:
        with without_weights(not weights):
            made = function()
    except Exception as why:
        raise ExportError(f"{target}: {type(why).__name__}: {first_line(why)}") from why
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        raise ExportError(f"{target} returned {type(made).__name__}, expected (model, inputs) or (model, inputs, names)")
    model, inputs = made[:2]
    inputs = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    names = list(made[2]) if len(made) == 3 else input_names(model, len(inputs))
    if len(names) != len(inputs):
        raise ExportError(f"{target}: {len(inputs)} inputs, but names are {names}")
    return model, inputs, names


def without_weights(wanted):
    """The context in which modules get no weights, if `wanted`."""
    if not wanted:
        return contextlib.nullcontext()
    from .weightless import no_weights
    return no_weights()


def load_hugging_face(name, settings, batch, sequence, say=print, weights=True, documents="off"):
    """A language model by its type or the path of a config.json (random weights) or its folder (its weights if they are there): a
    causal one as a module from input_ids [batch, sequence] to logits [batch, sequence, vocabulary], with documents from
    position_ids [batch, sequence], too, one of an encoder and a decoder with decoder_input_ids [batch, sequence], too. Raises
    ExportError."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    try:
        import torch
        import transformers
    except ImportError as why:
        raise ExportError(f"hf:{name}: {why}") from why
    transformers.logging.set_verbosity_error()
    try:
        config = make_configuration(name, settings, say)
        is_pair = getattr(config, "is_encoder_decoder", False)
        make = transformers.AutoModelForSeq2SeqLM if is_pair else transformers.AutoModelForCausalLM
        has_weights = weights and has_files_of_weights(name)

        def build(attention):
            if has_weights:
                return make.from_pretrained(name, config=config, torch_dtype=torch.float32, attn_implementation=attention)
            with without_weights(not weights):
                return make.from_config(config, torch_dtype=torch.float32, attn_implementation=attention)

        config.use_cache = False
        if os.path.isdir(name):
            config.name_or_path = name  # where its weights are, also where they are not read
        if getattr(config, "quantization_config", None):
            raise ExportError(f"hf:{name}: its weights are quantised, and training needs them as numbers: dequantize() of "
                              "transformers, then save_pretrained, makes a folder of these")
        if getattr(config, "_experts_implementation", "none") is None:  # the usual one's sizes depend on data
            from .experts import NAME
            config._experts_implementation = NAME
        try:
            model = build("sdpa")
        except (ValueError, ImportError):  # the model has no such attention
            model = build("eager")
    except ExportError:
        raise
    except Exception as why:  # configurations check themselves with all kinds of exceptions
        raise ExportError(f"hf:{name}: {first_line(why, 200)}") from why

    if not weights and has_safetensors(name):
        drop_buffers(model, name)

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids):
            return self.model(input_ids=input_ids, use_cache=False).logits

    class RowLogits(Logits):
        def forward(self, input_ids, position_ids):
            return self.model(input_ids=input_ids, position_ids=position_ids, use_cache=False).logits

    class PairLogits(Logits):
        def forward(self, input_ids, decoder_input_ids):
            return self.model(input_ids=input_ids, decoder_input_ids=decoder_input_ids, use_cache=False).logits

    say(f"hf:{name}: {type(model).__name__}, "
        f"weights {'from the folder' if has_weights else 'random' if weights else 'left out'}")
    saved = (config.architectures or [type(model).__name__])[0]
    if saved != type(model).__name__:
        say(f"warning: {name} was saved as {saved}, and the model is made as {type(model).__name__}")
    tokens = example_tokens(model.config, batch, sequence)
    if is_pair and documents == "on":
        raise ExportError(f"hf:{name}: --documents is for causal models, and {type(model).__name__} has an encoder")
    if is_pair:
        return PairLogits().train(), (tokens, tokens.flip(1)), ["input_ids", "decoder_input_ids"]
    if documents == "off":
        return Logits().train(), (tokens,), ["input_ids"]
    from .documents import TooLarge, why_not_apart
    try:
        why = why_not_apart(model, make)
    except TooLarge as reason:
        if documents != "on":
            raise ExportError(f"hf:{name}: {reason}; --documents on takes it as a model that does, --documents off gives it rows of "
                              "one document (data build --pack none)") from reason
        say(f"warning: {reason}: taken as one that does")
        why = None
    if why and documents == "on":
        raise ExportError(f"hf:{name}: {why}: build its data with --pack none, a document a row, and export it without --documents")
    say(f"hf:{name}: " + (f"no positions, so that its rows hold one document (data build --pack none): {why}" if why else
                          "keeps the documents of a row apart by position_ids"))
    if why:
        return Logits().train(), (tokens,), ["input_ids"]
    return RowLogits().train(), (tokens, torch.arange(sequence).repeat(batch, 1)), ["input_ids", "position_ids"]


def drop_buffers(model, folder):
    """Takes the values of the buffers that the folder's files have, such as the biases of routers, which are its own and not those
    that a new model has: a run reads them with the parameters."""
    from .weight_map import map_weights
    try:
        missing = set(map_weights(model, folder)[1])
    except Exception:  # what transformers' rules raise; the program says so, and the run
        return
    for path, module in model.named_modules():
        for name, buffer in module._buffers.items():
            known = f"{path}.{name}" if path else name
            if (buffer is not None and buffer.is_floating_point() and name not in module._non_persistent_buffers_set
                    and known not in missing):
                module._buffers[name] = buffer.to("meta")


def text_config(config):
    """The part of a configuration that is the language model's."""
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def example_tokens(config, batch, sequence):
    """Token ids [batch, sequence], all different from special ones where the vocabulary allows: a model may treat padding
    in a way of its own, and its export would be of that case."""
    import torch
    text = text_config(config)
    size = getattr(text, "vocab_size", None) or 2
    entries = [getattr(each, key, None) for each in (text, config)
               for key in ("pad_token_id", "bos_token_id", "eos_token_id")]
    special = {i for entry in entries for i in (entry if isinstance(entry, (list, tuple)) else [entry])}
    usual = torch.tensor([i for i in range(min(size, 4096)) if i not in special] or [0])
    choice = torch.randint(len(usual), (batch, sequence), generator=torch.Generator().manual_seed(0))
    return usual[choice]
