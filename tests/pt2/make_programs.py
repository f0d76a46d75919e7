"""Writes the exported programs that the tests of frontends/pt2 read: tests/pt2/programs/*.pt2.

Needs PyTorch 2.15 or newer, so it is run by hand and its files are committed:  python3 tests/pt2/make_programs.py
"""

import os
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "programs")


class Mlp(nn.Module):
    """Two layers, a loss of the class of each row; values of weights are known numbers."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(3, 4)
        self.down = nn.Linear(4, 2, bias=False)
        with torch.no_grad():
            for number, parameter in enumerate(self.parameters()):
                parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) + 100 * number)

    def forward(self, x, label):
        logits = self.down(F.relu(self.up(x)))
        return F.cross_entropy(logits, label), logits


class Norm(nn.Module):
    """BatchNorm in training mode, a buffer that is not saved, a constant of the code, a dropout."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0, 1.0]), persistent=False)

    def forward(self, x):
        x = self.norm(x) * self.mask + torch.tensor([1.0, 2.0, 3.0, 4.0])
        return F.dropout(x, 0.25, self.training).masked_fill(x > 0, float("-inf"))


class Tied(nn.Module):
    """An embedding that is the last layer too, a transposed buffer and two views of one storage."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 4)
        self.head = nn.Linear(4, 6, bias=False)
        self.head.weight = self.embed.weight
        whole = torch.arange(12.0)
        self.register_buffer("turned", torch.arange(8.0).reshape(2, 4).t())
        self.register_buffer("first", whole[:4])
        self.register_buffer("last", whole[8:])
        self.register_buffer("repeated", torch.arange(3.0).reshape(3, 1).expand(3, 2))

    def forward(self, tokens):
        x = self.embed(tokens) @ self.turned @ self.turned.t() + self.first + self.last
        return self.head(x), self.repeated * 2


class Block(nn.Module):
    """A transformer block with causal attention over tokens."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads = heads
        self.embed = nn.Embedding(10, width)
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens):
        x = self.embed(tokens)
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        split = lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(split(q), split(k), split(v), is_causal=True)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm(x))


class Branch(nn.Module):
    """A branch on a value: graphs within the graph."""

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t * 2, (x,))


class Mutates(nn.Module):
    """A buffer and an input that the forward changes; exported without in-place operators."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))

    def forward(self, x, state):
        self.count.add_(1)
        state.mul_(2)
        return {"sum": x + state, "count": self.count}


class Follows(nn.Module):
    """A buffer that is a view of a parameter: it changes when that is trained."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)
        self.register_buffer("before", self.line.weight.detach())

    def forward(self, x):
        return self.line(x) + x @ self.before


class Temporary(nn.Module):
    """A buffer that is not saved and that each pass writes before it reads it, as LongRoPE's tables. how: "lasting": one that is
    saved; "itself": what is written is read from it; "shared": another one has a part of its memory."""

    def __init__(self, how=""):
        super().__init__()
        self.how, whole = how, torch.arange(6.0)
        self.linear = nn.Linear(4, 4)
        self.register_buffer("table", whole[:4] if how == "shared" else torch.arange(4.0), persistent=how == "lasting")
        self.register_buffer("other", whole[2:] if how == "shared" else torch.ones(4), persistent=False)

    def forward(self, x):
        self.table.copy_(self.table if self.how == "itself" else x.detach().sum(0))
        y = self.linear(x) * self.table * self.other
        if self.how == "itself":
            self.table.add_(0.5)
        return y


class Statistics(nn.Module):
    """A running statistic that the module reads after it was updated."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(x) * self.norm.running_var


class Average(nn.Module):
    """A buffer that the module changes: all of it, after it has made a view of it, a part of it, or one that shares its
    memory with another."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.line = nn.Linear(4, 4)
        self.register_buffer("average", torch.full((2, 4), 0.25))
        if how == "shares":
            self.register_buffer("other", self.average[0])

    def forward(self, x):
        first = self.average[0]
        if self.how == "part":
            first.add_(x.detach().mean(0))
            return self.line(x)
        self.average.mul_(0.5).add_(x.detach().mean(0))
        self.average.copy_(self.average * 2)
        if self.how == "view":
            return self.line(x) * first
        return self.line(x) * self.average[0] + (self.other if self.how == "shares" else 0)


class Masks(nn.Module):
    """A causal mask and one of the batch, as arguments of attention; a normalisation."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x, keep):
        q = self.line(x)[:, None]
        places = torch.arange(x.shape[1])
        causal = places[:, None] >= places
        y = F.scaled_dot_product_attention(q, q, q, causal[None, None])
        y = y + F.scaled_dot_product_attention(q, q, q, keep[:, None, None, :])
        return self.norm(y[:, 0].transpose(1, 2))


class Large(nn.Module):
    """A number that no double holds."""

    def forward(self, x):
        return x + 9007199254740993


class Results(nn.Module):
    """A loss and logits by names, with a result that is None and one that is a number."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        logits = self.line(x)
        return {"loss": (logits * logits).mean(), "logits": [logits, (logits * 2,)], "cache": None, "count": 3}


class Pooled(nn.Module):
    """A pooling of a normalised image: its gradient is read at many places of windows."""

    def __init__(self):
        super().__init__()
        self.filters = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.norm(self.filters(x)).relu()
        return self.head(F.max_pool2d(x, 3, 2, 1).mean((2, 3)))


class NoGrad(nn.Module):
    """A weight of the result that has no gradient, and a region that returns the tensor itself."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x):
        y = self.line(x)
        with torch.no_grad():
            scale = (y * 2).amax(-1, keepdim=True) + x.shape[0]
        return y * scale


class NoGradInPlace(NoGrad):
    """Its gradient goes past what changes without one."""

    def forward(self, x):
        y = self.line(x) * 1
        with torch.no_grad():
            y.mul_(2)
        return y


class Dropouts(nn.Module):
    """Of elements and of channels, to zero and to the value that SELU tends to."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4, 1, 1))
        self.layers = nn.Sequential(nn.Dropout2d(0.25), nn.AlphaDropout(0.25), nn.FeatureAlphaDropout(0.25))

    def forward(self, x):
        return self.layers(x * self.scale)


class Complex(nn.Module):
    """A rotation by a buffer of complex numbers; `what` else is complex, or changes."""

    def __init__(self, what):
        super().__init__()
        self.what, self.scale = what, nn.Parameter(torch.ones(4))
        angle = torch.arange(6.0).reshape(3, 2)
        self.register_buffer("rotation", torch.polar(torch.ones_like(angle), angle))
        if what == "parameter":
            self.factor = nn.Parameter(torch.ones(2, dtype=torch.complex64))

    def forward(self, x):
        z = x if self.what == "input" else torch.view_as_complex((x * self.scale).reshape(-1, 2, 2))
        if self.what == "changed":
            self.rotation.mul_(1j)
        z = z * self.rotation * (self.factor if self.what == "parameter" else 1)
        return z if self.what == "output" else torch.view_as_real(z).flatten(1)


class WithConstant(nn.Module):
    def __init__(self, constant):
        super().__init__()
        self.constant = nn.Parameter(constant, requires_grad=False)

    def forward(self, x):
        return x + self.constant


# Here, so that the lines of the modules, which programs name and tests know, stay.
sys.path.append(os.path.join(HERE, "..", "support"))
import archives  # noqa: E402
from drawing import Diffusion, Drawn, Vae, WithGenerator  # noqa: E402
from regions import DropsBuffer, WithRegion  # noqa: E402
from sharing import Observed, Shared  # noqa: E402
from sizing import Counts, Even, OtherSize, Pairs, Positions, Scored, Sizes  # noqa: E402


def save(name, program, deflate=True):
    """As torch.export.save; `program` may be a dictionary of several."""
    path = os.path.join(FOLDER, name + ".pt2")
    if isinstance(program, dict):
        torch.export.archives._package.package_pt2(path, exported_programs=program)
    else:
        torch.export.save(program, path)
    rewrite(path, deflate)
    print(f"{os.path.getsize(path):7} {path}")


def rewrite(path, deflate):
    """Drops the folders of this machine from stack traces. Deflates the file, so that it is small, or writes it again
    as PyTorch does, where every entry is stored and aligned."""
    entries = [(name, archives.without_folders(name, data)) for name, data in archives.entries(path)]
    os.remove(path)
    if deflate:
        with open(path, "wb") as file:
            file.write(archives.packed(entries, lambda name: "/weight_" in name))
        return
    writer = torch._C.PyTorchFileWriter(path)
    for filename, data in entries:
        name = filename.split("/", 1)[1]
        if not name.startswith(".data/") and name != "byteorder":  # which the writer adds
            writer.write_record(name, data, len(data))
    writer.write_end_of_file()


def main():
    os.makedirs(FOLDER, exist_ok=True)
    torch.manual_seed(0)
    export = torch.export.export
    x, label = torch.randn(2, 3), torch.tensor([0, 1])
    mlp = export(Mlp(), (x, label))
    save("mlp", mlp, deflate=False)
    batch = torch.export.Dim("batch", min=2, max=64)
    dynamic = export(Mlp(), (x, label), dynamic_shapes=({0: batch}, {0: batch}))
    save("dynamic", dynamic)
    save("norm", export(Norm(), (torch.randn(2, 4),)))
    tokens = torch.tensor([[1, 2, 3], [3, 2, 1]])
    save("tied", export(Tied(), (tokens,)))
    block = export(Block(), (tokens,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},))
    save("block", block)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = export(Mlp(), (mode.from_tensor(x), mode.from_tensor(label)))
    save("fake", fake)
    save("branch", export(Branch(), (torch.randn(2, 3),)))
    mutates = export(Mutates(), (torch.randn(2), torch.randn(2))).run_decompositions({})
    save("mutates", mutates)
    save("two", {"small": export(Branch(), (torch.randn(2),)), "large": mlp})
    save("follows", export(Follows(), (x,)))
    save("even", export(Even(), (torch.randn(4, 3),), dynamic_shapes=({0: torch.export.Dim.AUTO},)))
    for name, how in (("temporary", ""), ("lasting", "lasting"), ("temporary-itself", "itself"), ("temporary-shared", "shared")):
        save(name, export(Temporary(how), (torch.randn(2, 4),)))
    save("statistics", export(Statistics(), (torch.randn(2, 4),)))
    for how in ("whole", "view", "part", "shares"):
        save(f"average-{how}", export(Average(how), (torch.randn(2, 4),)))
    save("masks", export(Masks().train(), (torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool))))
    save("large", export(Large(), (torch.tensor([1, 2]),)))
    open_batch = ({0: torch.export.Dim("batch", min=2)},)
    save("no_grad", export(NoGrad().train(), (x,), dynamic_shapes=open_batch))
    save("no_grad_in_place", export(NoGradInPlace().train(), (x,), dynamic_shapes=open_batch))
    for name, is_number in (("counted", True), ("deviation", False)):
        save(name, export(Counts(is_number).train(), (x,), dynamic_shapes=open_batch))
    save("pooled", export(Pooled().train(), (torch.randn(8, 3, 16, 16),)))
    save("dropouts", export(Dropouts().train(), (torch.randn(2, 4, 3, 3),)))
    for what in ("buffer", "parameter", "changed", "input", "output"):
        z = torch.ones(3, 2, dtype=torch.complex64) if what == "input" else torch.randn(3, 4)
        save(f"complex-{what}", export(Complex(what).train(), (z,)))
    save("results", export(Results(), (x,)))
    save("positions", export(Positions(), (torch.randn(2, 1024),), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},)))
    save("pairs", export(Pairs(), (torch.randn(8, 3),), dynamic_shapes=({0: 2 * torch.export.Dim("n", max=100)},)))
    save("sizes", export(Sizes(), (torch.randn(8, 5, 4), torch.randn(8, 4), torch.randint(0, 5, (8,))),
                         dynamic_shapes=({0: torch.export.Dim.AUTO},) * 3))
    save("scored", export(Scored(), (torch.randn(8, 4), torch.randint(0, 5, (8,))), dynamic_shapes=({0: torch.export.Dim.AUTO},) * 2))
    for name in ("part", "mask", "columns", "where", "rows", "picked", "from_third", "own_table", "row_of_size", "padded", "features"):
        save("other_size-" + name, export(OtherSize(name), (torch.randn(8, 4), torch.randn(8, 4)), dynamic_shapes=({0: torch.export.Dim.AUTO},) * 2))
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        drawn = export(Drawn().train(), (mode.from_tensor(torch.arange(4)),), dynamic_shapes=open_batch)
    save("drawn", drawn)
    for name, module in (("vae", Vae()), ("diffusion", Diffusion())):
        save(name, export(module.train(), (torch.randn(4, 8),), dynamic_shapes=open_batch), deflate=False)
    save("generator", export(WithGenerator().train(), (x,)))
    for what in ("maybe", "size", "autocast_size"):
        save(f"region-{what}", export(WithRegion(what).train(), (x,), dynamic_shapes=open_batch))
    save("drops_buffer", export(DropsBuffer().train(), (torch.randn(2, 4),)))
    for name, module in (("shared", Shared()), ("observed", Observed())):
        save(name, export(module.train(), (x,), dynamic_shapes=open_batch))
    try:
        from torch.testing._internal.two_tensor import TwoTensor

        save("pickled", export(WithConstant(TwoTensor(torch.ones(2), torch.ones(2))), (torch.randn(2),)))
    except Exception as reason:  # an internal class of PyTorch: the committed file stays
        print(f"no pickled.pt2: {reason}", file=sys.stderr)


if __name__ == "__main__":
    main()
