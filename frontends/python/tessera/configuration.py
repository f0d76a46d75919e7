"""Configurations of Hugging Face models. A transformers class takes any key, and one that it does not know changes nothing: here
such a key of the command line is an error, and of a config.json a warning."""

import difflib
import importlib
import inspect
import os
import re

from .errors import ExportError, listed

# Keys that files have beside what a model is made of, as those that begin with "_".
OF_FILES = {"auto_map", "custom_pipelines", "model_type", "task_specific_params"}


def make_configuration(name, settings, say=print):
    """The configuration of a model type, or of a folder or config.json, with `settings` ({key: value}) in place of its own.
    Raises ExportError for settings that its class does not know, in parts of it, too."""
    from transformers import AutoConfig, CONFIG_MAPPING
    if os.path.exists(name):
        kind = type(AutoConfig.from_pretrained(name))
        own = kind.get_config_dict(name)[0]
    elif name in CONFIG_MAPPING:
        kind, own = CONFIG_MAPPING[name], {}
    else:
        raise ExportError(f"hf:{name}: neither a file or folder nor a type of model that transformers knows"
                          + nearest(name, list(CONFIG_MAPPING.keys())))
    config = kind.from_dict(merged(own, settings, kind))
    wrong = unknown_keys(config, settings)
    if wrong:
        path, holder, known = wrong[0]
        raise ExportError(f"--set {path}: {holder} has no such key" + nearest(path.rpartition(".")[2], known))
    names = {path: path.rpartition(".")[2] for path, _, _ in unknown_keys(config, own)}
    ignored = [path for path, name in names.items() if name not in OF_FILES and not name.startswith("_")]
    if ignored:
        say(f"warning: {name}: {kind.__name__} does not know, and the model is made without: {listed(ignored)}")
    return config


def merged(own, settings, kind):
    """The entries of a configuration of the class `kind`, with the settings in place of its own; those of its parts likewise."""
    parts = getattr(kind, "sub_configs", {})
    return {**own, **{key: merged(own[key], value, parts[key]) if key in parts and isinstance(own.get(key), dict)
                      and isinstance(value, dict) else value for key, value in settings.items()}}


def is_read(kind, key):
    """Whether the models of a configuration class read a key that the class itself does not name: getattr(config, "head_dim", …)."""
    try:
        source = inspect.getsource(importlib.import_module(kind.__module__.replace("configuration_", "modeling_")))
    except (ImportError, OSError, TypeError):
        return False
    return re.search(rf'config(\.|, ["\']){re.escape(key)}\b', source) is not None


def unknown_keys(config, given, usual=None, path=""):
    """[(path of the key, what does not know it, keys that it knows)] of the keys of `given` that a configuration has only because
    they were given. usual: the configuration as it is without them, of which this is a part; None: made here."""
    usual = usual if isinstance(usual, type(config)) else usual_one(type(config))
    known = known_keys(type(config)) | set(vars(usual) if usual else ())
    found = []
    for key, value in given.items():
        held = vars(config).get(key)
        if key not in known and key in vars(config) and not is_read(type(config), key):
            found.append((path + key, type(config).__name__, sorted(name for name in known if not name.startswith("_"))))
        elif isinstance(value, dict) and hasattr(held, "to_dict"):
            found += unknown_keys(held, value, vars(usual).get(key) if usual else None, f"{path}{key}.")
        elif isinstance(value, dict) and key in ("rope_parameters", "rope_scaling"):
            found += unknown_rotary(value, set(getattr(usual, "rope_parameters", None) or ()), f"{path}{key}.")
    return found


def unknown_rotary(given, usual, path):
    """The same of the parameters of rotary positions, which some models have for each type of layer. usual: names of those that
    the model has without being told."""
    try:
        from transformers.modeling_rope_utils import RopeParameters
    except ImportError:  # an older version, whose configurations check them themselves
        return []
    known = {*RopeParameters.__annotations__, *usual, "type"}
    found = []
    for key, value in given.items():
        if isinstance(value, dict):
            found += unknown_rotary(value, usual, f"{path}{key}.")
        elif key not in known:
            found.append((path + key, path.rstrip("."), sorted(known)))
    return found


def usual_one(kind):
    """The configuration that a class makes without being told anything; None if parts of it must be given."""
    try:
        return kind()
    except Exception:  # configurations check themselves with all kinds of exceptions
        return None


def known_keys(kind):
    """The parameters of a class of configurations, and other names of them."""
    known = set(getattr(kind, "attribute_map", {}))
    for each in kind.__mro__[:-1]:
        known |= {name for name, parameter in inspect.signature(each.__init__).parameters.items()
                  if parameter.kind is not parameter.VAR_KEYWORD}
        known |= {name for name, value in vars(each).items() if isinstance(value, property)}
    return known - {"self"}


def nearest(name, known):
    """"; nearest: a, b" of those names that are alike; empty if there is none."""
    close = difflib.get_close_matches(name, known, 3, 0.6)
    return f"; nearest: {', '.join(close)}" if close else ""
