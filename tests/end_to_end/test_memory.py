"""Recomputation and offload: the planned bytes fall as they should, and nothing else changes, bit for bit."""

import json
import os
import subprocess
import sys

import numpy as np

from harness import ROOT, Golden, ToolTest
import safetensors

BATCH, SEQ, WIDTH = 8, 256, 64  # of the tiny model


class Plans(ToolTest):
    """Arena sizes of a Llama-style model of 4 and of 8 layers: what a layer adds is what it keeps."""

    def compile(self, layers, *flags):
        model = f"tiny{layers}.onnx"
        if not os.path.exists(self.path(model)):
            subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/shape_model.py"), "tiny", "--layers",
                            str(layers), "--batch", str(BATCH), "--seq", str(SEQ), "-o", self.path(model)], check=True)
        self.succeed("tessera-compile", model, "-o", "tiny.tessera", *flags)
        memory = json.loads(self.succeed("tessera-dump", "tiny.tessera", "--memory", "--json"))["memory"]
        return {arena["name"]: arena["bytes"] for arena in memory["arenas"]}, memory

    def per_layer(self, *flags):
        small, _ = self.compile(4, *flags)
        large, _ = self.compile(8, *flags)
        return {name: (size - small[name]) / 4 for name, size in large.items()}

    def kept_by_a_block(self, policy):
        report = policy.split("=")[0] + ".json"
        self.compile(4, "--remat", policy, "--remat-report", report)
        with open(self.path(report)) as file:
            segments = json.load(file)["segments"]
        return next(segment["saved_bytes"] for segment in segments if segment["name"] == "model.layers.1")

    def test_a_block_keeps_what_the_report_says(self):
        unchanged = self.per_layer()["activations"]
        for policy in ("full", "selective"):
            with self.subTest(policy):
                kept = self.kept_by_a_block(policy)
                planned = self.per_layer("--remat", policy)["activations"]
                self.assertLessEqual(abs(planned - kept), 0.02 * kept, f"{planned} planned, {kept} expected")
                self.assertLess(planned, 0.9 * unchanged)
        self.assertEqual(self.kept_by_a_block("full"), BATCH * SEQ * WIDTH * 4)

    def test_budgets_are_met_and_monotonic(self):
        self.compile(4, "--remat", "full", "--remat-report", "full.json")
        with open(self.path("full.json")) as file:
            report = json.load(file)
        front = report["front"]
        self.assertGreater(len(front), 8)
        for before, after in zip(front, front[1:]):
            self.assertLess(after["saved_bytes"], before["saved_bytes"])
            self.assertGreater(after["recomputed_flops"], before["recomputed_flops"])
        self.assertEqual(front[-1]["saved_bytes"], report["policies"]["full"]["saved_bytes"])
        previous = float("inf")
        for point in front[:: max(1, len(front) // 4)]:
            budget = point["saved_bytes"]
            arenas, _ = self.compile(4, "--remat", f"budget={budget}", "--remat-report", "budget.json")
            with open(self.path("budget.json")) as file:
                chosen = json.load(file)["chosen"]
            self.assertLessEqual(chosen["saved_bytes"], budget)
            self.assertLessEqual(chosen["recomputed_flops"], point["recomputed_flops"])
            self.assertLessEqual(arenas["activations"], 1.02 * previous)
            previous = arenas["activations"]
        least = front[-1]["saved_bytes"]
        self.fail_with(f"at least {least} bytes", "tessera-compile", "tiny4.onnx", "-o", "no.tessera", "--remat",
                       f"budget={least - 1}")
        self.assertFalse(os.path.exists(self.path("no.tessera")))

    def test_offloaded_classes_leave_the_device(self):
        for name in ("optimizer", "parameters"):
            with self.subTest(name):
                before, memory = self.compile(4)
                moved = sum(slot["bytes"] for slot in memory["slots"] if slot["class"] == name)
                after, _ = self.compile(4, "--offload", name)
                self.assertGreater(moved, 0)
                self.assertLessEqual(abs(before["state"] - moved - after["state"]), 64 * 64)
                self.assertLessEqual(abs(after["host"] - moved), 64 * 64)

    def test_offloaded_activations_do_not_add_up(self):
        kept = self.kept_by_a_block("selective")
        layer = self.per_layer("--remat", "selective", "--offload", "activations")
        self.assertLessEqual(abs(layer["host"] - kept), 0.05 * kept)
        self.assertLessEqual(layer["activations"], 0.5 * kept)

    def test_bad_flags(self):
        for flags, message in ((("--remat", "most"), "--remat: unknown value 'most'"),
                               (("--remat", "budget=few"), "--remat: expected budget=<bytes>"),
                               (("--offload", "inputs"), "--offload: unknown value 'inputs'")):
            self.fail_with(message, "tessera-compile", "tiny.onnx", "-o", "no.tessera", *flags)


class Values(ToolTest):
    """Losses and parameters after some steps do not depend on what is recomputed or where it lies."""

    def variants(self, *mesh):
        """The budget is one in the middle of the front."""
        self.succeed("tessera-compile", *self.compile_flags(1), *mesh, "--compile-to", "differentiate", "--remat-report",
                     "front.json")
        with open(self.path("front.json")) as file:
            front = json.load(file)["front"]
        return (("--remat", "full"), ("--remat", "selective"), ("--remat", f"budget={front[len(front) // 2]['saved_bytes']}"),
                ("--offload", "optimizer,parameters,activations"),
                ("--remat", "full", "--offload", "activations,parameters"))

    def compile_flags(self, accumulate):
        flags = Golden("gpt").compile_flags()
        flags[flags.index("--batch") + 1] = 2
        flags[flags.index("--accumulate") + 1] = accumulate
        return flags

    def train(self, name, accumulate, *flags):
        golden = Golden("gpt")
        self.succeed("tessera-compile", *self.compile_flags(accumulate), *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--steps", 3, "--out", name, "--threads", 1)
        losses = [record["loss"] for record in self.metrics(name)]
        return losses, safetensors.load(self.path(name, "model.safetensors"))

    def check(self, *mesh):
        for accumulate in (1, 3):
            losses, parameters = self.train("plain", accumulate, *mesh)
            for index, variant in enumerate(self.variants(*mesh)):
                with self.subTest(f"{' '.join(variant)}, accumulate {accumulate}"):
                    got, found = self.train(f"variant{accumulate}{index}", accumulate, *mesh, *variant)
                    self.assertEqual(got, losses)
                    for name, value in parameters.items():
                        self.assertTrue(np.array_equal(value.view(np.uint32), found[name].view(np.uint32)), name)

    def test_one_rank(self):
        self.check()

    def test_ddp(self):
        self.check("--mesh", "shard=2", "--strategy", "ddp")

    def test_zero3(self):
        self.check("--mesh", "shard=2", "--strategy", "zero3")


if __name__ == "__main__":
    import unittest
    unittest.main()
