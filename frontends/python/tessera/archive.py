"""Writes an exported program as a .pt2 file that tessera-compile reads.

torch.export.save does so since PyTorch 2.9. Older ones pickle weights in a format of their own; here their programs are
written as newer ones write theirs: JSON, and the bytes of each weight.
"""

import json
import math
import os
import shutil
import zipfile

import torch

from .errors import ExportError, first_line
from .module_checks import has_values
from .whole_file import whole_file

NEW_FORMAT = (2, 9)
NOTE = "tessera.json"  # of the module: what the program does not say


def torch_version():
    """(2, 15)"""
    return tuple(int(part) for part in torch.__version__.split(".")[:2])


def has_weights(program):
    """Whether every parameter of an ExportedProgram has values."""
    return all(has_values(program.state_dict[name]) for name in program.graph_signature.parameters)


def write(program, path, note=None):
    """Writes an ExportedProgram to `path`. note: a dictionary beside it. Raises ExportError; `path` is as before then."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ExportError(f"{path}: {folder} is not a folder")
    for tensor_name, tensor in [*program.state_dict.items(), *program.constants.items()]:
        if isinstance(tensor, torch.Tensor) and (tensor.is_conj() or tensor.is_neg()):
            raise ExportError(f"{tensor_name} is a conjugate or a part of one that is not computed yet, and PyTorch would save "
                              "what it was before: call resolve_conj() or resolve_neg() on it")
    try:
        with whole_file(path) as made:
            extra = {NOTE: json.dumps(note)} if note else {}
            if torch_version() >= NEW_FORMAT:
                torch.export.save(program, made, extra_files=extra)
            else:
                write_archive(program, made, extra)
            if not has_weights(program):
                deflate_programs(made)
    except OSError as why:
        raise ExportError(f"{path}: {why.strerror or why}") from why
    except Exception as why:  # what torch's serializer raises has no common class
        raise ExportError(f"{path}: the program cannot be saved: {first_line(why)}") from why


def deflate_programs(path):
    """Rewrites the archive with its programs deflated, a thirtieth of their bytes: beside weights that is nothing, without them
    it is the file. All else stays stored, as what reads values at their place in the file expects it."""
    smaller = path + ".smaller"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(smaller, "w") as made:
        for entry in archive.infolist():
            copy = zipfile.ZipInfo(entry.filename)  # without a date: equal programs are equal files
            is_program = entry.filename.partition("/")[2].startswith(("models/", "extra/"))
            copy.compress_type = zipfile.ZIP_DEFLATED if is_program else zipfile.ZIP_STORED
            copy.file_size = entry.file_size
            with archive.open(entry) as source, made.open(copy, "w") as target:
                shutil.copyfileobj(source, target)
    os.replace(smaller, path)


def read_note(path):
    """What write() noted beside the program of a file; empty if nothing."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.partition("/")[2] == f"extra/{NOTE}":
                return json.loads(archive.read(name))
    return {}


def write_archive(program, path, extra):
    """Writes the archive of PyTorch 2.9 by what older ones have."""
    from torch._export.serde.serialize import ExportedProgramSerializer, _dataclass_to_dict, EnumEncoder
    serialized = ExportedProgramSerializer().serialize(program).exported_program
    model = json.dumps(without_infinities(_dataclass_to_dict(serialized)), cls=EnumEncoder)
    writer = torch._C.PyTorchFileWriter(path)

    def record(name, data):
        writer.write_record(name, data, len(data))

    record("archive_format", b"pt2")
    record("archive_version", b"0")
    record("models/model.json", model.encode())
    for name, text in extra.items():
        record(f"extra/{name}", text.encode())
    buffers = set(program.graph_signature.buffers)
    write_table(record, "weights", "weight", {name: (tensor, name not in buffers)
                                              for name, tensor in program.state_dict.items()})
    constants = {name: (value, False) for name, value in program.constants.items()}
    unknown = [name for name, (value, _) in constants.items() if not isinstance(value, torch.Tensor)]
    if unknown:
        raise ExportError(f"{unknown[0]} is a {type(constants[unknown[0]][0]).__name__}, which a file cannot hold")
    write_table(record, "constants", "tensor", constants)
    writer.write_end_of_file()


def without_infinities(value):
    """The floats that JSON does not have as newer versions write them: "Infinity", "-Infinity", "NaN"."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: without_infinities(entry) for key, entry in value.items()}
    return [without_infinities(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def write_table(record, kind, prefix, tensors):
    """Writes the weights or the constants: their bytes, each storage once, and what says where they are. tensors:
    {name: (tensor, whether it is a parameter)}."""
    from torch._export.serde.serialize import EnumEncoder, _dataclass_to_dict, serialize_tensor_meta
    config, paths = {}, {}
    for name, (tensor, is_parameter) in tensors.items():
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in paths:
            paths[key] = f"{prefix}_{len(paths)}"
            record(f"data/{kind}/{paths[key]}", bytes_of(storage) if has_values(tensor) else b"")
        config[name] = {"path_name": paths[key], "is_param": is_parameter, "use_pickle": False,
                        "tensor_meta": _dataclass_to_dict(serialize_tensor_meta(tensor))}
    record(f"data/{kind}/model_{kind}_config.json", json.dumps({"config": config}, cls=EnumEncoder).encode())


def bytes_of(storage):
    """The bytes of an untyped storage."""
    return torch.tensor([], dtype=torch.uint8).set_(storage.cpu()).numpy().tobytes()
