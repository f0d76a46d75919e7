"""Runs a training step of the module and sees what an exported graph cannot say; refuses what it would get wrong."""

import dataclasses

import torch

from ..calls import arguments
from ..dropout import NoDropout
from ..errors import ExportError, first_line, listed
from ..module_step import changed, combine, gradients, kept, outputs_of, restore, same_random_numbers, state
from ..names import buffer_names, parameter_names
from . import cuts, needed_marks

RANDOM = {"rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "normal", "normal_", "uniform_", "bernoulli",
          "bernoulli_", "multinomial", "poisson", "exponential_", "gumbel_softmax", "rrelu", "rrelu_", "randperm", "random_",
          "log_normal_", "cauchy_", "geometric_", "fractional_max_pool2d"}
LOOKUPS = {"__getitem__", "index_select", "gather", "take", "take_along_dim", "embedding_bag", "index"}
POOLS = {"avg_pool2d": 6, "avg_pool3d": 6}  # the position of divisor_override


@dataclasses.dataclass
class Observation:
    """What a training step showed. Parameters and buffers by their first names."""
    padding: dict = dataclasses.field(default_factory=dict)      # parameter -> padding_idx of all its lookups
    lookups: dict = dataclasses.field(default_factory=dict)      # such a parameter -> how many lookups
    unused: set = dataclasses.field(default_factory=set)         # parameters that no output depends on differentiably
    batch_norm: list = dataclasses.field(default_factory=list)   # as in the record
    dropout: list = dataclasses.field(default_factory=list)      # as in the record
    outputs: list = dataclasses.field(default_factory=list)      # names of the outputs
    cleared: int = 0                                             # dropout rates that were set to 0 before
    evaluation_differs: str = None                               # see program.why_module_differs
    suspects: list = dataclasses.field(default_factory=list)     # calls whose arguments exporters are known to drop
    marks: int = 0                                               # places to be marked where PyTorch cuts gradients
    still: set = dataclasses.field(default_factory=set)          # parameters in the graph that get no gradient in PyTorch


class Watcher(NoDropout):
    """Sees every call of a torch function. Within it dropout is off; with `recording` on it notes what the record needs.

    Errors are collected, not raised: a refusal comes after the run, all reasons known.
    """

    def __init__(self, model, places):
        super().__init__()
        self.places, self.recording = places, False
        self.parameters = {id(parameter): name for name, (parameter, _) in parameter_names(model).items()}
        self.buffers = {id(buffer): name for name, (buffer, _) in buffer_names(model).items()}
        self.refusals, self.suspects, self.random = {}, {}, {}
        self.lookups, self.norms, self.dropouts, self.statistics = {}, {}, {}, set()
        self.calls = {}  # parameter -> how often it was looked up as an embedding

    def called(self, function, name, args, kwargs):
        if self.recording:
            self.note(function, name, args, kwargs)
        return super().called(function, name, args, kwargs)

    def refuse(self, text):
        self.refusals[f"{text} ({self.places.here()})"] = None

    def saw_dropout(self, kind, rate):
        if self.recording:
            key = (self.places.module, float(rate))
            self.dropouts[key] = self.dropouts.get(key, 0) + 1
            if kind not in ("dropout", "dropout_", "native_dropout"):
                self.refuse(f"{kind} with a rate of {rate}: ONNX has no such operation")

    def note(self, function, name, args, kwargs):
        if name in ("tensor", "new_tensor", "as_tensor", "asarray") and any(
                isinstance(operand, torch.Tensor) and operand.requires_grad for operand in [*args[-1:], *kwargs.values()]):
            self.refuse(f"{name} copies values without their gradient, which the graph would keep")
        if name == "requires_grad_" or function is torch.Tensor.requires_grad.__set__:
            if id(args[0]) in self.parameters:
                self.refuse(f"requires_grad of {self.parameters[id(args[0])]} changes in the forward pass")
        if name == "embedding":
            self.embedding(function, args, kwargs)
        elif name in ("batch_norm", "instance_norm"):
            self.norm(function, name, args, kwargs)
        elif name in POOLS:
            if kwargs.get("divisor_override", args[POOLS[name]] if len(args) > POOLS[name] else None) is not None:
                self.suspects[f"divisor_override of {name} ({self.places.here()})"] = None
        elif name in ("lstm", "gru", "rnn_tanh", "rnn_relu") and len(args) > 7:
            rate, training = args[5:7] if isinstance(args[2], (list, tuple)) else args[6:8]
            if rate > 0 and training:
                self.refuse(f"dropout of {rate} within {name}: exporters leave it out")
        if name == "embedding_bag":
            given = arguments(function, args, kwargs)
            for key in ("max_norm", "padding_idx"):
                if given.get(key) is not None:
                    self.refuse(f"embedding_bag with {key}={given[key]}")
            for key in ("scale_grad_by_freq", "sparse"):
                if given.get(key):
                    self.refuse(f"embedding_bag with {key}")
        if name in LOOKUPS:
            for operand in [*args[:2], *kwargs.values()]:
                if id(operand) in self.parameters:
                    self.lookups.setdefault(self.parameters[id(operand)], {}).setdefault(None, self.places.here())
        if name in RANDOM:
            self.random.setdefault(f"{name} ({self.places.here()})")

    def embedding(self, function, args, kwargs):
        if function is torch.embedding:
            given = arguments(function, args, kwargs, ("weight", "indices", "padding_idx", "scale_grad_by_freq", "sparse"))
            if given.get("padding_idx", -1) == -1:
                given["padding_idx"] = None
        else:
            given = arguments(function, args, kwargs, ("weight", "indices", "padding_idx", "scale_grad_by_freq", "sparse"))
        if "weight" not in given:
            self.refuse("a lookup by torch.ops, whose arguments are not known here")
            return
        weight, padding = given["weight"], given.get("padding_idx")
        if given.get("max_norm") is not None:
            self.refuse(f"embedding with max_norm={given['max_norm']} changes its table in the forward pass")
        if not weight.requires_grad:
            return
        for key in ("scale_grad_by_freq", "sparse"):
            if given.get(key):
                self.refuse(f"embedding with {key}: the gradient is not the graph's")
        if padding is not None and padding < 0:
            padding += weight.shape[0]
        name = self.parameters.get(id(weight))
        if name is not None:
            self.lookups.setdefault(name, {}).setdefault(padding, self.places.here())
            self.calls[name] = self.calls.get(name, 0) + 1
        elif padding is not None:
            self.refuse(f"embedding with padding_idx={padding} in a table that is computed")

    def norm(self, function, kind, args, kwargs):
        order = ("input", "weight", "bias", "running_mean", "running_var", "training")
        given = arguments(function, args, kwargs, order)
        mean, training = given.get("running_mean"), bool(given.get("training", given.get("use_input_stats")))
        if mean is None:
            return
        self.statistics |= {id(mean), id(given["running_var"])}
        name = self.buffers.get(id(mean))
        if kind == "instance_norm":
            return
        if name is None:
            self.refuse("batch norm whose running mean is not a buffer")
        elif self.norms.setdefault(name, training) != training:
            self.refuse(f"batch norm of {name} both with the batch's and with running statistics")

    def finish(self, observation):
        """Fills an Observation; raises ExportError with all refusals."""
        for name, paddings in self.lookups.items():
            if len(paddings) > 1 and any(padding is not None for padding in paddings):
                texts = [f"{'no padding_idx' if p is None else f'padding_idx={p}'} ({where})" for p, where in paddings.items()]
                self.refusals[f"{name} is looked up with {' and with '.join(texts)}"] = None
            for padding in paddings:
                if padding is not None:
                    observation.padding[name], observation.lookups[name] = padding, self.calls[name]
        if self.refusals:
            raise ExportError("; ".join(list(self.refusals)[:5]))
        observation.batch_norm = [{"running_mean": name, "training": training} for name, training in self.norms.items()]
        observation.dropout = [{"module": module, "p": rate, "count": count}
                               for (module, rate), count in self.dropouts.items()]
        observation.suspects = list(self.suspects)


def observe(model, inputs, say=print):
    """Runs one training step of `model` on `inputs`, a forward and a backward pass (and a few more to compare); the model is
    as before. Its parameters must be different and none zero (distinct.py), or equal gradients may hide a cut. Returns an
    Observation; raises ExportError for what an exported graph would not train as PyTorch does."""
    places = cuts.Places(model)
    with kept(model) as (_, parameters), places.followed():
        return step(model, inputs, places, parameters, say)


def step(model, inputs, places, parameters, say):
    observation = Observation()
    try:
        with Watcher(model, places), same_random_numbers(0):
            model(*inputs)  # lazily made tables are there now
    except Exception as why:
        raise ExportError(f"the module fails on its example: {type(why).__name__}: {first_line(why)}") from why
    buffers = state(model.named_buffers())
    watcher = Watcher(model, places)
    found = {}

    def plain():
        watcher.recording = True
        names, found["outputs"] = outputs_of(model(*inputs))
        watcher.recording = False
        found["which"] = {at for at, output in enumerate(found["outputs"]) if output.requires_grad}
        observation.outputs = names
        if not found["which"]:
            raise ExportError("no output depends on a trained parameter")
        return combine(found["outputs"], found["which"])

    try:
        with watcher, same_random_numbers(0):
            true = gradients(model, plain)
    except ExportError:
        raise
    except Exception as why:
        watcher.finish(observation)
        raise ExportError(f"the module fails in training mode: {type(why).__name__}: {first_line(why)}") from why
    watcher.finish(observation)
    check_changes(model, watcher, buffers, parameters)
    check_random(model, inputs, watcher, found["outputs"])
    others = [name for at, name in enumerate(observation.outputs) if at not in found["which"]]
    if others:
        say(f"note: no gradient comes from {listed(others)} in PyTorch; do not make a loss of it")
    restore(buffers, model.named_buffers())
    restore(parameters, model.named_parameters())
    exported, observation.marks, calls = needed_marks.check_cuts(
        model, true, lambda marks: as_exported(model, inputs, places, found["which"], marks))
    observation.suspects += calls  # if the graph's outputs are not compared, a mark may be lost in a number
    observation.still = {name for name in true if true[name] is None and (observation.marks or exported[name] is not None)}
    observation.unused = {name for name, parameter in model.named_parameters() if exported[name] is None}
    unused = [name for name, parameter in model.named_parameters() if name in observation.unused and parameter.requires_grad]
    if unused:
        say(f"note: no output depends on {listed(unused)}")
    return observation


def check_changes(model, watcher, buffers, parameters):
    """Raises ExportError if the training step changed more than the running statistics of norms."""
    names = changed(parameters, model.named_parameters())
    if names:
        raise ExportError(f"the forward pass changes parameters: {listed(names)}")
    counters = {f"{name}.num_batches_tracked".lstrip(".") for name, module in model.named_modules()
                if isinstance(module, torch.nn.modules.batchnorm._NormBase)}
    allowed = {name for name, buffer in model.named_buffers() if id(buffer) in watcher.statistics} | counters
    names = [name for name in changed(buffers, model.named_buffers()) if name not in allowed]
    if names:
        raise ExportError(f"the training step changes buffers, which the graph would leave as they are: {listed(names)}")


def check_random(model, inputs, watcher, outputs):
    """Raises ExportError if two runs with other random numbers differ: there is randomness beyond dropout."""
    with watcher, same_random_numbers(1):
        again = outputs_of(model(*inputs))[1]
    if any(a.shape != b.shape or not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(outputs, again)):
        where = f": {listed(watcher.random)}" if watcher.random else ""
        raise ExportError(f"the outputs are random, beyond dropout{where}")


def as_exported(model, inputs, places, which, marks):
    """(gradients, also of frozen parameters, calls that cut gradients in PyTorch) as exporters see the module. Raises
    ExportError if it does not run so."""
    frozen = [p for p in model.parameters() if not p.requires_grad and p.is_floating_point()]
    found = []
    try:
        for parameter in frozen:
            parameter.requires_grad_(True)
        with cuts.as_exported(places, marks) as found, Watcher(model, places), same_random_numbers(0):
            return gradients(model, lambda: combine(outputs_of(model(*inputs))[1], which)), found
    except cuts.Unreachable as why:
        raise ExportError(str(why)) from why
    except Exception as why:
        raise ExportError(f"what exporters make of detach and no_grad does not run: {first_line(why)} "
                          f"({listed(found)})") from why
    finally:
        for parameter in frozen:
            parameter.requires_grad_(False)
