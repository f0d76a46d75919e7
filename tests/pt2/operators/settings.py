"""How the rows of the operators' table are trained and compared, by record.py and by tests/models/test_operators.py, which runs without
torch."""

from tessera.hyper import hyper_flags

LOSS = "output:output"
FLAGS = ["--loss", LOSS, *hyper_flags()]
# Of a family: how much of its largest element a gradient may differ, and a loss. The 8 bits of bf16 round by 2^-9, a few
# times on the way, and PyTorch's CPU rounds at other places than its GPUs.
TOLERANCES = {"halves": (2.0 ** -6, 2.0 ** -8)}
