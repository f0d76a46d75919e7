"""What the compiler makes grows with the number of layers, not with its square, and not with the number of ranks."""

import json
import os
import re
import subprocess
import sys

from harness import ROOT, ToolTest

PHASES = ("import", "differentiate", "optimize", "shard", "schedule", "lower")


class Scale(ToolTest):
    def model(self, name, *flags):
        path = self.path(f"{name}{'-'.join(flags)}.onnx".replace("--", ""))
        subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/shape_model.py"), name, *flags, "-o", path], check=True)
        return path

    def operations(self, model, phase, *flags):
        """Ops of a phase's IR; of the lowered one, where each layer shares its kernels with the others, without those."""
        text = self.succeed("tessera-compile", model, "--compile-to", phase, *flags)
        text = text.split("module @kernels")[0]
        return len(re.findall(r"^\s+(?:%[^=]*= )?\"?(?:train|dist|exec)\.", text, re.M))

    def check_layers(self, *flags):
        models = [self.model("tiny", "--layers", str(layers), "--batch", "2", "--seq", "64") for layers in (4, 8, 16)]
        for phase in PHASES:
            with self.subTest(phase):
                small, middle, large = (self.operations(model, phase, *flags) for model in models)
                self.assertGreater(small, 100)
                self.assertLessEqual(abs((large - middle) - 2 * (middle - small)), 0.05 * (large - middle))

    def test_layers(self):
        self.check_layers("--mesh", "shard=2", "--strategy", "zero3")

    def test_layers_with_recomputation_and_offload(self):
        self.check_layers("--mesh", "shard=2", "--strategy", "zero3", "--remat", "selective", "--offload",
                          "optimizer,parameters,activations")

    def test_kernels_do_not_grow_with_layers(self):
        for target in ("cpu", "sm_90"):
            counts = set()
            for layers in ("4", "8", "16"):
                model = self.model("tiny", "--layers", layers, "--batch", "2", "--seq", "64")
                self.succeed("tessera-compile", model, "--target", target, "-o", "tiny.tessera")
                counts.add(json.loads(self.succeed("tessera-dump", "tiny.tessera", "--json"))["summary"]["kernels"])
            self.assertLessEqual(max(counts) - min(counts), 2, counts)

    def test_rotary_tables_are_held_once(self):
        """All layers share the tables of positions, and of these the half that the other repeats."""
        model = self.model("qwen2-1.5b", "--layers", "3", "--batch", "1", "--seq", "512")
        text = self.succeed("tessera-compile", model, "--compile-to", "lower")
        tables = set(re.findall(r'train.constant dense<"0x([0-9A-F]*)"> : tensor<(\w+)>', text))
        self.assertEqual(sorted(shape for _, shape in tables), ["512x64xf32", "512x64xf32"])

    def test_ranks(self):
        """With the same samples per rank the lowered program is the same, but for what follows from the sizes of shards.

        A unit that does not divide is padded with one fill, and units whose shards have the same size share constants and
        the kernel of their norm. Both are bounded by the number of units, whatever the number of ranks.
        """
        units = 6  # embed, four layers, head
        counts = []
        for ranks in (8, 64, 512, 4096):
            model = self.model("tiny", "--layers", "4", "--batch", str(2 * ranks), "--seq", "64")
            counts.append(self.operations(model, "lower", "--strategy", "zero3", "--mesh", f"shard={ranks}"))
        self.assertEqual(counts[1], counts[2], counts)  # the same units are padded, and the same ones differ in size
        self.assertLessEqual(max(counts) - min(counts), 2 * units, counts)

    def test_weights_are_never_read(self):
        """An 8-billion-parameter model compiles from a file of a megabyte, in memory of a few hundred."""
        model = self.model("llama-3.1-8b", "--batch", "8", "--seq", "256")
        self.assertLess(os.path.getsize(model), 4 << 20)
        self.succeed("tessera-compile", model, "-o", "llama.tessera", "--mesh", "shard=8", "--strategy", "zero3")
        self.assertLess(os.path.getsize(self.path("llama.tessera")), 8 << 20)


if __name__ == "__main__":
    import unittest
    unittest.main()
