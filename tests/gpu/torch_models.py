"""The models of tests/bench/shape_model.py in PyTorch, as one would write them there for speed."""

import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
import shape_model  # noqa: E402


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.c_out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(c, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.c_out(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, positions, vocabulary):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens) + self.positions.weight[:tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups, hidden, biases):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)
        self.q = nn.Linear(width, width, bias=biases)
        self.k = nn.Linear(width, groups * self.size, bias=biases)
        self.v = nn.Linear(width, groups * self.size, bias=biases)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def rotate(self, x, cos, sin):
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        y = self.norm_1(x)
        q = self.rotate(self.q(y).view(b, t, self.heads, self.size).transpose(1, 2), cos, sin)
        k = self.rotate(self.k(y).view(b, t, self.groups, self.size).transpose(1, 2), cos, sin)
        v = self.v(y).view(b, t, self.groups, self.size).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=self.heads != self.groups)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, c))
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, width, heads, groups, hidden, vocabulary, tied, biases):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, groups, hidden, biases) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width, eps=1e-6), nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.head.weight = self.embedding.weight
        self.size = width // heads

    def forward(self, tokens):
        x = self.embedding(tokens)
        inverse = 1e6 ** (-torch.arange(0, self.size, 2, device=tokens.device) / self.size)
        angles = torch.outer(torch.arange(tokens.shape[1], device=tokens.device), inverse)
        angles = torch.cat((angles, angles), dim=-1)
        # as the projections under autocast: attention wants one type
        dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def build(shape, padded=None):
    """The model of that name in shape_model.py, a GPT-2 with `padded` rows in its table if that is given."""
    if shape not in shape_model.GPT2:
        return Llama(*shape_model.MODELS[shape])
    *sizes, vocabulary = shape_model.GPT2[shape]
    return Gpt(*sizes, padded or vocabulary)
