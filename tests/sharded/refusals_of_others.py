#!/usr/bin/env python3
"""What public systems of sequence parallelism refuse, each as a whole step here: exact, or an error that says why.

    refusals_of_others.py [--only=TEXT] [--list]

Exact: loss, norm, every gradient (as the moments of AdamW's first step have it) and every update of n ranks equal those of one rank, in the
interpreter. Error: the compiler's one error has the text. Systems:

    torch       torch.distributed.tensor.experimental.context_parallel
    TE          TransformerEngine, context parallelism of DotProductAttention
    MaxText     context parallelism on GPUs
    ALST        DeepSpeed, Arctic long sequence training
    TRL         TRL and accelerate, over torch's context_parallel
    several     no system has it in all of its ways
"""
import argparse
import concurrent.futures
import math
import pathlib
import subprocess
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from check_sequence import TOLERANCE, on_mesh, sharded, sizes, unsharded  # noqa: E402
from random_model import array, tensor  # noqa: E402
from sequence_model import WIDTH, Decoder  # noqa: E402


class Case(Decoder):
    """A block of attention and a layer; only the form of weights and norms is left to chance."""

    DEFAULTS = {"seed": 0, "batch": 2, "length": 16, "heads": 4, "groups": 2, "size": 4, "mask": "causal", "context": 0, "context_split": True,
                "time_first": False, "written_out": False}

    def __init__(self, **settings):
        super().__init__(types.SimpleNamespace(**{**self.DEFAULTS, **settings}))

    def numbers(self, values, element="f32"):
        """A constant of nested lists."""
        shape, inner = [], values
        while isinstance(inner, list):
            shape.append(len(inner))
            inner = inner[0]
        text = str(values).replace("True", "true").replace("False", "false")
        return self.constant(text, shape, element)

    def pairs(self, value, element="f32"):
        """A constant [time, time] of what a query and a key give."""
        return self.numbers([[value(i, j) for j in range(self.time)] for i in range(self.time)], element)

    def ranges(self, begin, end):
        """Keys [1 or batch, time] of each query, as operand and types."""
        first, last = self.numbers(begin, "i64"), self.numbers(end, "i64")
        return f" keys({first.name} to {last.name})", [first.type, last.type]

    def padded_lengths(self):
        """All keys of the first sample, all but five of the second."""
        ends = [[self.time - 5 * (row % 2)] * self.time for row in range(self.batch)]
        return self.ranges([[0] * self.time] * self.batch, ends)

    def relative(self):
        """A learned number for each head and distance, as of T5."""
        table = self.argument("relative.weight", [5, self.options.heads], "param")
        index = self.pairs(lambda i, j: min(abs(i - j), 4), "i32")
        shape = [self.time, self.time, self.options.heads]
        rows = self.op(f"gather_rows {table.name}, {index.name}", f"({table.type}, {index.type}) -> {tensor(shape)}", shape)
        return self.reshape(self.transpose(rows, [2, 0, 1]), [1, self.options.heads, self.time, self.time])

    def image_of_data(self, tokens):
        """Tokens 1 all see each other, others a causal window of four."""
        shape = [self.batch, self.time, self.time]
        image = self.compare("eq", tokens, self.constant("1", tokens.shape, "i32"))
        both = self.typed("mul", self.spread(image, shape, [0, 1], "i1"), self.spread(image, shape, [0, 2], "i1"))
        window = self.spread(self.pairs(lambda i, j: i - 4 < j <= i, "i1"), shape, [1, 2], "i1")
        mask = self.typed("max", both, window)
        shape = [self.batch, 1, self.time, self.time]
        return self.op(f"reshape {mask.name}", f"({mask.type}) -> {tensor(shape, 'i1')}", shape, "i1")

    def named(self, mask, tokens):
        """What sequence_model.py makes of one of its masks."""
        chosen, self.options.mask = self.options.mask, mask
        operands, attributes, types_ = super().masks(tokens)
        self.options.mask = chosen
        return operands, attributes, types_

    def masks(self, tokens):
        kind, time, every = self.options.mask, self.time, range(self.time)
        if kind == "chunked":  # causal in chunks of five keys
            operands, types_ = self.ranges([[i // 5 * 5 for i in every]], [[time] * time])
            return operands, "causal, ", types_
        if kind == "both_sides":
            operands, types_ = self.ranges([[max(0, i - 2) for i in every]], [[min(time, i + 4) for i in every]])
            return operands, "", types_
        if kind == "image":  # positions 3 to 8 all see each other, others a causal window of four
            operands, types_ = self.ranges([[min(3, max(0, i - 3)) if 3 <= i < 9 else max(0, i - 3) for i in every]],
                                           [[9 if 3 <= i < 9 else i + 1 for i in every]])
            return operands, "", types_
        if kind == "padded":
            operands, types_ = self.padded_lengths()
            return operands, "causal, ", types_
        if kind in ("image_of_data", "relative"):
            mask = self.relative() if kind == "relative" else self.image_of_data(tokens)
            return f" mask({mask.name})", "", [mask.type]
        if kind == "alibi":
            mask = self.numbers([[[[2.0 ** -(head + 1) * (j - i) for j in every] for i in every] for head in range(self.options.heads)]])
            return f" mask({mask.name})", "causal, ", [mask.type]
        if kind == "added_padded":
            operands, types_ = self.padded_lengths()
            mask = self.numbers([[[[(i * 7 + j * 3) % 5 / 4 - 0.5 for j in every] for i in every]]])
            return f" mask({mask.name}){operands}", "causal, ", [mask.type] + types_
        if kind == "documents_window":
            operands, attributes, types_ = self.named("documents", tokens)
            return operands, attributes + "window = 3 : i64, ", types_
        if kind == "documents_padded":
            operands, attributes, types_ = self.named("documents", tokens)
            mask, _, more = self.named("padding", tokens)
            return mask + operands, attributes, more + types_
        return super().masks(tokens)

    def attend(self, x, context, tokens):
        heads, groups, size = self.options.heads, self.options.groups, self.options.size
        h = self.norm("attention_norm", x)

        def part(name, source, count):
            y = self.reshape(self.linear(name, source, count * size), [self.batch, source.shape[1], count, size])
            return self.transpose(y, [0, 2, 1, 3])

        source = context or h
        q, k, v = part("q", h, heads), part("k", source, groups), part("v", source, groups)
        if not context:
            q, k = self.rotated(q), self.rotated(k)
        if self.options.written_out:
            y = self.soft_capped(q, k, v)
        else:
            operands, attributes, types_ = self.masks(tokens)
            types_ = ", ".join([q.type, k.type, v.type] + types_)
            y = self.op(f"attention {q.name}, {k.name}, {v.name}{operands} {{{attributes}scale = {size ** -0.5:.6e}}}",
                        f"({types_}) -> ({q.type}, {tensor(q.shape[:-1])})", q.shape, results=2)
        y = self.reshape(self.transpose(y, [0, 2, 1, 3]), [self.batch, self.time, heads * size])
        return self.binary("add", x, self.linear("out", y, WIDTH))

    def soft_capped(self, q, k, v):
        """Scores that no attention op has: their tanh, before a causal mask."""
        def product(a, b, contract):
            shape = a.shape[:3] + [b.shape[5 - contract[1]]]
            attributes = (f"lhs_batch = {array([0, 1])}, rhs_batch = {array([0, 1])}, lhs_contract = {array(contract[:1])}, "
                          f"rhs_contract = {array(contract[1:])}")
            return self.op(f"dot_general {a.name}, {b.name} {{{attributes}}}", f"({a.type}, {b.type}) -> {tensor(shape)}", shape)

        scores = self.scale(self.unary("tanh", self.scale(product(q, k, [3, 3]), 0.5 * self.options.size ** -0.5)), 2.0)
        seen = self.spread(self.pairs(lambda i, j: j <= i, "i1"), scores.shape, [2, 3], "i1")
        scores = self.select(seen, scores, self.constant("-1.0e+30", scores.shape))
        weights = self.op(f"softmax {scores.name} {{dim = 3 : i64}}", scores.type, scores.shape)
        return product(weights, v, [3, 2])

    def write(self):
        shape = [self.batch, self.time, WIDTH]
        if self.options.time_first:  # positions in front of samples
            tokens = self.argument("tokens", [self.time, self.batch], "input", "i32")
            self.arguments[-1] = self.arguments[-1].replace("[sample, position]", "[position, sample]")
            tokens = self.op(f"transpose {tokens.name} {{permutation = {array([1, 0])}}}",
                             f"({tokens.type}) -> {tensor(shape[:2], 'i32')}", shape[:2], "i32")
        else:
            tokens = self.argument("tokens", shape[:2], "input", "i32")
        table = self.parameter("wte", 8, WIDTH)
        x = self.op(f"gather_rows {table.name}, {tokens.name}", f"({table.type}, {tokens.type}) -> {tensor(shape)}", shape)
        context = None
        if self.options.context:
            context = self.argument("context", [self.batch, self.options.context, WIDTH], "input")
            if not self.options.context_split:
                self.arguments[-1] = self.arguments[-1].replace("[sample, position, none]", "[sample, none, none]")
        x = self.mlp(self.attend(x, context, tokens))
        return self.finish(self.cross_entropy(x, table))


TWO, FOUR, BOTH = "seq = 2", "seq = 4", "ring : sequence = 2, exchange : sequence = 2"
ORDERS = ("contiguous", "zigzag")


def ways(mesh, *attention, orders=ORDERS):
    return [(mesh, way, order) for way in attention for order in orders]


ALL = ways(TWO, "allgather", "ring", "ulysses") + ways(BOTH, "ring+ulysses")
EXACT = None
UNDIVIDED = "attention has %d query heads and %d key heads, which do not divide evenly among %d ranks; use ring or allgather"
BIAS = "keys are gathered, not sent from rank to rank: its mask is added to the scores"
OTHER_KEYS = "keys are gathered, not sent from rank to rank: it has 16 queries and %d keys"

# System, what it refuses, the model, (mesh, attention, order), what the error says (EXACT: there is none), and what a remark says
# of a ring that it does otherwise.
ROWS = [
    ("torch", "positions in another dimension than the third", {"time_first": True}, ALL, EXACT),
    ("torch, MaxText", "attention that is not causal", {"mask": "none"}, ALL + ways(FOUR, "ring"), EXACT),
    ("torch", "a mask of booleans", {"mask": "hidden"}, ALL, EXACT),
    ("torch", "a bias that is added to scores", {"mask": "added"}, ALL, EXACT, BIAS),
    ("torch", "ALiBi", {"mask": "alibi"}, ALL, EXACT, BIAS),
    ("torch", "learned relative positions", {"mask": "relative"}, ALL, EXACT, BIAS),
    ("torch", "fewer queries than keys, causal", {"context": 32}, ALL, EXACT, OTHER_KEYS % 32),
    ("torch", "scores that are not those of its kernels: a soft cap", {"written_out": True, "groups": 4}, ALL, EXACT),
    ("TE", "an order that is no zigzag", {}, ways(FOUR, "allgather", "ring", orders=["contiguous"]), EXACT),
    ("TE", "documents whose lengths twice the ranks do not divide", {"mask": "documents"}, ALL + ways(FOUR, "ring"), EXACT),
    ("TE", "a sliding window in a ring", {"mask": "window"}, ways(TWO, "ring") + ways(FOUR, "ring") + ways(BOTH, "ring+ulysses"), EXACT),
    ("TE", "a window of both sides in a ring", {"mask": "both_sides"}, ALL, EXACT),
    ("TE", "a bias beside padding", {"mask": "added_padded"}, ALL, EXACT, BIAS),
    ("TE", "a bias in a ring around exchanged heads", {"mask": "added"}, ways(BOTH, "ring+ulysses"), EXACT, BIAS),
    ("TE", "padding where keys are gathered", {"mask": "padded"}, ways(TWO, "allgather") + ways(FOUR, "allgather"), EXACT),
    ("TE", "a length that the ranks do not divide", {"length": 15}, ways(TWO, "allgather", "ring", "ulysses", orders=["contiguous", "auto"]),
     "'tokens' has 15 positions (dimension 1), expected a multiple of 2"),
    ("TE", "a length that twice the ranks do not divide", {"length": 6},
     ways(TWO, "allgather", "ring", "ulysses", orders=["contiguous", "auto"]), EXACT),
    ("TE", "the same in a zigzag", {"length": 6}, ways(TWO, "allgather", "ring", "ulysses", orders=["zigzag"]),
     "'tokens' has 6 positions (dimension 1), expected a multiple of 4"),
    ("MaxText", "documents without a ring, or without a zigzag", {"mask": "documents"},
     ways(TWO, "ring", orders=["contiguous"]) + ways(TWO, "allgather", "ulysses"), EXACT),
    ("ALST", "a sliding window", {"mask": "window"}, ways(TWO, "ulysses") + ways(FOUR, "allgather"), EXACT),
    ("ALST", "packed samples", {"mask": "documents"}, ways(TWO, "ulysses") + ways(FOUR, "allgather"), EXACT),
    ("ALST", "chunks", {"mask": "chunked"}, ALL, EXACT),
    ("ALST", "a prefix that all see", {"mask": "prefix"}, ALL, EXACT),
    ("ALST", "anything but an exchange of heads", {"heads": 1, "groups": 1}, ways(TWO, "ring", "allgather"), EXACT),
    ("TRL", "packed samples in a ring", {"mask": "documents"}, ways(TWO, "ring") + ways(FOUR, "ring"), EXACT),
    ("TRL", "packed samples beside a sliding window", {"mask": "documents_window"}, ALL, EXACT),
    ("TRL", "padding", {"mask": "padding"}, ALL, EXACT),
    ("several", "padding beside documents", {"mask": "documents_padded"}, ALL, EXACT),
    ("several", "more ranks than heads", {"heads": 2}, ways(FOUR, "ring", "allgather") + ways(FOUR, "auto", orders=["auto"]), EXACT),
    ("several", "the same by an exchange of heads", {"heads": 2}, ways(FOUR, "ulysses"), UNDIVIDED % (2, 2, 4)),
    ("several", "fewer key heads than ranks", {"groups": 1}, ways(TWO, "ring", "allgather") + ways(FOUR, "ring", "allgather"), EXACT),
    ("several", "the same by an exchange of heads", {"groups": 1}, ways(TWO, "ulysses"), UNDIVIDED % (4, 1, 2)),
    ("several", "heads that the ranks do not divide", {"heads": 3, "groups": 3},
     ways(TWO, "ring", "allgather") + ways(TWO, "auto", orders=["auto"]), EXACT),
    ("several", "the same by an exchange of heads", {"heads": 3, "groups": 3}, ways(TWO, "ulysses") + ways(BOTH, "ring+ulysses"),
     UNDIVIDED % (3, 3, 2)),
    ("several", "heads of 256 numbers", {"size": 256, "heads": 2}, ways(TWO, "allgather", "ring", "ulysses"), EXACT),
    ("several", "keys of another sequence", {"mask": "none", "context": 8}, ALL, EXACT, OTHER_KEYS % 8),
    ("several", "keys of another sequence that is not split", {"mask": "none", "context": 7, "context_split": False}, ALL, EXACT, OTHER_KEYS % 7),
    ("several", "keys of another sequence whose length the ranks do not divide", {"mask": "none", "context": 7},
     ways(TWO, "allgather", "ring", "ulysses", orders=["contiguous"]), "'context' has 7 positions (dimension 1), expected a multiple of 2"),
    ("several", "an image whose positions all see each other, beside a sliding window", {"mask": "image"}, ALL, EXACT),
    ("several", "the same where data say what is an image", {"mask": "image_of_data"}, ALL, EXACT),
]


def tool(*command):
    return subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check(row, directory):
    """What is wrong with a row; nothing if nothing is."""
    system, refused, settings, where, error, *remark = row
    case, wrong = Case(**settings), []
    text = case.write()
    for index, (mesh, attention, order) in enumerate(where):
        place = f"{system}: {refused}: {mesh}, {attention}, {order}: "
        ranks = math.prod(sizes(mesh)[1])
        paths = [directory / f"{index}-{name}.mlir" for name in ("in", "one.in", "many", "one")]
        paths[0].write_text(on_mesh(text, mesh))
        paths[1].write_text(text)
        done = tool("tessera-opt", paths[0], f"--pass-pipeline={sharded(2 * ranks, attention, order)}", "-o", paths[2])
        errors = [line for line in done.stdout.splitlines() if "error:" in line]
        if error is not EXACT:
            if done.returncode != 1 or len(errors) != 1 or error not in errors[0]:
                wrong.append(f"{place}expected one error, '{error}', got status {done.returncode}\n{done.stdout[-2000:]}")
            continue
        if done.returncode == 0:
            part, whole = ([*reversed(shape)] if settings.get("time_first") else shape
                           for shape in ([case.batch, case.time // ranks], [case.batch, case.time]))
            if f": {tensor(part, 'i32')} {{dist.global = {tensor(whole, 'i32')}" not in paths[2].read_text():
                wrong.append(f"{place}positions of the tokens are not split")
            if remark and "ring" in attention and remark[0] not in done.stdout:
                wrong.append(f"{place}no remark '{remark[0]}'\n{done.stdout[-2000:]}")
            # Units are padded to a multiple of the ranks, so that both have the same.
            done = tool("tessera-opt", paths[1], f"--pass-pipeline={unsharded(2 * ranks)}", "-o", paths[3])
        if done.returncode == 0:
            done = tool("tessera-interp", paths[2], f"--compare={paths[3]}", *TOLERANCE, "--quiet")
        if done.returncode != 0:
            wrong.append(place + "\n".join(errors or [done.stdout])[-2000:])
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="rows that have this text")
    parser.add_argument("--list", action="store_true", help="the rows, and what is expected of each")
    options = parser.parse_args()
    rows = [row for row in ROWS if options.only in f"{row[0]}: {row[1]}"]
    if options.list:
        for system, refused, _, where, error, *_ in rows:
            print(f"{system}: {refused}: " + (f"exact in {len(where)} ways" if error is EXACT else error))
        return
    with tempfile.TemporaryDirectory() as temporary, concurrent.futures.ThreadPoolExecutor(2) as pool:
        folders = [pathlib.Path(temporary) / str(index) for index in range(len(rows))]
        for folder in folders:
            folder.mkdir()
        wrong = [text for texts in pool.map(check, rows, folders) for text in texts]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{len(rows)} rows, {sum(len(row[3]) for row in rows)} steps")


if __name__ == "__main__":
    main()
