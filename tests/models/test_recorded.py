"""What PyTorch's exporters wrote of small models trains as they did in PyTorch: losses, what is trained, every
gradient; on one rank, with ZeRO-3 on two, and of programs in two micro-batches. record.py and record_pt2.py wrote the models; no torch is needed here."""

import json
import os
import sys
import unittest
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "end_to_end")]
from catalogue.running import RANKS  # noqa: E402
from harness import ToolTest  # noqa: E402
from tessera import compare, safetensors, tools  # noqa: E402

RECORDED = os.path.join(HERE, "recorded")
REFUSED = r"does not say which of its tensors are trained|is read in several modules"
# Exported without our tool, and right: nothing in it is tied, and this torch merges nothing. It trains, with a warning.
RIGHT = "llama/plain-oldest.onnx"
# Their statistics are those of a micro-batch, so that two of them train otherwise.
BATCH_NORMS = ("cnn", "resnet", "unet")


def files(folder, plain):
    """The exported files of a model that our tools wrote, or those that torch.onnx.export wrote by itself."""
    return sorted(name for name in os.listdir(folder)
                  if name.endswith((".onnx", ".pt2")) and name.startswith("plain") == plain)


def has_weights(path):
    """Whether the runtime can read weights from the file: an archive as PyTorch writes it, not compressed."""
    if not path.endswith(".pt2"):
        return False
    with zipfile.ZipFile(path) as archive:
        return all(entry.compress_type == zipfile.ZIP_STORED for entry in archive.infolist())


class Recorded(ToolTest):
    def setting(self, model):
        """(folder, what model.json says, PyTorch's training) of a model."""
        folder = os.path.join(RECORDED, model)
        with open(os.path.join(folder, "model.json")) as file:
            record = json.load(file)
        gradients = safetensors.load(os.path.join(folder, "gradients.safetensors"))
        return folder, record, tools.Training(record["losses"], gradients, list(gradients))

    def check(self, model, name):
        """One exported file trains as PyTorch did."""
        folder, record, want = self.setting(model)
        given = record["flags"]
        cases = {ranks: [*given, *flags] for ranks, flags in RANKS.items()}
        if name.endswith(".pt2") and model not in BATCH_NORMS:
            at = given.index("--batch") + 1
            cases["2 micro-batches"] = [*given[:at], str(int(given[at]) // 2), *given[at + 1:], "--accumulate", "2"]
        for number, (case, flags) in enumerate(cases.items()):
            with self.subTest(f"{model}/{name}, {case}"):
                artifact, run = self.path(f"{name}-{number}.tessera"), self.path(f"{name}-{number}")
                self.succeed("tessera-compile", os.path.join(folder, name), "-o", artifact, *flags)
                weights = name if has_weights(os.path.join(folder, name)) else "weights.safetensors"
                got = tools.train(artifact, os.path.join(folder, "data.safetensors"), os.path.join(folder, weights),
                                    record["steps"], run, timeout=120)
                verdict = compare.compare(want, got, lambda: record["rounding"])
                self.assertTrue(verdict.same, verdict.line())
                self.assertGreater(len(verdict.errors), 0)

    def check_plain(self, model, name):
        """Exporters merge and fold parameters: a file without the export tool's record must not train otherwise than
        in PyTorch."""
        if f"{model}/{name}" == RIGHT:
            return self.check(model, name)
        folder, record, _ = self.setting(model)
        self.fail_with(REFUSED, "tessera-compile", os.path.join(folder, name), "-o", "plain.tessera", *record["flags"])
        self.assertFalse(os.path.exists(self.path("plain.tessera")))
        return None


def add_tests():
    """One test for each recorded file."""
    for model in sorted(os.listdir(RECORDED)):
        for plain, check in ((False, Recorded.check), (True, Recorded.check_plain)):
            for name in files(os.path.join(RECORDED, model), plain):
                setattr(Recorded, f"test_{model}_{name.removesuffix('.onnx')}".replace("-", "_").replace(".", "_"),
                        lambda self, check=check, model=model, name=name: check(self, model, name))


add_tests()

if __name__ == "__main__":
    unittest.main()
