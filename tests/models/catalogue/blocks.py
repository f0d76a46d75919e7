"""Blocks as models have them: gated units, mixtures of experts, residual networks, state spaces, straight-through forms."""

import torch
import torch.nn.functional as F
from torch import nn

from .rows import Chain, With, d, f, i, row


class Gated(nn.Module):
    """Gated linear units, https://arxiv.org/abs/2002.05202."""

    def __init__(self, activation, packed=False):
        super().__init__()
        self.activation, self.packed = activation, packed
        self.up = nn.Linear(6, 20 if packed else 10)
        self.gate, self.down = None if packed else nn.Linear(6, 10), nn.Linear(10, 6, bias=False)

    def forward(self, x):
        a, b = self.up(x).chunk(2, -1) if self.packed else (self.up(x), self.gate(x))
        return self.down(self.activation(b) * a)


class Experts(nn.Module):
    """A mixture of experts. kind: how tokens choose: "dense" (all, weighted), "topk" (2 of them), "switch" (1), "hard" (the
    best by a comparison)."""

    def __init__(self, kind, count=4):
        super().__init__()
        self.kind, self.router = kind, nn.Linear(6, count)
        self.up, self.down = nn.Parameter(torch.randn(count, 6, 8) * 0.3), nn.Parameter(torch.randn(count, 8, 6) * 0.3)

    def forward(self, x):
        scores = self.router(x).softmax(-1)
        if self.kind == "topk":
            best, which = scores.topk(2, -1)
            scores = torch.zeros_like(scores).scatter(-1, which, best / best.sum(-1, keepdim=True))
        elif self.kind == "switch":
            best, which = scores.max(-1, keepdim=True)
            scores = best * F.one_hot(which.squeeze(-1), scores.shape[-1]).to(best)
        elif self.kind == "hard":
            scores = scores * (scores >= scores.amax(-1, keepdim=True))
        hidden = torch.einsum("btd,edf->btef", x, self.up).relu()
        return torch.einsum("btef,efd,bte->btd", hidden, self.down, scores)


class Balanced(nn.Module):
    """A mixture with the loss that balances its experts, https://arxiv.org/abs/2101.03961 equation 4."""

    def __init__(self):
        super().__init__()
        self.router, self.experts = nn.Linear(6, 3), nn.ModuleList(nn.Linear(6, 6) for _ in range(3))

    def forward(self, x, t):
        p = self.router(x).softmax(-1)
        y = sum(p[..., at:at + 1] * expert(x) for at, expert in enumerate(self.experts))
        return F.mse_loss(y, t) + 0.1 * (p * p).mean()


class Residual(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.a, self.b = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.Conv2d(4, 4, 3, padding=1, bias=False)
        self.n, self.m = norm(4), norm(4)

    def forward(self, x):
        return F.relu(x + self.m(self.b(F.relu(self.n(self.a(x))))))


class Unet(nn.Module):
    def __init__(self, up):
        super().__init__()
        self.down, self.middle, self.out = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(8, 2, 1)
        self.up = up

    def forward(self, x):
        a = F.relu(self.down(x))
        b = self.up(F.relu(self.middle(F.max_pool2d(a, 2))))
        return self.out(torch.cat([a, b], 1))


class Patches(nn.Module):
    """A small vision transformer."""

    def __init__(self):
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 8, 4, stride=4), nn.Parameter(torch.randn(1, 1, 8))
        self.positions = nn.Parameter(torch.randn(1, 5, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.cls.expand(x.shape[0], -1, -1), h], 1) + self.positions
        return self.head(self.block(h)[:, 0])


class Scan(nn.Module):
    """A diagonal linear recurrence, unrolled."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Parameter(torch.randn(5)), nn.Linear(4, 5), nn.Linear(5, 4)

    def forward(self, x):
        h, outputs = x.new_zeros(x.shape[0], 5), []
        for t in range(x.shape[1]):
            h = torch.sigmoid(self.a) * h + self.b(x[:, t])
            outputs.append(self.c(h))
        return torch.stack(outputs, 1)


class Squeeze(nn.Module):
    """Squeeze and excitation, https://arxiv.org/abs/1709.01507."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 2), nn.Linear(2, 4)

    def forward(self, x):
        return x * torch.sigmoid(self.b(F.relu(self.a(x.mean((2, 3))))))[:, :, None, None]


class Codes(nn.Module):
    """The nearest vector of a table, with the gradient passed through, https://arxiv.org/abs/1711.00937."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(7, 5))

    def forward(self, x, t):
        distance = (x.unsqueeze(2) - self.table).square().sum(-1)
        code = self.table[distance.argmin(-1)]
        loss = F.mse_loss(code, x.detach()) + 0.25 * F.mse_loss(x, code.detach())
        return loss + F.mse_loss(x + (code - x).detach(), t)


def round_through(x):
    return x + (x.round() - x).detach()


def fake_quantize(x, s):
    q = (x / s).clamp(-8, 7)
    return (q + (q.round() - q).detach()) * s


def no_grad_scale(x):
    with torch.no_grad():
        scale = x.abs().amax(-1, keepdim=True)
    return x / scale


def data_scale(x):
    return x / x.data.abs().mean(-1, keepdim=True)


STEP = "a jump: values beside it fall on its other side"
ROWS = [
    row("swiglu", "F.silu nn.Linear", lambda: Gated(F.silu), f(3, 6), recorded=True),
    row("geglu", "F.gelu nn.Linear", lambda: Gated(F.gelu), f(3, 6)),
    row("reglu-packed", "F.relu nn.Linear", lambda: Gated(F.relu, True), f(3, 6)),
    row("swiglu-packed", "F.silu nn.Linear", lambda: Gated(F.silu, True), f(3, 6)),
    row("experts-dense", "", lambda: Experts("dense"), f(3, 6), recorded=True, bf16="a unit beside 0 may be off"),
    row("experts-topk", "", lambda: Experts("topk"), f(3, 6), recorded=True, bf16="another expert may be chosen"),
    row("experts-switch", "F.one_hot", lambda: Experts("switch"), f(3, 6), bf16="another expert may be chosen"),
    row("experts-hard", "", lambda: Experts("hard"), f(3, 6), bf16="another expert may be chosen"),
    row("experts-balanced", "", lambda: Balanced(), f(3, 6), d(3, 6), loss="output"),
    row("resnet-block", "nn.BatchNorm2d nn.Conv2d", lambda: Residual(nn.BatchNorm2d), f(4, 4, 5), recorded=True),
    row("resnet-block-instance", "nn.InstanceNorm2d", lambda: Residual(lambda n: nn.InstanceNorm2d(n, affine=True)), f(4, 4, 5)),
    row("resnet-block-group", "nn.GroupNorm", lambda: Residual(lambda n: nn.GroupNorm(2, n)), f(4, 4, 5)),
    row("unet-transposed", "nn.ConvTranspose2d", lambda: Unet(nn.ConvTranspose2d(4, 4, 2, stride=2)), f(2, 4, 6),
        bf16="another element may be the largest"),
    row("unet-upsample", "nn.Upsample", lambda: Unet(nn.Upsample(scale_factor=2)), f(2, 4, 6)),
    row("unet-bilinear", "nn.Upsample", lambda: Unet(nn.Upsample(scale_factor=2, mode="bilinear")), f(2, 4, 6)),
    row("unet-shuffle", "nn.PixelShuffle", lambda: Unet(Chain(nn.Conv2d(4, 16, 1), nn.PixelShuffle(2))), f(2, 4, 6)),
    row("vision-transformer", "nn.TransformerEncoderLayer nn.Conv2d", lambda: Patches(), f(3, 8, 8), loss="cross-entropy",
        recorded=True),
    row("cnn", "nn.Conv2d nn.MaxPool2d nn.BatchNorm2d", lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(24, 5)),
        f(1, 4, 6), loss="cross-entropy"),
    row("tcn", "nn.Conv1d", lambda: Chain(lambda x: F.pad(x, (2, 0)), nn.Conv1d(4, 4, 3), nn.ReLU(), lambda x: F.pad(x, (4, 0)),
                                         nn.Conv1d(4, 4, 3, dilation=2)), f(4, 7)),
    row("scan", "", lambda: Scan(), f(4, 4), recorded=True),
    row("squeeze-excite", "nn.Linear", lambda: Squeeze(), f(4, 3, 5)),
    row("highway", "nn.Linear", lambda: With(lambda x, a, b: torch.sigmoid(x @ a) * torch.tanh(x @ b) + (1 - torch.sigmoid(x @ a)) * x,
                                             a=(5, 5), b=(5, 5)), f(3, 5)),
    row("mixer", "nn.Linear", lambda: Chain(lambda x: x.transpose(1, 2), nn.Linear(3, 3), nn.GELU(), lambda x: x.transpose(1, 2),
                                            nn.Linear(5, 5)), f(3, 5)),
    row("film", "nn.Linear", lambda: With(lambda x, c, w: x * (c @ w)[:, None, :5] + (c @ w)[:, None, 5:], w=(4, 10)), f(3, 5),
        d(4)),
    row("lstm-language-model", "nn.LSTM", lambda: Chain(nn.Embedding(11, 4), nn.LSTM(4, 5, batch_first=True), lambda r: r[0],
                                                       nn.Linear(5, 11)), i(4, high=11), loss="cross-entropy"),
    row("round-through", "", lambda: round_through, f(3, 5), recorded=True, bf16=STEP),
    row("sign-through", "", lambda: lambda x: x + (x.sign() - x).detach(), f(3, 5), bf16=STEP),
    row("step-through-sigmoid", "", lambda: lambda x: torch.sigmoid(x) + ((x > 0).float() - torch.sigmoid(x)).detach(), f(3, 5),
        bf16=STEP),
    row("fake-quantize", "", lambda: With(fake_quantize, s=(1,)), f(3, 5), bf16=STEP),
    row("codes", "", lambda: Codes(), f(3, 5), d(3, 5), loss="output", bf16="another code may be the nearest"),
    row("detach", "", lambda: lambda x: x * x.tanh().detach(), f(3, 5), recorded=True),
    row("no-grad", "", lambda: no_grad_scale, f(3, 5), recorded=True),
    row("data", "", lambda: data_scale, f(3, 5)),
    row("stop-one-branch", "nn.Linear", lambda: With(lambda x, w: (x @ w) * F.softmax((x @ w).detach(), -1), w=(5, 5)), f(3, 5)),
    row("distillation", "", lambda: With(lambda x, a, b: F.mse_loss(x @ a, (x @ b).detach()) + (x @ b).square().mean(),
                                         a=(5, 4), b=(5, 4)), f(3, 5), loss="output"),
    row("topk-straight-through", "", lambda: lambda x: x.softmax(-1) + (
        torch.zeros_like(x).scatter(-1, x.topk(2, -1).indices, 0.5) - x.softmax(-1)).detach(), f(3, 5), bf16=STEP),
]
