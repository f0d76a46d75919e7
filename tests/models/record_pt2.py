#!/usr/bin/env python3
"""Adds program.pt2 to models of tests/models/recorded: the model as torch.export.save writes it, whose training
record.py has recorded.

usage: record_pt2.py [model ...]

Paths of the machine are taken out of
stack traces, and large archives are compressed. Needs torch and transformers.
"""

import io
import json
import os
import re
import sys
import warnings
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "frontends", "python")]
import record  # noqa: E402
import torch  # noqa: E402
from programs import export_program  # noqa: E402

SMALL = 100 << 10  # bytes of an archive


def clean(content):
    """The archive without sample inputs and paths."""
    source, target = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    # Small ones as PyTorch writes them, so that the runtime can read their weights.
    method = zipfile.ZIP_STORED if len(content) < SMALL else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(target, "w", method, compresslevel=9) as archive:
        for name in source.namelist():
            data = source.read(name)
            if "/sample_inputs/" in name:
                continue
            if name.endswith(".json"):
                text = re.sub(r'File \\"[^"]*?/site-packages/', r'File \\"', data.decode())
                data = re.sub(r'File \\"/[^"]*/', r'File \\"', text).encode()
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, data, method)
    return target.getvalue()


def save_program(program, path):
    """Writes a program without sample inputs and paths of the machine."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    with open(path, "wb") as file:
        file.write(clean(buffer.getvalue()))


def main():
    warnings.simplefilter("ignore")
    for name in sys.argv[1:] or sorted(os.listdir(record.FOLDER)):
        model, inputs, names, _ = record.build(name)
        try:
            program = export_program(model, inputs)
        except Exception as why:  # noqa: BLE001
            print(f"{name}: not exported: {str(why)[:200]}")
            continue
        found = list(program.graph_signature.user_inputs)
        if found != list(names):
            print(f"{name}: its inputs are {found}, recorded as {list(names)}")
        save_program(program, os.path.join(record.FOLDER, name, "program.pt2"))
        print(f"{name}: {os.path.getsize(os.path.join(record.FOLDER, name, 'program.pt2'))} bytes", flush=True)


if __name__ == "__main__":
    main()
