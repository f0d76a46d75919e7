"""Reads safetensors files with NumPy alone."""

import json
import struct

import numpy

DTYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "I64": numpy.int64, "I32": numpy.int32,
          "I8": numpy.int8, "U8": numpy.uint8, "BOOL": numpy.bool_}


def read(path):
    """The entries of the header by name, and the bytes behind it."""
    with open(path, "rb") as file:
        data = file.read()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return header, data[8 + size:]


def load(path):
    """Name -> array; bf16, which NumPy does not have, as f32."""
    header, body = read(path)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        if entry["dtype"] == "BF16":
            array = (numpy.frombuffer(body[begin:end], numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
        else:
            array = numpy.frombuffer(body[begin:end], DTYPES[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors
