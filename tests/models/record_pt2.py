#!/usr/bin/env python3
"""Adds program.pt2 to models of tests/models/recorded: the model as torch.export.save writes it, whose training
record.py has recorded.

usage: record_pt2.py [model ...]

Folders of the machine are taken out of stack traces, and large archives are compressed. Needs torch and transformers.
"""

import io
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "frontends", "python")]
sys.path.append(os.path.join(HERE, "..", "support"))  # last: it has a module safetensors, too
import archives  # noqa: E402
import record  # noqa: E402
import tessera  # noqa: E402
import torch  # noqa: E402
from tessera.dropout import without_dropout  # noqa: E402

SMALL = 100 << 10  # bytes of an archive


def save_program(program, path):
    """Writes a program without sample inputs and folders of the machine."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    entries = [(name, archives.without_folders(name, data)) for name, data in archives.entries(buffer)
               if "/sample_inputs/" not in name]
    # Small ones as PyTorch writes them, so that the runtime can read their weights.
    is_small = buffer.getbuffer().nbytes < SMALL
    with open(path, "wb") as file:
        file.write(archives.packed(entries, lambda name: is_small))


def main():
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or sorted(os.listdir(record.FOLDER)):
        model, inputs, names, _ = record.build(name)
        try:
            with without_dropout(model):
                program = tessera.export(model, inputs, check=False).program
        except tessera.ExportError as why:
            print(f"{name}: not exported: {str(why)[:200]}")
            continue
        found = list(program.graph_signature.user_inputs)
        if found != list(names):
            print(f"{name}: its inputs are {found}, recorded as {list(names)}")
        save_program(program, os.path.join(record.FOLDER, name, "program.pt2"))
        print(f"{name}: {os.path.getsize(os.path.join(record.FOLDER, name, 'program.pt2'))} bytes", flush=True)


if __name__ == "__main__":
    main()
