"""The small models that the import tests and the PyTorch goldens share: GPT-2, Llama and BERT style, an MLP and a CNN."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class GptAttention(nn.Module):
    """Causal self-attention. `fused` uses scaled_dot_product_attention, otherwise the products are written out."""

    def __init__(self, width, heads, length, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)
        if not fused:
            self.register_buffer("bias", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(x).split(c, dim=2)
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in (q, k, v))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.shape[-1]))
            scores = scores.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf"))
            y = F.softmax(scores, dim=-1) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(b, t, c))


class GptBlock(nn.Module):
    def __init__(self, width, heads, length, fused, gelu):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = GptAttention(width, heads, length, fused)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential()
        self.mlp.c_fc = nn.Linear(width, 4 * width)
        self.mlp.gelu = nn.GELU(approximate=gelu)
        self.mlp.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """GPT-2 style: learned positions, pre-norm blocks, output projection tied to the token embedding."""

    def __init__(self, vocabulary=256, width=64, heads=4, layers=2, length=64, fused=True, gelu="tanh"):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(length, width)
        self.h = nn.ModuleList(GptBlock(width, heads, length, fused, gelu) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.lm_head.weight = self.wte.weight

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


class RmsNorm(nn.Module):
    def __init__(self, width, epsilon=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.epsilon = epsilon

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon))


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


class LlamaAttention(nn.Module):
    def __init__(self, width, heads, groups, fused):
        super().__init__()
        self.heads, self.groups, self.size, self.fused = heads, groups, width // heads, fused
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, groups * self.size, bias=False)
        self.v_proj = nn.Linear(width, groups * self.size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def repeat(self, x):
        b, g, t, d = x.shape
        n = self.heads // g
        return x[:, :, None, :, :].expand(b, g, n, t, d).reshape(b, g * n, t, d)

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        q = self.q_proj(x).view(b, t, self.heads, self.size).transpose(1, 2)
        k = self.k_proj(x).view(b, t, self.groups, self.size).transpose(1, 2)
        v = self.v_proj(x).view(b, t, self.groups, self.size).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        k, v = self.repeat(k), self.repeat(v)
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = torch.full((t, t), torch.finfo(x.dtype).min).triu(1)
            scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + mask
            y = torch.matmul(F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype), v)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, c))


class LlamaMlp(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, groups, hidden, fused):
        super().__init__()
        self.self_attn = LlamaAttention(width, heads, groups, fused)
        self.mlp = LlamaMlp(width, hidden)
        self.input_layernorm = RmsNorm(width)
        self.post_attention_layernorm = RmsNorm(width)

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    """Llama style: RMSNorm, rotary positions, grouped-query attention, SwiGLU, output projection tied or not."""

    def __init__(self, vocabulary=256, width=64, heads=4, groups=2, layers=2, hidden=176, tied=False, fused=True):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups, hidden, fused) for _ in range(layers))
        self.norm = RmsNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        if tied:
            self.lm_head.weight = self.embed_tokens.weight
        size = width // heads
        inv_freq = 1.0 / (10000.0 ** (torch.arange(0, size, 2).float() / size))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        positions = torch.arange(tokens.shape[1], device=tokens.device).float()
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))


class BertLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.norm_1 = nn.LayerNorm(width, eps=1e-12)
        self.intermediate = nn.Linear(width, 4 * width)
        self.dense = nn.Linear(4 * width, width)
        self.norm_2 = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.heads, c // self.heads).permute(0, 2, 1, 3)
                   for f in (self.query, self.key, self.value))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(c // self.heads) + mask
        y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).reshape(b, t, c)
        x = self.norm_1(x + self.output(y))
        return self.norm_2(x + self.dense(F.gelu(self.intermediate(x))))


class Bert(nn.Module):
    """BERT style: post-norm encoder with a padding mask, token types and a classifier on the first token."""

    def __init__(self, vocabulary=128, width=32, heads=2, layers=2, length=32, classes=3):
        super().__init__()
        self.word = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.token_type = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layer = nn.ModuleList(BertLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)
        self.classifier = nn.Linear(width, classes)

    def forward(self, tokens, token_types, attention_mask):
        positions = torch.arange(tokens.shape[1], device=tokens.device).unsqueeze(0)
        x = self.norm(self.word(tokens) + self.position(positions) + self.token_type(token_types))
        mask = (1.0 - attention_mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
        for layer in self.layer:
            x = layer(x, mask)
        return self.classifier(torch.tanh(self.pooler(x[:, 0])))


class Mlp(nn.Module):
    def __init__(self, inputs=16, hidden=32, outputs=4):
        super().__init__()
        self.fc1 = nn.Linear(inputs, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.fc3(F.silu(self.fc2(F.relu(self.fc1(x)))))


class Cnn(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(16, 16, 3, padding=1, groups=4)
        self.fc1 = nn.Linear(16 * 2 * 2, 32)
        self.fc2 = nn.Linear(32 + 16, classes)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(image))), 2)
        x = F.relu(self.conv2(x))
        x = F.leaky_relu(self.conv3(x), 0.1)
        pooled = F.adaptive_avg_pool2d(x, 1).flatten(1)
        x = F.avg_pool2d(x, 2, stride=2, ceil_mode=False)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(torch.cat((x, pooled), dim=1))


def tokens(vocabulary, batch=2, length=64):
    return torch.randint(0, vocabulary, (batch, length))


def _bert_inputs():
    mask = torch.ones(2, 32, dtype=torch.int64)
    mask[1, 20:] = 0
    return tokens(128, 2, 32), torch.randint(0, 2, (2, 32)), mask


# name -> (module, example inputs, input names, symbolic dimensions per input: {axis: name})
BATCH_TIME = {0: "B", 1: "T"}
MODELS = {
    "gpt": (lambda: Gpt(), lambda: (tokens(256),), ["tokens"], [{0: "B"}]),
    "gpt_manual": (lambda: Gpt(fused=False, gelu="none"), lambda: (tokens(256),), ["tokens"], [{0: "B"}]),
    "llama": (lambda: Llama(), lambda: (tokens(256),), ["tokens"], [BATCH_TIME]),
    "llama_manual": (lambda: Llama(tied=True, fused=False), lambda: (tokens(256),), ["tokens"], [BATCH_TIME]),
    "bert": (lambda: Bert(), _bert_inputs, ["tokens", "token_types", "attention_mask"], [BATCH_TIME] * 3),
    "mlp": (lambda: Mlp(), lambda: (torch.randn(8, 16),), ["x"], [{0: "B"}]),
    "cnn": (lambda: Cnn(), lambda: (torch.randn(4, 1, 16, 16),), ["image"], [{0: "B"}]),
}


def build(name, seed=0):
    """The module in training mode (dropout is 0 everywhere), its example inputs, input names and symbolic dimensions."""
    torch.manual_seed(seed)
    make, inputs, names, dims = MODELS[name]
    model = make()
    return model, inputs(), names, dims
