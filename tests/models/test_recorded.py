"""What PyTorch's exporters wrote of small models trains as they did in PyTorch: losses, what is trained, every gradient; on one
rank and with ZeRO-3 on two. record.py wrote the models; no torch is needed here."""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "end_to_end"), os.path.join(ROOT, "tools", "torch_export")]
import compare  # noqa: E402
import tessera  # noqa: E402
from harness import ToolTest  # noqa: E402

RECORDED = os.path.join(HERE, "recorded")
RANKS = {"one rank": (), "zero3 on 2 ranks": ("--mesh", "shard=2", "--strategy", "zero3")}
REFUSED = r"error: .*--set-role|error: .*export_torch\.py|error: .*record"


def files(folder, plain):
    """The exported files of a model that the export tool wrote, or those that torch.onnx.export wrote by itself."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".onnx") and name.startswith("plain") == plain)


class Recorded(ToolTest):
    def check(self, model):
        folder = os.path.join(RECORDED, model)
        with open(os.path.join(folder, "model.json")) as file:
            record = json.load(file)
        gradients = tessera.load(os.path.join(folder, "gradients.safetensors"))
        want = tessera.Training(record["losses"], gradients, list(gradients))
        for name in files(folder, plain=False):
            for ranks, flags in RANKS.items():
                with self.subTest(f"{model}/{name}, {ranks}"):
                    artifact, run = self.path(f"{name}-{len(flags)}.tessera"), self.path(f"{name}-{len(flags)}")
                    self.succeed("tessera-compile", os.path.join(folder, name), "-o", artifact, *record["flags"], *flags)
                    got = tessera.train(artifact, os.path.join(folder, "data.safetensors"),
                                        os.path.join(folder, "weights.safetensors"), record["steps"], run, timeout=120)
                    verdict = compare.compare(want, got, lambda: record["rounding"])
                    self.assertTrue(verdict.same, verdict.line())
                    self.assertGreater(len(verdict.errors), 0)

    def check_plain(self, model):
        """Exporters merge and fold parameters: a file without the export tool's record must not train."""
        folder = os.path.join(RECORDED, model)
        with open(os.path.join(folder, "model.json")) as file:
            flags = json.load(file)["flags"]
        for name in files(folder, plain=True):
            with self.subTest(f"{model}/{name}"):
                self.fail_with(REFUSED, "tessera-compile", os.path.join(folder, name), "-o", "plain.tessera", *flags)
                self.assertFalse(os.path.exists(self.path("plain.tessera")))


def add_tests():
    """One test for each recorded model, and one for its plain exports."""
    for model in sorted(os.listdir(RECORDED)):
        name = model.replace("-", "_")
        setattr(Recorded, f"test_{name}", lambda self, model=model: self.check(model))
        if files(os.path.join(RECORDED, model), plain=True):
            setattr(Recorded, f"test_{name}_without_record", lambda self, model=model: self.check_plain(model))


add_tests()

if __name__ == "__main__":
    unittest.main()
