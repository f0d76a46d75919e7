"""Modules of make_programs.py whose values depend on the sizes of the batch."""

import torch
import torch.nn.functional as F
from torch import nn


class Even(nn.Module):
    """Another program for an odd batch."""

    def forward(self, x):
        return x * 2 if x.shape[0] % 2 == 0 else x * 3


class Positions(nn.Module):
    """Known values that are the same for each sample: positions, documents as transformers counts them, what both are at places
    that are given for each sample; and some that are not: samples are counted."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        samples, positions = torch.arange(x.shape[0]), torch.arange(x.shape[1])
        same = positions[None].expand(x.shape[0], -1)
        documents = (torch.diff(same % 512, prepend=same[:, :1] - 1, dim=-1) != 1).cumsum(-1)
        back = same[samples[:, None], positions.flip(0)]
        other = same + samples[:, None] % 2
        return (self.scale * x * (documents * 4096 + back + (same > other))).mean()


class Pairs(nn.Module):
    """n pairs: the better ones in the first half of the batch of 2*n, the worse ones in the second."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 1)

    def forward(self, x):
        scores, pairs = self.layer(x)[:, 0], x.shape[0] // 2
        return -F.logsigmoid(scores[:pairs] - scores[pairs:]).mean()


class Sizes(nn.Module):
    """Losses that read the size of the batch in many ways (tests/end_to_end/test_batch_sizes.py): x [B, 5, 4], y [B, 4], last [B]."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, y, last):
        samples = x.shape[0]
        h = self.layer(x).mean(1)
        error = (h - y).square()
        pairs = self.layer(torch.cat([y, x[:, 0], y])).sum(-1)
        better, worse = pairs[:samples], pairs[samples:2 * samples]
        rewards = y[:, 0].reshape(-1, 2)
        advantage = ((rewards - rewards.mean(1, keepdim=True)) / (rewards.std(1, keepdim=True) + 1)).reshape(-1)
        ghosts = h.reshape(samples // 2, 2, 4)
        many = (self.layer(x)[:, :, None] * torch.linspace(0.5, 1, 40)[:, None]).flatten(1, 2)
        return {
            "doubled": 2 * error.mean(), "batchmean": F.kl_div(h.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
            "by_size": error.sum() / samples, "by_elements": error.sum() / y.numel(), "by_one_less": error.sum() / (samples - 1),
            "by_root": error.sum() / samples**0.5, "times_inverse": error.sum() * (1 / samples), "mean_times": error.mean() * samples,
            "each_by_size": (error / samples).sum(), "by_literal": error.sum() / 4, "by_deviation": (h / y.std()).square().mean(),
            "and_parameters": error.mean() + self.layer.weight.square().sum() / samples, "targets": (h - y * samples).square().mean(),
            "pairs": -F.logsigmoid(better - worse).mean(), "rest": pairs[2 * samples:].square().sum() / pairs.shape[0],
            "every_second": -F.logsigmoid(h[0::2, 0] - h[1::2, 0]).mean(), "groups": -(h[:, 0] * advantage).mean(),
            "ghosts": (ghosts - ghosts.mean(1, keepdim=True)).square().mean(),
            "last": self.layer(x)[torch.arange(samples), last].square().mean(),
            "some": self.layer(x)[torch.arange(samples)[:, None], torch.stack([last, last // 2], 1)].square().sum() / samples,
            "gathered": many.gather(1, ((last[:, None] + torch.arange(400)) % 200)[:, :, None].expand(-1, -1, 4)).square().mean(),
            # These meet other samples, or depend on their place in the batch.
            "halves": -F.logsigmoid(h[:samples // 2, 0] - h[samples // 2:, 0]).mean(), "parts": h.reshape(2, -1, 4).std(1).mean(),
            "variance": h.var(), "places": (error.sum(-1) * torch.arange(samples)).mean(), "first": error[0].mean(),
            "repeated": error.mean() + self.layer.bias.expand(samples, 4).square().sum(),
        }


class Scored(nn.Module):
    """A classifier with numbers about a batch beside its logits: x [B, 4], label [B], -100 for those that do not count."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)

    def forward(self, x, label):
        logits = self.layer(x)
        is_near = (logits.topk(2).indices == label[:, None]).any(1)
        return {"logits": logits, "near": is_near.float().mean(), "near_counted": is_near.sum() / (label != -100).sum(),
                "smoothed": is_near.sum() / ((label != -100).sum() + 1.0), "detached": (is_near.sum() / (label != -100).sum()).detach(),
                "smoothed_twice": (is_near.sum() + 1) / ((label != -100).sum() + 2), "hits": (logits.argmax(1) == label).sum(), "norm": self.layer.weight.norm(), "spread": logits.std(0).mean(),
                "each": logits.sum(1)}


class OtherSize(nn.Module):
    """Losses that are another function for a batch of another size: x [B, 4], y [B, 4]."""

    def __init__(self, name):
        super().__init__()
        self.name = name
        self.layer = nn.Linear(4, 4)
        self.table = nn.Parameter(torch.randn(64, 4))

    def forward(self, x, y):
        h, samples = self.layer(x), x.shape[0]
        places = torch.arange(samples)
        return {
            "part": lambda: (h[:4] - y[:4]).square().mean(),
            "mask": lambda: (h * (places < 4)[:, None]).square().mean(),
            "columns": lambda: (h.view(samples, 2, 2) * torch.stack(((places < 4) + 1, 3 + 0 * places), -1)[:, None]).square().mean(),
            "where": lambda: torch.where((places < 4)[:, None], h, y).square().mean(),
            "rows": lambda: (h[places % 4] - y).square().mean(),
            "from_third": lambda: h[2::2].square().mean(),
            "own_table": lambda: (h - self.table[:samples]).square().mean(),
            "row_of_size": lambda: (h - self.table[samples - 1]).square().mean(),
            "padded": lambda: h.square().mean() + F.pad(self.layer.bias, (0, samples)).mean(),
            "features": lambda: (h @ self.table.T)[:, :samples].square().mean(),
            "picked": lambda: -h.log_softmax(-1)[places, places // 4].mean(),
        }[self.name]()


class Counts(nn.Module):
    """How many samples there are enters the result: as a number, or as the divisor of a deviation."""

    def __init__(self, is_number):
        super().__init__()
        self.is_number = is_number
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.scale * (x * (x.shape[0] - 1) / (x.shape[0] / 3) if self.is_number else x / (x.std(0) + 1))
