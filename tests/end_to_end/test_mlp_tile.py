"""Hidden values of feed-forward networks for some rows at a time: ten steps equal PyTorch's, in memory that does not grow with their width."""

import json
import os
import sys

import test_oracle
from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, INT64, Graph, value_info  # noqa: E402

TILE = ["--mlp-tile", "12KiB"]


class MlpTile(test_oracle.TrainingTest):
    def test_equals_pytorch(self):
        for remat in ("none", "attention", "full"):
            self.compare("gpt-" + remat, *TILE, "--remat", remat)
        self.compare("llama", *TILE, "--remat", "full", model="llama")
        self.compare("rows", "--mlp-tile", 1, "--remat", "full", model="llama")
        self.compare("zero3", *TILE, "--remat", "full", "--mesh", "shard=2", "--strategy", "zero3", "--offload", "activations", accumulate=2)
        self.compare("sequence", *TILE, "--remat", "attention", "--mesh", "fsdp=2,seq=2", "--strategy", "zero3", "--attention", "ulysses",
                     model="llama")
        self.compare("epilogues", *TILE, "--remat", "full", "--epilogues", "all")

    def products(self, *flags):
        golden = test_oracle.Golden("llama")
        self.succeed("tessera-compile", *golden.compile_flags(), *flags, "-o", "step.tessera")
        return self.succeed("tessera-dump", "step.tessera", "--schedule").count("gemm ")

    def test_products_are_made_once_for_each_range(self):
        """Three ranges: two more of each product of the two networks. The forward pass has two (gate and up are one), the backward pass
        five: gate and up again, the gradient of what they gave, and three gradients of operands."""
        golden = test_oracle.Golden("llama")
        hidden = 4 * golden.batch * golden.sequence * 176
        whole = self.products("--remat", "full", "--mlp-tile", "none")
        tiled = self.products("--remat", "full", "--mlp-tile", hidden - 1)  # the widest value, gate and up, takes 2 * hidden
        self.assertEqual(tiled - whole, 2 * 2 * (2 + 5))

    def activations(self, hidden, *flags):
        graph, width = Graph(), 16
        rows = graph.op("Gather", graph.weight("embed.weight", 64, width), "tokens")
        for block in range(2):
            graph.scope = f"/h.{block}"
            wide = graph.op("Tanh", graph.op("MatMul", rows, graph.weight(f"h.{block}.up.weight", width, hidden)))
            rows = graph.op("Add", rows, graph.op("MatMul", wide, graph.weight(f"h.{block}.down.weight", hidden, width)))
        graph.scope = "/head"
        logits = graph.op("MatMul", rows, graph.weight("head.weight", width, 64))
        graph.store(self.path("mlp.onnx"), [value_info("tokens", INT64, ["B", "T"])], [value_info(logits, FLOAT, ["B", "T", 64])])
        self.succeed("tessera-compile", "mlp.onnx", "--batch", 1, "--seq", 256, "--remat", "full", *flags, "-o", "mlp.tessera")
        dumped = json.loads(self.succeed("tessera-dump", "mlp.tessera", "--memory", "--json"))
        return dumped["memory"]["classes"]["activations"]["at_peak"]

    def test_activations_do_not_grow_with_the_width(self):
        whole = [self.activations(hidden, "--mlp-tile", "none") for hidden in (1024, 4096)]
        tiled = [self.activations(hidden, "--mlp-tile", "64KiB") for hidden in (1024, 4096)]
        self.assertGreater(whole[1] - whole[0], 0.99 * 4 * 256 * 3072)  # a hidden value is there
        self.assertLess(tiled[1], 1.1 * tiled[0])

    def test_what_is_kept_stays_whole(self):
        golden = test_oracle.Golden("llama")
        done = self.tool("tessera-compile", *golden.compile_flags(), *TILE, "--remarks", "-o", "step.tessera")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is not computed for some rows at a time: what it makes is needed outside before it ends: it is kept for the backward "
                      "pass", done.stderr)
        bad = self.tool("tessera-compile", *golden.compile_flags(), "--mlp-tile", "some", "-o", "bad.tessera")
        self.assertEqual(bad.returncode, 2)
        self.assertIn("--mlp-tile: expected bytes (1GiB), none or auto, got 'some'", bad.stderr)


if __name__ == "__main__":
    import unittest
    unittest.main()
