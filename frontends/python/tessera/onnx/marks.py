"""Marks in the exported graph where PyTorch cuts gradients: detach, .data, and what is computed under no_grad.

Exporters drop these. While a module is exported, each becomes an op of its own, tessera.StopGradient in the file, an identity
that passes no gradient.
"""

import contextlib
import functools
import os
import sys

import onnx
import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree

from . import cuts

PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
TORCH = os.path.dirname(torch.__file__) + os.sep
# Torch's own code whose detach and no_grad are part of a model; that of the rest (exporters, tracing) is not.
MODELS = TORCH + "nn" + os.sep
SKIPPED = (os.path.join(TORCH, "autograd", "grad_mode.py"), os.path.join(TORCH, "utils", "_contextlib.py"),
           contextlib.__file__)


@functools.cache
def operation():
    """torch.ops.tessera.stop_gradient, defined at its first use."""
    @torch.library.custom_op("tessera::stop_gradient", mutates_args=())
    def stop_gradient(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    stop_gradient.register_fake(torch.empty_like)
    stop_gradient.register_autograd(lambda ctx, grad: None)
    torch.onnx.register_custom_op_symbolic(
        "tessera::stop_gradient", lambda g, x: g.op("tessera::StopGradient", x).setType(x.type()), 17)
    return torch.ops.tessera.stop_gradient.default


def translations():
    """The dynamo exporter's table for the operation."""
    from onnxscript.values import Opset
    if not onnx.defs.has("StopGradient", "tessera"):  # which the exporter asks for
        schema = onnx.defs.OpSchema
        onnx.defs.register_schema(schema(
            "StopGradient", "tessera", 1, "The value, and no gradient.", inputs=[schema.FormalParameter("x", "T")],
            outputs=[schema.FormalParameter("y", "T")],
            type_constraints=[("T", [f"tensor({kind})" for kind in ("float", "double", "float16", "bfloat16")], "floats")]))
    domain = Opset("tessera", 1)

    def stop_gradient(x):
        return domain.StopGradient(x)

    return {operation(): stop_gradient}


def called_by_model():
    """Whether the call comes from the model's code, not from what traces it."""
    frame = sys._getframe(2)
    while frame and (frame.f_code.co_filename in SKIPPED or frame.f_code.co_filename.startswith(PACKAGE)):
        frame = frame.f_back
    file = frame.f_code.co_filename if frame else TORCH
    return file.startswith(MODELS) or not file.startswith((TORCH, "<"))


class Marks(TorchFunctionMode):
    """Calls stop(tensor) where the model's code cuts a gradient. found: how many places, since the module's forward began."""

    def __init__(self, stop):
        super().__init__()
        self.stop, self.running, self.cut_off, self.clean, self.found = stop, True, False, {}, 0

    def begin(self):
        """The module's forward begins: exporters may run it more than once."""
        self.running, self.found, self.cut_off, self.clean = True, 0, False, {}

    def end(self):
        self.running = self.cut_off = False

    def mark(self, tensor):
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point() or id(tensor) in self.clean:
            return tensor
        self.found += 1
        return self.stop(tensor)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self.cut_off or getattr(function, "__name__", "") in ("__get__", "__set__", "size", "dim"):
            return function(*args, **kwargs)
        args, kwargs = _pytree.tree_map(self.mark, (args, kwargs))
        result = function(*args, **kwargs)
        for tensor in _pytree.tree_leaves(result):
            if isinstance(tensor, torch.Tensor):
                self.clean[id(tensor)] = tensor  # kept, so that no other tensor gets its id
        return result


@contextlib.contextmanager
def written(model, wanted):
    """Within the context what the model's code cuts is marked in the graph, if `wanted`; yields the Marks or None."""
    if not wanted:
        yield None
        return
    marks = Marks(operation())
    marks.running = False
    tensor, base = torch.Tensor, torch._C.TensorBase
    real_data, real_detach, set_enabled = base.data, base.detach, torch._C._set_grad_enabled

    def kept(self, *_, **__):
        return marks.mark(self) if marks.running and called_by_model() else real_detach(self)

    def get_data(self):
        return marks.mark(self) if marks.running and called_by_model() else real_data.__get__(self)

    def switch(enabled):
        if marks.running and called_by_model():
            marks.cut_off = not enabled
        set_enabled(enabled)

    handles = [model.register_forward_pre_hook(lambda *_: marks.begin()),
               model.register_forward_hook(lambda *_: marks.end(), always_call=True)]
    changes = [(tensor, "detach", kept), (torch, "detach", kept),
               (tensor, "data", property(get_data, lambda self, value: real_data.__set__(self, value))),
               (torch._C, "_set_grad_enabled", switch)]
    try:
        with cuts.replaced(changes), marks:
            yield marks
    finally:
        for handle in handles:
            handle.remove()
