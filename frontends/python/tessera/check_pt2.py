"""The side of a check that is of programs (.pt2): exports the model, or takes a file and its weights."""

import torch

from . import training
from .draws import count_random_calls
from .dropout import NoDropout, without_dropout
from .errors import CannotCompare, listed
from .module_step import kept, leaf_names
from .program import Program, export


def export_program(check, dynamic=None):
    """Exports a Check's model without dropouts, which are not compared. Raises ExportError."""
    with without_dropout(check.model):
        with NoDropout():
            made = export(check.model, check.inputs, dynamic=dynamic)
        with CountDropouts() as seen, kept(check.model), torch.no_grad():
            check.model(*check.inputs)
    made.save(check.path("model.pt2"))
    check.dropout_in_code = seen.count
    take(check, made, check.path("model.pt2"))


class CountDropouts(NoDropout):
    """Leaves out dropouts, whatever rate the code gives, and counts them."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def saw_dropout(self, kind, rate):
        self.count += 1


def use_program(check, path):
    """Takes a program that was exported before, and its weights into the model. Raises ExportError, CannotCompare."""
    made = Program.load(path)
    if not made.has_weights:
        raise CannotCompare("file", f"{path} has no weights")
    active = [node for node in made.program.graph.nodes if "dropout" in str(node.target) and 0.0 not in node.args[1:2]
              and True in node.args]
    if active:
        raise CannotCompare("file", f"{path} has {len(active)} dropouts, which are not compared")
    is_evaluation = [node for node in made.program.graph.nodes if "dropout" in str(node.target) and False in node.args[2:3]]
    if is_evaluation:
        check.notes.append(f"{path} was exported in evaluation mode: its {len(is_evaluation)} dropouts do nothing; tessera.export exports "
                           "for training")
    missing = training.set_weights(check.model, made.program.state_dict)
    if missing:
        raise CannotCompare("file", f"{path} has no weights for {listed(missing)}")
    take(check, made, path)


def take(check, made, path):
    """What a Check has to know of a Program."""
    check.file, check.names = path, list(made.inputs)
    sizes = {name: size for tensor, example in zip(made.inputs.values(), check.inputs) for name, size in zip(tensor.shape, example.shape)}
    samples = next((tensor.shape[0] for tensor in made.inputs.values() if tensor.shape), None)
    check.symbols = {name: size for name, size in sizes.items() if str(name).isidentifier() and name != samples}
    check.outputs = leaf_names(made.program.call_spec.out_spec)
    check.random_calls = count_random_calls(made.program)
    check.exporter = f"torch.export, torch {torch.__version__.split('+')[0]}"
    check.padding = sorted({module.padding_idx for module in check.model.modules()
                            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None})
