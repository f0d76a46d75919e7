#!/usr/bin/env python3
"""Writes the Llama programs of which test_report_large.py reports: tests/models/wide/*.pt2, at full width and without weights.

usage: record_wide.py [--layers N] [FOLDER]

Two layers each unless --layers says otherwise (0: all of them). Needs torch and transformers; the files are committed.
"""

import argparse
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "frontends", "python")]
sys.path.append(os.path.join(HERE, "..", "support"))  # last: it has a module safetensors, too
import archives  # noqa: E402
import tessera  # noqa: E402
import zoo  # noqa: E402

WIDE = {"llama-8b": zoo.LLAMA, "llama-70b": zoo.LLAMA_70B, "llama-405b": zoo.LLAMA_405B}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("folder", nargs="?", default=os.path.join(HERE, "wide"))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    warnings.simplefilter("ignore")
    for name, settings in WIDE.items():
        settings = settings | (dict(num_hidden_layers=options.layers) if options.layers else {})
        with tessera.no_weights():
            made = zoo.causal("LlamaConfig", 8192, **settings)()
        made.model.train()
        path = os.path.join(options.folder, name + ".pt2")
        tessera.export(made.model, made.inputs).save(path)
        packed = archives.packed([(entry, archives.without_folders(entry, data)) for entry, data in archives.entries(path)])
        with open(path, "wb") as file:
            file.write(packed)
        print(f"{len(packed):7} {path}")


if __name__ == "__main__":
    main()
