"""One forward and backward pass of a module, from which the module comes out as it went in: outputs by name, gradients, what
changed."""

import contextlib
import copy

import torch
from torch.utils import _pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .errors import ExportError, first_line, listed
from .module_checks import computed_names, has_values, python_state


def has_own_modes(model):
    """Whether a train() or eval() of it is not that of torch.nn.Module, and may do more than to set modes."""
    return any(type(module).train is not torch.nn.Module.train or type(module).eval is not torch.nn.Module.eval
               for module in model.modules())


def without_values(model):
    """A copy of a model whose parameters and buffers are on the device "meta", which counts the changes of tensors."""
    memo = {}
    for tensor in (*model.parameters(), *model.buffers()):
        made = torch.empty_like(tensor, device="meta")
        memo[id(tensor)] = torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made
    return copy.deepcopy(model, memo)


def modes_after(model, training):
    """({name of a module: its mode}, [name of what else changed]) of a model after train(), or eval(), by a copy without values: the
    model stays as it is. (None, [the reason]) where that cannot be known."""
    try:
        trial = without_values(model)

        def everything():
            tensors = [*trial.named_parameters(), *trial.named_buffers()]
            return {**python_state(trial), **{name: (id(tensor), tensor._version) for name, tensor in tensors}}
        before = everything()
        trial.train() if training else trial.eval()
        after = everything()
    except Exception as why:  # of the user's code
        return None, [f"what is not known, as a copy without values fails: {first_line(why)}"]
    changes = [name for name in {**before, **after} if before.get(name, trial) != after.get(name, trial)]
    return {name: module.training for name, module in trial.named_modules()}, changes


def check_modes(model, training):
    """{name of a module: the mode that it has after train(), or eval()}. Raises ExportError where that is not all that these do, or
    where it is not clear which parts are to be in training mode."""
    before = {name: module.training for name, module in model.named_modules()}
    if training and not model.training and (parts := [name for name, mode in before.items() if mode]):
        raise ExportError(f"the module is in evaluation mode, and parts of it are in training mode ({listed(parts, 3)}): call "
                          "train(), and then eval() of the parts that stay as they are")
    is_so = model.training if training else not any(before.values())
    if not has_own_modes(model):
        return before if is_so else dict.fromkeys(before, training)
    after, changes = modes_after(model, training)
    call = "train()" if training else "eval()"
    if changes and not is_so:
        raise ExportError(f"{call} of the module changes more than the mode ({listed(changes, 3)}): call {call} before the export")
    if after is None:
        return before
    other = [name or "the module" for name in after if after[name] != before[name]]
    if training and is_so and (other or changes):
        raise ExportError(f"train() of the module puts parts of it into another mode than they are in, or changes them "
                          f"({listed(other + changes, 3)}): call train() before the export")
    return before if is_so else after


@contextlib.contextmanager
def in_mode(model, training=True):
    """The model is as after train() meanwhile, unless it is in training mode already, of which parts may be in evaluation mode;
    training=False: as after eval(). Nothing but modes is set. Raises ExportError (check_modes)."""
    wanted, modes = check_modes(model, training), {module: module.training for module in model.modules()}
    for name, module in model.named_modules():
        module.training = wanted[name]
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


@contextlib.contextmanager
def same_random_numbers(seed):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


SEED = 0x7E55E8A5EED  # one that no module has


class SeedingRefused(TorchDispatchMode):
    """Within it, after same_random_numbers(SEED), a random number of another seed raises ExportError, and so does another
    seed at its end."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if torch.Tag.nondeterministic_seeded in function.tags:
            self.check()
        return function(*args, **(kwargs or {}))

    def __exit__(self, kind, why, trace):
        super().__exit__(kind, why, trace)
        if kind is None:
            self.check()

    @staticmethod
    def check():
        if torch.initial_seed() != SEED:
            raise ExportError("the forward pass calls torch.manual_seed, which a program cannot say: Tessera draws new numbers in "
                              "every step")


def outputs_of(result):
    """(names, tensors) of what forward returned: "output", or the keys of a dictionary, or output_0, …"""
    pairs, _ = _pytree.tree_flatten_with_path(result)
    pairs = [(path, leaf) for path, leaf in pairs if isinstance(leaf, torch.Tensor)]
    names = []
    for path, _ in pairs:
        words = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", "")))) for key in path]
        names.append("_".join(["output"] * (not words or words[0].isdigit()) + words))
    return (["output"] if len(pairs) == 1 and names[0].startswith("output") else names), [leaf for _, leaf in pairs]


def leaf_names(spec):
    """Names of what a module returned, of its pytree specification, as tessera-compile names them: "output", "output0",
    "output1", … of a tuple, keys, and what is deeper after a dot."""
    marked = _pytree.tree_unflatten(list(range(spec.num_leaves)), spec)
    names = []
    for path, _ in _pytree.tree_flatten_with_path(marked)[0]:
        words = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", "")))) for key in path]
        if not path or isinstance(path[0], _pytree.SequenceKey):
            words[:1] = ["output" + "".join(words[:1])]
        names.append(".".join(words))
    return names


def combine(outputs, which):
    """The scalar that is differentiated: a scalar output itself, others weighted with fixed random numbers, so that no two
    elements count the same. which: the outputs that count."""
    generator = torch.Generator().manual_seed(7)
    total = 0.0
    for at, output in enumerate(outputs):
        if at in which:
            weight = torch.ones(()) if output.dim() == 0 else torch.randn(output.shape, generator=generator)
            total = total + (output * weight.to(output)).sum().to(torch.float64)
    return total


@contextlib.contextmanager
def gradients_kept(model):
    """Puts the parameters' .grad back; meanwhile they have none."""
    before = {name: parameter.grad for name, parameter in model.named_parameters()}
    for parameter in model.parameters():
        parameter.grad = None
    try:
        yield
    finally:
        for name, parameter in model.named_parameters():
            parameter.grad = before[name]


def gradients(model, compute):
    """{name: gradient or None} of what compute() returns; the parameters' own .grad are kept."""
    with gradients_kept(model):
        compute().backward()
        return {name: parameter.grad for name, parameter in model.named_parameters()}


def state(tensors):
    """{name: copy} of (name, tensor) pairs, of what has values."""
    return {name: tensor.detach().clone() for name, tensor in tensors if has_values(tensor)}


def changed(before, tensors):
    """Names of tensors that have other values, shapes or are new since `before`."""
    return [name for name, tensor in tensors if name not in before or tensor.shape != before[name].shape
            or not torch.equal(tensor.detach().nan_to_num(), before[name].nan_to_num())]


def restore(before, tensors):
    """Gives tensors the values that they had, but for those of other shapes now."""
    with torch.no_grad():
        for name, tensor in tensors:
            if name in before and tensor.shape == before[name].shape:
                tensor.detach_() if not isinstance(tensor, torch.nn.Parameter) and tensor.grad_fn else None
                if not is_same(tensor, before[name]):
                    tensor.copy_(before[name])


def is_same(tensor, other):
    """Whether a tensor is known to have another's elements: then it need not be written, which PyTorch refuses where elements
    share memory (expanded tensors)."""
    return tensor.layout == torch.strided and tensor.dtype == other.dtype and torch.equal(tensor, other)


@contextlib.contextmanager
def computed_weights_kept(model):
    """Puts back the attributes that hooks of torch.nn.utils compute. Yields them: [(module, name, tensor), …]."""
    computed = [(module, name, getattr(module, name)) for module in model.modules() for name in computed_names(module)]
    try:
        yield computed
    finally:
        for module, name, tensor in computed:
            setattr(module, name, tensor)


@contextlib.contextmanager
def global_hooks_kept():
    """Puts back the hooks of all modules that see new buffers: torch.export 2.6 leaves its own where it fails."""
    hooks = torch.nn.modules.module._global_buffer_registration_hooks
    before = dict(hooks)
    try:
        yield
    finally:
        hooks.clear()
        hooks.update(before)


@contextlib.contextmanager
def attributes_kept(model):
    """Puts the attributes of a model's modules back as they were, but for what changes inside of them."""
    before = {module: dict(vars(module)) for module in model.modules()}
    try:
        yield
    finally:
        for module, attributes in before.items():
            vars(module).clear()
            vars(module).update(attributes)


@contextlib.contextmanager
def kept(model, with_parameters=True):
    """Puts the buffers back as they were, the weights that hooks computed, and the parameters if wanted. Yields what buffers
    and parameters were: {name: tensor} of each."""
    buffers, parameters = state(model.named_buffers()), state(model.named_parameters() if with_parameters else ())
    try:
        with computed_weights_kept(model):
            yield buffers, parameters
    finally:
        restore(buffers, model.named_buffers())
        restore(parameters, model.named_parameters())
