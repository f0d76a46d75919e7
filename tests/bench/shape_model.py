#!/usr/bin/env python3
"""Writes a Llama-style transformer or a GPT-2 as ONNX, without weights.

    shape_model.py qwen2-1.5b --batch=1 --seq=1024 -o qwen2.onnx
    tessera-compile qwen2.onnx -o qwen2.tessera --mesh shard=8 --strategy zero3 --batch 8

`--seq 0` leaves the number of positions open; it is then bound by the compiler's --seq.

Initializers point at external data that does not exist: the compiler never reads weights, so that a model of any size
can be compiled, reported on and timed from a file of some hundred kilobytes. Ops and names are those of exported Hugging
Face models (RMS norm from elementwise ops, rotary positions, grouped queries, SwiGLU; GPT-2: layer norms, learned positions,
GELU by tanh). Needs no packages.
"""
import argparse
import os
import pathlib
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from onnx_file import FLOAT, INT64, Graph, value_info  # noqa: E402

MODELS = {
    # layers, width, heads, key/value heads, hidden, vocabulary, tied embedding, biases of q, k and v
    "qwen2-1.5b": (28, 1536, 12, 2, 8960, 151936, True, True),
    "llama-3.1-8b": (32, 4096, 32, 8, 14336, 128256, False, False),
    "llama-3.1-70b": (80, 8192, 64, 8, 28672, 128256, False, False),
    "llama-1b": (16, 2048, 32, 8, 8192, 128256, True, False),
    "gpt2-124m": (12, 768, 12, 12, 2048, 50257, True, True),  # GPT-2's sizes; three matrices of 2048 weigh two of 3072
    "tiny": (2, 64, 4, 2, 128, 256, True, True),
}
GPT2 = {
    # layers, width, heads, positions, vocabulary
    "gpt2": (12, 768, 12, 1024, 50257),
    "gpt2-xl": (48, 1600, 25, 1024, 50257),
    "gpt2-tiny": (2, 64, 4, 64, 256),
}


class Model(Graph):
    """What both kinds of model share: attention over heads with a causal mask, and the file."""

    def __init__(self, batch, seq):
        super().__init__()
        self.batch, self.seq = batch, seq or "sequence"

    def positions_along(self, dim):
        """0 … seq-1 along one of four dimensions; as constants they would weigh more than the rest of the file."""
        if isinstance(self.seq, int):
            end = self.constant([self.seq], [], INT64)
        else:
            end = self.op("Gather", self.op("Shape", "tokens"), self.constant([1], [], INT64), axis=0)
        positions = self.op("Range", self.constant([0], [], INT64), end, self.constant([1], [], INT64))
        return self.op("Reshape", positions, self.ints(*(-1 if i == dim else 1 for i in range(4))))

    def causal_mask(self):
        """Which keys a query sees, from positions: as a constant it would weigh seq² bytes."""
        return self.op("LessOrEqual", self.positions_along(3), self.positions_along(2))

    def split_heads(self, x, heads):
        shape = self.ints(0, 0, heads, self.size)
        return self.op("Transpose", self.op("Reshape", x, shape), perm=[0, 2, 1, 3])

    def attend(self, q, k, v):
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Mul", scores, self.scalar(self.size**-0.5))
        scores = self.op("Where", self.mask, scores, self.scalar(float("-inf")))
        out = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)
        return self.op("Reshape", self.op("Transpose", out, perm=[0, 2, 1, 3]),
                       self.ints(0, 0, self.width))

    def save(self, path, embedding, x):
        """Multiplies `x` by the output projection `embedding` and writes the file."""
        self.scope = "/lm_head"
        logits = self.op("MatMul", x, self.op("Transpose", embedding, perm=[1, 0]))
        self.store(path, [value_info("tokens", INT64, [self.batch, self.seq])],
                   [value_info(logits, FLOAT, [self.batch, self.seq, self.vocabulary])])


class Gpt2(Model):
    def __init__(self, batch, seq, config):
        super().__init__(batch, seq)
        self.layers, self.width, self.heads, self.positions, self.vocabulary = config
        self.size = self.width // self.heads

    def norm(self, name, x):
        return self.op("LayerNormalization", x, self.weight(name + ".weight", self.width),
                       self.weight(name + ".bias", self.width), axis=-1, epsilon=1e-5)

    def linear(self, name, x, inner, outer):
        y = self.op("MatMul", x, self.weight(name + ".weight", inner, outer))
        return self.op("Add", y, self.weight(name + ".bias", outer))

    def gelu(self, x):
        inner = self.op("Add", x, self.op("Mul", self.op("Pow", x, self.scalar(3.0)), self.scalar(0.044715)))
        tanh = self.op("Tanh", self.op("Mul", inner, self.scalar(0.7978845608028654)))
        return self.op("Mul", self.op("Mul", x, self.scalar(0.5)), self.op("Add", tanh, self.scalar(1.0)))

    def attention(self, name, x):
        qkv = self.linear(name + ".c_attn", x, self.width, 3 * self.width)
        parts = (self.op("Slice", qkv, self.ints(i * self.width), self.ints((i + 1) * self.width), self.ints(2))
                 for i in range(3))
        return self.linear(name + ".c_proj", self.attend(*(self.split_heads(part, self.heads) for part in parts)),
                           self.width, self.width)

    def mlp(self, name, x):
        x = self.gelu(self.linear(name + ".c_fc", x, self.width, 4 * self.width))
        return self.linear(name + ".c_proj", x, 4 * self.width, self.width)

    def write(self, path):
        self.scope = "/transformer"
        self.mask = self.causal_mask()
        embedding = self.weight("transformer.wte.weight", self.vocabulary, self.width)
        end = self.ints(self.seq) if isinstance(self.seq, int) else self.op("Slice", self.op("Shape", "tokens"), self.ints(1), self.ints(2))
        positions = self.op("Slice", self.weight("transformer.wpe.weight", self.positions, self.width), self.ints(0),
                            end, self.ints(0))
        x = self.op("Add", self.op("Gather", embedding, "tokens", axis=0), positions)
        for layer in range(self.layers):
            name, self.scope = f"transformer.h.{layer}", f"/transformer/h.{layer}"
            x = self.op("Add", x, self.attention(name + ".attn", self.norm(name + ".ln_1", x)))
            x = self.op("Add", x, self.mlp(name + ".mlp", self.norm(name + ".ln_2", x)))
        self.scope = "/transformer"
        self.save(path, embedding, self.norm("transformer.ln_f", x))


class Transformer(Model):
    def __init__(self, batch, seq, config):
        super().__init__(batch, seq)
        self.layers, self.width, self.heads, self.groups, self.hidden, self.vocabulary, self.tied, self.biases = config
        self.size = self.width // self.heads

    def norm(self, name, x):
        """x / sqrt(mean(x²) + ε) · weight, as PyTorch's exporter writes it."""
        mean = self.op("ReduceMean", self.op("Pow", x, self.scalar(2.0)), axes=[-1], keepdims=1)
        root = self.op("Sqrt", self.op("Add", mean, self.scalar(1e-6)))
        scaled = self.op("Mul", x, self.op("Div", self.scalar(1.0), root))
        return self.op("Mul", self.weight(name + ".weight", self.width), scaled)

    def linear(self, name, x, inner, outer, bias=False):
        y = self.op("MatMul", x, self.op("Transpose", self.weight(name + ".weight", outer, inner), perm=[1, 0]))
        return self.op("Add", y, self.weight(name + ".bias", outer)) if bias else y

    def rotate(self, x):
        half, axis, end = self.ints(self.size // 2), self.ints(3), self.ints(2**63 - 1)
        first = self.op("Slice", x, self.ints(0), half, axis)
        second = self.op("Slice", x, half, end, axis)
        turned = self.op("Concat", self.op("Neg", second), first, axis=-1)
        return self.op("Add", self.op("Mul", x, self.cos), self.op("Mul", turned, self.sin))

    def repeat(self, x):
        """Each key or value head once per query head of its group."""
        if self.heads == self.groups:
            return x
        times = self.heads // self.groups
        x = self.op("Unsqueeze", x, self.ints(2))
        x = self.op("Expand", x, self.ints(1, 1, times, 1, 1))
        return self.op("Reshape", x, self.ints(0, self.heads, -1, self.size))

    def attention(self, name, x):
        key_width = self.groups * self.size
        q = self.split_heads(self.linear(name + ".q_proj", x, self.width, self.width, self.biases), self.heads)
        k = self.split_heads(self.linear(name + ".k_proj", x, self.width, key_width, self.biases), self.groups)
        v = self.split_heads(self.linear(name + ".v_proj", x, self.width, key_width, self.biases), self.groups)
        q, k, v = self.rotate(q), self.repeat(self.rotate(k)), self.repeat(v)
        out = self.attend(q, k, v)
        return self.linear(name + ".o_proj", out, self.width, self.width)

    def mlp(self, name, x):
        gate = self.linear(name + ".gate_proj", x, self.width, self.hidden)
        gate = self.op("Mul", gate, self.op("Sigmoid", gate))
        up = self.linear(name + ".up_proj", x, self.width, self.hidden)
        return self.linear(name + ".down_proj", self.op("Mul", gate, up), self.hidden, self.width)

    def write(self, path):
        self.scope = "/model"
        self.mask = self.causal_mask()
        inverse = [1e6 ** (-2.0 * i / self.size) for i in range(self.size // 2)]
        frequencies = self.constant(inverse * 2, [1, 1, 1, self.size], FLOAT, "model.rotary_emb.inv_freq")
        positions = self.op("Cast", self.positions_along(2), to=FLOAT)
        angles = self.op("Mul", positions, frequencies)
        self.cos, self.sin = self.op("Cos", angles), self.op("Sin", angles)
        embedding = self.weight("model.embed_tokens.weight", self.vocabulary, self.width)
        x = self.op("Gather", embedding, "tokens", axis=0)
        for layer in range(self.layers):
            name, self.scope = f"model.layers.{layer}", f"/model/layers.{layer}"
            x = self.op("Add", x, self.attention(name + ".self_attn", self.norm(name + ".input_layernorm", x)))
            x = self.op("Add", x, self.mlp(name + ".mlp", self.norm(name + ".post_attention_layernorm", x)))
        self.scope = "/model"
        x = self.norm("model.norm", x)
        head = embedding if self.tied else self.weight("lm_head.weight", self.vocabulary, self.width)
        self.save(path, head, x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=[*MODELS, *GPT2])
    parser.add_argument("--batch", type=int, default=1, help="samples, over all ranks")
    parser.add_argument("--seq", type=int, default=1024, help="positions; 0: as the compiler says")
    parser.add_argument("--layers", type=int, help="other than the model's")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    kind, config = (Gpt2, GPT2[options.model]) if options.model in GPT2 else (Transformer, MODELS[options.model])
    if options.layers:
        config = (options.layers, *config[1:])
    kind(options.batch, options.seq, config).write(options.output)


if __name__ == "__main__":
    main()
