"""What the compiler makes grows with the number of layers, not with its square, and not with the number of ranks."""

import json
import os
import re
import resource
import subprocess
import sys

import numpy as np

from harness import ROOT, ToolTest, safetensors

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

    def report(self, model, *flags):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        self.succeed("tessera-compile", model, *flags, "--report=report.json")
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 30, "seconds of a processor")
        with open(self.path("report.json")) as file:
            return json.load(file)

    def test_sizes_of_the_whole_model_have_no_limit(self):
        """Scores of all ranks, or of a long sequence, are shapes: nobody stores them."""
        def flops(batch, seq):  # 6 per parameter and token, and 12 · layers · width · seq per token, half of it causal
            body, head = 2 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336), 4096 * 128256
            return batch * seq * (6 * (body + head) + 6 * 2 * 4096 * seq)

        wanted = {}
        for batch, seq, mesh in ((1, 8192, "shard=1"), (8192, 8192, "shard=8192"), (65536, 8192, "shard=65536"),
                                 (1, 1 << 20, "shard=1"), (1, 4 << 20, "shard=1"), (64, 4 << 20, "shard=64")):
            with self.subTest(batch=batch, seq=seq):
                model = self.model("llama-3.1-8b", "--layers", "2", "--batch", str(batch), "--seq", str(seq))
                self.assertLess(os.path.getsize(model), 1 << 20)
                report = self.report(model, "--mesh", mesh, "--strategy", "zero3", "--target", "h100x8", "--precision", "bf16")
                self.assertEqual(report["tokens_per_step"], batch * seq)
                self.assertAlmostEqual(report["model_flops_per_step"] / flops(batch, seq), 1, delta=1e-3)
                memory = report["memory"]
                self.assertGreater(memory["reserved_per_rank"], 0)
                # Activations grow with the tokens of a rank, not with their square.
                wanted.setdefault("bytes", memory["at_peak_by_class"]["activations"] / seq)
                self.assertLess(memory["at_peak_by_class"]["activations"] / seq, 2 * wanted["bytes"])

    def test_long_running_sums(self):
        """Positions that are counted from a mask: in blocks, with work that grows with the length."""
        with open(self.path("positions.onnxtxt"), "w") as file:
            file.write("""<ir_version: 8, opset_import: ["" : 17]>
positions (int64[B,T] mask, float[B,T] x) => (float loss)
<float[1] w = {1.0}, int64 axis = {1}>
{
  p = CumSum (mask, axis)
  f = Cast <to = 1> (p)
  y = Mul (x, w)
  c = CumSum <reverse = 1> (y, axis)
  z = Mul (f, c)
  loss = ReduceMean <keepdims = 0> (z)
}
""")
        report = self.report("positions.onnxtxt", "--parameters", ".", "--batch", 1, "--seq", 4 << 20, "--loss", "output:loss")
        self.assertLess(report["memory"]["reserved_per_rank"], 1 << 30)
        length = 20000  # neither one block nor whole blocks
        random = np.random.default_rng(3)
        mask, x = random.integers(0, 2, (2, length)), random.standard_normal((2, length), np.float32)
        safetensors.save({"mask": mask, "x": x}, self.path("data.safetensors"))
        self.succeed("tessera-compile", "positions.onnxtxt", "--parameters", ".", "--batch", 2, "--seq", length, "--loss", "output:loss", "--init",
                     "w=constant:1", "-o", "positions.tessera")
        self.succeed("tessera-run", "positions.tessera", "--data", "data.safetensors", "--steps", 1, "--out", "run")
        want = (mask.cumsum(1) * x[:, ::-1].astype(np.float64).cumsum(1)[:, ::-1]).mean()
        self.assertLess(abs(self.metrics("run")[0]["loss"] / want - 1), 1e-5)

    def test_what_a_rank_stores_has_a_limit(self):
        """An attention that is not recognised stores its scores."""
        text = """<ir_version: 8, opset_import: ["" : 17]>
scores (float[B,T,64] x) => (float loss)
<float[64,64] w = {%s}>
{
  q = MatMul (x, w)
  t = Transpose <perm = [0, 2, 1]> (x)
  s = MatMul (q, t)
  e = Sin (s)
  f = MatMul (e, x)
  loss = ReduceMean <keepdims = 0> (f)
}
""" % ", ".join(["0"] * 4096)
        with open(self.path("scores.onnxtxt"), "w") as file:
            file.write(text)
        seq = 1 << 20
        memory = self.report("scores.onnxtxt", "--parameters", ".", "--batch", 1, "--seq", seq, "--loss", "output:loss")["memory"]
        self.assertGreater(memory["reserved_per_rank"], 4 * seq * seq)
        self.assertLess(memory["reserved_per_rank"], 16 * seq * seq)
        for batch, seq, message in ((1 << 20, 1 << 17, r"more than 2\^56 bytes together, too many to plan"),
                                    (1 << 30, 1 << 20, "result of shape .* is too large"),
                                    (1 << 40, 1 << 40, "input 'x' of shape .* is too large"),
                                    (1, (1 << 63) - 1, "input 'x' of shape .* is too large")):
            with self.subTest(batch=batch, seq=seq):
                self.fail_with(message, "tessera-compile", "scores.onnxtxt", "--parameters", ".", "--batch", batch, "--seq", seq, "--loss", "output:loss",
                               "--report", "-o", "scores.tessera")
                self.assertFalse(os.path.exists(self.path("scores.tessera")))

    def test_weights_are_never_read(self):
        """An 8-billion-parameter model compiles from a file of a megabyte, in memory of a few hundred."""
        model = self.model("llama-3.1-8b", "--batch", "8", "--seq", "256")
        self.assertLess(os.path.getsize(model), 4 << 20)
        self.succeed("tessera-compile", model, "-o", "llama.tessera", "--mesh", "shard=8", "--strategy", "zero3")
        self.assertLess(os.path.getsize(self.path("llama.tessera")), 8 << 20)


if __name__ == "__main__":
    import unittest
    unittest.main()
