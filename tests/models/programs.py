"""Exports the models of records by torch.export, with what can be open left open."""

import torch
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
