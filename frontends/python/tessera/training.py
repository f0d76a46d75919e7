"""The PyTorch side of a comparison: data for a model, and its first AdamW steps on them."""

import contextlib
import dataclasses

import numpy
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .draws import NoRandom, TesseraRandom, given_to
from .hyper import HYPER
from .module_checks import has_values, parts_of
from .module_step import changed, kept
from .names import parameter_names
from .ties import FirstOfEqual
from .tools import Training

FLOATS = {"f16": numpy.float16, "f64": numpy.float64}


@dataclasses.dataclass
class Loss:
    """What is minimized: "cross-entropy", "mse" or "output:<name>"."""
    kind: str = "cross-entropy"
    ignore_index: int = -100
    smoothing: float = 0.0

    def flags(self):
        """The same for tessera-compile."""
        return ["--loss", self.kind, "--ignore-index", self.ignore_index, "--label-smoothing", self.smoothing]

    def of(self, result, outputs, targets):
        """(sum of the loss over what counts, how much counts); of a scalar output: (it, 1). outputs: the names of the
        module's results."""
        if self.kind.startswith("output:"):
            return pick(result, outputs, self.kind[len("output:"):]).reshape(()), 1
        value = pick(result, outputs, None)
        if self.kind == "mse":
            return F.mse_loss(value, targets.to(value.dtype), reduction="sum"), value.numel()
        targets = targets.long()
        total = F.cross_entropy(value.flatten(0, -2), targets.flatten(), ignore_index=self.ignore_index,
                                reduction="sum", label_smoothing=self.smoothing)
        return total, int((targets != self.ignore_index).sum())


def pick(result, outputs, name):
    """The output called `name` of what a module returned; without a name the only one, or the one called "logits"."""
    if torch.is_tensor(result):
        return result
    values = _pytree.tree_leaves(result)
    if len(values) != len(outputs):
        values = [value for value in values if torch.is_tensor(value)]
    named = dict(zip(outputs, values))
    return named[name or "logits"] if len(values) > 1 or name else values[0]


class Samples(dict):
    """{name: array or tensor} of samples along dimension 0. shared: names of what all samples share, of its own shape."""

    def __init__(self, values=(), shared=()):
        super().__init__(values)
        self.shared = set(shared)

    @property
    def count(self):
        return next(len(value) for name, value in self.items() if name not in self.shared)

    def part(self, begin, end):
        return Samples({name: value if name in self.shared else value[begin:end] for name, value in self.items()}, self.shared)

    def mapped(self, function):
        """With function(name, value) for each value."""
        return Samples({name: function(name, value) for name, value in self.items()}, self.shared)


def make_data(batch, inputs, names, loss, samples, special=(), seed=0, draw=True):
    """The Samples, `samples` of them, for what tools.batch_of says a step reads: integers below the bound of what they
    index, floats from a normal distribution, a tenth of the targets ignored. An integer input without a bound repeats
    the example's values (masks), and without `draw` every one does. Where equal integers have to lie side by side they
    ascend. What all samples share is the example's. special: integers (padding) of which there are some in every step."""
    generator = numpy.random.default_rng(seed)
    examples, data = dict(zip(names, inputs)), Samples()
    for name, entry in batch.items():
        if "sample" not in entry["dims"]:
            data[name] = examples[name].detach().numpy()
            data.shared.add(name)
            continue
        shape = (samples, *entry["shape"][1:])
        if entry["dtype"].startswith(("f", "bf")):
            data[name] = generator.standard_normal(shape).astype(FLOATS.get(entry["dtype"], numpy.float32))
        elif "index_bound" in entry and (draw or name not in examples):
            kind = numpy.int64 if entry["dtype"] == "i64" else numpy.int32
            data[name] = generator.integers(0, entry["index_bound"], shape).astype(kind)
            if entry["role"] == "input":
                for at, value in enumerate(value for value in special if 0 <= value < entry["index_bound"]):
                    data[name].reshape(samples, -1)[::2, -1 - at:] = value  # every other sample ends in it
            if entry.get("has_runs"):
                data[name].sort(axis=-1)  # equal ones side by side
        else:
            data[name] = repeated(examples[name], samples)
        if entry["role"] == "target" and loss.kind == "cross-entropy":
            data[name][generator.random(shape) < 0.1] = loss.ignore_index
            data[name].reshape(samples, -1)[:, 0] = 0
    return data


def repeated(example, samples):
    """An array of `samples` samples that repeats those of an example tensor."""
    example = example.detach().numpy()
    return numpy.concatenate([example] * -(-samples // len(example)))[:samples]


class BatchStatistics(TorchDispatchMode):
    """Counts the batch normalisations that take statistics of a batch. Those that PyTorch computes an instance normalisation
    by have one sample."""
    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function._schema.name.endswith(("batch_norm", "batch_norm_legit", "batch_norm_with_update")):
            given = given_to(function, args, kwargs or {})
            self.count += given.get("training", True) is not False and len(given["input"]) > 1
        return function(*args, **(kwargs or {}))


def is_of_micro_batches(model, rows, names, loss, random, step):
    """Whether a step of several micro-batches runs the model on each of them by itself: it takes statistics of a batch, reads
    buffers that it changes, or, for an added loss, draws random numbers or changes buffers, of which each micro-batch has its
    own. Else the samples are those of the whole batch. Raises RuntimeError where a model with a loss of its own draws some."""
    def values():
        random.begin(step)
        return [value for value in _pytree.tree_leaves(model(*(rows[name] for name in names))) if torch.is_tensor(value)]

    with kept(model, with_parameters=False) as (buffers, _), torch.no_grad(), random, BatchStatistics() as statistics:
        first = values()
        is_changed, count = bool(changed(buffers, model.named_buffers())), statistics.count
        # Results that are others with the buffers that a pass leaves depend on them.
        is_read = is_changed and not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(first, values()))
    if not loss.kind.startswith("output:"):
        return bool(count or random.count or is_changed)
    if random.count and not count:
        raise RuntimeError("each micro-batch has random numbers of its own, and the loss is the model's: compare without "
                           "--accumulate")
    return bool(count) or is_read


def loss_of(model, rows, names, outputs, loss, accumulate=1, random=None, step=0, autocast=False):
    """The loss of one step's Samples of tensors, as Tessera defines it: that of the whole batch, but for what a model does
    with each of `accumulate` micro-batches by itself (is_of_micro_batches); then it is the sum over all of them, divided by
    how much counts in all. random: the TesseraRandom that gives the model its random numbers, of that step, counted from
    0; autocast: computes the model's outputs under torch.autocast in bfloat16. Attention is written out: PyTorch's fused
    kernels on CPUs have other gradients where a row of a mask is empty. Raises RuntimeError as is_of_micro_batches does."""
    random = random or TesseraRandom()
    with sdpa_kernel(SDPBackend.MATH):
        if accumulate > 1 and not is_of_micro_batches(model, rows, names, loss, random, step):
            accumulate = 1
    sums, counts = [], []
    size = rows.count // accumulate
    for at in range(accumulate):
        part = rows.part(at * size, (at + 1) * size)
        random.begin(step, at)
        with random, sdpa_kernel(SDPBackend.MATH), torch.autocast("cpu", torch.bfloat16) if autocast else contextlib.nullcontext():
            result = model(*(part[name] for name in names))
        if autocast:
            result = _pytree.tree_map(lambda value: value.float() if is_bf16(value) else value, result)
        total, count = loss.of(result, outputs, part.get("targets"))
        sums.append(total)
        counts.append(count)
    return sum(sums) / sum(counts)


def is_bf16(value):
    return torch.is_tensor(value) and value.dtype == torch.bfloat16


def rows_of(data, inputs, names, step, size, dtype=None):
    """The tensors of one step, of the types of the example inputs."""
    types = {name: example.dtype for name, example in zip(names, inputs)}

    def tensor_of(name, array):
        tensor = torch.from_numpy(numpy.array(array))
        tensor = tensor.to(types.get(name, tensor.dtype))
        return tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor
    return data.part(step * size, (step + 1) * size).mapped(tensor_of)


def reference(model, inputs, names, outputs, data, loss, steps, accumulate=1, random=None,
              epsilon=HYPER["epsilon"], autocast=False, dtype=None):
    """PyTorch's Training on the data; the model is as before. inputs and names: as export takes them; outputs: the
    names of the module's results; random: the TesseraRandom that gives the model its random numbers; epsilon: of AdamW;
    autocast: under torch.autocast in bfloat16; dtype: of the floats that the model reads, if not the example's."""
    trained = {name: entry[0] for name, entry in parameter_names(model).items() if entry[0].requires_grad}
    size = data.count // steps
    optimizer = torch.optim.AdamW(trained.values(), lr=HYPER["lr"], betas=(HYPER["beta1"], HYPER["beta2"]),
                                  eps=epsilon, weight_decay=HYPER["weight_decay"], foreach=False)
    losses, gradients, random = [], {}, random or TesseraRandom()
    with kept(model), FirstOfEqual():
        for step in range(steps):
            value = loss_of(model, rows_of(data, inputs, names, step, size, dtype), names, outputs, loss, accumulate,
                            random, step, autocast)
            optimizer.zero_grad()
            with NoRandom():
                value.backward()
            if step == 0:
                gradients = {name: parts_of(p.grad).numpy().copy() for name, p in trained.items() if p.grad is not None}
            torch.nn.utils.clip_grad_norm_(trained.values(), HYPER["clip_norm"])
            optimizer.step()
            losses.append(value.item())
        optimizer.zero_grad()
    return Training(losses, gradients, list(gradients))


CALM = 1e-3  # of the largest gradient


def calm_epsilon(gradients):
    """An epsilon of AdamW with which gradients that are rounding, or small elements that are, move their parameters as little
    as they are: a part of the largest element of {name: gradient}, after clipping."""
    arrays = [gradient.astype(numpy.float64) for gradient in gradients.values()]
    norm = sum(float((array**2).sum()) for array in arrays)**0.5
    largest = max((float(numpy.abs(array).max(initial=0)) for array in arrays), default=0.0)
    return max(HYPER["epsilon"], CALM * largest * min(1.0, HYPER["clip_norm"] / (norm or 1.0)))


def perturb(model, seed=0):
    """Adds noise to every floating-point parameter, so that no weight is special: no two norms are equal, no bias is
    0."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=generator).to(parameter))


def set_weights(model, values):
    """Copies {name: tensor or array} into the model's parameters and buffers, where shapes agree; returns the names of
    parameters that are not there."""
    missing = []
    with torch.no_grad():
        for name, (parameter, others) in parameter_names(model).items():
            value = next((values[key] for key in (name, *others) if key in values), None)
            if value is None or tuple(value.shape) != parameter.shape:
                missing.append(name)
            else:
                parameter.copy_(torch.as_tensor(value))
        for name, buffer in model.named_buffers():
            if name in values and tuple(values[name].shape) == buffer.shape:
                value = torch.as_tensor(values[name])
                if has_values(value):
                    buffer.copy_(value)
    return missing
