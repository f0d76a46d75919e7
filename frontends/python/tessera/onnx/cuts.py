"""Runs a module the way exporters see it: without detach, .data, no_grad, hooks and the backward of custom autograd functions."""

import collections
import contextlib
import os
import sys

import torch

INNER = (os.path.dirname(torch.__file__) + os.sep, os.path.dirname(os.path.dirname(__file__)) + os.sep, "<")  # files that are not the user's


def source_line():
    """file:line of the innermost call that is neither torch's nor this package's."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(INNER):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back
    return "torch"


class Places:
    """Where in the module the program is: the names of the modules whose forward runs, from hooks on all modules."""

    def __init__(self, model):
        self.names = {id(module): name for name, module in model.named_modules()}
        self.stack = []

    @property
    def module(self):
        """The name of the innermost module that runs; "" for the root."""
        return self.stack[-1] if self.stack else ""

    def here(self):
        return f"{self.module + ', ' if self.module else ''}{source_line()}"

    @contextlib.contextmanager
    def followed(self):
        def enter(module, _):
            if id(module) in self.names:
                self.stack.append(self.names[id(module)])

        def leave(module, *_):
            if id(module) in self.names and self.stack:
                self.stack.pop()

        hooks = torch.nn.modules.module
        handles = [hooks.register_module_forward_pre_hook(enter),
                   hooks.register_module_forward_hook(leave, always_call=True)]
        try:
            yield self
        finally:
            self.stack.clear()
            for handle in handles:
                handle.remove()


class Context:
    """Stands for the ctx of a custom autograd function whose forward is run as ordinary operations."""

    def __init__(self, needs):
        self.needs_input_grad, self.saved_tensors = needs, ()

    def save_for_backward(self, *tensors):
        self.saved_tensors = tensors

    def ignored(self, *_):
        pass

    save_for_forward = mark_dirty = mark_non_differentiable = set_materialize_grads = ignored


class Handle:
    """What register_hook returns where hooks are left out."""

    def remove(self):
        pass


set_grad_enabled = torch._C._set_grad_enabled


def enable_grad():
    with torch._C.DisableTorchFunction():
        set_grad_enabled(True)


def detach(tensor):
    """tensor.detach() even where as_exported() replaces that: a mode would be handed the replacement."""
    with torch._C.DisableTorchFunction():
        return torch._C.TensorBase.detach(tensor)


def subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


@contextlib.contextmanager
def replaced(changes):
    """Sets attributes, [(object, name, value), …], and restores them."""
    absent, before = object(), []
    try:
        for holder, name, value in changes:
            before.append((holder, name, vars(holder).get(name, absent)))
            setattr(holder, name, value)
        yield
    finally:
        for holder, name, value in reversed(before):
            delattr(holder, name) if value is absent else setattr(holder, name, value)


def through_forward(cls, cut):
    """(forward, backward) in place of those of a custom autograd function: backward differentiates its forward.

    The class's apply cannot be replaced, since modules keep it under other names; it calls these. Parameters that forward
    reaches otherwise than by arguments get their gradients too. cut: called with a kind when a gradient that exists in the
    exported graph cannot reach PyTorch's.
    """
    forward = cls.forward
    takes_context = cls.setup_context is torch.autograd.function._SingleLevelFunction.setup_context

    def new_forward(ctx, *args):
        enable_grad()  # the caller restores it
        inner = [detach(a).requires_grad_() if isinstance(a, torch.Tensor) and a.requires_grad else a for a in args]
        # In-place operations of forward must not meet leaves.
        given = [a.view_as(a) if isinstance(a, torch.Tensor) and a.requires_grad else a for a in inner]
        needs = tuple(isinstance(a, torch.Tensor) and a.requires_grad for a in args)
        results = forward(Context(needs), *given) if takes_context else forward(*given)
        ctx.inner = inner
        ctx.results = results if isinstance(results, tuple) else (results,)
        if any(needs):
            cut(f"the backward of {cls.__name__}")
        elif any(isinstance(r, torch.Tensor) and r.requires_grad for r in ctx.results):
            raise Unreachable(f"{cls.__name__} passes no gradient to what it uses, since none of its arguments has one")
        outs = tuple(detach(r).clone() if isinstance(r, torch.Tensor) else r for r in ctx.results)  # views share histories
        return outs if isinstance(results, tuple) else outs[0]

    def new_backward(ctx, *grads):
        pairs = [(r, g) for r, g in zip(ctx.results, grads)
                 if isinstance(r, torch.Tensor) and r.requires_grad and g is not None]
        if pairs:
            torch.autograd.backward([r for r, _ in pairs], [g for _, g in pairs])
        return tuple(a.grad if isinstance(a, torch.Tensor) and a.requires_grad else None for a in ctx.inner)

    return staticmethod(new_forward), staticmethod(new_backward)


def all_through_forward(cut):
    """[(class, name, value), …] that makes every custom autograd function differentiate its forward."""
    function, plain, changes = torch.autograd.Function, torch.autograd.function._SingleLevelFunction.setup_context, []
    for cls in set(subclasses(function)):
        if "forward" in vars(cls) and cls.__name__ != "_NoopSaveInputs":  # part of checkpoint()
            forward, backward = through_forward(cls, cut)
            changes += [(cls, "forward", forward), (cls, "backward", backward),
                        (cls, "setup_context", staticmethod(plain))]
            if "vjp" in vars(cls):
                changes.append((cls, "vjp", function.vjp))
    return changes


class Unreachable(Exception):
    """A gradient of the exported graph that PyTorch does not have, found without comparing."""


@contextlib.contextmanager
def as_exported(places, marks=None):
    """Within the context gradients flow wherever values flow, but where `marks` (marks.py) cut them. Yields an ordered
    dictionary {text: None} of the calls that cut gradients in PyTorch: kind and place of each."""
    found = collections.OrderedDict()
    tensor, base = torch.Tensor, torch._C.TensorBase
    real_data, real_item, real_float = base.data, base.item, tensor.__float__

    def cut(kind):
        found[f"{kind} ({places.here()})"] = None

    def of_checkpoint():  # saves tensors for its second forward
        return sys._getframe(2).f_code.co_filename.endswith(os.path.join("torch", "utils", "checkpoint.py"))

    def kept(self, *_, **__):
        if of_checkpoint():
            return detach(self)
        if self.requires_grad:
            cut("detach")
        return marks.mark(self) if marks else self

    def get_data(self):
        if self.requires_grad:
            cut(".data")
        return marks.mark(self) if marks else self

    def item(self):
        if not self.requires_grad:
            return real_item(self)
        cut("item()")  # dynamo keeps it in the graph
        return self.reshape(())

    def number(self, *_):
        if self.requires_grad:
            raise Unreachable(f"a value with a gradient becomes a number of Python ({places.here()})")
        return real_float(self)

    def register_hook(self, *_, **__):
        cut("register_hook")
        return Handle()

    def switch(enabled):
        if enabled:
            enable_grad()  # the second forward of checkpoint() runs within the backward pass
        else:
            cut("no_grad")
        if marks:
            marks.cut_off = not enabled

    def inference(enabled=True):
        cut("inference_mode")
        return contextlib.nullcontext()

    changes = [(tensor, "detach", kept), (torch, "detach", kept), (tensor, "detach_", kept), (torch, "detach_", kept),
               (tensor, "data", property(get_data, lambda self, value: real_data.__set__(self, value))),
               (tensor, "item", item), (tensor, "__float__", number), (tensor, "register_hook", register_hook), (torch._C, "_set_grad_enabled", switch),
               (torch._C, "_InferenceMode", inference)]
    with replaced([*changes, *all_through_forward(cut)]), marks or contextlib.nullcontext():
        yield found
