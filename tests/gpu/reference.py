"""Evaluates the bodies of generated kernels in PyTorch, in double precision.

Reads MLIR's generic form (tessera-opt --mlir-print-op-generic). f32 values are kept in f64 throughout; a value of a
narrower float type is rounded to it, as the op's meaning says. Integers are i64, booleans bool.
"""

import re

import numpy as np
import torch

FLOATS = {"f64": torch.float64, "f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
INTS = {"i64": torch.int64, "i32": torch.int32, "i8": torch.int8, "ui8": torch.uint8}
MEMORY = {**FLOATS, **INTS, "i1": torch.bool}
LARGEST_F32 = float(torch.finfo(torch.float32).max)


class Type:
    def __init__(self, text):
        *shape, self.element = re.fullmatch(r"tensor<(.*)>", text).group(1).split("x")
        self.shape = [int(size) for size in shape]
        self.is_float = self.element in FLOATS


def types(text):
    return [Type(match) for match in re.findall(r"tensor<[^>]*>", text)]


class Op:
    PATTERN = re.compile(r'^\s*(?:(%\S+) = )?"([\w.]+)"\(([^)]*)\)(?: <\{(.*)\}>)?(?: \{.*\})? : \((.*)\) -> (.*)$')

    def __init__(self, line):
        match = self.PATTERN.match(line)
        if not match:
            raise ValueError(f"cannot read {line.strip()[:200]}")
        self.result, self.name, operands, self.attributes, self.operand_types, result_types = match.groups()
        self.operands = re.findall(r"%[\w#]+", operands)
        self.types, self.attributes = types(result_types), self.attributes or ""

    def ints(self, name):
        body = re.search(rf"\b{name} = array<i64(?:: ([^>]*))?>", self.attributes).group(1)
        return [int(number) for number in body.split(",")] if body else []

    def int(self, name):
        return int(re.search(rf"\b{name} = (-?\d+)", self.attributes).group(1))

    def word(self, kind):
        return re.search(rf"#train<{kind} (\w+)>", self.attributes).group(1)


class Kernel:
    """One function of the module: its argument and result types and its ops."""

    def __init__(self, symbol, arguments, body, resources):
        self.symbol, self.resources = symbol, resources
        self.names = re.findall(r"(%\w+): tensor", arguments)
        self.inputs = types(arguments)
        *lines, last = [line for line in body if line.strip()]
        self.ops, end = [Op(line) for line in lines], Op(re.sub(r"-> \(\)$", "-> ()", last))
        self.returned, self.outputs = end.operands, types(end.operand_types)

    def elements(self):
        return {t.element for op in self.ops for t in op.types} | {t.element for t in self.inputs + self.outputs}

    def index_bound(self):
        """Below what integers must lie to be rows of every table. A table of one dimension is a matrix that was made
        flat, and is read at row * columns + integer."""
        bounds = []
        for op in self.ops:
            if op.name in ("train.gather_rows", "train.scatter_add_rows"):
                table, indices, *_ = types(op.operand_types)
                flat = int(np.prod(indices.shape)) if len(table.shape) == 1 else 1
                bounds.append(max(1, table.shape[0] // flat))
        return min(bounds, default=3)


def read(text):
    """Symbol -> kernel, of each function of the module or of its nested module @kernels."""
    resources = dict(re.findall(r'(\w+): "0x([0-9A-Fa-f]+)"', text))
    kernels, lines = {}, text.splitlines()
    for i, line in enumerate(lines):
        if '"func.func"' not in line:
            continue
        symbol, body, arguments = re.search(r'sym_name = "(\w+)"', line).group(1), [], ""
        for inner in lines[i + 1:]:
            if re.match(r"\s*\}\)", inner):
                break
            if re.match(r"\s*\^bb0", inner):
                arguments = inner
            else:
                body.append(inner)
        kernels[symbol] = Kernel(symbol, arguments, body, resources)
    return kernels


def constant(op, resources):
    kind, count = op.types[0], int(np.prod(op.types[0].shape))
    numpy = {"f64": np.float64, "f32": np.float32, "i64": np.int64, "i32": np.int32, "i8": np.int8, "ui8": np.uint8}
    if match := re.search(r"dense_resource<(\w+)>", op.attributes):
        values = np.frombuffer(bytes.fromhex(resources[match.group(1)])[4:], numpy[kind.element])
    elif match := re.search(r'dense<"0x([0-9A-F]+)">', op.attributes):
        data = bytes.fromhex(match.group(1))
        if kind.element == "bf16":
            values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif kind.element == "i1":
            values = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[:count]
        else:
            values = np.frombuffer(data, numpy[kind.element])
    else:
        words = re.findall(r"[-+.\w]+", re.search(r"dense<(.*)> : ", op.attributes).group(1))

        def number(word):
            if word in ("true", "false"):
                return word == "true"
            if word.startswith("0x") and kind.is_float:
                width = {"f64": np.uint64, "f32": np.uint32, "bf16": np.uint32, "f16": np.uint16}[kind.element]
                bits = int(word, 16) << (16 if kind.element == "bf16" else 0)
                view = {"f64": np.float64, "f16": np.float16}.get(kind.element, np.float32)
                return float(np.array([bits], width).view(view)[0])
            return float(word) if kind.is_float else int(word)

        values = np.array([number(word) for word in words])
    values = np.broadcast_to(values, count) if len(values) == 1 else values
    dtype = torch.float64 if kind.is_float else torch.bool if kind.element == "i1" else torch.int64
    return torch.tensor(np.array(values)).to(dtype).reshape(kind.shape)


def philox(seed, index, stream):
    """Philox 4x32-10 of counters (index, stream), the first output word; NumPy arrays of uint64."""
    mask = np.uint64(0xFFFFFFFF)
    low, high = (lambda x: x & mask), (lambda x: x >> np.uint64(32))
    words = [low(index), high(index), low(stream) + 0 * index, high(stream) + 0 * index]
    keys = [low(seed), high(seed)]
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * words[0], np.uint64(0xCD9E8D57) * words[2]
        words = [high(second) ^ words[1] ^ keys[0], low(second), high(first) ^ words[3] ^ keys[1], low(first)]
        keys = [low(keys[0] + np.uint64(0x9E3779B9)), low(keys[1] + np.uint64(0xBB67AE85))]
    return words[0]


def uniform(op, seed, offsets):
    shape = op.types[0].shape
    whole = op.ints("global_shape") if "global_shape" in op.attributes else shape
    index = np.zeros(shape, np.uint64)
    for dimension, size in enumerate(shape):
        digits = np.arange(size, dtype=np.uint64) + np.uint64(int(offsets[dimension]) if offsets else 0)
        stride = int(np.prod(whole[dimension + 1:], dtype=np.int64))
        index += (digits * np.uint64(stride)).reshape([-1 if i == dimension else 1 for i in range(len(shape))])
    word = philox(np.uint64(int(seed) & (2**64 - 1)), index, np.uint64(op.int("stream")))
    return torch.tensor((word >> np.uint64(8)).astype(np.float64) / 2**24)


def convert(x, kind, source):
    if kind.element == "i1":
        return x != 0
    if kind.is_float:
        return x.to(torch.float64)
    x = x.to(torch.int64)  # truncates toward zero
    return x.to(INTS[kind.element]).to(torch.int64) if kind.element in INTS else x


def corner(x, starts, sizes):
    begins = [min(max(int(s), 0), whole - size) for s, whole, size in zip(starts, x.shape, sizes)]
    return tuple(slice(b, b + size) for b, size in zip(begins, sizes))


def reduce(op, x):
    dims, kind = tuple(op.ints("dimensions")), op.word("reduction")
    if kind == "sum":
        return x.sum(dims)
    if kind == "max":
        return torch.amax(x, dims)
    if kind == "min":
        return torch.amin(x, dims)
    for dim in sorted(dims, reverse=True):
        x = x.prod(dim)
    return x


def divide(a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


UNARY = {"neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt,
         "tanh": torch.tanh, "erf": torch.erf, "sin": torch.sin, "cos": torch.cos, "floor": torch.floor,
         "round": torch.round, "expm1": torch.expm1, "log1p": torch.log1p, "sigmoid": torch.sigmoid, "atan": torch.atan,
         "asin": torch.asin, "acos": torch.acos,
         "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x))}
BINARY = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": divide, "max": torch.maximum, "pow": torch.pow}


def evaluate_op(op, x, resources):
    """The value of one op; `x` are its operands' values."""
    name, kind = op.name.removeprefix("train."), op.types[0]
    if name in UNARY:
        return UNARY[name](x[0])
    if name in BINARY:
        return BINARY[name](*x)
    if name in ("gelu", "gelu_grad"):
        form = {"exact": "none", "tanh": "tanh"}[op.word("gelu")]
        if name == "gelu":
            return torch.nn.functional.gelu(x[0], approximate=form)
        return torch.ops.aten.gelu_backward(x[0], x[1], approximate=form)
    if name == "constant":
        return constant(op, resources)
    if name == "iota":
        counted = torch.arange(kind.shape[op.int("dim")]) + (int(x[0]) if x else 0)
        shape = [-1 if i == op.int("dim") else 1 for i in range(len(kind.shape))]
        return convert(counted.reshape(shape).expand(kind.shape), kind, None)
    if name == "convert":
        return convert(x[0], kind, None)
    if name == "compare":
        return getattr(torch, op.word("direction"))(*x)
    if name == "select":
        return torch.where(x[0], x[1], x[2])
    if name == "reduce":
        return reduce(op, x[0])
    if name == "argmax":
        values = x[0].numpy() if not x[0].is_floating_point() else x[0].double().numpy()
        return torch.tensor(np.argmax(values, axis=op.int("dim")))  # the first of equal ones
    if name == "reshape":
        return x[0].reshape(kind.shape)
    if name == "transpose":
        return x[0].permute(op.ints("permutation"))
    if name == "broadcast":
        shape = [1] * len(kind.shape)
        for size, dimension in zip(x[0].shape, op.ints("broadcast_dimensions")):
            shape[dimension] = size
        return x[0].reshape(shape).expand(kind.shape)
    if name == "slice":
        return x[0][tuple(slice(*box) for box in zip(op.ints("starts"), op.ints("limits"), op.ints("strides")))]
    if name == "pad":
        value = float(re.search(r"value = (\S+) : f64", op.attributes).group(1))
        result = torch.full(kind.shape, value, dtype=torch.float64)
        steps = [inside + 1 for inside in op.ints("interior")]
        result[tuple(slice(low, low + (size - 1) * step + 1, step) for low, size, step in
                     zip(op.ints("low"), x[0].shape, steps))] = x[0]
        return result
    if name == "concat":
        return torch.cat(x, op.int("dim"))
    if name == "dynamic_slice":
        return x[0][corner(x[0], x[1:], op.ints("sizes"))]
    if name == "dynamic_update_slice":
        result = x[0].clone()
        result[corner(x[0], x[2:], x[1].shape)] = x[1]
        return result
    if name == "gather_rows":
        return x[0][x[1]]
    if name == "scatter_add_rows":
        return x[0].clone().index_add_(0, x[1].flatten(), x[2].reshape(-1, *x[0].shape[1:]))
    if name == "rng_uniform":
        return uniform(op, x[0], x[1:])
    raise ValueError(f"{op.name} has no reference")


def evaluate(kernel, inputs):
    """Results of the kernel for `inputs` (in their memory types)."""
    values = {}

    def keep(name, value, kind):
        if kind.element in ("bf16", "f16"):
            value = value.to(FLOATS[kind.element]).to(torch.float64)
        elif kind.is_float:
            value = value.to(torch.float64)
            if kind.element == "f32":  # the range is that of f32
                value = torch.where(value.abs() > LARGEST_F32, value.sign() * torch.inf, value)
        elif kind.element == "i1":
            value = value.to(torch.bool)
        elif kind.element in INTS:
            value = value.to(INTS[kind.element]).to(torch.int64)
        values[name] = value

    for name, value, kind in zip(kernel.names, inputs, kernel.inputs):
        keep(name, value, kind)
    for op in kernel.ops:
        operands = [values[name] for name in op.operands]
        keep(op.result, evaluate_op(op, operands, kernel.resources), op.types[0])
    return [values[name] for name in kernel.returned]
