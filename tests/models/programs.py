"""Checks a model by the other entrance: exported by torch.export, saved as .pt2, trained from its own weights, and
compared with PyTorch as frontends/python/tessera/check.py does."""

import torch
from tessera.check import CannotCompare, Check
from tessera.dimensions import axes_of, by_parameter
from tessera.dropout import without_dropout


def export_program(model, inputs):
    """The program of a module with its batch and positions open, or one of them, where the module allows that. inputs:
    tuple of tensors. Raises what torch.export raises."""
    def attempt(kept):
        symbols = {"B": torch.export.Dim("batch", min=2), "T": torch.export.Dim("time", min=2)}
        axes = [{axis: symbols[name] for axis, name in axes_of(tensor).items() if name in kept} for tensor in inputs]
        return torch.export.export(model, inputs, dynamic_shapes=by_parameter(model, axes))
    with without_dropout(model):
        for kept in ("BT", "B", ""):
            try:
                return attempt(kept)
            except Exception as why:  # noqa: BLE001: torch has no common class for what its exporter raises
                last = why
    raise last


class ProgramCheck(Check):
    """Check by a .pt2 file: `onnx` is its path."""

    def export(self, exporter="auto", say=lambda text: None):
        try:
            program = export_program(self.model, self.inputs)
        except Exception as why:  # noqa: BLE001
            reason = f"{type(why).__name__}: {' '.join(str(why).split())}"
            raise CannotCompare("export", reason[:4000], reason[:300]) from why
        self.onnx, self.outputs, self.exporter = self.path("model.pt2"), ["output"], "torch.export"
        torch.export.save(program, self.onnx)
        found = list(program.graph_signature.user_inputs)
        if found != list(self.names):
            raise CannotCompare("export", f"the program's inputs are {found}, the module's {list(self.names)}")
        self.padding = sorted({module.padding_idx for module in self.model.modules()
                               if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None})
