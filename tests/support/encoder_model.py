#!/usr/bin/env python3
"""A transformer encoder in the train dialect, written batch first or time first, for tests of sharding.

    encoder_model.py --order=time --batch=4 > model.mlir

Both orders compute the same function of the same parameters; products see rows, [batch · time, width] or
[time · batch, width], as exporters write them.
"""
import argparse

from random_model import Model

TIME, WIDTH, HEADS, HIDDEN, LAYERS = 3, 8, 2, 12, 2


class Encoder(Model):
    def __init__(self, order, batch):
        super().__init__(0)
        self.sizes = [batch, TIME] if order == "batch" else [TIME, batch]
        self.order, self.batch, self.rows = order, batch, batch * TIME

    def dense(self, name, x, width):
        weight, bias = self.parameter(name + ".weight", width, x.shape[1]), self.parameter(name + ".bias", width)
        y = self.dot(x, weight, [1], [1])
        return self.binary("add", y, self.broadcast(bias, y.shape, [1]))

    def heads(self, x):
        """[batch · heads, time, size] of rows."""
        size = WIDTH // HEADS
        if self.order == "time":
            return self.swap(self.reshape(x, [TIME, self.batch * HEADS, size]))
        y = self.transpose(self.reshape(x, [self.batch, TIME, HEADS, size]), [0, 2, 1, 3])
        return self.reshape(y, [self.batch * HEADS, TIME, size])

    def rows_of(self, y):
        if self.order == "time":
            return self.reshape(self.swap(y), [self.rows, WIDTH])
        y = self.transpose(self.reshape(y, [self.batch, HEADS, TIME, WIDTH // HEADS]), [0, 2, 1, 3])
        return self.reshape(y, [self.rows, WIDTH])

    def self_attention(self, x):
        qkv = self.dense("in", x, 3 * WIDTH)
        q, k, v = (self.heads(self.slice(qkv, [0, i * WIDTH], [self.rows, (i + 1) * WIDTH])) for i in range(3))
        scores = self.scale(self.batched(q, k, 2, 2), (WIDTH // HEADS) ** -0.5)
        weights = self.op(f"softmax {scores.name} {{dim = 2 : i64}}", scores.type, scores.shape)
        return self.dense("out", self.rows_of(self.batched(weights, v, 2, 1)), WIDTH)

    def write(self):
        x = self.argument("x", [self.batch, TIME, WIDTH], "input")
        targets = self.argument("targets", [self.batch, TIME, WIDTH], "target")
        if self.order == "time":
            x = self.swap(x)
        x = self.reshape(x, [self.rows, WIDTH])
        for index in range(LAYERS):
            self.scope = f"layers.{index}."
            x = self.norm("norm1", self.binary("add", x, self.self_attention(x)))
            y = self.dense("linear2", self.unary("tanh", self.dense("linear1", x, HIDDEN)), WIDTH)
            x = self.norm("norm2", self.binary("add", x, y))
        self.scope = ""
        y = self.reshape(x, self.sizes + [WIDTH])
        if self.order == "time":
            y = self.swap(y)
        error = self.binary("sub", y, targets)
        total = self.reduce("sum", self.binary("mul", error, error), [0, 1, 2], ", train.mean")
        loss = self.binary("div", total, self.constant(f"{self.rows * WIDTH}.0", []))
        return self.finish(loss)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", choices=["batch", "time"], required=True)
    parser.add_argument("--batch", type=int, default=4)
    options = parser.parse_args()
    print(Encoder(options.order, options.batch).write(), end="")


if __name__ == "__main__":
    main()
