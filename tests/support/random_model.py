#!/usr/bin/env python3
"""Random differentiable models in the train dialect, for tests of passes.

    random_model.py --seed=3 --batch=4 --loss=cross-entropy > model.mlir

Equal options give equal output. A model is a chain of blocks over a tensor of shape [batch, time, width] (or an image
at first), each with parameters of its own; the loss is part of the model. Models of one seed and different batch
sizes have the same parameters, so that a step on a batch can be compared with one on its micro-batches.
"""
import argparse
import random

# Tokens and classes. The interpreter draws integers below 8 where no op bounds them, so that this number stays valid
# when the bounding op is lowered.
CLASSES = 8


def tensor(shape, element="f32"):
    return "tensor<" + "".join(f"{size}x" for size in shape) + element + ">"


def array(values):
    values = list(values)
    return "array<i64: " + ", ".join(map(str, values)) + ">" if values else "array<i64>"


class Value:
    def __init__(self, name, shape, element="f32"):
        self.name, self.shape, self.type = name, list(shape), tensor(shape, element)


class Model:
    """Writes one function; each method appends one op and returns its result."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.arguments, self.count, self.scope = [], [], 0, ""

    def argument(self, name, shape, role, element="f32"):
        value = Value(f"%a{len(self.arguments)}", shape, element)
        self.arguments.append(f'{value.name}: {value.type} {{train.role = "{role}", train.name = "{name}"}}')
        return value

    def parameter(self, name, *shape):
        return self.argument(self.scope + name, shape, "param")

    def op(self, text, types, shape, element="f32", results=1):
        name = f"%v{self.count}"
        self.count += 1
        head = name if results == 1 else f"{name}:{results}"
        self.lines.append(f'    {head} = train.{text} : {types} loc("{self.scope}op{self.count}")')
        return Value(name if results == 1 else name + "#0", shape, element)

    def constant(self, number, shape, element="f32"):
        name = f"%v{self.count}"
        self.count += 1
        self.lines.append(f"    {name} = train.constant dense<{number}> : {tensor(shape, element)}")
        return Value(name, shape, element)

    def unary(self, op, x):
        return self.op(f"{op} {x.name}", x.type, x.shape)

    def binary(self, op, a, b):
        return self.op(f"{op} {a.name}, {b.name}", a.type, a.shape)

    def scale(self, x, factor):
        return self.binary("mul", x, self.constant(f"{factor:.6e}", x.shape))

    def reshape(self, x, shape):
        return self.op(f"reshape {x.name}", f"({x.type}) -> {tensor(shape)}", shape)

    def transpose(self, x, permutation):
        shape = [x.shape[dim] for dim in permutation]
        return self.op(f"transpose {x.name} {{permutation = {array(permutation)}}}", f"({x.type}) -> {tensor(shape)}",
                       shape)

    def broadcast(self, x, shape, dims):
        return self.op(f"broadcast {x.name} {{broadcast_dimensions = {array(dims)}}}",
                       f"({x.type}) -> {tensor(shape)}", shape)

    def slice(self, x, starts, limits):
        shape = [limit - start for start, limit in zip(starts, limits)]
        attrs = f"starts = {array(starts)}, limits = {array(limits)}, strides = {array([1] * len(starts))}"
        return self.op(f"slice {x.name} {{{attrs}}}", f"({x.type}) -> {tensor(shape)}", shape)

    def concat(self, xs, dim):
        shape = list(xs[0].shape)
        shape[dim] = sum(x.shape[dim] for x in xs)
        return self.op(f"concat {', '.join(x.name for x in xs)} {{dim = {dim} : i64}}",
                       f"({', '.join(x.type for x in xs)}) -> {tensor(shape)}", shape)

    def reduce(self, kind, x, dims, attributes=""):
        shape = [size for dim, size in enumerate(x.shape) if dim not in dims]
        return self.op(f"reduce {kind}, {x.name} {{dimensions = {array(dims)}{attributes}}}", f"({x.type}) -> {tensor(shape)}",
                       shape)

    def dot(self, a, b, a_contract, b_contract):
        shape = [size for dim, size in enumerate(a.shape) if dim not in a_contract]
        shape += [size for dim, size in enumerate(b.shape) if dim not in b_contract]
        attrs = f"lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = {array(a_contract)}, "
        attrs += f"rhs_contract = {array(b_contract)}"
        return self.op(f"dot_general {a.name}, {b.name} {{{attrs}}}", f"({a.type}, {b.type}) -> {tensor(shape)}", shape)

    # Layers on [batch, time, width].

    def linear(self, name, x, width):
        """In one of the layouts in which weights occur, with or without a bias."""
        layout, last, inner = self.random.choice(["io", "oi", "transposed"]), len(x.shape) - 1, x.shape[-1]
        if layout == "io":
            y = self.dot(x, self.parameter(name + ".weight", inner, width), [last], [0])
        elif layout == "oi":
            y = self.dot(x, self.parameter(name + ".weight", width, inner), [last], [1])
        else:
            y = self.dot(x, self.transpose(self.parameter(name + ".weight", width, inner), [1, 0]), [last], [0])
        if self.random.random() < 0.7:
            bias = self.parameter(name + ".bias", width)
            y = self.binary("add", y, self.broadcast(bias, y.shape, [last]))
        return y

    def activation(self, x):
        kind = self.random.choice(["tanh", "sigmoid", "gelu", "relu", "square"])
        if kind == "tanh":
            return self.unary("tanh", x)
        if kind == "sigmoid":
            one = self.constant("1.0", x.shape)
            return self.binary("div", x, self.binary("add", one, self.unary("exp", self.unary("neg", x))))
        if kind == "gelu":
            cdf = self.binary("add", self.constant("1.0", x.shape), self.unary("erf", self.scale(x, 0.70710678)))
            return self.binary("mul", self.scale(x, 0.5), cdf)
        if kind == "relu":
            return self.binary("max", x, self.constant("0.0", x.shape))
        return self.binary("pow", x, self.constant("2.0", x.shape))

    def norm(self, name, x):
        mode, width = self.random.choice(["layer", "rms"]), x.shape[-1]
        operands, types = "", [x.type]
        if self.random.random() < 0.8:
            scale = self.parameter(name + ".scale", width)
            operands += f" scale({scale.name})"
            types.append(scale.type)
            if mode == "layer" and self.random.random() < 0.7:
                bias = self.parameter(name + ".bias", width)
                operands += f" bias({bias.name})"
                types.append(bias.type)
        rows = tensor(x.shape[:-1])
        return self.op(f"layer_norm {mode}, {x.name}{operands} {{epsilon = 1.0e-05}}",
                       f"({', '.join(types)}) -> ({x.type}, {rows}, {rows})", x.shape, results=3)

    def mlp(self, x):
        hidden = self.activation(self.linear("mlp.up", self.norm("norm", x), self.random.choice([4, 6])))
        return self.binary("add", x, self.linear("mlp.down", hidden, x.shape[-1]))

    def gated(self, x):
        """One product whose halves are sliced apart."""
        both = self.linear("gate", x, 2 * x.shape[-1])
        half, zeros = x.shape[-1], [0] * (len(x.shape) - 1)
        a = self.slice(both, zeros + [0], both.shape[:-1] + [half])
        b = self.slice(both, zeros + [half], both.shape)
        return self.binary("add", x, self.binary("mul", self.unary("tanh", a), b))

    def attention(self, x):
        batch, time, width = x.shape
        heads = 2
        groups = self.random.choice([1, 2])
        size = width // heads
        query, rest = heads * size, groups * size
        qkv = self.linear("qkv", self.norm("norm", x), query + 2 * rest)

        def part(start, count):
            piece = self.slice(qkv, [0, 0, start], [batch, time, start + count * size])
            return self.transpose(self.reshape(piece, [batch, time, count, size]), [0, 2, 1, 3])

        q, k, v = part(0, heads), part(query, groups), part(query + rest, groups)
        causal = "causal, " if self.random.random() < 0.5 else ""
        y = self.op(f"attention {q.name}, {k.name}, {v.name} {{{causal}scale = {size ** -0.5:.6e}}}",
                    f"({q.type}, {k.type}, {v.type}) -> ({q.type}, {tensor(q.shape[:-1])})", q.shape, results=2)
        y = self.reshape(self.transpose(y, [0, 2, 1, 3]), [batch, time, width])
        return self.binary("add", x, self.linear("proj", y, width))

    def rotate(self, x):
        """Halves exchanged and joined again, as in rotary embeddings."""
        half, batch, time = x.shape[-1] // 2, x.shape[0], x.shape[1]
        a = self.slice(x, [0, 0, 0], [batch, time, half])
        b = self.slice(x, [0, 0, half], x.shape)
        turned = self.concat([self.unary("neg", b), a], 2)
        angle = self.broadcast(self.parameter("angle", x.shape[-1]), x.shape, [2])
        return self.binary("add", self.binary("mul", x, self.unary("cos", angle)),
                           self.binary("mul", turned, self.unary("sin", angle)))

    def mixer(self, x):
        """A product over time, with a softmax over its rows."""
        time = x.shape[1]
        weights = self.parameter("mix.weight", time, time)
        rows = self.op(f"softmax {weights.name} {{dim = 1 : i64}}", weights.type, weights.shape)
        return self.binary("add", x, self.transpose(self.dot(x, rows, [1], [1]), [0, 2, 1]))

    def pooled(self, x):
        """Reductions broadcast back."""
        kind = self.random.choice(["sum", "max", "min"])
        total = self.broadcast(self.reduce(kind, x, [1]), x.shape, [0, 2])
        gain = self.broadcast(self.parameter("gain", x.shape[-1]), x.shape, [2])
        return self.binary("add", x, self.binary("mul", self.unary("tanh", total), gain))

    def checkpointed(self, x):
        outer, self.lines = self.lines, []
        before = len(self.arguments)
        y = self.mlp(x)
        assert len(self.arguments) > before
        body, self.lines = self.lines, outer
        result = Value(f"%v{self.count}", y.shape)
        self.count += 1
        self.lines.append(f"    {result.name} = train.checkpoint : () -> {y.type} {{")
        self.lines += ["  " + line for line in body]
        self.lines += [f"      train.yield {y.name} : {y.type}", "    }"]
        return result

    # Beginnings and ends.

    def embed(self, batch, time, width):
        """Tokens, whose table the loss may use again."""
        table = self.parameter("wte", CLASSES, width)
        tokens = self.argument("tokens", [batch, time], "input", "i32")
        shape = [batch, time, width]
        x = self.op(f"gather_rows {table.name}, {tokens.name}", f"({table.type}, {tokens.type}) -> {tensor(shape)}", shape)
        position = self.parameter("wpe", time, width)
        return self.binary("add", x, self.broadcast(position, shape, [1, 2])), table

    def image(self, batch, time, width):
        """A convolution over a small image, its pixels then read as a sequence."""
        pixels = self.argument("pixels", [batch, 2, 3, 4], "input")
        filter_ = self.parameter("conv.weight", width, 2, 3, 2)
        shape = [batch, width, 3, 2]
        attrs = "strides = array<i64: 1, 2>, padding = array<i64: 1, 0, 1, 0>, dilations = array<i64: 1, 1>"
        y = self.op(f"conv2d {pixels.name}, {filter_.name} {{{attrs}}}",
                    f"({pixels.type}, {filter_.type}) -> {tensor(shape)}", shape)
        y = self.activation(y)
        return self.transpose(self.reshape(y, [batch, width, 6]), [0, 2, 1]), None

    def features(self, batch, time, width):
        x = self.argument("features", [batch, time, 3], "input")
        return self.linear("input", x, width), None

    def cross_entropy(self, x, table):
        batch, time, width = x.shape
        if table is not None and self.random.random() < 0.5:
            logits = self.dot(x, table, [2], [1])
        else:
            logits = self.linear("head", x, CLASSES)
        rows = batch * time
        flat = self.reshape(logits, [rows, CLASSES])
        targets = self.argument("targets", [batch, time], "target", "i32")
        labels = self.op(f"reshape {targets.name}", f"({targets.type}) -> {tensor([rows], 'i32')}", [rows], "i32")
        smoothing = self.random.choice(["0.0", "1.0e-01"])
        losses = self.op(f"cross_entropy {flat.name}, {labels.name} "
                         f"{{ignore_index = 3 : i64, label_smoothing = {smoothing}}}",
                         f"({flat.type}, {labels.type}) -> ({tensor([rows])}, {tensor([rows])})", [rows], results=2)
        count = self.op(f"count_valid {targets.name} {{ignore_index = 3 : i64}}", f"({targets.type}) -> tensor<f32>", [])
        return self.binary("div", self.reduce("sum", losses, [0]), count)

    def squared_error(self, x, table):
        y = self.linear("head", x, 2)
        targets = self.argument("targets", y.shape, "target")
        error = self.binary("sub", y, targets)
        total = self.reduce("sum", self.binary("mul", error, error), [0, 1, 2], ", train.mean")
        return self.binary("div", total, self.constant(f"{y.shape[0] * y.shape[1] * y.shape[2]}.0", []))


def build(seed, batch, loss):
    model = Model(seed)
    begin = model.random.choice([model.embed, model.image, model.features])
    width, time = model.random.choice([4, 8]), 6 if begin == model.image else model.random.choice([2, 3, 5])
    x, table = begin(batch, time, width)
    layers = [model.mlp, model.gated, model.attention, model.rotate, model.mixer, model.pooled, model.checkpointed]
    for index in range(model.random.randint(1, 3)):
        model.scope = f"blocks.{index}."
        x = model.random.choice(layers)(x)
    model.scope = ""
    if model.random.random() < 0.5:
        x = model.norm("norm_f", x)
    if loss == "any":
        loss = model.random.choice(["cross-entropy", "mse"])
    result = (model.cross_entropy if loss == "cross-entropy" else model.squared_error)(x, table)
    arguments = ",\n    ".join(model.arguments)
    body = "\n".join(model.lines)
    return (f"module {{\n  func.func @step(\n    {arguments}) -> (tensor<f32> {{train.role = \"loss\"}}) {{\n"
            f"{body}\n    return {result.name} : tensor<f32>\n  }}\n}}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2, help="samples (default 2)")
    parser.add_argument("--loss", choices=["any", "cross-entropy", "mse"], default="any")
    options = parser.parse_args()
    print(build(options.seed, options.batch, options.loss), end="")


if __name__ == "__main__":
    main()
