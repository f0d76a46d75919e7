"""Convolutions of one to three dimensions and their transposes."""

import torch.nn.functional as F
from torch import nn

from .rows import Chain, With, f, row

ROWS = [
    row("conv1d", "nn.Conv1d F.conv1d", lambda: nn.Conv1d(3, 4, 3), f(3, 9)),
    row("conv1d-causal", "nn.Conv1d F.pad", lambda: Chain(lambda x: F.pad(x, (2, 0)), nn.Conv1d(3, 4, 3)), f(3, 9)),
    row("conv1d-depthwise", "nn.Conv1d", lambda: nn.Conv1d(4, 4, 3, padding=1, groups=4), f(4, 9), recorded=True),
    row("conv1d-dilated", "nn.Conv1d", lambda: nn.Conv1d(3, 4, 3, dilation=3, padding=3, stride=2, bias=False), f(3, 11)),
    row("conv1d-same", "nn.Conv1d", lambda: nn.Conv1d(3, 4, 4, padding="same"), f(3, 9)),
    row("conv1d-circular", "nn.Conv1d", lambda: nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular"), f(3, 9)),
    row("conv1d-reflect", "nn.Conv1d", lambda: nn.Conv1d(3, 4, 3, padding=2, padding_mode="reflect"), f(3, 9)),
    row("conv2d", "nn.Conv2d F.conv2d", lambda: nn.Conv2d(3, 4, 3), f(3, 7, 5), recorded=True),
    row("conv2d-stride", "nn.Conv2d", lambda: nn.Conv2d(3, 4, 3, stride=2, padding=1), f(3, 7, 6), recorded=True),
    row("conv2d-odd", "nn.Conv2d", lambda: nn.Conv2d(3, 5, (2, 5), stride=(1, 3), padding=(1, 2)), f(3, 7, 8)),
    row("conv2d-dilated", "nn.Conv2d", lambda: nn.Conv2d(3, 4, 3, dilation=(2, 1), padding=2), f(3, 7, 5)),
    row("conv2d-groups", "nn.Conv2d", lambda: nn.Conv2d(4, 6, 3, groups=2, padding=1), f(4, 5, 5)),
    row("conv2d-depthwise", "nn.Conv2d", lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1, bias=False), f(4, 5, 5)),
    row("conv2d-1x1", "nn.Conv2d", lambda: nn.Conv2d(4, 6, 1), f(4, 3, 5)),
    row("conv2d-patches", "nn.Conv2d", lambda: nn.Conv2d(3, 8, 4, stride=4), f(3, 8, 12)),
    row("conv2d-replicate", "nn.Conv2d", lambda: nn.Conv2d(3, 4, 3, padding=1, padding_mode="replicate"), f(3, 5, 5)),
    row("conv2d-twice", "nn.Conv2d", lambda: Chain(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 3, padding=1)),
        f(3, 5, 5), recorded=True),
    row("conv2d-shared", "nn.Conv2d", lambda: Shared(), f(3, 5, 5)),
    row("conv2d-computed-weight", "F.conv2d", lambda: With(
        lambda x, w, s: F.conv2d(x, w * s.reshape(4, 1, 1, 1).exp(), padding=1), w=(4, 3, 3, 3), s=(4,)), f(3, 5, 5)),
    row("conv3d", "nn.Conv3d F.conv3d", lambda: nn.Conv3d(2, 3, 2), f(2, 4, 3, 5), recorded=True),
    row("conv3d-stride", "nn.Conv3d", lambda: nn.Conv3d(2, 3, 3, stride=(1, 2, 2), padding=1), f(2, 3, 4, 5)),
    row("conv3d-groups", "nn.Conv3d", lambda: nn.Conv3d(4, 4, (1, 3, 3), groups=2, dilation=(1, 2, 1), padding=1),
        f(4, 2, 5, 4)),
    row("conv-transpose1d", "nn.ConvTranspose1d F.conv_transpose1d", lambda: nn.ConvTranspose1d(3, 4, 3), f(3, 5),
        recorded=True),
    row("conv-transpose1d-stride", "nn.ConvTranspose1d",
        lambda: nn.ConvTranspose1d(3, 4, 4, stride=2, padding=1, output_padding=1), f(3, 5)),
    row("conv-transpose2d", "nn.ConvTranspose2d F.conv_transpose2d", lambda: nn.ConvTranspose2d(3, 4, 2, stride=2), f(3, 3, 4),
        recorded=True),
    row("conv-transpose2d-odd", "nn.ConvTranspose2d",
        lambda: nn.ConvTranspose2d(3, 4, 3, stride=(2, 1), padding=(1, 0), output_padding=(1, 0), bias=False), f(3, 3, 4)),
    row("conv-transpose2d-groups", "nn.ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 6, 3, groups=2), f(4, 3, 3)),
    row("conv-transpose2d-dilated", "nn.ConvTranspose2d", lambda: nn.ConvTranspose2d(3, 4, 3, dilation=2, stride=2),
        f(3, 3, 3)),
    row("conv-transpose3d", "nn.ConvTranspose3d F.conv_transpose3d", lambda: nn.ConvTranspose3d(2, 3, 2, stride=2),
        f(2, 2, 3, 2)),
    row("conv-tbc", "F.conv_tbc", lambda: With(lambda x, w, b: F.conv_tbc(x.permute(1, 0, 2).contiguous(), w, b, 1).flip(0).transpose(0, 1),
                                               w=(3, 4, 5), b=(5,)), f(6, 4)),
    row("separable", "nn.Conv2d", lambda: Chain(nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.Conv2d(4, 6, 1)), f(4, 5, 5)),
    row("lazy-linear", "nn.LazyLinear", lambda: lazy(nn.LazyLinear(4), 3, 5), f(3, 5), recorded=True),
    row("lazy-conv1d", "nn.LazyConv1d", lambda: lazy(nn.LazyConv1d(4, 3), 3, 9), f(3, 9)),
    row("lazy-conv2d", "nn.LazyConv2d", lambda: lazy(nn.LazyConv2d(4, 3), 3, 5, 5), f(3, 5, 5)),
    row("lazy-conv3d", "nn.LazyConv3d", lambda: lazy(nn.LazyConv3d(3, 2), 2, 3, 3, 3), f(2, 3, 3, 3)),
    row("lazy-conv-transpose1d", "nn.LazyConvTranspose1d", lambda: lazy(nn.LazyConvTranspose1d(4, 3), 3, 5), f(3, 5)),
    row("lazy-conv-transpose2d", "nn.LazyConvTranspose2d", lambda: lazy(nn.LazyConvTranspose2d(4, 3), 3, 3, 4), f(3, 3, 4)),
    row("lazy-conv-transpose3d", "nn.LazyConvTranspose3d", lambda: lazy(nn.LazyConvTranspose3d(3, 2), 2, 2, 2, 2),
        f(2, 2, 2, 2)),
    row("lazy-batch-norm1d", "nn.LazyBatchNorm1d", lambda: lazy(nn.LazyBatchNorm1d(), 5, 3), f(5, 3)),
    row("lazy-batch-norm2d", "nn.LazyBatchNorm2d", lambda: lazy(nn.LazyBatchNorm2d(), 3, 4, 5), f(3, 4, 5)),
    row("lazy-batch-norm3d", "nn.LazyBatchNorm3d", lambda: lazy(nn.LazyBatchNorm3d(), 3, 2, 3, 2), f(3, 2, 3, 2)),
    row("lazy-instance-norm1d", "nn.LazyInstanceNorm1d", lambda: lazy(nn.LazyInstanceNorm1d(affine=True), 3, 5), f(3, 5)),
    row("lazy-instance-norm2d", "nn.LazyInstanceNorm2d", lambda: lazy(nn.LazyInstanceNorm2d(affine=True), 3, 4, 5),
        f(3, 4, 5)),
    row("lazy-instance-norm3d", "nn.LazyInstanceNorm3d", lambda: lazy(nn.LazyInstanceNorm3d(affine=True), 3, 2, 3, 2),
        f(3, 2, 3, 2)),
]


def lazy(module, *shape):
    """A lazy module that has seen an input."""
    import torch
    module(torch.randn(2, *shape))
    if hasattr(module, "reset_running_stats"):
        module.reset_running_stats()
    return module


class Shared(nn.Module):
    """One convolution at two places."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x):
        return self.conv(F.relu(self.conv(x)))
