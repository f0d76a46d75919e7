"""Tessera from Python: exports PyTorch modules, and calls the tools that compile and train them.

    program = tessera.export(model, (tokens,))          # a training program, checked against the module
    program.save("net.pt2")
    artifact = tessera.compile(program, "net.tessera", batch=8, seq=256, mesh={"shard": 2}, strategy="zero3")
    run = tessera.train(artifact, "text/", steps=200, out="runs/net")
    run.losses, run.metrics

`tessera.verify(model, inputs)` compares the first steps with PyTorch's. docs/python.md is the guide.
"""

import importlib

# What is imported at its first use: PyTorch is needed for some of it only.
PLACES = {"export": "program", "Program": "program", "no_weights": "weightless",
          "compile": "artifact", "report": "artifact", "Artifact": "artifact", "Report": "artifact",
          "train": "run", "Run": "run", "verify": "check", "Verdict": "compare",
          "ExportError": "errors", "ToolError": "errors", "CompileError": "errors", "CannotCompare": "errors"}
__all__ = list(PLACES)


def __getattr__(name):
    if name == "__version__":
        from importlib import metadata
        try:
            return metadata.version("tessera")
        except metadata.PackageNotFoundError:  # the package is used where it lies in a clone
            return "0"
    if name not in PLACES:
        raise AttributeError(f"module 'tessera' has no attribute '{name}'")
    return getattr(importlib.import_module(f"{__name__}.{PLACES[name]}"), name)


def __dir__():
    return sorted([*globals(), *PLACES])
