"""Activations: every one of torch.nn, at ordinary values, and on whole numbers, where kinks and zeros are met."""

import torch
import torch.nn.functional as F
from torch import nn

from .rows import Chain, With, d, f, row

MODULES = {  # name -> (class and function, module)
    "relu": ("nn.ReLU F.relu", lambda: nn.ReLU()),
    "relu-inplace": ("nn.ReLU F.relu_", lambda: nn.ReLU(inplace=True)),
    "relu6": ("nn.ReLU6 F.relu6", lambda: nn.ReLU6()),
    "leaky-relu": ("nn.LeakyReLU F.leaky_relu", lambda: nn.LeakyReLU(0.2)),
    "prelu": ("nn.PReLU F.prelu", lambda: nn.PReLU()),
    "prelu-channels": ("nn.PReLU", lambda: nn.PReLU(5, init=0.3)),
    "elu": ("nn.ELU F.elu", lambda: nn.ELU(0.7)),
    "celu": ("nn.CELU F.celu", lambda: nn.CELU(1.3)),
    "selu": ("nn.SELU F.selu", lambda: nn.SELU()),
    "gelu": ("nn.GELU F.gelu", lambda: nn.GELU()),
    "gelu-tanh": ("nn.GELU F.gelu", lambda: nn.GELU("tanh")),
    "silu": ("nn.SiLU F.silu", lambda: nn.SiLU()),
    "mish": ("nn.Mish F.mish", lambda: nn.Mish()),
    "sigmoid": ("nn.Sigmoid F.sigmoid", lambda: nn.Sigmoid()),
    "tanh": ("nn.Tanh F.tanh", lambda: nn.Tanh()),
    "log-sigmoid": ("nn.LogSigmoid F.logsigmoid", lambda: nn.LogSigmoid()),
    "hardsigmoid": ("nn.Hardsigmoid F.hardsigmoid", lambda: nn.Hardsigmoid()),
    "hardswish": ("nn.Hardswish F.hardswish", lambda: nn.Hardswish()),
    "hardtanh": ("nn.Hardtanh F.hardtanh", lambda: nn.Hardtanh(-1.0, 2.0)),
    "hardshrink": ("nn.Hardshrink F.hardshrink", lambda: nn.Hardshrink(0.4)),
    "softshrink": ("nn.Softshrink F.softshrink", lambda: nn.Softshrink(0.3)),
    "tanhshrink": ("nn.Tanhshrink F.tanhshrink", lambda: nn.Tanhshrink()),
    "softplus": ("nn.Softplus F.softplus", lambda: nn.Softplus()),
    "softplus-beta": ("nn.Softplus F.softplus", lambda: nn.Softplus(beta=2.0, threshold=3.0)),
    "softsign": ("nn.Softsign F.softsign", lambda: nn.Softsign()),
    "threshold": ("nn.Threshold F.threshold", lambda: nn.Threshold(0.1, 0.5)),
    "rrelu": ("nn.RReLU F.rrelu", lambda: nn.RReLU()),
}
PLAIN = {  # recorded at ordinary values; the others where they have a kink
    "gelu", "gelu-tanh", "silu", "mish", "log-sigmoid", "softplus-beta", "tanhshrink", "softsign", "sigmoid", "tanh"}
STEEP = {  # at a kink or beside it bf16 decides otherwise
    "hardshrink", "threshold", "rrelu"}

ROWS = [row(name, covers, make, f(3, 5) if name != "prelu-channels" else f(5, 3), recorded=name in PLAIN,
            bf16="a jump: values beside it fall on its other side" if name in STEEP else None)
        for name, (covers, make) in MODULES.items()]
ROWS += [row(name + "-at-0", covers, make, f(3, 5, kind="grid") if name != "prelu-channels" else f(5, 3, kind="grid"),
             recorded=name not in PLAIN) for name, (covers, make) in MODULES.items() if name not in ("rrelu", "relu-inplace")]
ROWS += [row(name + "-wide", covers, (lambda make: lambda: Chain(lambda x: x * 12, make()))(make), f(3, 5))
         for name, (covers, make) in MODULES.items() if name in (
             "elu", "celu", "selu", "gelu", "gelu-tanh", "silu", "mish", "sigmoid", "tanh", "log-sigmoid", "softplus",
             "tanhshrink", "softsign")]
ROWS += [
    row("glu", "nn.GLU F.glu", lambda: nn.GLU(), f(3, 6), recorded=True),
    row("glu-dim-1", "nn.GLU F.glu", lambda: nn.GLU(dim=1), f(4, 5)),
    row("softmax", "nn.Softmax F.softmax", lambda: nn.Softmax(-1), f(3, 5), recorded=True),
    row("softmax-dim-1", "nn.Softmax F.softmax", lambda: nn.Softmax(1), f(3, 5)),
    row("softmax-batch", "F.softmax", lambda: lambda x: F.softmax(x, 0), f(3, 5)),
    row("softmax2d", "nn.Softmax2d", lambda: nn.Softmax2d(), f(3, 2, 5), recorded=True),
    row("softmin", "nn.Softmin F.softmin", lambda: nn.Softmin(-1), f(3, 5), recorded=True),
    row("log-softmax", "nn.LogSoftmax F.log_softmax", lambda: nn.LogSoftmax(-1), f(3, 5), recorded=True),
    row("log-softmax-dim-1", "nn.LogSoftmax F.log_softmax", lambda: nn.LogSoftmax(1), f(3, 5)),
    row("softmax-masked", "F.softmax", lambda: lambda x, m: F.softmax(x.masked_fill(m > 0, float("-inf")), -1).nan_to_num(),
        f(3, 5), d(3, 5)),
    row("softmax-temperature", "F.softmax", lambda: With(lambda x, t: F.softmax(x / t.exp(), -1), t=(1,)), f(3, 5)),
    row("dropout", "nn.Dropout F.dropout", lambda: nn.Dropout(0.3), f(3, 5), recorded=True),
    row("dropout1d", "nn.Dropout1d F.dropout1d", lambda: nn.Dropout1d(0.3), f(3, 5)),
    row("dropout2d", "nn.Dropout2d F.dropout2d", lambda: nn.Dropout2d(0.3), f(3, 5, 2)),
    row("dropout3d", "nn.Dropout3d F.dropout3d", lambda: nn.Dropout3d(0.3), f(3, 5, 2, 2)),
    row("alpha-dropout", "nn.AlphaDropout F.alpha_dropout", lambda: nn.AlphaDropout(0.3), f(3, 5)),
    row("feature-alpha-dropout", "nn.FeatureAlphaDropout F.feature_alpha_dropout", lambda: nn.FeatureAlphaDropout(0.3),
        f(3, 5, 2)),
    row("gumbel-softmax", "F.gumbel_softmax", lambda: lambda x: F.gumbel_softmax(x), f(3, 5)),
    row("identity", "nn.Identity", lambda: nn.Identity(), f(3, 5), recorded=True),
    row("elu-inplace", "F.elu_", lambda: lambda x: F.elu_(x * 1.0), f(3, 5)),
    row("celu-inplace", "F.celu_", lambda: lambda x: F.celu_(x * 1.0), f(3, 5)),
    row("selu-inplace", "F.selu_", lambda: lambda x: F.selu_(x * 1.0), f(3, 5)),
    row("hardtanh-inplace", "F.hardtanh_", lambda: lambda x: F.hardtanh_(x * 1.0), f(3, 5)),
    row("leaky-relu-inplace", "F.leaky_relu_", lambda: lambda x: F.leaky_relu_(x * 1.0), f(3, 5)),
    row("threshold-inplace", "F.threshold_", lambda: lambda x: F.threshold_(x * 1.0, 0.1, 0.5), f(3, 5),
        bf16="a jump: values beside it fall on its other side"),
    row("rrelu-inplace", "F.rrelu_", lambda: lambda x: F.rrelu_(x * 1.0), f(3, 5)),
    row("squared-relu", "F.relu", lambda: lambda x: F.relu(x).square(), f(3, 5)),
    row("quick-gelu", "F.gelu", lambda: lambda x: x * torch.sigmoid(1.702 * x), f(3, 5)),
    row("two-maxima", "F.relu", lambda: lambda x: torch.maximum(x, -x) + torch.minimum(x, x * 2), f(3, 5, kind="grid")),
]
