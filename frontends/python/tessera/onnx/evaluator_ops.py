"""Ops that ONNX's reference evaluator lacks in part or gets wrong, for evaluate.py: convolutions of groups, padded
poolings, recurrent layers of two directions, sampling by names of older opsets, negative padding."""

import numpy
import torch
import torch.nn.functional as F
from onnx.reference.op_run import OpRun

ACTIVATIONS = {"tanh": numpy.tanh, "relu": lambda x: numpy.maximum(x, 0), "sigmoid": lambda x: 1 / (1 + numpy.exp(-x))}


def tensor(array):
    return torch.from_numpy(numpy.ascontiguousarray(array))


def explicit_pads(auto_pad, pads, sizes, extents, strides):
    """(before, after) of each spatial dimension; extents: of the window with its dilation."""
    auto_pad = auto_pad or "NOTSET"
    if auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        total = [max(0, (-(-size // stride) - 1) * stride + extent - size)
                 for size, extent, stride in zip(sizes, extents, strides)]
        small, large = [pad // 2 for pad in total], [pad - pad // 2 for pad in total]
        return (small, large) if auto_pad == "SAME_UPPER" else (large, small)
    count = len(sizes)
    pads = [0] * (2 * count) if pads is None or auto_pad == "VALID" else [int(pad) for pad in pads]
    return pads[:count], pads[count:]


def padded_space(array, before, after, value=0.0):
    """A tensor whose spatial dimensions are padded."""
    return F.pad(tensor(array), [pad for ends in zip(reversed(before), reversed(after)) for pad in ends], value=value)


class Conv(OpRun):
    op_domain = ""

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, pads=None, strides=None):
        count = x.ndim - 2
        dilations, strides = list(dilations or [1] * count), list(strides or [1] * count)
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(w.shape[2:], dilations)]
        padded = padded_space(x, *explicit_pads(auto_pad, pads, x.shape[2:], extents, strides))
        convolve = (F.conv1d, F.conv2d, F.conv3d)[count - 1]
        return (convolve(padded, tensor(w), tensor(bias) if bias is not None else None, strides, 0, dilations,
                         group or 1).numpy(),)


class ConvTranspose(OpRun):
    op_domain = ""

    def _run(self, x, w, bias=None, auto_pad=None, dilations=None, group=None, kernel_shape=None, output_padding=None,
             output_shape=None, pads=None, strides=None):
        count = x.ndim - 2
        if output_shape is not None or auto_pad not in (None, "NOTSET"):
            raise NotImplementedError("output_shape or auto_pad, which torch's exporters do not write")
        before, after = explicit_pads(None, pads, x.shape[2:], (), ())
        dilations, strides = list(dilations or [1] * count), list(strides or [1] * count)
        extra = list(output_padding or [0] * count)
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[count - 1]
        full = convolve(tensor(x), tensor(w), tensor(bias) if bias is not None else None, strides, groups=group or 1,
                        dilation=dilations)
        if any(extra):  # rows that no window reaches hold the bias alone
            reach = [pad for size in reversed(extra) for pad in (0, size)]
            shift = tensor(bias).reshape(1, -1, *[1] * count) if bias is not None else 0
            full = F.pad(full - shift, reach) + shift
        cut = tuple(slice(low, size - high) for low, high, size in zip(before, after, full.shape[2:]))
        return (full[(slice(None), slice(None), *cut)].numpy(),)


class MaxPool(OpRun):
    op_domain = ""

    def _run(self, x, auto_pad=None, ceil_mode=None, dilations=None, kernel_shape=None, pads=None, storage_order=None,
             strides=None):
        count = x.ndim - 2
        kernel, strides = list(kernel_shape), list(strides or [1] * count)
        dilations = list(dilations or [1] * count)
        extents = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations)]
        before, after = explicit_pads(auto_pad, pads, x.shape[2:], extents, strides)
        ends = list(after)
        for d in range(count):  # one more window if it starts before the padding at the end
            room = x.shape[2 + d] + before[d] + after[d] - extents[d]
            more = (room // strides[d] + 1) * strides[d]
            if ceil_mode and room % strides[d] and more < x.shape[2 + d] + before[d]:
                ends[d] += more - room
        padded = padded_space(x, before, ends, float("-inf"))
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[count - 1]
        result = pool(padded, kernel, strides, dilation=dilations).numpy()
        if len(self.onnx_node.output) > 1:
            raise NotImplementedError("indices are wanted")
        return (result,)


class LogSoftmax(OpRun):
    """onnx's own is the logarithm of the softmax, -inf where that rounds to 0."""
    op_domain = ""

    def _run(self, x, axis=None):
        return (torch.log_softmax(tensor(x), -1 if axis is None else axis).numpy(),)


class GridSample(OpRun):
    op_domain = ""

    def _run(self, x, grid, align_corners=None, mode=None, padding_mode=None):
        names = {"linear": "bilinear", "cubic": "bicubic", None: "bilinear"}
        return (F.grid_sample(tensor(x), tensor(grid), names.get(mode, mode), padding_mode or "zeros",
                              bool(align_corners)).numpy(),)


class Pad(OpRun):
    op_domain = ""

    def _run(self, x, pads, value=None, axes=None, mode=None):
        axes = list(range(x.ndim)) if axes is None else [int(axis) % x.ndim for axis in axes]
        before, after = [0] * x.ndim, [0] * x.ndim
        for i, axis in enumerate(axes):
            before[axis], after[axis] = int(pads[i]), int(pads[i + len(axes)])
        kept = tuple(slice(max(-low, 0), size - max(-high, 0)) for low, high, size in zip(before, after, x.shape))
        widths = [(max(low, 0), max(high, 0)) for low, high in zip(before, after)]
        if mode in (None, "", "constant"):
            return (numpy.pad(x[kept], widths, constant_values=numpy.asarray(0 if value is None else value, x.dtype)),)
        return (numpy.pad(x[kept], widths, mode=mode),)


class Recurrent(OpRun):
    """What RNN, GRU and LSTM have in common: directions, and the loop over the steps."""
    op_domain = ""
    gates, defaults = 1, ("Tanh",)

    def unroll(self, inputs, activations, direction, layout):
        x, w, r, b, lengths, h0, c0, p = (*inputs, *[None] * (8 - len(inputs)))
        if layout or p is not None or (lengths is not None and (lengths != len(x)).any()):
            raise NotImplementedError("a layout, peepholes or lengths that torch's exporters do not write")
        names = [str(name).lower() for name in activations or self.defaults * len(w)]
        outputs, states, cells = [], [], []
        for d in range(len(w)):
            functions = [ACTIVATIONS[name] for name in names[d * len(self.defaults):(d + 1) * len(self.defaults)]]
            order = range(len(x))[::-1] if d or direction == "reverse" else range(len(x))
            size = r.shape[2]
            h = h0[d] if h0 is not None else numpy.zeros((x.shape[1], size), x.dtype)
            c = c0[d] if c0 is not None else numpy.zeros_like(h)
            bias = b[d] if b is not None else numpy.zeros(2 * self.gates * size, x.dtype)
            steps = [None] * len(x)
            for t in order:
                h, c = self.step(x[t] @ w[d].T + bias[:self.gates * size], h, c, r[d], bias[self.gates * size:], functions)
                steps[t] = h
            outputs.append(numpy.stack(steps))
            states.append(h)
            cells.append(c)
        return numpy.stack(outputs, 1).astype(x.dtype), numpy.stack(states), numpy.stack(cells)


class RNN(Recurrent):
    def step(self, x, h, c, r, bias, functions):
        return functions[0](x + h @ r.T + bias), c

    def _run(self, *inputs, activation_alpha=None, activation_beta=None, activations=None, clip=None, direction=None,
             hidden_size=None, layout=None):
        return self.unroll(inputs, activations, direction, layout)[:2]


class GRU(Recurrent):
    gates, defaults = 3, ("Sigmoid", "Tanh")

    def step(self, x, h, c, r, bias, functions):
        size = h.shape[1]
        z, reset = numpy.split(functions[0](x[:, :2 * size] + h @ r[:2 * size].T + bias[:2 * size]), 2, 1)
        if self.after:
            inner = reset * (h @ r[2 * size:].T + bias[2 * size:])
        else:
            inner = (reset * h) @ r[2 * size:].T + bias[2 * size:]
        return (1 - z) * functions[1](x[:, 2 * size:] + inner) + z * h, c

    def _run(self, *inputs, activation_alpha=None, activation_beta=None, activations=None, clip=None, direction=None,
             hidden_size=None, layout=None, linear_before_reset=None):
        self.after = bool(linear_before_reset)
        return self.unroll(inputs, activations, direction, layout)[:2]


class LSTM(Recurrent):
    gates, defaults = 4, ("Sigmoid", "Tanh", "Tanh")

    def step(self, x, h, c, r, bias, functions):
        i, o, f, g = numpy.split(x + h @ r.T + bias, 4, 1)
        c = functions[0](f) * c + functions[0](i) * functions[1](g)
        return functions[0](o) * functions[2](c), c

    def _run(self, *inputs, activation_alpha=None, activation_beta=None, activations=None, clip=None, direction=None,
             hidden_size=None, input_forget=None, layout=None):
        return self.unroll(inputs, activations, direction, layout)


OPS = [Conv, ConvTranspose, MaxPool, LogSoftmax, GridSample, Pad, RNN, GRU, LSTM]
