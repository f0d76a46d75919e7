"""Ordinary modules of PyTorch, as its exporters wrote them, train as they did in PyTorch: losses, what is trained, every
gradient. modules.py --goldens wrote modules/*.zip; no torch is needed here."""

import os
import sys
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "end_to_end")]
from catalogue import running  # noqa: E402
from harness import ToolTest  # noqa: E402

RECORDED = os.path.join(HERE, "modules")
# What each module is checked in: ranks, micro-batches and a simulated GPU for what one exporter writes, the rest in turn for the
# other's.
ALWAYS, IN_TURN = ("zero3 on 2 ranks", "2 micro-batches"), ("one rank", "recomputation", "bf16")
# Ops that may be refused, by the words of the reason: module -> words. Whatever is not refused must be right.
MAY_BE_REFUSED = {
    "conv-transpose1d": "ConvTranspose", "conv-transpose2d": "ConvTranspose", "conv3d": "Conv ", "gru": "GRU", "lstm": "LSTM",
    "rnn": "RNN", "interpolate-bilinear-2d": "Resize", "interpolate-nearest-2d": "Resize", "local-response-norm": "AveragePool",
    "pixel-shuffle": "DepthToSpace", "reflection-pad2d": "Pad", "replication-pad2d": "Pad", "embedding-bag-sum": "op is not supported",
    "experts-topk": "TopK", "topk": "TopK", "sort": "TopK", "scatter-add": "ScatterElements", "set-column": "ScatterND",
    # Sums whose divisor is not known to be the batch's size (docs/optimize.md).
    "info-nce": "cannot be split into micro-batches", "kl-div": "cannot be split into micro-batches"}


class Modules(ToolTest):
    def check(self, name, turn):
        folder = self.path(name)
        with zipfile.ZipFile(os.path.join(RECORDED, name + ".zip")) as file:
            file.extractall(folder)
        case = running.case_of(folder)
        first, *others = [exporter for exporter, found in case["exporters"].items() if "refused" not in found][::-1]
        configs = [config for config in IN_TURN if config != "bf16" or not case["bf16"]]
        on_gpu = [config for config in running.ON_GPU if config == "simulated GPU" or not case["bf16"]]
        always = [*ALWAYS, on_gpu[turn % len(on_gpu)]] if running.has_simulator() else ALWAYS
        checks = [(first, config) for config in always] + [(other, configs[turn % len(configs)]) for other in others or [first]]
        for exporter, config in checks:
            with self.subTest(f"{name}, {exporter}, {config}"):
                work = self.path(f"{exporter}-{config}".replace(" ", "-"))
                os.mkdir(work)
                result = running.run(folder, exporter, config, work)
                if result["result"] == "refused" and name in MAY_BE_REFUSED:
                    self.assertIn(MAY_BE_REFUSED[name], result["reason"])
                    continue
                self.assertEqual(result["result"], "same", result)
                self.assertGreater(result["gradients"], 0)


def add_tests():
    """One test for each recorded module."""
    for turn, name in enumerate(sorted(file.removesuffix(".zip") for file in os.listdir(RECORDED))):
        setattr(Modules, f"test_{name}".replace("-", "_"), lambda self, name=name, turn=turn: self.check(name, turn))


add_tests()

if __name__ == "__main__":
    unittest.main()
