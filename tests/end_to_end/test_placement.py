"""Parameters that model axes split (`--place`): ten steps equal PyTorch's, checkpoints change the mesh, what cannot be is refused."""

import json
import os
import re
import sys

import numpy as np

import test_oracle
import safetensors
from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, Graph, value_info  # noqa: E402

MLP = ["--place", r"mlp\.c_fc\.=0", "--place", r"mlp\.c_proj\.weight=1"]
# Heads, feed-forward and vocabulary of a Llama, as Megatron-LM splits them.
LLAMA = ["--place", r"[qkv]_proj|gate_proj|up_proj|embed_tokens|lm_head=0", "--place", "o_proj|down_proj=1"]


class Placement(test_oracle.TrainingTest):
    def test_mlp_of_a_gpt(self):
        self.compare("gpt-tp2", "--mesh", "tp=2", *MLP)
        rows = json.loads(self.succeed("tessera-dump", "gpt-tp2.tessera", "--collectives", "--json"))["collectives"]
        self.assertEqual({row["kind"] for row in rows["list"]}, {"all_reduce"})
        # Of each of the two MLPs one sum forward and one backward; what else is summed are scalars (the norm).
        self.assertEqual(sum(row["bytes"] > 4 for row in rows["list"]), 4)

    def test_mlp_of_a_gpt_beside_data_axes(self):
        self.compare("gpt-zero3", "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", *MLP)
        self.compare("gpt-zero1", "--mesh", "tp=2,fsdp=2", "--strategy", "zero1", *MLP, accumulate=2)
        self.compare("gpt-hsdp", "--mesh", "dp=2,tp=4,fsdp=2", "--strategy", "hsdp", *MLP, accumulate=2)
        self.compare("gpt-ddp", "--mesh", "tp=2,dp=2", "--epilogues", "all", *MLP, accumulate=4)

    def test_all_of_a_llama(self):
        """Two key heads, so that two ranks have one each; four ranks would have to share them."""
        self.compare("llama-tp2", "--mesh", "tp=2", *LLAMA, model="llama")
        self.compare("llama-zero3", "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", "--remat", "selective", *LLAMA, accumulate=2,
                     model="llama")
        self.compare("llama-tp4", "--mesh", "tp=4", *LLAMA, model="llama")

    def test_bf16_and_a_tied_vocabulary(self):
        golden = test_oracle.Golden("gpt")
        tied = ["--place", "wte=0", *MLP]
        self.compare("tied", "--mesh", "fsdp=2,tp=2", "--strategy", "zero2", *tied, accumulate=2)
        losses = []
        for name, flags in (("one", []), ("split", ["--mesh", "fsdp=2,tp=2", "--strategy", "zero3", "--keep-gathered", "h.0", *tied])):
            records = self.train(golden, name + "-bf16", "--precision", "bf16", *flags)
            losses.append([record["loss"] for record in records])
        np.testing.assert_allclose(losses[1], losses[0], rtol=2e-3)

    def test_a_product_that_is_its_own_transpose(self):
        """w^T w lies in memory in both orders; the compiler's proof of the evaluation took one for the other."""
        graph, random = Graph(), np.random.default_rng(3)
        w = graph.weight("fc.weight", 8, 8)
        turned = graph.op("Transpose", w, perm=[1, 0])
        h = graph.op("MatMul", "x", turned)
        y = graph.op("MatMul", h, graph.op("Transpose", graph.op("MatMul", turned, w), perm=[1, 0]))
        graph.store(self.path("gram.onnx"), [value_info("x", FLOAT, ["B", 8])], [value_info(y, FLOAT, ["B", 8])])
        x, targets, weight = (random.standard_normal((8, 8), np.float32) for _ in range(3))
        safetensors.save({"x": x, "targets": targets}, self.path("gram-data.safetensors"))
        safetensors.save({"fc.weight": weight}, self.path("gram-weights.safetensors"))
        self.succeed("tessera-compile", "gram.onnx", "--batch", 8, "--loss", "mse", "--mesh", "tp=2", "--place", "fc=0",
                     "--evaluate", "-o", "gram.tessera")
        printed = self.succeed("tessera-run", "gram.tessera", "--eval-only", "--eval-data", "gram-data.safetensors", "--weights",
                               "gram-weights.safetensors", "--threads", 1)
        want = np.square(x @ weight.T @ (weight.T @ weight) - targets).mean()
        got = float(printed.split("eval loss ")[1].split()[0])
        self.assertLessEqual(abs(got - want), 2e-6 * want + 1e-6)  # sums in f32; six digits are printed

    def test_recomputation(self):
        self.compare("full", "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", "--remat", "full", *MLP)

    def test_prefetch_and_offload_change_no_bit(self):
        golden = test_oracle.Golden("gpt")
        losses = {}
        for name, flags in (("plain", []), ("ahead", ["--prefetch", "auto"]),
                            ("offload", ["--offload", "optimizer", "--prefetch", "none"])):
            records = self.train(golden, name, "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", *flags, *MLP)
            losses[name] = [record["loss"] for record in records]
        self.assertEqual(losses["ahead"], losses["plain"])
        self.assertEqual(losses["offload"], losses["plain"])

    def test_a_run_goes_on_with_other_model_axes(self):
        golden = test_oracle.Golden("gpt")
        meshes = {"whole": ["--mesh", "fsdp=2", "--strategy", "zero3"],
                  "split": ["--mesh", "fsdp=2,tp=2", "--strategy", "zero3", *MLP], "four": ["--mesh", "tp=4", *MLP]}
        for name, flags in meshes.items():
            self.succeed("tessera-compile", *golden.compile_flags(), *flags, "--ema", 0.9, "-o", name + ".tessera")
        data = ["--data", golden.data, "--order", "sequential", "--threads", 1]
        for name in meshes:
            self.succeed("tessera-run", name + ".tessera", *data, "--weights", golden.weights, "--steps", 4, "--checkpoint-every", 4,
                         "--out", name)
        for first in meshes:
            for then in meshes:
                out = f"{first}-{then}"
                self.succeed("tessera-run", then + ".tessera", *data, "--resume", self.path(first, "checkpoints", "ckpt-4"), "--steps",
                             golden.steps, "--out", out)
                for record, want in zip(self.metrics(out), golden.losses[4:], strict=True):
                    self.assertLessEqual(abs(record["loss"] - want) / want, test_oracle.LOSS_TOLERANCE, out)
                # Averages move little: one that was read from elsewhere would be far away.
                averages = [safetensors.load(self.path(run, "model-average.safetensors")) for run in ("whole-whole", out)]
                self.assertEqual(sorted(averages[1]), sorted(golden.load("weights")))
                for parameter, value in averages[1].items():
                    np.testing.assert_allclose(value, averages[0][parameter], atol=2e-4, err_msg=f"{out}: {parameter}")

    def test_initial_values_do_not_depend_on_the_mesh(self):
        golden = test_oracle.Golden("llama")
        losses = []
        for name, flags in (("one", []), ("two", ["--mesh", "tp=2", *LLAMA])):
            self.succeed("tessera-compile", *golden.compile_flags(), *flags, "-o", name + ".tessera")
            self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--order", "sequential", "--threads", 1, "--seed", 5,
                         "--steps", 1, "--out", name)
            losses.append(self.metrics(name)[0]["loss"])
        self.assertLessEqual(abs(losses[0] - losses[1]), test_oracle.LOSS_TOLERANCE * losses[0])

    def test_adapters_beside_a_base_that_is_split(self):
        golden = test_oracle.Golden("gpt")
        lora = ["--lora", "rank=4,alpha=8,targets=c_fc|mlp.c_proj"]
        losses = []
        for name, flags in (("one", []), ("split", ["--mesh", "fsdp=2,tp=2", "--strategy", "zero3", *MLP])):
            self.succeed("tessera-compile", *golden.compile_flags(), *lora, *flags, "-o", name + ".tessera")
            self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--order", "sequential", "--threads", 1, "--weights",
                         golden.weights, "--steps", 3, "--out", name, "--export-lora", "merged")
            losses.append([record["loss"] for record in self.metrics(name)])
        np.testing.assert_allclose(losses[1], losses[0], rtol=test_oracle.LOSS_TOLERANCE)
        one, split = (safetensors.load(self.path(name, "model.safetensors")) for name in ("one", "split"))
        self.assertEqual(sorted(one), sorted(split))
        for parameter, value in one.items():
            np.testing.assert_allclose(split[parameter], value, atol=1e-5, err_msg=parameter)

    def test_what_dump_says(self):
        golden = test_oracle.Golden("gpt")
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", *MLP, "-o",
                     "x.tessera")
        text = self.succeed("tessera-dump", "x.tessera", "--state")
        self.assertRegex(text, r"h\.0\.mlp\.c_fc\.weight, part 1 of 2 along 0 +\[256,64\]")
        self.assertIn("reduce tp", self.succeed("tessera-dump", "x.tessera", "--schedule"))
        self.succeed("tessera-compile", *golden.compile_flags(), "-o", "y.tessera")
        counts = [re.search(r"parameters\D+([\d,]+)", self.succeed("tessera-dump", name)) for name in ("x.tessera", "y.tessera")]
        self.assertTrue(all(counts))
        self.assertEqual(counts[0][1], counts[1][1])

    def test_reports_count_what_a_rank_holds(self):
        golden = test_oracle.Golden("gpt")
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", *MLP, "--report=x.json")
        with open(self.path("x.json")) as file:
            report = json.load(file)
        elements = {name: value.size for name, value in golden.load("weights").items()}
        self.assertEqual(report["parameters"], sum(elements.values()))
        ratios = [row["wire_bytes_per_rank"] / row["minimum_wire_bytes_per_rank"] for row in report["collectives"]
                  if row["minimum_wire_bytes_per_rank"]]
        self.assertEqual(len(ratios), 2)
        self.assertTrue(all(1 <= ratio < 1.1 for ratio in ratios), ratios)

    def test_what_cannot_be_placed_is_refused(self):
        golden = test_oracle.Golden("gpt")
        for message, *flags in (("need --place", "--mesh", "tp=2"),
                                ("no model axis larger than 1", "--mesh", "fsdp=2", *MLP),
                                ("no parameter matches 'mpl'", "--mesh", "tp=2", "--place", "mpl=0"),
                                ("expected <regex>=<dimension> or <regex>=<dimension>:<axis>, got 'mlp'", "--mesh", "tp=2", "--place", "mlp"),
                                ("which 5 ranks do not divide", "--mesh", "tp=5", *MLP),
                                ("it has rank 1, so it has no dimension 1", "--mesh", "tp=2", "--place", "c_fc.bias=1")):
            with self.subTest(message):
                self.fail_with(message, "tessera-compile", *golden.compile_flags(), *flags, "-o", "z.tessera")

    def test_what_makes_whole_parameters_differ_between_ranks_is_refused(self):
        golden = test_oracle.Golden("gpt")
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "tp=2", *MLP, "-o", "x.tessera")
        for flags in (("--reproducible", "off"), ("--attention-gradient", "fast")):
            with self.subTest(flags):
                self.fail_with(f"{' '.join(flags)} cannot be used where parameters are split over model axes", "tessera-run",
                               "x.tessera", "--data", golden.data, "--steps", 1, "--out", "run", *flags)
                self.assertFalse(os.path.exists(self.path("run")))
