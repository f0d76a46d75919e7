"""torchrun and accelerate launch start the ranks of a run: the same losses as threads. Needs a Python with torch, and with accelerate:
python3, or the one that TESSERA_TORCH_PYTHON names; without one these tests are skipped."""

import os
import subprocess
import unittest

from harness import TORCH_PYTHON, Golden, ToolTest, run_command, torch_has
from launchers import free_port


class LaunchersOfPyTorch(ToolTest):
    def setUp(self):
        super().setUp()
        golden = Golden("llama")
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "shard=2", "--strategy", "zero3", "-o", "a.tessera")
        self.flags = ["a.tessera", "--data", golden.data, "--threads", 1, "--steps", 3]
        self.succeed("tessera-run", *self.flags, "--out", "threads")

    def start(self, *launcher):
        """The launcher starts two processes, whose steps have the losses of two threads."""
        port = free_port()
        done = subprocess.run([TORCH_PYTHON, "-m", *(word.replace("PORT", str(port)) for word in launcher),
                               *run_command(*self.flags, "--out", "processes")],
                              cwd=self.folder, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 ranks in as many processes", done.stdout)
        losses = [[record["loss"] for record in self.metrics(run)] for run in ("threads", "processes")]
        self.assertEqual(len(losses[0]), 3)
        self.assertEqual(*losses)

    @unittest.skipUnless(torch_has("torch"), "no Python with torch (TESSERA_TORCH_PYTHON)")
    def test_torchrun(self):
        self.start("torch.distributed.run", "--no-python", "--nproc-per-node", "2", "--master-port", "PORT")

    @unittest.skipUnless(torch_has("torch", "accelerate"), "no Python with accelerate (TESSERA_TORCH_PYTHON)")
    def test_accelerate_launch(self):
        self.start("accelerate.commands.launch", "--multi_gpu", "--no_python", "--num_processes", "2", "--main_process_port", "PORT")


if __name__ == "__main__":
    unittest.main()
