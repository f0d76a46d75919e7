"""The random numbers of Tessera's steps for PyTorch, so that two trainings can be compared: what frontends/common/Random.cpp and
frontends/pt2/OpsRandom.cpp build, computed by PyTorch."""

import math

import numpy
import torch
from torch.utils._python_dispatch import TorchDispatchMode

MASK = 0xFFFFFFFF
GOLDEN = 0x9E3779B97F4A7C15  # by which seeds of micro-batches differ (passes/optimize/AccumulateGradients.cpp)
FIRST, STREAMS = 1 << 32, 8  # of streams: the first, and how many a call has
DIGITS = {torch.float16: 11, torch.bfloat16: 8, torch.float32: 24, torch.float64: 53}


def philox(key, low, high):
    """The first two output words of Philox 4x32-10 (Salmon et al., SC'11), as arrays of uint64, for counters whose lower half
    is an array. key, high: integers of 64 bits."""
    low = numpy.asarray(low, numpy.uint64)
    mask, half = numpy.uint64(MASK), numpy.uint64(32)
    words = [low & mask, low >> half, numpy.full_like(low, high & MASK), numpy.full_like(low, high >> 32)]
    first, second = key & MASK, key >> 32
    for _ in range(10):
        left, right = numpy.uint64(0xD2511F53) * words[0], numpy.uint64(0xCD9E8D57) * words[2]
        words = [(right >> half) ^ words[1] ^ numpy.uint64(first), right & mask,
                 (left >> half) ^ words[3] ^ numpy.uint64(second), left & mask]
        first, second = (first + 0x9E3779B9) & MASK, (second + 0xBB67AE85) & MASK
    return words[0], words[1]


def step_seed(seed, step):
    """The seed of a step, counted from 1, of a run's seed (runtime/step/Schedule.cpp)."""
    low, high = philox(seed, [step], 0)
    return int(low[0]) | int(high[0]) << 32


class Stream:
    """The random numbers of one call, as frontends/common/Random.h defines them: the formulas, and the limits of each
    distribution, are there. Each method takes the shape of what it makes, and numbers that no other call has. Numbers are of
    `type`, of a grid of 2^-24 in float32 and 2^-48 in float64."""

    def __init__(self, seed, call, kind):
        """seed: that of the step; call: the number of the call, from 0; kind: the type of the tensor that numbers are made for,
        of which that of the numbers follows: float64 for float64, else float32."""
        self.seed, self.counter = seed, FIRST + call * STREAMS
        self.type = torch.float64 if kind == torch.float64 else torch.float32

    def bits24(self, shape):
        """int64, from 0 to 2^24 - 1."""
        word, _ = philox(self.seed, numpy.arange(math.prod(shape), dtype=numpy.uint64), self.counter)
        self.counter += 1
        return torch.from_numpy((word >> numpy.uint64(8)).astype(numpy.int64)).reshape(tuple(shape))

    def bits48(self, shape):
        """int64, from 0 to 2^48 - 1."""
        high = self.bits24(shape)
        return (high << 24) + self.bits24(shape)

    def uniform24(self, shape):
        """From 0 to below 1, multiples of 2^-24 in both types."""
        return self.bits24(shape).to(self.type) * 2.0**-24

    def uniform48(self, shape):
        """From 0 to 1, multiples of 2^-48, which float32 rounds."""
        high = self.uniform24(shape)
        return high + self.uniform24(shape) * 2.0**-24

    def uniform(self, shape):
        """From 0 to below 1."""
        return self.uniform48(shape) if self.type == torch.float64 else self.uniform24(shape)

    def normal(self, shape):
        """Of mean 0 and variance 1, up to 5.8 in float32 and 8.2 in float64 on both sides."""
        u, v = self.uniform(shape), self.uniform(shape)
        return torch.sqrt(-2 * torch.log(1 - u)) * torch.cos(v * (2 * math.pi))

    def exponential(self, shape):
        """Of mean 1, from 2^-49 to 17 in float32 and 34 in float64."""
        u = self.uniform48(shape)
        u = torch.where(u == 0, 2.0**-49, u)
        return -torch.log1p(-(u if self.type == torch.float64 else u.clamp(max=1 - 2.0**-24)))

    def cauchy(self, shape):
        """Of median 0 and scale 1, never infinite."""
        middle = 2.0**-49 if self.type == torch.float64 else 2.0**-25
        angle = (self.uniform(shape) - 0.5 + middle) * math.pi
        return torch.cos(angle) / torch.sin(angle)

    def bernoulli(self, shape, probability):
        """bool, true with a probability: a number, or a tensor of the shape. Nothing checks that it is from 0 to 1."""
        return self.uniform(shape) >= 1 - torch.as_tensor(probability, dtype=torch.float64).to(self.type)

    def integers(self, shape, count):
        """int64, from 0 to count - 1. count: at most 2^39, or a power of two up to 2^63."""
        spare = 0 if count & (count - 1) == 0 else 24
        if count <= 1 << 24 - spare:
            return self.bits24(shape) % count
        if count <= 1 << 48 - spare:
            return self.bits48(shape) % count
        number = self.bits48(shape) << 15
        number = number + (self.bits24(shape) >> 9)
        return number if count == 1 << 63 else number % count


def largest_below(kind, bound):
    """The largest number of a type below a bound."""
    near = torch.tensor(bound, dtype=torch.float64).to(kind)
    return near if float(near) < bound else torch.nextafter(near, torch.tensor(-math.inf, dtype=kind))


def between(u, start, end, kind):
    if (start, end) == (0, 1):
        return u.to(kind)
    x, last = (u * (end - start) + start).to(kind), largest_below(kind, end)
    return torch.minimum(x, last) if float(last) >= start else x


# Of each operator: a function of its arguments, the Stream, shape and type of the result.

def uniform(given, stream, shape, kind):
    u = stream.uniform(shape)
    if DIGITS[kind] < 24:
        u = torch.floor(u * 2.0**DIGITS[kind]) * 2.0**-DIGITS[kind]
    return between(u, given.get("from", 0), given.get("to", 1), kind)


def normal(given, stream, shape, kind):
    mean, deviation = given.get("mean", 0), given.get("std", 1)
    return stream.normal(shape) * deviation + mean


def exponential(given, stream, shape, kind):
    x = stream.exponential(shape) * (1 / given["lambd"])
    return x.clamp(min=2.0**-24) if kind == torch.float16 else x


def geometric(given, stream, shape, kind):
    if not kind.is_floating_point:
        stream.type = torch.float64
    return torch.ceil(stream.exponential(shape) * (1 / -math.log1p(-given["p"])))


def bernoulli(given, stream, shape, kind):
    p = given.get("p", given["self"])
    if torch.is_tensor(p):
        stream.type = torch.float64 if p.dtype == stream.type == torch.float64 else torch.float32
        p = p.detach().to(torch.float64)
    return stream.bernoulli(shape, p)


def integers(given, stream, shape, kind):
    low = given.get("low", given.get("from", 0)) or 0
    return stream.integers(shape, given.get("high", given.get("to")) - low) + low


def all_integers(given, stream, shape, kind):
    if kind.is_floating_point:
        return stream.integers(shape, (1 << DIGITS[kind]) + 1)
    return stream.integers(shape, 2 if kind == torch.bool else torch.iinfo(kind).max + 1)


def permutation(given, stream, shape, kind):
    return torch.argsort(stream.bits48((given["n"],)), stable=True)


def multinomial(given, stream, shape, kind):
    weights, samples = given["self"].detach(), given["num_samples"]
    stream.type = weights.dtype if weights.dtype == torch.float64 and stream.type == torch.float64 else torch.float32
    if given["replacement"] and samples > 1:
        weights = weights.unsqueeze(-2).expand(*weights.shape[:-1], samples, weights.shape[-1])
        return torch.argmax(weights / stream.exponential(weights.shape), -1)
    first = weights / stream.exponential(weights.shape)
    return torch.sort(first, dim=-1, descending=True, stable=True).indices[..., :samples]


def random_relu(given, stream, shape, kind):
    x, lower, upper = given["self"], given["lower"], given["upper"]
    if not given["training"]:
        return torch.where(x > 0, x, x * ((lower + upper) / 2))
    slope = between(stream.uniform(shape), lower, upper, stream.type).to(x.dtype)
    given["noise"].copy_(torch.where(x > 0, torch.ones_like(x), slope))
    return torch.where(x > 0, x, x * slope)


OPERATORS = {
    "bernoulli": bernoulli,
    "cauchy": lambda given, stream, shape, kind: stream.cauchy(shape) * given["sigma"] + given["median"],
    "exponential": exponential, "geometric": geometric,
    "log_normal": lambda given, stream, shape, kind: torch.exp(normal(given, stream, shape, kind)),
    "multinomial": multinomial, "normal": normal, "normal_functional": normal, "rand": uniform, "rand_like": uniform,
    "randint": integers, "randint_like": integers, "randn": normal, "randn_like": normal, "random": integers,
    "randperm": permutation, "rrelu_with_noise": random_relu, "uniform": uniform}


def operator_of(function):
    """The name of an ATen operator without that it is in place, "uniform"; None if it draws nothing that is known."""
    name = function._schema.name.removeprefix("aten::").removesuffix("_")
    return name if name in OPERATORS else None


def count_random_calls(program):
    """How many calls of an exported program draw numbers, those in graphs of no_grad() too."""
    graphs = [module.graph for module in program.graph_module.modules() if hasattr(module, "graph")]
    names = [node.target._schema.name.removeprefix("aten::").removesuffix("_") for graph in graphs for node in graph.nodes
             if isinstance(node.target, torch._ops.OpOverload)]
    return sum(name in OPERATORS or name == "rrelu" for name in names)


def given_to(function, args, kwargs):
    """Arguments by the names of the operator's schema."""
    names = [argument.name for argument in function._schema.arguments]
    defaults = {argument.name: argument.default_value for argument in function._schema.arguments
                if argument.default_value is not None and argument.name != "dtype"}
    return {**defaults, **dict(zip(names, args)), **kwargs}


def is_random_call(function, args, kwargs):
    """Whether a call draws random numbers: what has a dropout does so only if that is on."""
    if torch.Tag.nondeterministic_seeded not in function.tags:
        return False
    given = given_to(function, args, kwargs)
    rates = [given[name] for name in ("dropout_p", "dropout") if name in given]
    if not rates and "dropout" in function._schema.name:
        rates = [given["p"]]
    return not rates or (0 < rates[0] < 1 and given.get("train") is not False)


class TesseraRandom(TorchDispatchMode):
    """Within it PyTorch draws the numbers of a step of Tessera, of a run with the seed 0. Calls count in their order, as in the
    program. kinds: the types of which numbers were made in a training before, for a module in another type."""

    def __init__(self, kinds=None):
        super().__init__()
        self.kinds = [] if kinds is None else kinds
        self.begin(0)

    def begin(self, step, micro_batch=0):
        """The next forward pass is that of a micro-batch of a step, both counted from 0."""
        self.seed, self.count = (step_seed(0, step + 1) + micro_batch * GOLDEN) % (1 << 64), 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not is_random_call(function, args, kwargs):
            return function(*args, **kwargs)
        name, given = operator_of(function), given_to(function, args, kwargs)
        if name is None or given.get("generator") is not None:
            raise RuntimeError(f"the random numbers of {function} are not compared")
        like = given.get("self", next((value for value in given.values() if torch.is_tensor(value)), None))
        kind = self.kind_of(name, given, like)
        if name == "normal" and like is not None and "self" not in given:
            shape = torch.broadcast_shapes(*(x.shape for x in (given["mean"], given["std"]) if torch.is_tensor(x)))
        else:
            shape = given.get("size", like.shape if like is not None else None)
        compute = all_integers if function is torch.ops.aten.random_.default else OPERATORS[name]
        if self.count == len(self.kinds):
            self.kinds.append(kind)
        made = self.kinds[self.count]
        numbers = compute(given, Stream(self.seed, self.count, made), shape, made).to(kind)
        self.count += 1
        return given["self"].copy_(numbers) if function._schema.name.endswith("_") else numbers

    @staticmethod
    def kind_of(name, given, like):
        """The type of the result."""
        if name in ("randint", "randperm", "multinomial"):
            return given.get("dtype") or torch.int64
        return given.get("dtype") or (like.dtype if like is not None else torch.get_default_dtype())


class NoRandom(TorchDispatchMode):
    """Within it drawing is an error: in a backward pass a checkpoint would draw once more."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if is_random_call(function, args, kwargs or {}):
            raise RuntimeError("random numbers of a backward pass (torch.utils.checkpoint draws again) are not compared")
        return function(*args, **(kwargs or {}))
