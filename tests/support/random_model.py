#!/usr/bin/env python3
"""Random differentiable models in the train dialect, for tests of passes.

    random_model.py --seed=3 --batch=4 --loss=cross-entropy > model.mlir

Equal options give equal output. A model is a chain of blocks over a tensor of shape [batch, time, width] (or an image
at first), each with parameters of its own, parts of packed ones, or ones that it shares with others; some move the batch to
another dimension and merge it with others. The loss is part of the model, or with --terms an output that adds up several
terms: of the batch, of parameters alone, and of what is computed on the way. Models of one seed and different batch
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
        self.shared = {}  # weights that several blocks read, by shape

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

    def finish(self, loss, role='train.role = "loss"'):
        """The module, whose function returns the loss."""
        arguments, body = ",\n    ".join(self.arguments), "\n".join(self.lines)
        return (f"module {{\n  func.func @step(\n    {arguments}) -> (tensor<f32> {{{role}}}) {{\n"
                f"{body}\n    return {loss.name} : tensor<f32>\n  }}\n}}\n")

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

    # Layers that move the batch: time first, as a recurrent network or a transformer of PyTorch computes by default.

    def swap(self, x):
        return self.transpose(x, [1, 0] + list(range(2, len(x.shape))))

    def time_first(self, x):
        """[time · batch, width], a few layers on the rows, and back."""
        batch, time, width = x.shape
        rows = self.reshape(self.swap(x), [time * batch, width])
        y = self.activation(self.linear("rows", self.norm("norm", rows), width))
        return self.binary("add", x, self.swap(self.reshape(y, [time, batch, width])))

    def time_first_attention(self, x):
        """Heads merged with the batch behind time, products over [batch · heads, time, size]."""
        batch, time, width = x.shape
        heads = self.random.choice([1, 2])
        size = width // heads
        rows = self.reshape(self.swap(x), [time * batch, width])
        packed = self.parameter("in.weight", 3 * width, width)

        def part(index):
            weight = self.slice(packed, [index * width, 0], [(index + 1) * width, width])
            y = self.reshape(self.dot(rows, weight, [1], [1]), [time, batch * heads, size])
            return self.swap(y)

        q, k, v = part(0), part(1), part(2)
        scores = self.batched(q, k, 2, 2)
        weights = self.op(f"softmax {self.scale(scores, size ** -0.5).name} {{dim = 2 : i64}}", scores.type, scores.shape)
        y = self.swap(self.batched(weights, v, 2, 1))
        y = self.reshape(y, [time * batch, width])
        y = self.reshape(self.linear("out", y, width), [time, batch, width])
        return self.binary("add", x, self.swap(y))

    def batched(self, a, b, a_contract, b_contract):
        """A product of matrices for each index of the first dimension."""
        shape = [a.shape[0], a.shape[3 - a_contract], b.shape[3 - b_contract]]
        attrs = "lhs_batch = array<i64: 0>, rhs_batch = array<i64: 0>, "
        attrs += f"lhs_contract = {array([a_contract])}, rhs_contract = {array([b_contract])}"
        return self.op(f"dot_general {a.name}, {b.name} {{{attrs}}}", f"({a.type}, {b.type}) -> {tensor(shape)}", shape)

    def channels_first(self, x):
        """[width, batch · time]: the batch inside a dimension that others surround."""
        batch, time, width = x.shape
        turned = self.reshape(self.transpose(x, [2, 0, 1]), [width, batch * time])
        weight = self.parameter("turned.weight", width, width)
        y = self.unary("tanh", self.dot(weight, turned, [1], [0]))
        merged = self.reshape(self.transpose(self.reshape(y, [width, batch, time]), [2, 0, 1]), [time * width * batch])
        gate = self.unary("tanh", merged)
        y = self.transpose(self.reshape(gate, [time, width, batch]), [2, 0, 1])
        return self.binary("add", x, y)

    # Parameters that are read twice, in parts, or as a whole.

    def shared_linear(self, x):
        """A weight that other blocks of this kind read too, and this one twice."""
        width = x.shape[-1]
        if width not in self.shared:
            self.shared[width] = self.argument(f"shared.{width}.weight", [width, width], "param")
        weight = self.shared[width]
        y = self.unary("tanh", self.dot(x, weight, [2], [0]))
        return self.binary("add", x, self.dot(y, weight, [2], [self.random.choice([0, 1])]))

    def packed(self, x):
        """Halves of one weight multiply different inputs."""
        width = x.shape[-1]
        weight = self.parameter("packed.weight", 2 * width, width)
        a = self.dot(x, self.slice(weight, [0, 0], [width, width]), [2], [1])
        b = self.dot(self.unary("tanh", x), self.slice(weight, [width, 0], [2 * width, width]), [2], [1])
        return self.binary("add", a, b)

    def normed_weight(self, x):
        """As weight_norm: each row of the weight by its length, times a gain."""
        width = x.shape[-1]
        direction, gain = self.parameter("weight_v", width, width), self.parameter("weight_g", width)
        squares = self.reduce("sum", self.binary("mul", direction, direction), [1])
        length = self.unary("sqrt", self.binary("add", squares, self.constant("1.0e-01", squares.shape)))
        factor = self.broadcast(self.binary("div", gain, length), direction.shape, [0])
        return self.binary("add", x, self.dot(x, self.binary("mul", direction, factor), [2], [1]))

    def parameter_sum(self, x):
        """A sum over a parameter meets the parameter and the samples."""
        weight = self.parameter("gain", x.shape[-1])
        total = self.broadcast(self.reduce("sum", weight, [0]), weight.shape, [])
        y = self.binary("mul", x, self.broadcast(self.unary("tanh", self.binary("mul", weight, total)), x.shape, [2]))
        return self.binary("add", x, y)

    def odd(self, x):
        """Widths that nothing divides."""
        width = self.random.choice([5, 7])
        return self.binary("add", x, self.linear("odd.down", self.activation(self.linear("odd.up", x, width)), x.shape[-1]))

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


def add_terms(model, loss, middle):
    """The loss, a penalty of some parameters, and the mean square of what was computed on the way."""
    count = middle.shape[0] * middle.shape[1] * middle.shape[2]
    squares = model.reduce("sum", model.binary("mul", middle, middle), [0, 1, 2], ", train.mean")
    loss = model.binary("add", loss, model.scale(model.binary("div", squares, model.constant(f"{count}.0", [])), 0.1))
    parameters = [line for line in model.arguments if '"param"' in line]
    for line in model.random.sample(parameters, min(2, len(parameters))):
        name, sizes = line.split(": ")[0], line.split("tensor<")[1].split("xf32>")[0]
        weight = Value(name, [int(size) for size in sizes.split("x")])
        squares = model.reduce("sum", model.binary("mul", weight, weight), list(range(len(weight.shape))))
        loss = model.binary("add", loss, model.scale(squares, 0.03))
    return loss


def build(seed, batch, loss, terms=False):
    model = Model(seed)
    begin = model.random.choice([model.embed, model.image, model.features])
    width, time = model.random.choice([4, 8]), 6 if begin == model.image else model.random.choice([2, 3, 5])
    x, table = begin(batch, time, width)
    layers = [model.mlp, model.gated, model.attention, model.rotate, model.mixer, model.pooled,
              model.time_first, model.time_first_attention, model.channels_first, model.shared_linear, model.packed,
              model.normed_weight, model.parameter_sum, model.odd]
    middle = x
    for index in range(model.random.randint(1, 3)):
        model.scope = f"blocks.{index}."
        x = model.random.choice(layers)(x)
        middle = model.random.choice([middle, x])
    model.scope = ""
    if model.random.random() < 0.5:
        x = model.norm("norm_f", x)
    if loss == "any":
        loss = model.random.choice(["cross-entropy", "mse"])
    result = (model.cross_entropy if loss == "cross-entropy" else model.squared_error)(x, table)
    if terms:
        result = add_terms(model, result, middle)
    role = 'train.role = "output", train.name = "loss"' if terms else 'train.role = "loss"'
    return model.finish(result, role)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2, help="samples (default 2)")
    parser.add_argument("--loss", choices=["any", "cross-entropy", "mse"], default="any")
    parser.add_argument("--terms", action="store_true", help="several terms; an output 'loss' instead of the loss")
    options = parser.parse_args()
    print(build(options.seed, options.batch, options.loss, options.terms), end="")


if __name__ == "__main__":
    main()
