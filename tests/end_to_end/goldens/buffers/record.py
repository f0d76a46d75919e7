#!/usr/bin/env python3
"""Writes the files beside it: a convolutional network with batch normalisations and a moving average, and its training in PyTorch.

  program.pt2            the module as torch.export.save writes it, with its weights
  data.safetensors       inputs and targets of all steps
  after-K.safetensors    parameters and buffers after the steps, of K micro-batches each
  losses.json            the loss of each step, by K
  evaluations.json       the loss of all samples in evaluation mode after the steps, by K

Needs torch and safetensors:  python3 tests/end_to_end/goldens/buffers/record.py
"""

import copy
import json
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "models"))
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from torch import nn  # noqa: E402

BATCH, CLASSES, STEPS = 4, 3, 4
MICRO_BATCHES = (1, 2)
RATE = 0.05


class Net(nn.Module):
    """One normalisation is used twice, one has another momentum, and an average that the module keeps follows the features."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.last = nn.BatchNorm1d(4, momentum=0.3, affine=False)
        self.head = nn.Linear(4, CLASSES)
        self.register_buffer("average", torch.full((4,), 0.5))

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        x = F.relu(self.norm(self.second(x))).mean((2, 3))
        self.average.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return self.head(self.last(x))


def train(model, x, targets, micro_batches):
    """Losses of SGD steps, each over `micro_batches` times BATCH samples; changes the model."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        total = 0.0
        for micro in range(micro_batches):
            begin = (step * micro_batches + micro) * BATCH
            loss = F.cross_entropy(model(x[begin:begin + BATCH]), targets[begin:begin + BATCH].long()) / micro_batches
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses


def evaluate(model, x, targets):
    with torch.no_grad():
        return F.cross_entropy(model.eval()(x), targets.long()).item()


def write_numbers(numbers, name):
    with open(os.path.join(HERE, name), "w") as file:
        json.dump(numbers, file, indent=1)
        file.write("\n")


def main():
    from record_pt2 import save_program
    warnings.simplefilter("ignore")
    torch.manual_seed(3)
    model = Net().train()
    samples = BATCH * STEPS * max(MICRO_BATCHES)
    x, targets = torch.randn(samples, 2, 5, 5), torch.randint(CLASSES, (samples,), dtype=torch.int32)
    program = torch.export.export(copy.deepcopy(model), (x[:BATCH],), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
    save_program(program, os.path.join(HERE, "program.pt2"))
    save_file({"x": x, "targets": targets}, os.path.join(HERE, "data.safetensors"))
    losses, evaluations = {}, {}
    for count in MICRO_BATCHES:
        trained = copy.deepcopy(model)
        losses[str(count)] = train(trained, x, targets, count)
        save_file({name: value.contiguous() for name, value in trained.state_dict().items()},
                  os.path.join(HERE, f"after-{count}.safetensors"))
        evaluations[str(count)] = evaluate(trained, x, targets)
    write_numbers(losses, "losses.json")
    write_numbers(evaluations, "evaluations.json")


if __name__ == "__main__":
    main()
