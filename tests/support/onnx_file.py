"""Writes ONNX files without any package: protocol buffers by hand, and a graph that grows node by node.

Weights point at external data that does not exist, unless they are given: the compiler never reads those of parameters.
"""

import array
import json
import struct

FLOAT, INT64, FLOAT16, DOUBLE, BFLOAT16 = 1, 7, 10, 11, 16
PARAMETER_TYPES = {FLOAT: "float32", FLOAT16: "float16", DOUBLE: "float64", BFLOAT16: "bfloat16"}
RECORD_KEY = "tessera"
KIND_KEY = "pkg.torch.export.graph_signature.InputSpec.kind"


# Protocol buffers: a message is a list of (number, value); values are integers, bytes, or floats (32 bits).


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def attribute(name, value):
    if isinstance(value, float):
        return message((1, name), (2, value), (20, 1))
    if isinstance(value, int):
        return message((1, name), (3, value), (20, 2))
    return message((1, name), *((8, item) for item in value), (20, 7))


def value_info(name, element, shape):
    """Bytes of an input or output of the graph. A size is a number, or the name of a symbolic dimension."""
    dims = b"".join(field(1, message((1 if isinstance(size, int) else 2, size))) for size in shape)
    return message((1, name), (2, message((1, message((1, element), (2, dims))))))


class Graph:
    """Nodes and initializers of a model. `scope` is the module that nodes added from now on belong to."""

    def __init__(self):
        self.nodes, self.initializers, self.parameters, self.scope, self.count = [], [], [], "", 0

    def weight(self, name, *shape, element=FLOAT):
        """A parameter of that shape whose value is in a file that is not there."""
        external = message((1, "location"), (2, "absent.bin"))
        self.parameters.append({"name": name, "shape": list(shape), "dtype": PARAMETER_TYPES[element], "trained": True})
        self.initializers.append(message(*((1, size) for size in shape), (2, element), (8, name), (13, external), (14, 1)))
        return name

    def constant(self, values, shape, element, name=None):
        """An initializer with its values, in row-major order; `element`: FLOAT or INT64."""
        name = name or f"const_{len(self.initializers)}"
        kind = {FLOAT: "f", INT64: "q"}[element]
        data = array.array(kind, values).tobytes()
        self.initializers.append(message(*((1, size) for size in shape), (2, element), (8, name), (9, data)))
        return name

    def ints(self, *values):
        return self.constant(values, [len(values)], INT64)

    def scalar(self, value):
        return self.constant([value], [], FLOAT)

    def op(self, kind, *inputs, **attributes):
        """A node of one output, whose name it returns."""
        self.count += 1
        name, output = f"{self.scope}/{kind}_{self.count}", f"value_{self.count}"
        self.nodes.append(message(*((1, item) for item in inputs), (2, output), (3, name), (4, kind),
                                  *((5, attribute(key, item)) for key, item in attributes.items())))
        return output

    def store(self, path, inputs, outputs, record=None, signature=None, opset=17):
        """Writes the file. `inputs` and `outputs`: bytes of value_info. `record`: what the record says beside the
        parameters that `weight` added (a dictionary), False for a file without one. `signature`: kinds of tensors by
        name, as torch's dynamo exporter leaves them."""
        metadata = []
        if record is not False:
            whole = {"version": 1, "exporter": "by hand", "parameters": self.parameters, "buffers": [], "batch_norm": [],
                     "dropout": [], **(record or {})}
            metadata = [(14, message((1, RECORD_KEY), (2, json.dumps(whole))))]
        values = [message((1, name), (4, message((1, KIND_KEY), (2, kind)))) for name, kind in (signature or {}).items()]
        graph = message(*((1, node) for node in self.nodes), (2, "model"), *((5, item) for item in self.initializers),
                        *((11, item) for item in inputs), *((12, item) for item in outputs), *((13, item) for item in values))
        with open(path, "wb") as file:
            file.write(message((1, 8), (2, "tessera"), (7, graph), (8, message((1, ""), (2, opset))), *metadata))
