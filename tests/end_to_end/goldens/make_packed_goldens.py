#!/usr/bin/env python3
"""Exports two small decoders whose samples are packed of documents, and records PyTorch's training of the documents alone.

usage: make_packed_goldens.py [folder ...]      (torch 2.15, onnx, onnxscript, safetensors)

Writes the folders packed_positions, packed_ends and packed_ids, or those that are named, each with model.onnx and what make_goldens.py records. The model masks
attention between documents; the recorded training runs each document as a sample of its own, without any mask between
documents, and adds up. That PyTorch's packed training gives the same is checked here.

packed_positions  rotary positions that begin at 0 in each document are an input, and tell documents apart as in Hugging
                  Face's transformers; one layer is causal, the other sees 5 keys
packed_ends       token 0 ends a document and belongs to it; one layer is causal with a mask that is added, the other sees
                  the whole document
packed_ids        ids of documents, in no order, are an input; one layer is causal, the other sees the whole document
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "..", "frontends", "python"), HERE]
from make_goldens import HYPER, onnx_names, perturb, snapshot  # noqa: E402
from tessera.onnx import export  # noqa: E402

STEPS, BATCH, LENGTH, VOCABULARY, WIDTH, HEADS, GROUPS, WINDOW = 3, 12, 24, 32, 16, 4, 2, 5


def rotated(x, positions):
    half = x.shape[-1] // 2
    angles = positions[:, None, :, None].float() * 100.0 ** (-torch.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.mlp_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        size = WIDTH // HEADS
        self.q, self.k, self.v = (nn.Linear(WIDTH, n * size, bias=False) for n in (HEADS, GROUPS, GROUPS))
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 24), nn.Linear(24, WIDTH)

    def forward(self, x, mask, positions):
        b, t, _ = x.shape
        h = self.norm(x)
        q, k, v = (f(h).view(b, t, -1, WIDTH // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        if positions is not None:
            q, k = rotated(q, positions), rotated(k, positions)
        k, v = (y[:, :, None].expand(b, GROUPS, HEADS // GROUPS, t, -1).reshape(q.shape) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.silu(self.up(self.mlp_norm(x))))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.head = nn.Embedding(VOCABULARY, WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def through(self, tokens, masks, positions=None):
        x = self.wte(tokens)
        for layer, mask in zip(self.layers, masks):
            x = layer(x, mask, positions)
        return self.head(x)

    def alone(self, tokens):
        """Of documents that are samples of their own."""
        t = tokens.shape[1]
        here, there = torch.arange(t)[:, None], torch.arange(t)[None, :]
        return self.through(tokens, self.plain(here, there), torch.arange(t)[None, :] if self.has_positions else None)


class Positions(Decoder):
    has_positions, inputs = True, ["tokens", "position_ids"]

    @staticmethod
    def plain(here, there):
        return there <= here, (there <= here) & (there > here - WINDOW)

    def forward(self, tokens, position_ids):
        ids = (torch.diff(position_ids, prepend=position_ids[:, :1] - 1, dim=-1) != 1).cumsum(-1)
        same = ids[:, None, :, None] == ids[:, None, None, :]
        here, there = position_ids[:, None, :, None], position_ids[:, None, None, :]
        return self.through(tokens, [same & mask for mask in self.plain(here, there)], position_ids)


class Ends(Decoder):
    has_positions, inputs = False, ["tokens"]

    @staticmethod
    def plain(here, there):
        return there <= here, None

    def forward(self, tokens):
        ends = (tokens == 0).long()
        ids = ends.cumsum(1) - ends
        same = ids[:, :, None] == ids[:, None, :]
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        added = torch.zeros(same.shape).masked_fill(~(same & causal), torch.finfo(torch.float32).min)
        return self.through(tokens, [added[:, None], same[:, None]])


class Ids(Decoder):
    has_positions, inputs = False, ["tokens", "samples"]

    @staticmethod
    def plain(here, there):
        return there <= here, None

    def forward(self, tokens, samples):
        same = samples[:, :, None] == samples[:, None, :]
        causal = torch.ones(tokens.shape[1], tokens.shape[1], dtype=torch.bool).tril()
        return self.through(tokens, [(same & causal)[:, None], same[:, None]])


def documents(row):
    """The pieces of a row of tokens."""
    starts = [0] + [i + 1 for i in range(LENGTH - 1) if row[i] == 0]
    return [slice(a, b) for a, b in zip(starts, starts[1:] + [LENGTH])]


def record(name, kind):
    torch.manual_seed(22)
    model = kind().train()
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    # About one token of 7 ends a document; some documents have one token, and some rows are one document.
    tokens = torch.randint(1, VOCABULARY, (STEPS * BATCH, LENGTH))
    tokens[torch.rand(tokens.shape) < 0.15] = 0
    tokens[::6] = tokens[::6].clamp(min=1)
    positions = torch.zeros_like(tokens)
    for row, place in zip(tokens, positions):
        for part in documents(row):
            place[part] = torch.arange(part.stop - part.start)
    targets = torch.randint(0, VOCABULARY, tokens.shape)
    targets[torch.rand(targets.shape) < 0.1] = -100
    ids = torch.zeros_like(tokens)
    for number, row in enumerate(tokens):
        for part, one in zip(documents(row), torch.randperm(2 * LENGTH, generator=torch.Generator().manual_seed(number))):
            ids[number, part] = one - LENGTH
    given = {"tokens": tokens, "position_ids": positions, "samples": ids}
    inputs = tuple(given[input] for input in kind.inputs)
    path = os.path.join(folder, "model.onnx")
    export(model, tuple(x[:2] for x in inputs), kind.inputs, path, exporter="dynamo", say=lambda text: None)
    named = onnx_names(path, model)
    perturb(named)
    with torch.no_grad():  # so large that it matters what a token attends to
        for parameter in named.values():
            parameter.mul_(5 if parameter.dim() >= 2 else 1)
    decayed = [p for p in named.values() if p.dim() >= 2]
    plain = [p for p in named.values() if p.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": HYPER["weight_decay"]}, {"params": plain, "weight_decay": 0.0}],
        lr=HYPER["lr"], betas=(HYPER["beta1"], HYPER["beta2"]), eps=HYPER["epsilon"], foreach=False)
    save_file(snapshot(named), os.path.join(folder, "weights.safetensors"))
    save_file({**{n: x.int() for n, x in zip(kind.inputs, inputs)}, "targets": targets.int()},
              os.path.join(folder, "data.safetensors"))
    losses, norms = [], []
    for step in range(STEPS):
        rows = range(step * BATCH, (step + 1) * BATCH)
        count = (targets[rows.start:rows.stop] != -100).sum()
        packed = F.cross_entropy(model(*(x[rows.start:rows.stop] for x in inputs)).flatten(0, 1),
                                 targets[rows.start:rows.stop].flatten())
        together = torch.autograd.grad(packed, list(named.values()))
        loss = sum(F.cross_entropy(model.alone(tokens[row:row + 1, part])[0], targets[row, part], reduction="sum")
                   for row in rows for part in documents(tokens[row])) / count
        optimizer.zero_grad()
        loss.backward()
        for (parameter, own), got in zip(named.items(), together):
            assert (own.grad - got).abs().max() <= 1e-5 * own.grad.abs().max(), parameter
        assert abs(packed - loss) <= 1e-6 * loss
        if step == 0:
            save_file({n: p.grad.clone() for n, p in named.items()}, os.path.join(folder, "gradients.safetensors"))
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), HYPER["clip_norm"]).item())
        optimizer.step()
        losses.append(loss.item())
    save_file(snapshot(named), os.path.join(folder, "final.safetensors"))
    golden = {"model": f"../../end_to_end/goldens/{name}/model.onnx", "torch": torch.__version__, "batch": BATCH,
              "sequence": LENGTH, "steps": STEPS, "hyper": HYPER, "losses": losses, "gradient_norms": norms}
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump(golden, file, indent=2)
        file.write("\n")
    for file in os.listdir(folder):
        os.chmod(os.path.join(folder, file), 0o644)
    print(name, "losses", ["%.6f" % x for x in losses], "norms", ["%.4f" % x for x in norms])


KINDS = {"packed_positions": Positions, "packed_ends": Ends, "packed_ids": Ids}


def main():
    torch.set_num_threads(1)
    for name, kind in KINDS.items():
        if name in (sys.argv[1:] or KINDS):
            record(name, kind)


if __name__ == "__main__":
    main()
