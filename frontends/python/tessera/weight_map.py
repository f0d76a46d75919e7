"""How the tensors of a Hugging Face folder become the parameters of its model, and the other way round: by transformers' own
rules, run on tensors that tell where their elements come from (rearranged.py)."""

import copy
import dataclasses
import glob
import json
import os
import re
import struct
import sys

from .errors import ExportError, first_line
from .rearranged import Loop, NotMoved, Piece, Rearranged


@dataclasses.dataclass
class WeightMap:
    """pieces: {parameter: [(shape of the files' tensor, Piece of the parameter that is elements of that tensor)]} of parameters
    that are not the tensor of their own name. others: {parameter: names that it has in some files instead, as a whole}. prefix: files
    may have all names with it, or without it. unread: tensors of the files that the model does not take. refused: why there is
    no map."""
    pieces: dict = dataclasses.field(default_factory=dict)
    others: dict = dataclasses.field(default_factory=dict)
    prefix: str = ""
    unread: tuple = ()
    refused: str = ""

    def as_json(self, root=""):
        """What the file of a program says of it (docs/pt2.md#weights). root: where the model is in the program's module."""
        parameters = {f"{root}.{name}" if root else name: {
            "pieces": [piece_as_json(shape, piece) for shape, piece in self.pieces.get(name, ())],
            "others": list(self.others.get(name, ()))} for name in sorted({*self.pieces, *self.others})}
        return {"root": root, "prefix": self.prefix, "parameters": parameters, "unread": list(self.unread), "refused": self.refused}


def piece_as_json(shape, piece):
    loops = piece.loops or (Loop(1, 1, 1),)
    return {"tensor": piece.source, "shape": list(shape), "sizes": [loop.size for loop in loops], "offset": piece.offset,
            "strides": [loop.stride for loop in loops], "tensor_offset": piece.source_offset,
            "tensor_strides": [loop.source_stride for loop in loops]}


def note_of(module):
    """(what the file of a module's program says of its weights, [names that the model's folder has no values of]): the first is None
    unless there is exactly one transformers model in it."""
    library = sys.modules.get("transformers")
    if library is None:
        return None, []
    found = {path: part for path, part in module.named_modules() if isinstance(part, library.PreTrainedModel)}
    roots = [path for path in found if not any(path != other and is_below(path, other) for other in found)]
    if len(roots) != 1:
        return None, []
    model = found[roots[0]]
    folder = getattr(model, "name_or_path", "") or ""
    try:
        made, missing = map_weights(model, folder if os.path.isdir(folder) else None)
    except Exception as why:  # transformers' rules raise all kinds of exceptions
        made, missing = WeightMap(refused=first_line(why, 300)), []
    return made.as_json(roots[0]), missing


def is_below(path, other):
    """Whether a module is inside another, by their paths."""
    return other == "" or path.startswith(f"{other}.")


def map_weights(model, folder=None):
    """(WeightMap, [names of tensors without values in the folder]) of a transformers model and the folder that its weights are in;
    None: as save_pretrained would write it. Raises ExportError where a rule does more than rename and move elements, or the
    tensors are not the model's."""
    state = model.state_dict()
    groups = names_of_tensors(model, state)
    try:
        headers = read_headers(folder) if folder else None
        made = from_files(model, state, headers) if headers else from_parameters(model, state, groups)
    except NotMoved as why:
        raise ExportError(f"{folder or type(model).__name__}: transformers converts weights by more than moving elements ({why})") from why
    unread = tuple(made.pop(None, ()))
    found, missing = WeightMap(prefix=getattr(model, "base_model_prefix", "") or "", unread=unread), []
    for names in groups:
        given = [name for name in names if name in made]
        if not given:
            missing += names[:1]
            continue
        shape, pieces = made[given[0]]
        if tuple(shape) != tuple(state[given[0]].shape):
            raise ExportError(f"{folder}: {given[0]} has the shape {list(shape)} there, {list(state[given[0]].shape)} in the model")
        check_whole(given[0], shape, [piece for _, piece in pieces])
        for name in names:
            if not is_itself(name, shape, pieces):
                found.pieces[name] = pieces
            others = [other for other in names if other not in {piece.source for _, piece in pieces}]
            if others:
                found.others[name] = others
    return found, missing


def names_of_tensors(model, state):
    """[[names of one tensor]] of a state dict: a tied one has several, the one first that save_pretrained keeps."""
    held = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    groups = {}
    for name in state:
        groups.setdefault(id(held.get(name, state[name])), []).append(name)
    tied = getattr(model, "all_tied_weights_keys", None) or {}
    return [sorted(names, key=lambda name: name in tied) for names in groups.values()]


def is_itself(name, shape, pieces):
    """Whether a parameter is the whole tensor of its name."""
    return len(pieces) == 1 and pieces[0][1] == Rearranged.of(name, shape).pieces[0] and tuple(pieces[0][0]) == tuple(shape)


def check_whole(name, shape, pieces):
    """Raises ExportError if a parameter has elements that no piece or several are."""
    whole = Rearranged.of(name, shape)
    if sum(piece.elements for piece in pieces) != whole.numel():
        raise ExportError(f"{name}: the tensors of its files are {sum(piece.elements for piece in pieces)} elements, not {whole.numel()}")


# --- From the files that there are -----------------------------------------------


def weight_files(folder):
    """The .safetensors files of a folder that hold its model: model.safetensors, else those of its index, else all. Raises
    ExportError."""
    index, single = (os.path.join(folder, name) for name in ("model.safetensors.index.json", "model.safetensors"))
    if os.path.exists(single):
        return [single]
    if os.path.exists(index):
        try:
            with open(index, encoding="utf-8") as file:
                return sorted({os.path.join(folder, name) for name in json.load(file)["weight_map"].values()})
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as why:
            raise ExportError(f"{index}: not an index of weights ({type(why).__name__}: {why})") from why
    return sorted(glob.glob(os.path.join(glob.escape(folder), "*.safetensors")))


def read_headers(folder):
    """{name: shape} of the tensors of a folder; empty without .safetensors files. Raises ExportError."""
    found = {}
    for path in weight_files(folder):
        try:
            with open(path, "rb") as file:
                (size,) = struct.unpack("<Q", file.read(8))
                if size > os.path.getsize(path):
                    raise ValueError("the header is longer than the file")
                header = json.loads(file.read(size))
            header.pop("__metadata__", None)
            found.update({name: tuple(entry["shape"]) for name, entry in header.items()})
        except (OSError, ValueError, KeyError, TypeError, struct.error) as why:
            raise ExportError(f"{path}: not a safetensors file that can be read ({why})") from why
    return found


def from_files(model, state, headers):
    """{name of the model: (shape, [(shape of the tensor, Piece)])}, and under None the tensors that it does not take: what
    from_pretrained would set, by the rules of transformers."""
    renamings, converters, rename, renaming_class = rules_of(model)
    taken, unread = {}, []
    for name in sorted(headers, key=natural_order):
        target, pattern = rename(name, renamings, converters, model.base_model_prefix, state)
        if target not in state and name in state:
            target, pattern = rename(name, [], [], model.base_model_prefix, state)
        if target not in state:
            unread.append(name)
            continue
        if pattern is None:
            rule = taken.setdefault(target, renaming_class(name, target))
            if name not in rule.source_patterns:
                raise ExportError(f"the tensors {rule.source_patterns[0]} and {name} are both {target} of the model")
        else:
            rule = taken.setdefault(target, copy.deepcopy(next(each for each in converters if pattern in each.source_patterns)))
        rule.add_tensor(target, name, pattern or name, Rearranged.of(name, headers[name]))
    made = {None: unread}
    for target, rule in taken.items():
        for name, tensor in rule.convert(target, model=model, config=model.config).items():
            tensor = tensor[0] if isinstance(tensor, list) else tensor
            made[name] = (tuple(tensor.shape), [(headers[piece.source], piece) for piece in tensor.pieces])
    return made


class Renaming:
    """transformers' WeightRenaming where there is none."""

    def __init__(self, source, target):
        self.source_patterns, self.target, self.tensor = [source], target, None

    def add_tensor(self, target, name, pattern, tensor):
        self.tensor = tensor

    def convert(self, target, **_):
        return {target: self.tensor}


def rules_of(model):
    """(renamings, converters, rename_source_key, WeightRenaming) of transformers 5; older versions know prefixes only."""
    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import WeightConverter, WeightRenaming, rename_source_key
    except ImportError:
        return [], [], renamed_by_prefix, Renaming
    rules = get_model_conversion_mapping(model)
    return ([rule for rule in rules if isinstance(rule, WeightRenaming)],
            [rule for rule in rules if isinstance(rule, WeightConverter)], rename_source_key, WeightRenaming)


def renamed_by_prefix(name, renamings, converters, prefix, state):
    """(name of the model, None): with the prefix of its base model, or without it."""
    choices = (name, name.removeprefix(f"{prefix}."), f"{prefix}.{name}")
    return next((choice for choice in choices if choice in state), name), None


def natural_order(name):
    """Experts in the order of their numbers."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]


# --- Without files ---------------------------------------------------------------


def from_parameters(model, state, groups):
    """As from_files, of the files that save_pretrained would write."""
    tensors = {names[0]: Rearranged.of(names[0], tuple(state[names[0]].shape)) for names in groups}
    try:
        from transformers.core_model_loading import revert_weight_conversion
        tensors = revert_weight_conversion(model, tensors)
    except ImportError:
        pass  # an older version writes parameters as they are
    made = {}
    for name, tensor in tensors.items():
        for piece in tensor.pieces:
            parameter, inverse = piece.inverted(name)
            made.setdefault(parameter, (tuple(state[parameter].shape), []))[1].append((tuple(tensor.shape), inverse))
    for _, pieces in made.values():
        pieces.sort(key=lambda entry: entry[1].offset)
    return made
