"""Padding, upsampling, folding, slicing, assigning, gathering, sorting."""

import torch
import torch.nn.functional as F
from torch import nn

from .rows import Chain, With, d, f, i, row

PADS = {1: (3, 7), 2: (3, 4, 5), 3: (2, 3, 4, 3)}
UP = {1: (3, 5), 2: (3, 4, 5), 3: (2, 2, 3, 2)}


def pad_rows():
    """Every padding class of torch.nn, uneven; circular ones wrap both sides."""
    for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular"):
        for dims, shape in PADS.items():
            name = f"{kind}Pad{dims}d"
            widths = (2, 1) + (1, 2) * (dims - 1)
            extra = (0.5,) if kind == "Constant" else ()
            yield row(f"{kind.lower()}-pad{dims}d", f"nn.{name} F.pad",
                      lambda name=name, widths=widths, extra=extra: getattr(nn, name)(widths, *extra), f(*shape),
                      recorded=dims == 2 and kind in ("Constant", "Reflection", "Replication", "Circular"))


def up_rows():
    for mode, dims in (("nearest", (1, 2, 3)), ("linear", (1,)), ("bilinear", (2,)), ("trilinear", (3,)), ("bicubic", (2,)),
                       ("area", (1, 2)), ("nearest-exact", (1, 2))):
        for count in dims:
            yield row(f"interpolate-{mode}-{count}d", "nn.Upsample F.interpolate",
                      lambda mode=mode: lambda x: F.interpolate(x, scale_factor=2.0, mode=mode), f(*UP[count]),
                      recorded=mode in ("nearest", "bilinear") and count == 2)
            if "linear" in mode or mode == "bicubic":
                yield row(f"interpolate-{mode}-{count}d-corners", "F.interpolate", lambda mode=mode, count=count: lambda x:
                          F.interpolate(x, size=[7, 6, 5][:count], mode=mode, align_corners=True), f(*UP[count]))


def set_column(x):
    y = x * 1.0
    y[:, 1] = x[:, 0] * 2
    return y


def set_block(x):
    y = torch.zeros_like(x)
    y[:, 1:3, ::2] = x[:, :2, ::2].exp()
    return y + 0.1 * x


def add_in_place(x):
    y = x * 1.0
    y[:, 1] += 3 * y[:, 0]
    y[..., -1].mul_(2.0)
    return y


def scatter_add(x, t):
    return torch.zeros(x.shape[0], 4, x.shape[2]).scatter_add(1, t, x)


ROWS = [*pad_rows(), *up_rows()]
ROWS += [
    row("pad-last-two", "F.pad", lambda: lambda x: F.pad(x, (1, 0, 0, 2), value=1.0), f(3, 5)),
    row("pad-crop", "F.pad", lambda: lambda x: F.pad(x, (-1, 2)), f(3, 5)),
    row("upsample", "nn.Upsample F.upsample", lambda: nn.Upsample(scale_factor=2), f(3, 4, 5)),
    row("upsample-function", "F.upsample", lambda: lambda x: F.upsample(x, scale_factor=2), f(3, 4, 5)),
    row("upsample-size", "nn.Upsample", lambda: nn.Upsample(size=(7, 9), mode="nearest"), f(3, 4, 5)),
    row("upsample-bilinear", "nn.UpsamplingBilinear2d F.upsample_bilinear", lambda: nn.UpsamplingBilinear2d(scale_factor=2),
        f(3, 4, 5)),
    row("upsample-bilinear-function", "F.upsample_bilinear", lambda: lambda x: F.upsample_bilinear(x, scale_factor=2),
        f(3, 4, 5)),
    row("upsample-nearest", "nn.UpsamplingNearest2d F.upsample_nearest", lambda: nn.UpsamplingNearest2d(scale_factor=3),
        f(3, 4, 5)),
    row("upsample-nearest-function", "F.upsample_nearest", lambda: lambda x: F.upsample_nearest(x, scale_factor=3),
        f(3, 4, 5)),
    row("downsample", "F.interpolate", lambda: lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"), f(3, 6, 4)),
    row("pixel-shuffle", "nn.PixelShuffle F.pixel_shuffle", lambda: nn.PixelShuffle(2), f(8, 3, 5), recorded=True),
    row("pixel-unshuffle", "nn.PixelUnshuffle F.pixel_unshuffle", lambda: nn.PixelUnshuffle(2), f(3, 4, 6)),
    row("channel-shuffle", "nn.ChannelShuffle F.channel_shuffle", lambda: nn.ChannelShuffle(2), f(6, 3, 5), recorded=True),
    row("unfold", "nn.Unfold F.unfold", lambda: nn.Unfold(2, stride=2), f(3, 4, 6), recorded=True),
    row("unfold-overlap", "nn.Unfold", lambda: nn.Unfold(3, padding=1), f(2, 4, 5)),
    row("fold", "nn.Fold F.fold", lambda: nn.Fold((4, 6), 2, stride=2), f(12, 6)),
    row("fold-overlap", "nn.Fold", lambda: nn.Fold((4, 5), 2), f(8, 12)),
    row("tensor-unfold", "", lambda: lambda x: x.unfold(2, 3, 2), f(3, 7)),
    row("affine-grid", "F.affine_grid", lambda: With(lambda x, t: F.affine_grid(
        t.expand(x.shape[0], 2, 3), [x.shape[0], 1, 4, 5], align_corners=False) * x, t=(1, 2, 3)), f(4, 5, 2)),
    row("grid-sample", "F.grid_sample", lambda: lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False), f(2, 4, 5),
        f(3, 3, 2)),
    row("grid-sample-nearest", "F.grid_sample",
        lambda: lambda x, g: F.grid_sample(x, g.tanh(), mode="nearest", align_corners=True), f(2, 4, 5), d(3, 3, 2),
        bf16="a sample beside the middle of two is the other one"),
    row("set-column", "", lambda: set_column, f(3, 5), recorded=True),
    row("set-block", "", lambda: set_block, f(3, 5)),
    row("add-in-place", "", lambda: add_in_place, f(3, 5)),
    row("slices", "", lambda: lambda x: x[:, ::2, 1:-1] * x[:, 1:, 2:][:, :2], f(4, 5), recorded=True),
    row("flip-roll", "", lambda: lambda x: x.flip(1) + x.roll(2, -1), f(4, 5), recorded=True),
    row("stack-cat", "", lambda: lambda x, y: torch.cat([torch.stack([x, y], 1).flatten(1, 2), x * y], 1), f(3, 5), f(3, 5),
        recorded=True),
    row("split-chunk", "", lambda: lambda x: torch.cat([y * (at + 1) for at, y in enumerate(x.split([1, 3, 1], -1))], -1),
        f(3, 5)),
    row("tile-repeat", "", lambda: lambda x: x.repeat(1, 2, 3) + x.tile((1, 2, 3)), f(3, 2)),
    row("repeat-interleave", "", lambda: lambda x: x.repeat_interleave(3, 1), f(3, 5)),
    row("permute", "", lambda: lambda x: x.permute(0, 3, 1, 2).contiguous().view(x.shape[0], -1), f(2, 3, 5)),
    row("gather", "", lambda: lambda x, t: x.gather(1, t), f(5, 3), i(4, 3, high=5), recorded=True),
    row("gather-last", "", lambda: lambda x, t: x.gather(-1, t), f(3, 5), i(3, 2, high=5)),
    row("index-select", "", lambda: lambda x: x.index_select(1, torch.tensor([2, 0, 2])), f(4, 5)),
    row("index-pair", "", lambda: lambda x, t: x[torch.arange(x.shape[0])[:, None], t], f(5, 3), i(2, high=5)),
    row("index-negative", "", lambda: lambda x: x[:, [-1, 0, -2]] + x[:, torch.tensor([[-1], [0], [1]]), [0]], f(4, 5)),
    row("take-along", "", lambda: lambda x: torch.take_along_dim(x, x.argsort(1), 1), f(5, 3)),
    row("scatter", "", lambda: lambda x, t: torch.zeros(x.shape[0], 5, x.shape[2]).scatter(1, t[:, :1], x[:, :1]), f(3, 4),
        i(3, 4, high=5)),
    row("scatter-add", "", lambda: scatter_add, f(6, 3), i(6, 3, high=4), recorded=True),
    row("scatter-reduce", "", lambda: lambda x, t: torch.zeros(x.shape[0], 4, x.shape[2]).scatter_reduce(1, t, x, "amax"),
        f(6, 3), i(6, 3, high=4)),
    row("index-add", "", lambda: With(lambda x, w: w.index_add(0, torch.tensor([1, 3]), w[:2]) * x, w=(5, 3)), f(5, 3)),
    row("index-copy", "", lambda: lambda x: (x * 2).index_copy(1, torch.tensor([3, 0]), x[:, :2]), f(5, 3)),
    row("index-fill", "", lambda: lambda x: x.index_fill(1, torch.tensor([3, 0]), 0.5), f(5, 3)),
    row("masked-fill", "", lambda: lambda x, m: x.masked_fill(m > 0.5, 2.0), f(3, 5), d(3, 5, kind="bits"), recorded=True),
    row("masked-scatter", "", lambda: lambda x, m: torch.where(m > 0.5, x, x.flip(1)), f(3, 5), d(3, 5, kind="bits")),
    row("sort", "", lambda: lambda x: x.sort(-1).values, f(3, 5), recorded=True),
    row("sort-descending-dim-1", "", lambda: lambda x: x.sort(1, descending=True).values * torch.arange(1, 6).reshape(5, 1),
        f(5, 3)),
    row("sort-ties", "", lambda: lambda x: x.sort(dim=-1, stable=True).values * torch.arange(1, 8), f(7, kind="grid")),
    row("argsort", "", lambda: lambda x: x * x.argsort(-1).float(), f(3, 5)),
    row("topk", "", lambda: lambda x: x.topk(2, -1).values, f(3, 5), recorded=True),
    row("topk-smallest-dim-1", "", lambda: lambda x: x.topk(3, 1, largest=False).values * torch.arange(1, 4).reshape(3, 1),
        f(5, 3)),
    row("kthvalue", "", lambda: lambda x: x.kthvalue(2, -1).values, f(3, 5)),
    row("median", "", lambda: lambda x: x.median(-1).values, f(3, 5)),
    row("quantile", "", lambda: lambda x: x.quantile(0.4, dim=-1), f(3, 5)),
    row("argmax", "", lambda: lambda x: x * x.argmax(-1, keepdim=True).float(), f(3, 5)),
    row("argmin", "", lambda: lambda x: x * x.argmin(-1, keepdim=True).float(), f(3, 5)),
    row("cumsum", "", lambda: lambda x: x.cumsum(1), f(4, 5), recorded=True),
    row("cumsum-last", "", lambda: lambda x: x.cumsum(-1), f(4, 5)),
    row("cumprod", "", lambda: lambda x: x.cumprod(-1), f(3, 5)),
    row("logcumsumexp", "", lambda: lambda x: x.logcumsumexp(-1), f(3, 5)),
    row("cummax", "", lambda: lambda x: x.cummax(-1).values, f(3, 5)),
    row("diff", "", lambda: lambda x: x.diff(dim=-1), f(3, 5)),
    row("diagonal", "", lambda: lambda x: x.diagonal(dim1=1, dim2=2), f(4, 4)),
    row("diag-embed", "", lambda: lambda x: x.diag_embed(), f(4)),
    row("tril-triu", "", lambda: lambda x: x.tril() + x.triu(1) * 2, f(4, 4)),
    row("meshgrid", "", lambda: With(lambda x, a, b: x * sum(torch.meshgrid(a, b, indexing="ij")), a=(3,), b=(5,)), f(3, 5)),
    row("unsqueeze-expand", "", lambda: lambda x: x.unsqueeze(1).expand(-1, 3, -1, -1) * x.unsqueeze(2)[:, :, :1], f(3, 5)),
    row("movedim-swap", "", lambda: lambda x: x.movedim(1, -1).swapaxes(1, 2), f(2, 3, 5)),
    row("vision-rotate", "", lambda: Chain(lambda x: x.rot90(1, (2, 3)), nn.Conv2d(2, 3, 2)), f(2, 3, 5)),
]
