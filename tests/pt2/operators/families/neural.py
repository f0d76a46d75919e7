"""Rows: softmax, normalisations, dropout, rounding to integers in training."""

import torch
from rows import f, i, k, row

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
    row("fake_quantize", "aten.fake_quantize_per_tensor_affine.default",
        lambda x: aten.fake_quantize_per_tensor_affine.default(x, 0.1, 3, -4, 11), f(6, 8)),
    row("fake_quantize_tensors", "aten.fake_quantize_per_tensor_affine.tensor_qparams",
        lambda x, scale, zero: aten.fake_quantize_per_tensor_affine.tensor_qparams(x, scale.detach().abs() + 0.1, zero, 0, 7), f(6, 8),
        f(1), k([3], torch.int32)),
    row("fake_quantize_channels", "aten.fake_quantize_per_channel_affine.default",
        lambda x, scale, zero: aten.fake_quantize_per_channel_affine.default(x, scale, zero, 1, -8, 7), f(6, 3), k([0.1, 0.3, 0.05]),
        k([0, 1, -2], torch.int32)),
    row("softmax_backward", "aten._softmax_backward_data.default", lambda x, y: aten._softmax_backward_data.default(
        x, y, -1, torch.float32), f(3, 4), f(3, 4), refused="backward"),
]
