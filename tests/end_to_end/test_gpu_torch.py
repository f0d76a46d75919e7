"""The PyTorch side of the benchmark of tests/gpu. Needs a Python with torch: python3, or the one that TESSERA_TORCH_PYTHON names."""

import json
import math
import os
import re
import struct
import subprocess
import sys
import unittest

from harness import ROOT, TORCH_PYTHON, ToolTest, torch_has

GPU = os.path.join(ROOT, "tests", "gpu")
sys.path[:0] = [GPU, os.path.join(ROOT, "tests", "bench")]


@unittest.skipUnless(torch_has("torch"), "no Python with torch (TESSERA_TORCH_PYTHON)")
class Torch(ToolTest):
    def train(self, system, rows=256, more=()):
        """What eleven steps of a tiny GPT-2 in bf16 print: the row as it grows, what follows it, and the code of compiled graphs."""
        command = [TORCH_PYTHON, os.path.join(GPU, "torch_step.py"), "gpt2-tiny", "--vocabulary", "256", "--batch", "2", "--seq", "16",
                   "--steps", "11", "--warmup", "1", "--system", system, "--device", "cpu", "--precision", "bf16", *(["--padded", str(rows)] if rows > 256 else []), *more]
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": self.path("inductor"), "TORCH_LOGS": "graph_code"}
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        first, row, then = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
        self.assertIn("scaled_dot_product", then["attention_gradient"])
        self.assertEqual([(len(found["seconds"]), len(found["losses"])) for found in (first, row)], [(2, 9), (3, 11)])
        self.assertEqual(row["losses"][:9], first["losses"])
        self.assertAlmostEqual(row["losses"][0], math.log(rows), delta=0.1)
        self.assertTrue(any(struct.unpack("<I", struct.pack("<f", loss))[0] & 0xffff for loss in row["losses"]), "bf16 losses")
        return row["parameters"], re.findall(r"class GraphModule\(.*?return \(", done.stderr, re.DOTALL)

    def test_losses_are_f32_and_padding_is_counted(self):
        parameters, _ = self.train("eager")
        self.assertEqual(self.train("fsdp2")[0], parameters)
        padded = self.train("eager", 320)[0]
        self.assertEqual(padded, parameters + (320 - 256) * 64)

    def test_the_loss_is_compiled_with_the_model(self):
        for more in ([], ["--graphs"]):
            _, graphs = self.train("compile", more=more)
            self.assertEqual(len(graphs), 1)
            for part in ("embedding", "scaled_dot_product_attention", "cross_entropy"):
                self.assertIn(part, graphs[0])

    def test_blocks_are_compiled_before_they_are_sharded(self):
        _, graphs = self.train("fsdp2+compile", 320)
        self.assertEqual([("scaled_dot_product_attention" in graph, "cross_entropy" in graph) for graph in graphs],
                         [(True, False), (False, True)])


if __name__ == "__main__":
    unittest.main()
