"""python -m tessera: exports a model for tessera-compile, checks that it trains as in PyTorch, or makes tokens of text.

usage: python -m tessera build TARGET -o net.tessera [options and flags of tessera-compile]
       python -m tessera export TARGET -o net.pt2|net.onnx [options]
       python -m tessera verify TARGET [options] [-- flags of tessera-compile]
       python -m tessera data build|inspect|mix …   (python -m tessera data --help)
       python -m tessera finetune recipe.yaml; sample FOLDER PROMPT; export-hf CHECKPOINT FOLDER; track RUN --to TRACKER

TARGET is one of
  package.module:function   or   file.py:function
      The function takes no arguments and returns (model, inputs) or (model, inputs, names): the module, a tuple of example
      tensors, and the names of its inputs (default, and always in a .pt2 file: those of forward). Dimension 0 of every input
      is the batch. Where an exporter cannot keep it open, the file has the example's size.
  hf:<type>                 hf:gpt2, hf:llama, …: a Hugging Face causal language model of that type with random weights
  hf:<folder>               the configuration in that folder, and its weights if they are there; also without hf:
  hf:<path of config.json>  the configuration alone, with random weights or (--no-weights) without
"""

import sys

from . import command_line

if __name__ == "__main__":
    sys.exit(command_line.main(sys.argv[1:], __doc__))
