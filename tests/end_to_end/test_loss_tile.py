"""A loss whose logits are computed for some rows at a time: ten steps equal PyTorch's, in less memory, from products that are made once."""

import json
import os
import sys

import numpy as np

import test_oracle
from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, INT64, Graph, value_info  # noqa: E402

TILE = ["--loss-tile", "20KiB"]  # 64 to 128 classes: 40 to 80 rows


class LossTile(test_oracle.TrainingTest):
    def test_equals_pytorch(self):
        """Heads that are tied to the embedding, and that are not; on one rank and on several."""
        self.compare("gpt", *TILE)
        self.compare("llama", *TILE, model="llama")
        self.compare("zero3", *TILE, "--mesh", "shard=2", "--strategy", "zero3", accumulate=2)
        self.compare("zero3-llama", *TILE, "--mesh", "shard=3", "--strategy", "zero3", "--remat", "full", model="llama")
        self.compare("ddp", *TILE, "--mesh", "dp=2", accumulate=3)
        self.compare("sequence", *TILE, "--mesh", "fsdp=2,seq=2", "--strategy", "zero3", "--attention", "ring", model="llama")
        self.compare("epilogues", *TILE, "--epilogues", "all")

    def test_label_smoothing_and_a_loss_of_bf16(self):
        golden = test_oracle.Golden("llama")
        for flags in (["--label-smoothing", 0.1], ["--precision", "bf16"]):
            losses = [[record["loss"] for record in self.train(golden, f"{name}{flags[0]}", *flags, *more)]
                      for name, more in (("whole", []), ("tiled", TILE))]
            # In bf16 the logits of a tile are f32, and those of the whole are rounded.
            np.testing.assert_allclose(losses[1], losses[0], rtol=2e-3 if "bf16" in flags else 2e-6)

    def test_an_evaluation(self):
        golden = test_oracle.Golden("llama")
        losses = []
        for name, more in (("whole", []), ("tiled", TILE)):
            self.succeed("tessera-compile", *golden.compile_flags(), "--evaluate", *more, "-o", name + ".tessera")
            printed = self.succeed("tessera-run", name + ".tessera", "--eval-only", "--eval-data", golden.data, "--weights", golden.weights,
                                   "--threads", 1)
            losses.append(float(printed.split("eval loss ")[1].split()[0]))
        self.assertLessEqual(abs(losses[0] - losses[1]), 2e-6 * losses[0])

    def dump(self, name, what):
        return json.loads(self.succeed("tessera-dump", name, "--" + what, "--json"))

    def test_logits_are_computed_once(self):
        """As many products as tiles times three: the logits, and the gradients of what was multiplied."""
        golden = test_oracle.Golden("llama")
        counts = []
        for name, more in (("whole", []), ("tiled", ["--loss-tile", "400KiB"])):
            self.succeed("tessera-compile", *golden.compile_flags(), *more, "-o", name + ".tessera")
            counts.append(self.succeed("tessera-dump", name + ".tessera", "--schedule").count("gemm "))
        rows, classes = golden.batch * golden.sequence, golden.load("weights")["lm_head.weight"].shape[0]
        tiles = -(-rows // (400 * 1024 // (4 * classes)))
        self.assertGreater(tiles, 1)
        self.assertEqual(counts[1] - counts[0], 3 * (tiles - 1))

    def activations(self, classes, *flags):
        """Bytes of activations at the peak: an embedding and a head, of which the logits are the largest by far."""
        graph, width = Graph(), 16
        rows = graph.op("Gather", graph.weight("embed.weight", 64, width), "tokens")
        logits = graph.op("MatMul", rows, graph.weight("head.weight", width, classes))
        graph.store(self.path("head.onnx"), [value_info("tokens", INT64, ["B", "T"])], [value_info(logits, FLOAT, ["B", "T", classes])])
        self.succeed("tessera-compile", "head.onnx", "--batch", 4, "--seq", 64, *flags, "-o", "head.tessera")
        return self.dump("head.tessera", "memory")["memory"]["classes"]["activations"]["at_peak"]

    def test_activations_do_not_grow_with_the_classes(self):
        whole = [self.activations(classes, "--loss-tile", "none") for classes in (4096, 16384)]
        tiled = [self.activations(classes, "--loss-tile", "256KiB") for classes in (4096, 16384)]
        self.assertGreater(whole[1] - whole[0], 4 * 4 * 64 * 12288 * 0.99)  # the logits are there
        self.assertLess(tiled[1], 1.1 * tiled[0])
        self.assertLess(tiled[1], 2 * 256 * 1024 + 4 * 64 * 64 * 16)

    def test_what_is_not_tiled_says_why(self):
        golden = test_oracle.Golden("llama")
        for flags, why in ((["--keep-f32", "lm_head", "--precision", "bf16"], "a type of its own"),
                           (["--mesh", "tp=2", "--place", "lm_head=0"], "placed on model axes"),
                           (["--loss-tile", "1GiB"], "fit in --loss-tile")):
            done = self.tool("tessera-compile", *golden.compile_flags(), *TILE[:0 if "--loss-tile" in flags else None], *flags, "--remarks",
                             "-o", "x.tessera")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout + done.stderr, "the logits are whole: .*" + why)
