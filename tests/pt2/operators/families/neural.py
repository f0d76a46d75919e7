"""Rows: softmax, normalisations, dropout."""

import torch
from rows import f, i, row

aten = torch.ops.aten
bf16 = torch.bfloat16

ROWS = [
    row("softmax", "aten._softmax.default", lambda x: aten._softmax.default(x, -1, False), f(3, 4)),
    row("softmax_int", "aten.softmax.int", lambda x: aten.softmax.int(x, 0), f(3, 4)),
    row("log_softmax", "aten._log_softmax.default", lambda x: aten._log_softmax.default(x, 1, False), f(3, 4)),
    row("native_layer_norm", "aten.native_layer_norm.default", lambda x, y, z: aten.native_layer_norm.default(x, [4], y, z, 1e-3),
        f(3, 4), f(4), f(4)),
    row("layer_norm_two", "aten.native_layer_norm.default", lambda x: aten.native_layer_norm.default(x, [3, 4], None, None, 1e-3)[0],
        f(2, 3, 4)),
    row("rms_norm", "aten.rms_norm.default", lambda x, y: aten.rms_norm.default(x, [4], y), f(3, 4), f(4)),
    row("native_dropout_0", "aten.native_dropout.default", lambda x: aten.native_dropout.default(x, 0.0, True), f(3, 4)),
    row("native_dropout_off", "aten.native_dropout.default", lambda x: aten.native_dropout.default(x, 0.5, False), f(3, 4)),
    row("native_dropout_1", "aten.native_dropout.default", lambda x: aten.native_dropout.default(x, 1.0, True), f(3, 4)),
    row("dropout_1", "aten.dropout.default", lambda x: aten.dropout.default(x, 1.0, True), f(3, 4)),
    row("dropout_0", "aten.dropout.default", lambda x: aten.dropout.default(x, 0.0, True), f(3, 4)),
    row("softmax_backward", "aten._softmax_backward_data.default", lambda x, y: aten._softmax_backward_data.default(
        x, y, -1, torch.float32), f(3, 4), f(3, 4), refused="backward"),
]
