"""Attention and transformers, by torch.nn and written out."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from .rows import Call, Chain, First, d, f, i, row


class Self(nn.Module):
    """nn.MultiheadAttention of a sequence with itself."""

    def __init__(self, mask=None, heads=2, width=8, weights=False, batch_first=True, **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(width, heads, batch_first=batch_first, **options)
        self.mask, self.weights, self.batch_first = mask, weights, batch_first

    def forward(self, x):
        x = x if self.batch_first else x.transpose(0, 1)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.mask else None
        out, weights = self.inner(x, x, x, attn_mask=mask, need_weights=self.weights)
        out = out if self.batch_first else out.transpose(0, 1)
        return out + weights.sum(-1, keepdim=True) * 0.1 if self.weights else out


class Padded(nn.Module):
    """A key padding mask; the first key of a sample is never padding."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, m):
        mask = torch.cat([torch.zeros_like(m[:, :1]), m[:, 1:]], 1) > 0.5
        return self.inner(x, x, x, key_padding_mask=mask, need_weights=False)[0]


class Cross(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True, **options)

    def forward(self, x, y):
        return self.inner(x, y, y, need_weights=False)[0]


class Heads(nn.Module):
    """Attention written out. kind: what is done besides."""

    def __init__(self, kind="", width=12, heads=3, groups=3):
        super().__init__()
        self.kind, self.heads, self.groups, self.size = kind, heads, groups, width // heads
        self.q, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * groups * self.size)
        self.out = nn.Linear(width, width)
        self.sink = nn.Parameter(torch.randn(heads)) if kind == "sink" else None

    def split(self, x, heads):
        return x.unflatten(-1, (heads, self.size)).transpose(1, 2)

    def forward(self, x):
        q, (k, v) = self.split(self.q(x), self.heads), (self.split(y, self.groups) for y in self.kv(x).chunk(2, -1))
        if self.kind == "rope":
            q, k = rope(q), rope(k)
        if self.kind in ("sdpa", "sdpa-causal", "sdpa-grouped", "sdpa-scale"):
            scale = {"scale": 0.3} if self.kind == "sdpa-scale" else {}
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.kind == "sdpa-causal",
                                               enable_gqa=self.groups != self.heads, **scale)
        else:
            y = self.scores(q, k).softmax(-1)[..., :x.shape[1]] @ v
        return self.out(y.transpose(1, 2).flatten(2))

    def scores(self, q, k):
        if self.groups != self.heads:
            k = k.repeat_interleave(self.heads // self.groups, 1)
        s, n = q @ k.transpose(-1, -2) / math.sqrt(self.size), q.shape[2]
        steps = torch.arange(n)
        if self.kind == "causal":
            s = s.masked_fill(steps[None] > steps[:, None], float("-inf"))
        elif self.kind == "finite":
            s = s.masked_fill((steps[None] > steps[:, None]), torch.finfo(s.dtype).min)
        elif self.kind == "dead-row":  # the first query may attend to nothing
            s = s.masked_fill((steps[None] >= steps[:, None]), torch.finfo(s.dtype).min)
        elif self.kind == "window":
            s = s.masked_fill(((steps[None] - steps[:, None]).abs() > 1), float("-inf"))
        elif self.kind == "alibi":  # https://arxiv.org/abs/2108.12409
            s = s - (steps[None] - steps[:, None]).abs() * 2.0 ** -torch.arange(1, self.heads + 1)[:, None, None]
        elif self.kind == "softcap":
            s = 5.0 * torch.tanh(s / 5.0)
        elif self.kind == "sink":
            s = torch.cat([s, self.sink.reshape(1, -1, 1, 1).expand(s.shape[0], -1, n, 1)], -1)
        return s


def rope(x, base=100.0):
    """Rotary positions, https://arxiv.org/abs/2104.09864."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[2])[:, None] * base ** (-torch.arange(half) / half)
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


class Relative(nn.Module):
    """Attention with trained biases of relative positions."""

    def __init__(self):
        super().__init__()
        self.qkv, self.bias = nn.Linear(8, 24), nn.Embedding(9, 2)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        steps = torch.arange(x.shape[1])
        bias = self.bias((steps[None] - steps[:, None]).clamp(-4, 4) + 4).permute(2, 0, 1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0)).transpose(1, 2).flatten(2)


class Linear(nn.Module):
    """Linear attention, https://arxiv.org/abs/2006.16236."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        q, k = F.elu(q) + 1, F.elu(k) + 1
        state = torch.einsum("btd,bte->bde", k, v)
        return torch.einsum("btd,bde->bte", q, state) / (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True)


class Translator(nn.Module):
    """nn.Transformer from tokens to tokens."""

    def __init__(self, masked):
        super().__init__()
        self.source, self.target = nn.Embedding(11, 8), nn.Embedding(11, 8)
        self.inner = nn.Transformer(8, 2, 1, 1, 12, batch_first=True)
        self.head, self.masked = nn.Linear(8, 11), masked

    def forward(self, x, y):
        mask = nn.Transformer.generate_square_subsequent_mask(y.shape[1]) if self.masked else None
        return self.head(self.inner(self.source(x), self.target(y), tgt_mask=mask))


class Encoder(nn.Module):
    """nn.TransformerEncoder over tokens."""

    def __init__(self, layers=2, batch_first=True, width=32, **options):
        super().__init__()
        self.embed = nn.Embedding(50, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=batch_first, **options)
        self.t = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head, self.batch_first = nn.Linear(width, 50), batch_first

    def forward(self, tokens):
        h = self.embed(tokens)
        h = self.t(h) if self.batch_first else self.t(h.transpose(0, 1)).transpose(0, 1)
        return self.head(h)


class Decoder(nn.Module):
    def __init__(self, layers=1):
        super().__init__()
        self.inner = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 12, batch_first=True), layers)

    def forward(self, x, y):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.inner(x, y, tgt_mask=mask)


def direct(**options):
    """F.scaled_dot_product_attention of inputs."""
    return lambda: Call(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **options))


def masked(kind):
    def run(q, k, m):
        m = torch.cat([torch.ones_like(m[..., :1]), m[..., 1:]], -1)
        m = m > 0.5 if kind == "bool" else (1 - m) * torch.finfo(q.dtype).min if kind == "finite" else (1 - m) * -1e4
        return F.scaled_dot_product_attention(q, k, k, attn_mask=m)
    return lambda: run


ROWS = [
    row("mha", "nn.MultiheadAttention F.multi_head_attention_forward", lambda: Self(), f(5, 8), recorded=True),
    row("mha-weights", "nn.MultiheadAttention", lambda: Self(weights=True), f(5, 8)),
    row("mha-causal", "nn.MultiheadAttention", lambda: Self(mask="causal"), f(5, 8)),
    row("mha-time-first", "nn.MultiheadAttention", lambda: Self(batch_first=False), f(5, 8)),
    row("mha-no-bias", "nn.MultiheadAttention", lambda: Self(bias=False), f(5, 8)),
    row("mha-bias-kv", "nn.MultiheadAttention", lambda: Self(add_bias_kv=True), f(5, 8)),
    row("mha-zero-attention", "nn.MultiheadAttention", lambda: Self(add_zero_attn=True), f(5, 8)),
    row("mha-one-head", "nn.MultiheadAttention", lambda: Self(heads=1), f(5, 8)),
    row("mha-stacked", "nn.MultiheadAttention", lambda: Chain(Self(), nn.LayerNorm(8), Self()), f(5, 8)),
    row("mha-padding", "nn.MultiheadAttention", lambda: Padded(), f(5, 8), d(5, kind="bits")),
    row("mha-cross", "nn.MultiheadAttention", lambda: Cross(), f(3, 8), f(5, 8), recorded=True),
    row("mha-cross-widths", "nn.MultiheadAttention", lambda: Cross(kdim=6, vdim=6), f(3, 8), f(5, 6)),
    row("sdpa", "F.scaled_dot_product_attention", direct(), f(2, 5, 4), f(2, 5, 4), f(2, 5, 4), recorded=True),
    row("sdpa-causal", "F.scaled_dot_product_attention", direct(is_causal=True), f(2, 5, 4), f(2, 5, 4), f(2, 5, 4)),
    row("sdpa-scale", "F.scaled_dot_product_attention", direct(scale=0.7), f(2, 5, 4), f(2, 5, 4), f(2, 5, 4)),
    row("sdpa-other-width", "F.scaled_dot_product_attention", direct(), f(2, 5, 4), f(2, 3, 4), f(2, 3, 6)),
    row("sdpa-grouped", "F.scaled_dot_product_attention", direct(enable_gqa=True), f(6, 5, 4), f(2, 5, 4), f(2, 5, 4)),
    row("sdpa-mask-bool", "F.scaled_dot_product_attention", masked("bool"), f(2, 3, 4), f(2, 5, 4), d(1, 3, 5, kind="bits"),
        recorded=True),
    row("sdpa-mask-added", "F.scaled_dot_product_attention", masked("added"), f(2, 3, 4), f(2, 5, 4),
        d(1, 3, 5, kind="bits")),
    row("sdpa-mask-finite", "F.scaled_dot_product_attention", masked("finite"), f(2, 3, 4), f(2, 5, 4),
        d(1, 3, 5, kind="bits")),
    row("sdpa-trained-bias", "F.scaled_dot_product_attention",
        lambda: lambda q, k, b: F.scaled_dot_product_attention(q, k, k, attn_mask=b), f(2, 3, 4), f(2, 5, 4), f(1, 3, 5)),
    row("heads-sdpa", "F.scaled_dot_product_attention", lambda: Heads("sdpa"), f(5, 12)),
    row("heads-sdpa-causal", "F.scaled_dot_product_attention", lambda: Heads("sdpa-causal"), f(5, 12), recorded=True),
    row("heads-grouped", "F.scaled_dot_product_attention", lambda: Heads("sdpa-grouped", groups=1), f(5, 12)),
    row("heads-relative", "nn.Embedding", lambda: Relative(), f(5, 8)),
    row("heads-linear-attention", "", lambda: Linear(), f(5, 8)),
    row("encoder-layer", "nn.TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(8, 2, 12, batch_first=True),
        f(5, 8), recorded=True),
    row("encoder-layer-norm-first", "nn.TransformerEncoderLayer",
        lambda: nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=True, activation="gelu"), f(5, 8)),
    row("encoder-layer-time-first", "nn.TransformerEncoderLayer",
        lambda: Chain(lambda x: x.transpose(0, 1), nn.TransformerEncoderLayer(8, 2, 12), lambda x: x.transpose(0, 1)), f(5, 8)),
    row("encoder", "nn.TransformerEncoder", lambda: Encoder(), i(6, high=50), loss="cross-entropy"),
    row("encoder-small", "nn.TransformerEncoder", lambda: Encoder(width=8), i(6, high=50), loss="cross-entropy",
        recorded=True),
    row("encoder-time-first", "nn.TransformerEncoder", lambda: Encoder(batch_first=False), i(6, high=50),
        loss="cross-entropy"),
    row("encoder-norm-first", "nn.TransformerEncoder", lambda: Encoder(norm_first=True, dropout=0.0), i(6, high=50),
        loss="cross-entropy"),
    row("decoder-layer", "nn.TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(8, 2, 12, batch_first=True),
        f(3, 8), f(5, 8), recorded=True),
    row("decoder", "nn.TransformerDecoder", lambda: Decoder(2), f(3, 8), f(5, 8)),
    row("transformer", "nn.Transformer", lambda: Translator(False), i(5, high=11), i(3, high=11), loss="cross-entropy",
        recorded=True),
    row("transformer-causal", "nn.Transformer", lambda: Translator(True), i(5, high=11), i(3, high=11),
        loss="cross-entropy"),
    row("first-of-attention", "nn.MultiheadAttention", lambda: First(SelfPair()), f(5, 8)),
]
ROWS += [row(f"heads-{kind or 'plain'}", "", lambda kind=kind: Heads(kind), f(5, 12)) for kind in (
    "", "causal", "finite", "dead-row", "window", "alibi", "softcap", "sink", "rope")]


class SelfPair(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.inner(x, x, x, average_attn_weights=False)
