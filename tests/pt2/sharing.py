"""Modules of make_programs.py whose tensors share memory, or change beside their result."""

import torch
from torch import nn


class Counter(nn.Module):
    def __init__(self, seen):
        super().__init__()
        self.register_buffer("seen", seen)

    def forward(self, x):
        self.seen.add_(1)
        return x + self.seen.sqrt()


class Shared(nn.Module):
    """One buffer under two names, which both change it, and a teacher whose output is a view of what it makes."""

    def __init__(self):
        super().__init__()
        seen = torch.ones(())
        self.before, self.after = Counter(seen), Counter(seen)
        self.line, self.teacher = nn.Linear(3, 4), nn.Linear(3, 4).requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            wanted = self.teacher(x).reshape(-1, 2, 2).flatten(1)
        return self.after(self.line(self.before(x))) - wanted


class Observed(nn.Module):
    """What torch.ao.quantization.prepare_qat makes of a weight and an activation."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 4)
        for name, count in (("weight", 4), ("result", 1)):
            for of, start, dtype in (("least", -1, torch.float32), ("most", 1, torch.float32), ("scale", 1, torch.float32),
                                     ("zero", 0, torch.int32)):
                self.register_buffer(f"{name}_{of}", torch.full((count,), start, dtype=dtype))
        self.register_buffer("on", torch.ones(1, dtype=torch.int64))

    def quantised(self, x, name, by_row):
        range_and_scale = [getattr(self, f"{name}_{of}") for of in ("least", "most", "scale", "zero")]
        return torch.fused_moving_avg_obs_fake_quant(x, self.on, self.on, *range_and_scale, 0.01, -128, 127, 0, by_row, by_row)

    def forward(self, x):
        return self.quantised(nn.functional.linear(x, self.quantised(self.line.weight, "weight", True)), "result", False)
