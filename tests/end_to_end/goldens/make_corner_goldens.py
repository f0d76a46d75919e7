#!/usr/bin/env python3
"""Records what PyTorch's functions give at corners, at ties and far out: values, and gradients of the sum of the values.

usage: make_corner_goldens.py      (torch 2.15; writes corners.json beside this file)

A case is a function, the points that it is taken of, and the ONNX nodes that exporters write for it, in which p is the
input and y the result. Everything is computed in f64, so that what is recorded are the rules and not PyTorch's rounding.
"""

import json
import os

import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))

LINE = [0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 17.0, 30.0, 100.0, 1e4, 0.5, 0.25, 1e-3, 1e-5, 1e-10, 1e-30]
LINE += [-x for x in LINE]
UNIT = [0.0, 1e-10, 1e-3, 0.25, 0.5, 0.75, 0.875, -1e-10, -1e-3, -0.25, -0.5, -0.75, -0.875]
ABOVE_ONE = [1.0, 1.0009765625, 1.5, 2.0, 30.0, 1e4, 1e20]
ROWS = [[1, 1, 1, 1], [0, 0, 0, 0], [1, 3, 3, 2], [-1, -2, -1, -4], [100, 90, 100, 0]]
ONE = "k = Constant <value = float {1.0}> ()"
TWO = "k = Constant <value = float {2.0}> ()"
LAST = "a = Constant <value = int64[1] {-1}> ()"


def tied(shape):
    """Small integers, so that most windows have equal elements; one channel of equal ones."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(-2, 2, shape, generator=generator).double()
    x[:, 0] = 1.0
    return x.tolist()


def clip(low, high):
    return [f"low = Constant <value = float {{{low}}}> ()", f"high = Constant <value = float {{{high}}}> ()",
            "y = Clip (p, low, high)"]


# name -> (function, points, nodes)
CASES = {
    "relu": (F.relu, LINE, ["y = Relu (p)"]),
    "clamp": (lambda x: x.clamp(-1, 3), LINE, clip(-1.0, 3.0)),
    "relu6": (F.relu6, LINE, clip(0.0, 6.0)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.25), LINE, ["y = LeakyRelu <alpha = 0.25> (p)"]),
    "prelu": (lambda x: F.prelu(x, torch.tensor([0.25], dtype=x.dtype)), LINE,
              ["w = Constant <value = float[1] {0.25}> ()", "y = PRelu (p, w)"]),
    "elu": (lambda x: F.elu(x, 2.0), LINE, ["y = Elu <alpha = 2.0> (p)"]),
    "celu": (lambda x: F.celu(x, 2.0), LINE, ["y = Celu <alpha = 2.0> (p)"]),
    "selu": (F.selu, LINE, ["y = Selu (p)"]),
    "softplus": (F.softplus, LINE, ["y = Softplus (p)"]),
    "softsign": (F.softsign, LINE, ["y = Softsign (p)"]),
    "hardsigmoid": (F.hardsigmoid, LINE, ["y = HardSigmoid <alpha = 0.16666667, beta = 0.5> (p)"]),
    "hardswish": (F.hardswish, LINE, ["y = HardSwish (p)"]),
    "mish": (F.mish, LINE, ["s = Softplus (p)", "t = Tanh (s)", "y = Mul (p, t)"]),
    "silu": (F.silu, LINE, ["s = Sigmoid (p)", "y = Mul (p, s)"]),
    "sigmoid": (torch.sigmoid, LINE, ["y = Sigmoid (p)"]),
    "tanh": (torch.tanh, [x for x in LINE if abs(x) < 9], ["y = Tanh (p)"]),
    "abs": (torch.abs, LINE, ["y = Abs (p)"]),
    "sign": (torch.sign, LINE, ["y = Sign (p)"]),
    "logsigmoid": (F.logsigmoid, LINE, ["s = Sigmoid (p)", "y = Log (s)"]),
    "logsigmoid_of_minus": (lambda x: F.logsigmoid(-x), LINE, [ONE, "s = Sigmoid (p)", "d = Sub (k, s)", "y = Log (d)"]),
    "one_minus_sigmoid": (lambda x: torch.sigmoid(-x), LINE, [ONE, "s = Sigmoid (p)", "y = Sub (k, s)"]),
    "bce_with_logits": (lambda x: F.binary_cross_entropy_with_logits(x, torch.full_like(x, 0.25), reduction="none"), LINE,
                        [ONE, "t = Constant <value = float {0.25}> ()", "r = Constant <value = float {0.75}> ()",
                         "s = Sigmoid (p)", "l = Log (s)", "d = Sub (k, s)", "m = Log (d)", "u = Mul (t, l)",
                         "v = Mul (r, m)", "w = Add (u, v)", "y = Neg (w)"]),
    "bce_of_sigmoid": (lambda x: -F.logsigmoid(-x).clamp(min=-100), [x for x in LINE if x != 100],
                       [ONE, "s = Sigmoid (p)", "n = Neg (s)", "d = Add (n, k)", "l = Log (d)",
                        "low = Constant <value = float {-100.0}> ()", "m = Max (l, low)", "y = Neg (m)"]),
    "clamp_cast_like": (lambda x: x.clamp(-1, 3), LINE,
                        ["i = Constant <value = int64 {-1}> ()", "j = Constant <value = float {3.0}> ()",
                         "low = CastLike (i, p)", "high = CastLike (j, p)", "y = Clip (p, low, high)"]),
    "softplus_by_log": (F.softplus, LINE, [ONE, "e = Exp (p)", "s = Add (k, e)", "y = Log (s)"]),
    "sigmoid_by_exp": (torch.sigmoid, LINE, [ONE, "n = Neg (p)", "e = Exp (n)", "s = Add (e, k)", "y = Div (k, s)"]),
    "log1p": (torch.log1p, [x for x in LINE if x > -0.9], [ONE, "s = Add (p, k)", "y = Log (s)"]),
    "expm1": (torch.expm1, [x for x in LINE if abs(x) < 80], [ONE, "e = Exp (p)", "y = Sub (e, k)"]),
    "logaddexp": (lambda x: torch.logaddexp(x, 2 * x), LINE,
                  [TWO, "q = Mul (p, k)", "e = Exp (p)", "f = Exp (q)", "s = Add (e, f)", "y = Log (s)"]),
    "maximum": (lambda x: torch.maximum(x, torch.ones_like(x)), LINE, [ONE, "y = Max (p, k)"]),
    "minimum": (lambda x: torch.minimum(x, torch.ones_like(x)), LINE, [ONE, "y = Min (p, k)"]),
    "sqrt": (torch.sqrt, [0.0, 1e-10, 1.0, 4.0], ["y = Sqrt (p)"]),
    "power_0": (lambda x: x ** 0, LINE, ["k = Constant <value = float {0.0}> ()", "y = Pow (p, k)"]),
    "power_3": (lambda x: x ** 3, LINE, ["k = Constant <value = float {3.0}> ()", "y = Pow (p, k)"]),
    "round": (lambda x: torch.round(x) * x, LINE, ["r = Round (p)", "y = Mul (r, p)"]),
    "atan": (torch.atan, LINE, ["y = Atan (p)"]),
    "asin": (torch.asin, UNIT, ["y = Asin (p)"]),
    "acos": (torch.acos, UNIT, ["y = Acos (p)"]),
    "sinh": (torch.sinh, [x for x in LINE if abs(x) < 80], ["y = Sinh (p)"]),
    "cosh": (torch.cosh, [x for x in LINE if abs(x) < 80], ["y = Cosh (p)"]),
    "asinh": (torch.asinh, LINE + [1e20, -1e20], ["y = Asinh (p)"]),
    "acosh": (torch.acosh, ABOVE_ONE, ["y = Acosh (p)"]),
    "atanh": (torch.atanh, UNIT, ["y = Atanh (p)"]),
    "norm": (lambda x: x.norm(dim=-1), ROWS, ["y = ReduceL2 <axes = [-1], keepdims = 0> (p)"]),
    "norm_of_power": (lambda x: x.norm(dim=-1), ROWS,
                      [TWO, LAST, "h = Constant <value = float {0.5}> ()", "q = Pow (p, k)",
                       "s = ReduceSum <keepdims = 0> (q, a)", "y = Pow (s, h)"]),
    "norm_of_product": (lambda x: x.norm(dim=-1), ROWS,
                        [LAST, "q = Mul (p, p)", "s = ReduceSum <keepdims = 0> (q, a)", "y = Sqrt (s)"]),
    "norm_3": (lambda x: x.norm(3, dim=-1), ROWS,
               ["k = Constant <value = float {3.0}> ()", LAST, "h = Constant <value = float {0.33333334}> ()", "m = Abs (p)",
                "q = Pow (m, k)", "s = ReduceSum <keepdims = 0> (q, a)", "y = Pow (s, h)"]),
    "norm_inf": (lambda x: x.norm(float("inf"), dim=-1), ROWS,
                 ["m = Abs (p)", "y = ReduceMax <axes = [-1], keepdims = 0> (m)"]),
    "normalize": (lambda x: F.normalize(x, dim=-1), ROWS,
                  ["low = Constant <value = float {1e-12}> ()", "s = ReduceL2 <axes = [-1]> (p)", "n = Clip (s, low)",
                   "y = Div (p, n)"]),
    "max_dim": (lambda x: x.max(-1).values, ROWS, ["y = ReduceMax <axes = [-1], keepdims = 0> (p)"]),
    "min_dim": (lambda x: x.min(-1).values, ROWS, ["y = ReduceMin <axes = [-1], keepdims = 0> (p)"]),
    "max_all": (lambda x: x.max(), ROWS, ["y = ReduceMax <keepdims = 0> (p)"]),
    "logsumexp": (lambda x: torch.logsumexp(x, -1), ROWS, ["y = ReduceLogSumExp <axes = [-1], keepdims = 0> (p)"]),
    "max_pool": (lambda x: F.max_pool2d(x, 2), tied([1, 2, 6, 6]),
                 ["y = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (p)"]),
    "max_pool_overlapping": (lambda x: F.max_pool2d(x, 3, 2, 1), tied([1, 2, 7, 7]),
                             ["y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (p)"]),
    "max_pool_global": (lambda x: F.adaptive_max_pool2d(x, 1), tied([1, 2, 6, 6]), ["y = GlobalMaxPool (p)"]),
}


def main():
    record = {"torch": torch.__version__, "cases": {}}
    for name, (function, points, nodes) in CASES.items():
        x = torch.tensor(points, dtype=torch.float64, requires_grad=True)
        y = function(x)
        y.sum().backward()
        record["cases"][name] = {"nodes": nodes, "points": points, "value": y.tolist(), "gradient": x.grad.tolist()}
    with open(os.path.join(HERE, "corners.json"), "w") as file:
        file.write("{\n" + f' "torch": "{record["torch"]}",\n "cases": {{\n')
        file.write(",\n".join(f"  {json.dumps(name)}: {json.dumps(case)}" for name, case in record["cases"].items()))
        file.write("\n }\n}\n")


if __name__ == "__main__":
    main()
