"""Reads and writes safetensors files with NumPy alone, for tests and tools that must run without torch."""

import json
import os
import struct
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "frontends", "python"))
from tessera.safetensors import DTYPES, load, read  # noqa: E402, F401: load is for those who import this

NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def types(path):
    """Name -> "F32", "BF16", …."""
    return {name: entry["dtype"] for name, entry in read(path)[0].items()}


def save(tensors, path):
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": NAMES[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())
