"""A step over a sequence axis equals PyTorch's under its own context_parallel, on as many ranks and in the same order of positions. Needs
a Python with torch, of a version that has it: python3, or the one that TESSERA_TORCH_PYTHON names; without one these tests are skipped."""

import os
import subprocess
import unittest

import numpy as np

from harness import TORCH_PYTHON, Golden, torch_has
from launchers import free_port
import safetensors
import test_oracle

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "context_parallel.py")
MODELS = ("gpt", "llama")


@unittest.skipUnless(torch_has("torch.distributed.tensor.experimental._context_parallel._attention"),
                     "no Python with torch and its context_parallel (TESSERA_TORCH_PYTHON)")
class ContextParallel(test_oracle.TrainingTest):
    def torch_steps(self, ranks):
        """PyTorch's results by model, order and rotation."""
        folder = self.path(f"torch-{ranks}")
        os.makedirs(folder)
        done = subprocess.run([TORCH_PYTHON, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks), "--master-port", str(free_port()),
                               SCRIPT, folder, *MODELS], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout)
        results = {}
        for file in os.listdir(folder):
            with np.load(os.path.join(folder, file)) as arrays:
                results[tuple(file[:-len(".npz")].split("-"))] = dict(arrays)
        self.assertEqual(len(results), 2 * 2 * len(MODELS))
        return results

    def step(self, golden, name, *flags):
        self.succeed("tessera-compile", *golden.compile_flags(), *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--order", "sequential", "--steps", 1, "--weights",
                     golden.weights, "--out", name, "--threads", 1, "--dump=gradients", "--dump-step", 1)
        return self.metrics(name)[0]["loss"], safetensors.load(self.path(name, "dump-1", "gradients.safetensors"))

    def compare(self, ranks):
        theirs = self.torch_steps(ranks)
        for model in MODELS:
            for order in ("zigzag", "contiguous"):
                for attention in ("ring", "allgather"):
                    name = f"{model}-{order}-{attention}"
                    loss, gradients = self.step(Golden(model), name, "--mesh", f"seq={ranks}", "--attention", attention,
                                                "--sequence-order", order)
                    for rotation in ("allgather", "alltoall"):
                        with self.subTest(name, rotation=rotation, ranks=ranks):
                            want = dict(theirs[model, order, rotation])
                            self.assertLessEqual(abs(loss - want.pop("loss")) / loss, test_oracle.LOSS_TOLERANCE)
                            self.assertEqual(sorted(gradients), sorted(want))
                            for parameter, value in want.items():
                                self.assertLessEqual(test_oracle.error(gradients[parameter], value), test_oracle.GRADIENT_TOLERANCE,
                                                     parameter)

    def test_two_ranks(self):
        self.compare(2)

    def test_four_ranks(self):
        self.compare(4)


if __name__ == "__main__":
    unittest.main()
