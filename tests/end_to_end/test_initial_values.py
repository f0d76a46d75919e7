"""A run begins with the values that the model file has, as PyTorch does; what stands in their place is asked for or said."""

import json
import os
import re
import shutil
import unittest
import zipfile

import numpy as np
from harness import GOLDENS, ROOT, ToolTest, safetensors

PROGRAMS = os.path.join(ROOT, "tests", "pt2", "programs")
MLP = os.path.join(PROGRAMS, "mlp.pt2")
BUFFERS = os.path.join(GOLDENS, "buffers")


def values_of(program, folder):
    """The float32 weights in an archive of torch.export.save, by name."""
    with zipfile.ZipFile(program) as archive:
        table = json.loads(archive.read(f"{folder}/data/weights/model_weights_config.json"))["config"]
        return {name: np.frombuffer(archive.read(f"{folder}/data/weights/{entry['path_name']}"), np.float32).reshape(
            [size["as_int"] for size in entry["tensor_meta"]["sizes"]]) for name, entry in table.items()}


class InitialValues(ToolTest):
    begins_by_rule = False

    def setUp(self):
        super().setUp()
        os.makedirs(self.path("models"))
        shutil.copy(MLP, self.path("models", "net.pt2"))
        random = np.random.default_rng(0)
        safetensors.save({"x": random.normal(size=(4, 3)).astype(np.float32),
                          "label": random.integers(0, 2, 4)}, self.path("data.safetensors"))

    def compile(self, *flags, model="models/net.pt2", out="net.tessera"):
        done = self.tool("tessera-compile", model, "-o", out, "--optimizer", "sgd", "--lr", 0, "--warmup", 0,
                         *(flags if "--loss" in flags else ("--loss", "output:output0", *flags)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def train(self, *flags, artifact="net.tessera", out="run"):
        """(what the run says of its initial values, the weights of a step that changes none)."""
        shutil.rmtree(self.path(out), ignore_errors=True)
        printed = self.succeed("tessera-run", artifact, "--data", "data.safetensors", "--steps", 1, "--threads", 1, "--out",
                               out, *flags)
        said = re.search(r"^initial values: (.*)$", printed, re.MULTILINE)
        with open(self.path(out, "run.json")) as file:
            self.assertEqual(json.load(file)["initial_values"], said[1])
        return said[1], safetensors.load(self.path(out, "model.safetensors"))

    def assert_values(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for name, value in want.items():
            np.testing.assert_array_equal(got[name], value, name)

    def test_of_the_model_file(self):
        want = values_of(MLP, "mlp")
        for flags in ([], ["--mesh", "shard=2", "--strategy", "zero3"]):
            self.compile(*flags)
            said, got = self.train()
            self.assertEqual(said, "3 tensors of 'models/net.pt2'")
            self.assert_values(got, want)
        # From another folder, and after both have moved.
        os.makedirs(self.path("moved"))
        for name in ("net.tessera", "models"):
            os.rename(self.path(name), self.path("moved", name))
        said, got = self.train(artifact="moved/net.tessera")
        self.assertEqual(said, "3 tensors of 'moved/models/net.pt2'")
        self.assert_values(got, want)
        said, _ = self.train("--weights", "fresh", artifact="moved/net.tessera")
        self.assertEqual(said, "by rule (seed 0): normal(0, 0.02) for 2 (up.weight, …), 0 for 1 (up.bias)")

    def test_of_a_phase_that_was_dumped(self):
        """IR of the import knows its model file."""
        self.compile("--dump-phases", "phases")
        self.compile(model="phases/1-import.mlir")
        said, got = self.train()
        self.assertEqual(said, "3 tensors of 'models/net.pt2'")
        self.assert_values(got, values_of(MLP, "mlp"))

    def test_gone_or_changed(self):
        self.compile()
        run = ("tessera-run", "net.tessera", "--data", "data.safetensors", "--steps", 1, "--out", "bad")
        os.rename(self.path("models", "net.pt2"), self.path("elsewhere.pt2"))
        self.fail_with(r"begins with the values of 'models/net\.pt2', which is gone \(looked for .*--weights fresh", *run)
        self.assertFalse(os.path.exists(self.path("bad")))
        self.assert_values(self.train("--weights", "elsewhere.pt2")[1], values_of(MLP, "mlp"))
        self.assertEqual(self.train("--model-file", "elsewhere.pt2")[0], "3 tensors of 'elsewhere.pt2'")
        self.fail_with(r"which is gone \(looked for 'nowhere\.pt2'\)", *run, "--model-file", "nowhere.pt2")
        with open(self.path("models", "net.pt2"), "w") as file:
            file.write("something else")
        self.fail_with(r"but .*models/net\.pt2'.*; --weights FILE names", *run)
        shutil.copy(MLP, self.path("net.pt2"))  # beside the artifact
        self.assertEqual(self.train()[0], "3 tensors of 'net.pt2'")
        os.remove(self.path("net.pt2"))
        shutil.copy(os.path.join(PROGRAMS, "even.pt2"), self.path("models", "net.pt2"))
        self.fail_with(r"the values in 'models/net\.pt2' have changed since it was compiled", *run)

    def test_rules(self):
        """--init counts more than the file, --weights of another file more than both."""
        self.compile("--init", "down=constant:3")
        want = values_of(MLP, "mlp")
        want["down.weight"] = np.full_like(want["down.weight"], 3)
        said, got = self.train()
        self.assertEqual(said, "2 tensors of 'models/net.pt2'; by rule (seed 0): 3 for 1 (down.weight)")
        self.assert_values(got, want)
        other = {name: value + 1 for name, value in want.items()}
        safetensors.save(other, self.path("other.safetensors"))
        self.assert_values(self.train("--weights", "other.safetensors")[1], other)

    def test_program_without_values(self):
        self.compile(model=os.path.join(PROGRAMS, "fake.pt2"))
        said, got = self.train()
        self.assertEqual(said, "by rule (seed 0): normal(0, 0.02) for 2 (up.weight, …), 0 for 1 (up.bias)")
        self.assert_values(got, self.train("--weights", "fresh")[1])
        self.assertIn("by rule: the model file has none", self.succeed("tessera-dump", "net.tessera"))

    def test_adapters(self):
        """Beside random matrices they are trained only if somebody wants that."""
        lora = ("--lora", "rank=1,alpha=1,targets=up.weight")
        self.compile(*lora)
        said, _ = self.train("--export-lora", "merged")
        self.assertRegex(said, r"^3 tensors of 'models/net\.pt2'; by rule \(seed 0\): uniform for 1 \(.*lora_A.*0 for 1")
        self.compile(*lora, model=os.path.join(PROGRAMS, "fake.pt2"))
        self.fail_with("trains adapters beside 'up.weight', of which the model file has no values; --weights FILE", "tessera-run", "net.tessera",
                       "--data", "data.safetensors", "--steps", 1, "--out", "bad")
        self.train("--weights", "fresh", "--export-lora", "merged")

    def test_external_data_that_is_missing(self):
        """An ONNX file names its values in another file: where that is lost, it is no file without values."""
        model = os.path.join(ROOT, "tests", "onnx", "models", "mlp.dynamo18.onnx")
        said = self.compile("--batch", 8, "--loss", "mse", model=model)
        self.assertRegex(said, "warning: .*: initial values: .* cannot be read: external data of .*; a run needs --weights")
        self.fail_with("which could not be read again when it was compiled; --weights FILE names", "tessera-run", "net.tessera",
                       "--data", os.path.join(GOLDENS, "mlp", "data.safetensors"), "--steps", 1, "--out", "bad")

    def test_evaluation(self):
        """What a model is worth before it is trained."""
        self.compile("--evaluate")
        evaluate = ("tessera-run", "net.tessera", "--eval-only", "--eval-data", "data.safetensors", "--threads", 1)
        printed = self.succeed("tessera-run", "net.tessera", "--data", "data.safetensors", "--steps", 1, "--threads", 1,
                               "--out", "run", "--eval-data", "data.safetensors")
        loss = re.search(r"eval loss (\S+)", printed)[1]
        self.assertIn(f"eval loss {loss}", self.succeed(*evaluate))
        self.assertNotIn(f"eval loss {loss}", self.succeed(*evaluate, "--weights", "fresh"))
        self.compile("--evaluate", model=os.path.join(PROGRAMS, "fake.pt2"))
        self.fail_with("--eval-only needs --resume or --weights: the model file .* has no values", *evaluate)

    def test_buffers(self):
        """Statistics go on from the program's, too."""
        program = os.path.join(BUFFERS, "program.pt2")
        self.compile("--batch", 4, "--loss", "cross-entropy", model=program)
        outs = {}
        for name, flags in {"default": (), "named": ("--weights", program)}.items():
            self.succeed("tessera-run", "net.tessera", "--data", os.path.join(BUFFERS, "data.safetensors"), "--steps", 2,
                         "--threads", 1, "--out", name, *flags)
            outs[name] = safetensors.load(self.path(name, "model.safetensors"))
        self.assert_values(outs["default"], outs["named"])


if __name__ == "__main__":
    unittest.main()
