#!/usr/bin/env python3
"""Small decoders in the train dialect for tests of sequence axes.

    sequence_model.py --seed=3 --batch=2 --length=16 --mask=window --heads=4 --groups=2 > model.mlir

Equal options give equal output. Tokens become rows of width 8, with positions from a table or by rotation; blocks of
attention and a gated layer follow, of which some work on [batch, time, width] and some on rows [batch · time, width]; the
loss is a cross-entropy that ignores some targets, or a squared error. Masks:

    none, causal, window (causal, 5 keys), prefix (3 positions that all see), documents (causal in ranges that tokens end),
    hidden (boolean, of chance), padding (causal, tokens of each sample hidden as keys), added (a number for each pair)

and masks of all pairs that are written out, as scores that are masked before a softmax, for `recognize-attention`: ids of
documents, counted at each token 0 or after it, are equal, and

    packed (causal), packed-window (causal, 5 keys), packed-both (no more), packed-ids (causal, ids are an input)
"""
import argparse

from random_model import CLASSES, Model, tensor

WIDTH = 8
MASKS = ["none", "causal", "window", "prefix", "documents", "hidden", "padding", "added", "packed", "packed-window",
         "packed-both", "packed-ids"]


class Decoder(Model):
    def __init__(self, options):
        super().__init__(options.seed)
        self.options, self.batch, self.time = options, options.batch, options.length

    def argument(self, name, shape, role, element="f32"):
        value = super().argument(name, shape, role, element)
        if role in ("input", "target"):
            dims = ["sample", "position"] + ["none"] * (len(shape) - 2)
            self.arguments[-1] = self.arguments[-1][:-1] + f", train.dims = #train.dims<[{', '.join(dims)}]>}}"
        return value

    def iota(self, shape, dim, element="i64"):
        return self.op(f"iota {{dim = {dim} : i64}}", tensor(shape, element), shape, element)

    def compare(self, direction, a, b):
        return self.op(f"compare {direction}, {a.name}, {b.name}", f"({a.type}, {b.type}) -> {tensor(a.shape, 'i1')}", a.shape, "i1")

    def select(self, condition, a, b):
        return self.op(f"select {condition.name}, {a.name}, {b.name}", f"{condition.type}, {a.type}", a.shape, a.type[:-1].split("x")[-1])

    def typed(self, op, a, b):
        return self.op(f"{op} {a.name}, {b.name}", a.type, a.shape, a.type[:-1].split("x")[-1])

    def spread(self, x, shape, dims, element):
        attribute = "array<i64: " + ", ".join(map(str, dims)) + ">" if dims else "array<i64>"
        return self.op(f"broadcast {x.name} {{broadcast_dimensions = {attribute}}}", f"({x.type}) -> {tensor(shape, element)}", shape, element)

    def masks(self, tokens):
        """Operands and attributes of attention, and the types of the operands."""
        kind, batch, time = self.options.mask, self.batch, self.time
        if kind == "none":
            return "", "", []
        if kind == "causal":
            return "", "causal, ", []
        if kind == "window":
            return "", "causal, window = 5 : i64, ", []
        if kind in ("prefix", "documents"):
            shape = [1 if kind == "prefix" else batch, time]
            number = lambda value: self.constant(str(value), shape, "i64")
            own = self.iota(shape, 1)
            if kind == "prefix":
                begin = number(0)
                after = self.typed("add", own, number(1))
                end = self.typed("max", after, number(3))
                return f" keys({begin.name} to {end.name})", "", [begin.type, end.type]
            # A document begins at the last token 0: the running maximum of its place, over all pairs of places.
            full = [batch, time, time]
            zero = self.constant("0", [batch, time], "i32")
            isend = self.compare("eq", tokens, zero)
            there, here = self.iota(full, 2), self.iota(full, 1)
            seen = self.compare("le", there, here)
            starts = self.spread(isend, full, [0, 2], "i1")
            both = self.typed("mul", seen, starts)
            place = self.select(both, there, self.constant("0", full, "i64"))
            begin = self.op(f"reduce max, {place.name} {{dimensions = array<i64: 2>}}", f"({place.type}) -> {tensor(shape, 'i64')}", shape, "i64")
            end = self.constant(str(time), shape, "i64")
            return f" keys({begin.name} to {end.name})", "causal, ", [begin.type, end.type]
        if kind == "padding":
            two = self.constant("2", [batch, time], "i32")
            mask = self.compare("ne", tokens, two)
            mask = self.op(f"reshape {mask.name}", f"({mask.type}) -> {tensor([batch, 1, 1, time], 'i1')}", [batch, 1, 1, time], "i1")
            return f" mask({mask.name})", "causal, ", [mask.type]
        if kind == "hidden":
            shape = [1, self.random.choice([1, self.options.heads]), time, time]
            bits = [[[["true" if i == j or self.random.random() < 0.6 else "false" for j in range(time)] for i in range(time)]
                     for _ in range(shape[1])] for _ in range(shape[0])]
            mask = self.constant(str(bits).replace("'", ""), shape, "i1")
        else:
            shape = [1, 1, self.random.choice([1, time]), time]
            numbers = [[[[f"{self.random.uniform(-2, 2):.3e}" for _ in range(time)] for _ in range(shape[2])]]]
            mask = self.constant(str(numbers).replace("'", ""), shape, "f32")
        return f" mask({mask.name})", self.random.choice(["", "causal, "]), [mask.type]

    def pairs(self, tokens):
        """[batch, time, time], of queries and keys."""
        kind, batch, time = self.options.mask, self.batch, self.time
        full = [batch, time, time]
        ends = self.compare("eq", tokens, self.constant("0", [batch, time], "i32"))
        ends = self.op(f"convert {ends.name}", f"({ends.type}) -> {tensor([batch, time], 'i64')}", [batch, time], "i64")
        there, here = self.iota([time, time], 0), self.iota([time, time], 1)
        sums = self.select(self.spread(self.compare("le", there, here), full, [1, 2], "i1"), self.spread(ends, full, [0, 1], "i64"),
                           self.constant("0", full, "i64"))
        ids = self.op(f"reduce sum, {sums.name} {{dimensions = array<i64: 1>}}", f"({sums.type}) -> {ends.type}", [batch, time], "i64")
        if self.random.random() < 0.5:
            ids = self.typed("sub", ids, ends)
        if kind == "packed-ids":
            ids = self.argument("documents", [batch, time], "input", "i64")
        mask = self.compare("eq", self.spread(ids, full, [0, 1], "i64"), self.spread(ids, full, [0, 2], "i64"))
        if kind != "packed-both":
            mask = self.typed("mul", mask, self.spread(self.compare("le", here, there), full, [1, 2], "i1"))
        if kind == "packed-window":
            first = self.typed("sub", there, self.constant("5", [time, time], "i64"))
            mask = self.typed("mul", mask, self.spread(self.compare("gt", here, first), full, [1, 2], "i1"))
        return mask

    def written_out(self, q, k, v, mask):
        heads, groups, pairs = self.options.heads, self.options.groups, [self.batch, self.options.heads, self.time, self.time]
        if heads != groups:
            wide = [self.batch, groups, heads // groups, *k.shape[2:]]
            k, v = (self.reshape(self.broadcast(x, wide, [0, 1, 3, 4]), q.shape) for x in (k, v))

        def product(a, b, dim, shape):
            return self.op(f"dot_general {a.name}, {b.name} {{lhs_batch = array<i64: 0, 1>, rhs_batch = array<i64: 0, 1>, "
                           f"lhs_contract = array<i64: 3>, rhs_contract = array<i64: {dim}>}}",
                           f"({a.type}, {b.type}) -> {tensor(shape)}", shape)

        scores = self.scale(product(q, k, 3, pairs), q.shape[-1] ** -0.5)
        hidden = self.constant(self.random.choice(["0xFF800000", "-3.4e38"]), pairs)
        scores = self.select(self.spread(mask, pairs, [0, 2, 3], "i1"), scores, hidden)
        p = self.op(f"softmax {scores.name} {{dim = 3 : i64}}", scores.type, pairs)
        return product(p, v, 2, q.shape)

    def rotated(self, x):
        """[batch, heads, time, size], whose halves turn with the position."""
        half = x.shape[-1] // 2
        low, high = self.slice(x, [0] * 4, x.shape[:-1] + [half]), self.slice(x, [0, 0, 0, half], x.shape)
        place = self.iota([self.time, half], 0, "f32")
        turned = [self.broadcast(self.unary(op, place), low.shape, [2, 3]) for op in ("cos", "sin")]
        first = self.binary("sub", self.binary("mul", low, turned[0]), self.binary("mul", high, turned[1]))
        second = self.binary("add", self.binary("mul", low, turned[1]), self.binary("mul", high, turned[0]))
        return self.concat([first, second], 3)

    def attention(self, x, masks):
        heads, groups = self.options.heads, self.options.groups
        size = 2 * self.random.choice([1, 2])
        h = self.norm("attention_norm", x)
        if self.random.random() < 0.5:
            h = self.reshape(h, [self.batch * self.time, WIDTH])

        def part(name, count):
            y = self.reshape(self.linear(name, h, count * size), [self.batch, self.time, count, size])
            return self.transpose(y, [0, 2, 1, 3])

        q, k, v = part("q", heads), part("k", groups), part("v", groups)
        if self.random.random() < 0.5:
            q, k = self.rotated(q), self.rotated(k)
        if self.options.mask.startswith("packed"):
            y = self.written_out(q, k, v, masks)
            y = self.reshape(self.transpose(y, [0, 2, 1, 3]), [self.batch, self.time, heads * size])
            return self.binary("add", x, self.linear("out", y, WIDTH))
        operands, attributes, types = masks
        types = ", ".join([q.type, k.type, v.type] + types)
        y = self.op(f"attention {q.name}, {k.name}, {v.name}{operands} {{{attributes}scale = {size ** -0.5:.6e}}}",
                    f"({types}) -> ({q.type}, {tensor(q.shape[:-1])})", q.shape, results=2)
        y = self.reshape(self.transpose(y, [0, 2, 1, 3]), [self.batch, self.time, heads * size])
        return self.binary("add", x, self.linear("out", y, WIDTH))

    def on_rows(self, x):
        rows = self.reshape(x, [self.batch * self.time, WIDTH])
        return self.reshape(self.mlp(rows), x.shape)

    def write(self):
        tokens = self.argument("tokens", [self.batch, self.time], "input", "i32")
        table = self.parameter("wte", CLASSES, WIDTH)
        shape = [self.batch, self.time, WIDTH]
        x = self.op(f"gather_rows {table.name}, {tokens.name}", f"({table.type}, {tokens.type}) -> {tensor(shape)}", shape)
        place = self.iota([self.time], 0, "i32")
        position = self.parameter("wpe", self.time, WIDTH)
        row = self.op(f"gather_rows {position.name}, {place.name}", f"({position.type}, {place.type}) -> {position.type}", position.shape)
        x = self.binary("add", x, self.broadcast(row, shape, [1, 2]))
        masks = self.pairs(tokens) if self.options.mask.startswith("packed") else self.masks(tokens)
        for index in range(self.options.layers):
            self.scope = f"h.{index}."
            x = self.attention(x, masks)
            x = self.random.choice([self.mlp, self.on_rows, self.gated])(x)
        self.scope = ""
        result = self.cross_entropy(x, table) if self.random.random() < 0.8 else self.squared_error(x, table)
        return self.finish(result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--mask", choices=MASKS, default="causal")
    print(Decoder(parser.parse_args()).write(), end="")


if __name__ == "__main__":
    main()
