"""Models on arrays equal PyTorch's: a CNN with BatchNorm and cross-entropy, an MLP with mse; SGD with momentum, on 1 to 3 ranks."""

import json
import os

from harness import GOLDENS, MODELS, ToolTest, safetensors

import numpy as np


class Arrays(ToolTest):
    def compare(self, name, loss):
        folder = os.path.join(GOLDENS, name)
        with open(os.path.join(folder, "golden.json")) as file:
            golden = json.load(file)
        for ranks, strategy in ((1, "ddp"), (2, "ddp"), (2, "zero3"), (3, "zero3")):
            with self.subTest(ranks=ranks, strategy=strategy):
                out = f"{strategy}-{ranks}"
                self.succeed("tessera-compile", os.path.join(MODELS, golden["model"]), "--batch", golden["batch"], "--loss",
                             loss, "--optimizer", "sgd", "--lr", golden["lr"], "--momentum", golden["momentum"],
                             "--weight-decay", 0, "--mesh", f"shard={ranks}", "--strategy", strategy, "-o", out + ".tessera")
                self.succeed("tessera-run", out + ".tessera", "--data", os.path.join(folder, "data.safetensors"), "--order",
                             "sequential", "--steps", len(golden["losses"]), "--threads", 1, "--weights",
                             os.path.join(folder, "weights.safetensors"), "--out", out)
                got = [record["loss"] for record in self.metrics(out)]
                self.assertEqual(len(got), len(golden["losses"]))
                for step, (value, want) in enumerate(zip(got, golden["losses"]), 1):
                    self.assertLessEqual(abs(value - want) / want, 2e-5, f"loss of step {step}: {value} and {want}")

    def test_arrays_without_an_input_are_named(self):
        folder = os.path.join(GOLDENS, "mlp")
        arrays = safetensors.load(os.path.join(folder, "data.safetensors"))
        safetensors.save(arrays | {"weight": np.ones(len(arrays["targets"]), np.float32)}, self.path("more.safetensors"))
        self.succeed("tessera-compile", os.path.join(MODELS, "mlp.dynamo18.onnx"), "--batch", 4, "--loss", "mse", "-o", "mlp.tessera")
        done = self.tool("tessera-run", "mlp.tessera", "--data", "more.safetensors", "--steps", 1, "--weights", "fresh", "--out", "run")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("data 'more.safetensors': the model has no input for 'weight'", done.stdout + done.stderr)

    def test_cnn_with_cross_entropy(self):
        self.compare("cnn", "cross-entropy")

    def test_mlp_with_mse(self):
        self.compare("mlp", "mse")

    def test_dumps_name_gradients_that_are_never_in_memory(self):
        with open(self.path("scale.onnxtxt"), "w") as file:
            file.write('<ir_version: 8, opset_import: ["" : 17]>\nscale (float[B,16] x) => (float[B,4] y)\n'
                       f"<float[16,4] w = {{{', '.join(['1'] * 64)}}}>\n{{\n  t = Tanh (w)\n  y = MatMul (x, t)\n}}\n")
        safetensors.save({"w": np.ones((16, 4), np.float32)}, self.path("w.safetensors"))
        for out, flags in ("run", []), ("kept", ["--keep-gradients"]):
            self.succeed("tessera-compile", "scale.onnxtxt", "--parameters", ".", "--batch", 1, "--loss", "mse", "--optimizer",
                         "sgd", "--lr", 1, "--weight-decay", 0, "--guard-updates", "off", *flags, "-o", "scale.tessera")
            done = self.tool("tessera-run", "scale.tessera", "--data", os.path.join(GOLDENS, "mlp", "data.safetensors"), "--steps", 1,
                             "--weights", "w.safetensors", "--dump", "gradients,parameters", "--out", out)
            self.assertEqual(done.returncode, 0, done.stderr)
            gradients = safetensors.load(self.path(out, "dump-1", "gradients.safetensors"))
            if flags:
                self.assertNotIn("never in memory", done.stderr)
                moved = 1 - safetensors.load(self.path(out, "dump-1", "parameters.safetensors"))["w"]
                self.assertGreater(np.abs(moved).max(), 1e-3)
                np.testing.assert_allclose(gradients["w"], moved, rtol=1e-4, atol=1e-6)
            else:
                self.assertRegex(done.stderr, r"gradients of 'w' are never in memory and not written.*--keep-gradients")
                self.assertEqual(sorted(gradients), [])
