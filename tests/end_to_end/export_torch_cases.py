"""Exports the modules of export_cases and prints what came of each.

usage: export_torch_cases.py FOLDER [case ...]     writes FOLDER/<case>.onnx; prints {case: {"record" or "error", "said"}} as JSON
"""

import json
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "frontends", "python"))
from export_cases import arguments, cuts, layers, record, state, tables  # noqa: E402, F401: each registers its cases
from export_cases.base import CASES  # noqa: E402
from tessera.onnx import ExportError, export  # noqa: E402


def main():
    torch.set_num_threads(1)
    folder, chosen, results = sys.argv[1], sys.argv[2:] or list(CASES), {}
    for name in chosen:
        torch.manual_seed(0)
        cls, inputs, options = CASES[name]
        model, example, said = cls(), inputs(), []
        before = {key: value.clone() for key, value in model.state_dict().items()}
        names = ["x", "y"][:len(example)]
        result = results[name] = {"said": said}
        try:
            result["record"] = export(model, example, names, os.path.join(folder, name + ".onnx"), say=said.append,
                                                   **options)
        except ExportError as why:
            result["error"] = str(why)
        after = model.state_dict()
        result["restored"] = before.keys() == after.keys() and all(torch.equal(before[key], after[key]) for key in before)
    print(json.dumps(results))


if __name__ == "__main__":
    main()
