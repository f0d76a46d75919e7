"""Exports PyTorch modules to ONNX for tessera-compile, with a record of what exporters lose, and refuses what would train
otherwise than in PyTorch.

    from tessera.onnx import export
    export(model, (tokens,), ["tokens"], "model.onnx")
"""

from ..errors import ExportError
from .export import export, export_proto

__all__ = ["ExportError", "export", "export_proto"]
