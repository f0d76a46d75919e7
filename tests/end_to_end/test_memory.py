"""Recomputation and offload: the planned bytes fall as they should, and the training stays what it was.

What docs/memory.md says is equal to the bit is compared to the bit; the rest, whose kernels are grouped differently, to
1e-6.
"""

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
        sizes = {arena["name"]: arena["bytes"] for arena in memory["arenas"]}
        sizes["live"] = memory["peak"] - sizes["state"]  # without the gaps between slots
        return sizes, memory

    def per_layer(self, *flags):
        small, _ = self.compile(4, *flags)
        large, _ = self.compile(8, *flags)
        return {name: (size - small[name]) / 4 for name, size in large.items()}

    def kept_by_a_block(self, policy, *flags):
        report = policy.split("=")[0] + ".json"
        self.compile(4, "--remat", policy, "--remat-report", report, *flags)
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

    def test_a_block_keeps_half_in_bf16(self):
        for policy in ("full", "selective"):
            with self.subTest(policy):
                kept = self.kept_by_a_block(policy, "--precision", "bf16")
                layer = self.per_layer("--remat", policy, "--precision", "bf16")
                planned = layer["live"]
                self.assertLessEqual(abs(planned - kept), 0.02 * kept, f"{planned} planned, {kept} expected")
                _, memory = self.compile(8, "--remat", policy, "--precision", "bf16")
                self.assertLessEqual(memory["reserved"], 1.02 * memory["peak"])
                wide = self.per_layer("--remat", policy)["state"]  # parameters and two moments in f32
                self.assertAlmostEqual(layer["state"] / wide, 14 / 12, delta=0.01, msg="a bf16 copy of the parameters besides")
        self.assertEqual(self.kept_by_a_block("full", "--precision", "bf16"), BATCH * SEQ * WIDTH * 2)

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

    def test_the_choice_is_a_table_and_a_plot(self):
        self.compile(4, "--remat", "full", "--remat-report", "full.json")
        with open(self.path("full.json")) as file:
            front = json.load(file)["front"]
        budget = f"budget={front[len(front) // 2]['saved_bytes']}"
        done = self.tool("tessera-compile", "tiny4.onnx", "-o", "budget.tessera", "--remat", budget)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {line.split()[0]: line.split()[1:] for line in done.stderr.splitlines() if line.strip()}
        self.assertEqual([name for name in rows if name.startswith("model.layers.")],
                         [f"model.layers.{layer}" for layer in range(4)])
        kept = [int(row[0]) for name, row in rows.items() if name.startswith(("model.layers.", "(outside)"))]
        self.assertEqual(sum(kept), int(rows["total"][0]))
        self.assertLessEqual(sum(kept), int(budget.split("=")[1]))
        self.compile(4, "--remat", budget, "--remat-report", "budget.json")
        plot = [sys.executable, os.path.join(ROOT, "tools", "plot-remat.py")]
        done = subprocess.run([*plot, self.path("budget.json"), "-o", self.path("remat.png")], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if "matplotlib is missing" in done.stdout:
            self.skipTest("matplotlib is not installed")
        self.assertEqual(done.returncode, 0, done.stdout)
        with open(self.path("remat.png"), "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        done = subprocess.run([*plot, self.path("tiny4.onnx")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not a report of --remat-report", done.stdout)

    def test_offloaded_classes_leave_the_device(self):
        for name in ("optimizer", "parameters"):
            with self.subTest(name):
                before, memory = self.compile(4)
                moved = sum(slot["bytes"] for slot in memory["slots"] if slot["class"] == name)
                after, _ = self.compile(4, "--offload", name)
                self.assertGreater(moved, 0)
                self.assertLessEqual(abs(before["state"] - moved - after["state"]), 64 * 64)
                self.assertLessEqual(abs(after["host"] - moved), 64 * 64)

    def test_some_heads_at_a_time_need_less(self):
        """One of two query heads of each key head; a third of the model's width is keys and values, which stay whole."""
        model = "long.onnx"
        subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/shape_model.py"), "tiny", "--layers", "2", "--batch", "1",
                        "--seq", "32768", "-o", self.path(model)], check=True)
        for policy, most in (("attention", 0.95), ("full", 0.87)):
            reserved = {}
            for attention in ("ulysses", "ulysses:chunk=2"):
                self.succeed("tessera-compile", model, "-o", "long.tessera", "--mesh", "seq=2", "--strategy", "zero3", "--precision",
                             "bf16", "--remat", policy, "--batch", "1", "--dim-role", "tokens:1=sequence", "--attention", attention,
                             "--offload", "activations")
                reserved[attention] = json.loads(self.succeed("tessera-dump", "long.tessera", "--memory", "--json"))["memory"]["reserved"]
            self.assertLess(reserved["ulysses:chunk=2"], most * reserved["ulysses"], policy)

    def test_offloaded_activations_do_not_add_up(self):
        kept = self.kept_by_a_block("selective")
        layer = self.per_layer("--remat", "selective", "--offload", "activations")
        self.assertLessEqual(abs(layer["host"] - kept), 0.05 * kept)
        self.assertLessEqual(layer["activations"], 0.5 * kept)

    def test_bad_flags(self):
        for flags, message in ((("--remat", "most"), "--remat: unknown value 'most'"),
                               (("--remat", "budget=few"), "--remat: expected budget=<bytes>"),
                               (("--remat", "budget=1e19"), "--remat: expected budget=<bytes>"),
                               (("--memory-limit", "1e30"), "--memory-limit: expected bytes .*, got '1e30'"),
                               (("--memory-limit", "9000000TiB"), "--memory-limit: expected bytes"),
                               (("--offload", "inputs"), "--offload: unknown value 'inputs'")):
            self.fail_with(message, "tessera-compile", "tiny.onnx", "-o", "no.tessera", *flags)


class Shapes(ToolTest):
    """Real models by their shapes: what is planned against what lives, and by class against the strategies' formulas."""

    ALIGNMENT = 64

    def model(self, name, batch, seq=512):
        path = self.path(f"{name}-{batch}.onnx")
        if not os.path.exists(path):
            subprocess.run([sys.executable, os.path.join(ROOT, "tests/bench/shape_model.py"), name, "--batch", str(batch),
                            "--seq", str(seq), "-o", path], check=True)
        return path

    def memory(self, model, *flags):
        self.succeed("tessera-compile", model, "-o", "shape.tessera", *flags)
        dump = json.loads(self.succeed("tessera-dump", "shape.tessera", "--memory", "--json"))["memory"]
        return dump, json.loads(self.succeed("tessera-dump", "shape.tessera", "--json"))["summary"]

    def test_arenas_are_hardly_larger_than_what_lives(self):
        for name in ("gpt2-124m", "llama-1b", "qwen2-1.5b"):
            for flags in ((), ("--accumulate", 4), ("--mesh", "shard=8", "--strategy", "ddp"),
                          ("--mesh", "shard=8", "--strategy", "zero3", "--accumulate", 4),
                          ("--mesh", "shard=8", "--strategy", "zero3", "--remat", "selective", "--offload",
                           "optimizer,parameters,activations")):
                with self.subTest(f"{name} {' '.join(map(str, flags))}"):
                    memory, _ = self.memory(self.model(name, 8 if "--mesh" in flags else 1), *flags)
                    self.assertGreater(memory["peak"], 1 << 28)
                    self.assertLessEqual(memory["reserved"], 1.05 * memory["peak"])

    def test_classes_follow_the_formulas(self):
        """P, S, u and k as in docs/strategies.md; gradients and gathered units as far as they live at the peak."""
        for ranks in (2, 4, 8):
            for strategy in ("ddp", "zero1", "zero2", "zero3"):
                with self.subTest(f"{strategy} on {ranks} ranks"):
                    memory, summary = self.memory(self.model("gpt2-124m", ranks), "--mesh", f"shard={ranks}", "--strategy",
                                                  strategy, "--accumulate", 4, "--clip-norm", 1)
                    whole, share = 4 * summary["parameters"], 4 * summary["parameters"] / ranks
                    unit = 4 * 50257 * 768  # the embedding, gathered once for both ends of the step
                    block = 4 * 768 * (4 * 768 + 3 * 2048)  # in use, and gathered ahead, after the embedding
                    padding = summary["units"] * ranks * self.ALIGNMENT
                    held = whole if strategy == "ddp" else share
                    at_peak = {name: sizes["at_peak"] for name, sizes in memory["classes"].items()}
                    self.assertLessEqual(abs(at_peak["parameters"] - held), padding)
                    self.assertLessEqual(abs(at_peak["optimizer"] - 2 * held), 2 * padding)
                    least = {"ddp": whole, "zero1": whole, "zero2": share, "zero3": share}[strategy]
                    most = least + {"ddp": 0, "zero1": 0, "zero2": unit, "zero3": unit}[strategy]
                    self.assertGreaterEqual(at_peak["gradients"], least)
                    self.assertLessEqual(at_peak["gradients"], most + padding)
                    gathered = {"ddp": (0, 0), "zero1": (whole, whole), "zero2": (whole, whole),
                                "zero3": (2 * block, unit + 2 * block)}
                    self.assertGreaterEqual(at_peak["communication"], gathered[strategy][0])
                    self.assertLessEqual(at_peak["communication"], gathered[strategy][1] + padding)


class Values(ToolTest):
    """Losses and parameters after some steps do not depend on what is recomputed or where it lies."""

    MESHES = {"one": (), "ddp": ("--mesh", "shard=2", "--strategy", "ddp"),
              "zero3": ("--mesh", "shard=2", "--strategy", "zero3")}
    # Moves arguments only: the kernels are the same.
    EXACT = (("--offload", "optimizer"), ("--offload", "parameters"), ("--offload", "optimizer,parameters"))

    SGD = ("--optimizer", "sgd", "--momentum", 0.9, "--lr", 0.1)
    ADAMW = ("--optimizer", "adamw", "--lr", 1e-3)

    def compile_flags(self, accumulate):
        golden = Golden("gpt")
        return [golden.model, "--batch", 2, "--seq", golden.sequence, "--accumulate", accumulate, "--clip-norm", 0.3]

    def close_variants(self, mesh):
        """Those that change which kernels there are. The budget is one in the middle of the front."""
        self.succeed("tessera-compile", *self.compile_flags(1), *mesh, "--compile-to", "differentiate",
                     "--remat-report", "front.json")
        with open(self.path("front.json")) as file:
            front = json.load(file)["front"]
        budget = front[len(front) // 2]["saved_bytes"]
        return (("--remat", "full"), ("--remat", "selective"), ("--remat", f"budget={budget}"),
                ("--offload", "activations"),
                ("--remat", "selective", "--offload", "optimizer,parameters,activations"))

    def train(self, accumulate, *flags):
        """Trains three steps; returns losses, gradient norms and parameters."""
        golden = Golden("gpt")
        self.runs = getattr(self, "runs", 0) + 1
        name = f"run{self.runs}"
        self.succeed("tessera-compile", *self.compile_flags(accumulate), *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--steps", 3, "--out", name, "--threads", 1)
        records = self.metrics(name)
        self.assert_allocated_as_planned(name, records[-1]["memory"])
        return ([record["loss"] for record in records], [record["grad_norm"] for record in records],
                safetensors.load(self.path(name, "model.safetensors")))

    def assert_allocated_as_planned(self, name, memory):
        """Arenas of the device and of the host, each rounded up to pages, and some workspace of library kernels per rank."""
        plan = json.loads(self.succeed("tessera-dump", name + ".tessera", "--memory", "--json"))["memory"]
        self.assertEqual(memory["planned_per_rank"], plan["reserved"])
        pages = 4096 * len(plan["arenas"])
        for found, planned, most in (("allocated", "reserved", pages + (256 << 10)), ("host", "host", pages)):
            extra = memory[found] / memory["ranks_in_process"] - plan[planned]
            self.assertGreaterEqual(extra, 0, found)
            self.assertLessEqual(extra, most, found)

    def assert_close(self, got, want):
        self.assertEqual(len(got[0]), 3)
        for which in (0, 1):
            for mine, theirs in zip(got[which], want[which]):
                self.assertLessEqual(abs(mine - theirs), 1e-6 * abs(theirs))
        for name, value in want[2].items():
            self.assertLessEqual(np.linalg.norm(got[2][name] - value), 1e-6 * np.linalg.norm(value), name)

    def each(self):
        for mesh in self.MESHES.values():
            for accumulate in (1, 3):
                yield mesh, accumulate

    def test_arguments_on_the_host_change_no_bit(self):
        one = {accumulate: self.train(accumulate, *self.ADAMW)[0] for accumulate in (1, 3)}
        for mesh, accumulate in self.each():
            want = self.train(accumulate, *mesh, *self.ADAMW)
            for variant in self.EXACT:
                with self.subTest(f"{' '.join(mesh + variant)}, accumulate {accumulate}"):
                    losses, norms, parameters = self.train(accumulate, *mesh, *variant, *self.ADAMW)
                    self.assertEqual((losses, norms), want[:2])
                    for name, value in want[2].items():
                        self.assertTrue(np.array_equal(value.view(np.uint32), parameters[name].view(np.uint32)), name)
                    for mine, theirs in zip(losses, one[accumulate]):
                        self.assertLessEqual(abs(mine - theirs), 1e-6 * theirs)

    def test_what_is_recomputed_or_comes_back_is_the_same(self):
        """By gradient descent, whose parameters differ no more than gradients do (AdamW divides by small ones)."""
        one = {accumulate: self.train(accumulate, *self.SGD) for accumulate in (1, 3)}
        for mesh, accumulate in self.each():
            for variant in self.close_variants(mesh):
                with self.subTest(f"{' '.join(mesh + variant)}, accumulate {accumulate}"):
                    self.assert_close(self.train(accumulate, *mesh, *variant, *self.SGD), one[accumulate])


if __name__ == "__main__":
    import unittest
    unittest.main()
