"""Rows: recurrent networks, normalisations of groups, bags of embeddings, products by subscripts."""

import torch
from rows import f, i, k, row

aten = torch.ops.aten
SIZE, WIDTH, BATCH, STEPS = 3, 4, 2, 3


def network(name, gates, layers=1, directions=1, biases=True, first=False, projection=0, case=""):
    state = projection or SIZE
    shapes = []
    for layer in range(layers):
        for _ in range(directions):
            shapes += [(gates * SIZE, WIDTH if layer == 0 else state * directions), (gates * SIZE, state)]
            shapes += [(gates * SIZE,)] * 2 if biases else []
            shapes += [(projection, SIZE)] if projection else []
    isLstm = name == "lstm"
    states = [f(layers * directions, BATCH, state)] + [f(layers * directions, BATCH, SIZE)] * isLstm

    def function(x, *rest):
        hx = list(rest[:2]) if isLstm else rest[0]
        return getattr(aten, name).input(x, hx, list(rest[len(states):]), biases, layers, 0.0, True, directions == 2, first)
    x = f(BATCH, STEPS, WIDTH) if first else f(STEPS, BATCH, WIDTH)
    return row(name + case, f"aten.{name}.input", function, x, *states, *(f(*shape) for shape in shapes))


def cell(name, gates):
    isLstm = name == "lstm_cell"

    def function(x, *rest):
        hx = list(rest[:2]) if isLstm else rest[0]
        return getattr(aten, name).default(x, hx, *rest[1 + isLstm:])
    rows = gates * SIZE
    return row(name, f"aten.{name}.default", function, f(BATCH, WIDTH), *[f(BATCH, SIZE)] * (1 + isLstm), f(rows, WIDTH),
               f(rows, SIZE), f(rows), f(rows))


def bag(name, mode, weights=False, case="", padding=None, rows=6):
    def function(table, indices, offsets, w=None):
        if name == "embedding_bag.default":
            return aten.embedding_bag.default(table, indices.flatten(), offsets, False, mode, False, w)[0]
        return aten.embedding_bag.padding_idx(table, indices.flatten(), offsets, False, mode, False, w, False, padding)[0]
    return row("embedding_bag" + case, f"aten.{name}", function, f(rows, 3), i(4, 3, high=rows), k([0, 3, 6, 9]),
               *([f(12)] if weights else []))


ROWS = [
    network("lstm", 4), network("lstm", 4, 2, 2, first=True, case="_deep"), network("lstm", 4, projection=2, case="_projected"),
    network("lstm", 4, biases=False, case="_plain"), network("gru", 3), network("gru", 3, 2, 2, first=True, case="_deep"),
    network("rnn_tanh", 1), network("rnn_relu", 1, directions=2),
    cell("lstm_cell", 4), cell("gru_cell", 3), cell("rnn_tanh_cell", 1), cell("rnn_relu_cell", 1),
    row("group_norm", "aten.group_norm.default", lambda x, w, b: aten.group_norm.default(x, 2, w, b), f(2, 4, 3), f(4), f(4)),
    row("native_group_norm", "aten.native_group_norm.default",
        lambda x, w, b: aten.native_group_norm.default(x, w, b, 2, 4, 3, 2, 1e-5), f(2, 4, 3), f(4), f(4)),
    row("instance_norm", "aten.instance_norm.default",
        lambda x, w, b: aten.instance_norm.default(x, w, b, None, None, True, 0.1, 1e-5, False), f(2, 3, 5), f(3), f(3)),
    row("instance_norm_running", "aten.instance_norm.default",
        lambda x, m, v: aten.instance_norm.default(x, None, None, m, v, False, 0.1, 1e-5, False), f(2, 3, 5), k([0.0] * 3),
        k([1.0] * 3), refused="running mean and variance"),
    bag("embedding_bag.default", 0), bag("embedding_bag.default", 1, case="_mean"), bag("embedding_bag.default", 2, case="_max"),
    bag("embedding_bag.padding_idx", 0, weights=True, case="_weights"),
    bag("embedding_bag.padding_idx", 0, weights=True, case="_padding_weights", padding=1, rows=2),
    # Of two rows, so that some bags are padding alone.
    *(bag("embedding_bag.padding_idx", mode, case=f"_padding_{mode}", padding=-2, rows=2) for mode in (0, 1, 2)),
    row("einsum", "aten.einsum.default", lambda x, y, z: aten.einsum.default("bij,bjk,k->bi", [x, y, z]), f(2, 3, 4), f(2, 4, 5),
        f(5)),
    row("bilinear", "aten.bilinear.default", lambda x, y, w, b: aten.bilinear.default(x, y, w, b), f(2, 3, 4), f(2, 3, 5),
        f(6, 4, 5), f(6)),
]
