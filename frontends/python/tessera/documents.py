"""Whether a causal language model keeps the documents of one row apart by their positions."""

import copy
import inspect

# Of a model without values one with random ones is asked, if it is not larger than this; else one of fewer layers and tokens.
MOST_PARAMETERS = 300_000_000
MOST_OF_SMALLER = 2_000_000_000
LAYERS, TOKENS = 2, 4096


class TooLarge(Exception):
    """A model without values cannot be tried."""


def why_not_apart(model, make):
    """Why a document behind another one, with positions from 0 again, would see it; None if it does not. model: a causal one
    of transformers; make: the class of automatic models that makes one like it. Raises TooLarge."""
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return f"{type(model).__name__} takes no position_ids"
    return why_they_meet(like(model, make))


def like(model, make):
    """The model itself if it has values, else a smaller one of its configuration with random values. Raises TooLarge."""
    import torch

    from .module_checks import has_values
    if all(map(has_values, [*model.parameters(), *model.buffers()])):
        return model
    config = copy.deepcopy(model.config)
    attention = config._attn_implementation
    too_large = TooLarge(f"{type(model).__name__} is too large to see, without its weights, whether it keeps the documents of a row apart")
    if count(model) > MOST_PARAMETERS:
        if not isinstance(getattr(config, "num_hidden_layers", None), int):
            raise too_large
        try:
            config = type(config).from_dict(smaller(config.to_dict()))
        except Exception as why:  # what follows from the number of layers is the configuration's business
            raise too_large from why
        with torch.device("meta"):
            if count(make.from_config(config, attn_implementation=attention)) > MOST_OF_SMALLER:
                raise too_large
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make.from_config(config, torch_dtype=torch.float32, attn_implementation=attention)


def smaller(values):
    """The dictionary of a configuration with as few layers as have every kind, LAYERS at least, and with TOKENS, if it says how many."""
    if isinstance(values.get("vocab_size"), int) and values["vocab_size"] > TOKENS:
        special = {key for key, value in values.items() if key.endswith("_token_id") and isinstance(value, int) and value >= TOKENS}
        values = values | dict.fromkeys(special) | {"vocab_size": TOKENS}
    layers = values["num_hidden_layers"]
    lists = [value for value in values.values() if isinstance(value, list) and len(value) == layers]
    kept = max([LAYERS, *(value.index(kind) + 1 for value in lists for kind in value)])
    return {key: kept if key == "num_hidden_layers" else value[:kept] if any(value is each for each in lists) else value
            for key, value in values.items()}


def count(model):
    return sum(parameter.numel() for parameter in model.parameters())


def follows_the_longest(config, sequence):
    """Whether rotary positions of all documents of a batch follow the longest one, which is so beyond the length that a model
    with LongRoPE was first trained with (transformers.modeling_rope_utils.longrope_frequency_update)."""
    from .targets import text_config
    config = text_config(config)
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    original = getattr(config, "original_max_position_embeddings", None) or rope.get("original_max_position_embeddings")
    return rope.get("rope_type") == "longrope" and bool(original) and sequence > original


def why_they_meet(model):
    """Why the documents of a row are not apart; None if they are. The logits of a document behind another one must not depend on
    the first one's embeddings, by a gradient of exactly 0, and must be those of the document alone."""
    import torch

    from .errors import first_line
    from .targets import example_tokens
    length = 6
    first, second = example_tokens(model.config, 2, length)[:, None]
    positions = torch.arange(length)[None]
    embedded = []
    handle = model.get_input_embeddings().register_forward_hook(lambda module, given, made: embedded.append(made))
    was_training = model.training
    model.eval()
    try:
        with torch.enable_grad():
            alone = model(input_ids=second, use_cache=False).logits.detach()
            embedded.clear()
            behind = model(input_ids=torch.cat([first, second], 1), position_ids=torch.cat([positions, positions], 1),
                           use_cache=False).logits[:, length:]
            weights = torch.randn(behind.shape, generator=torch.Generator().manual_seed(0))
            seen = torch.autograd.grad((behind * weights).sum(), embedded[0])[0][:, :length]
    except (MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as why:  # whatever a model's code raises
        return f"{type(model).__name__} does not run on two documents in a row ({first_line(why)})"
    finally:
        handle.remove()
        model.train(was_training)
    if torch.count_nonzero(seen):
        return f"in {type(model).__name__}, a document sees the one before it in a row, whatever its positions say"
    if not torch.allclose(alone, behind.detach(), rtol=1e-4, atol=1e-4 * float(alone.abs().max())):
        return f"in {type(model).__name__}, positions that begin anew are not those of a document alone"
    return None
