"""tessera-compile --report and --fit: bytes and counts against formulas, any number of ranks, machines one does not have."""

import json
import os
import subprocess
import sys

from harness import Golden, MODELS, ROOT, ToolTest


class Report(ToolTest):
    def report(self, *flags, model="gpt.ts17.onnx", status=0):
        done = self.tool("tessera-compile", os.path.join(MODELS, model), *flags, "--report=report.json")
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.text = done.stdout
        with open(self.path("report.json")) as file:
            return json.load(file)

    def rows(self, report):
        return {(row["kind"], row["axes"]): row for row in report["collectives"]}

    def test_zero3_moves_what_the_formula_says(self):
        for accumulate in (1, 3):
            report = self.report("--batch", 4, "--mesh", "shard=4", "--strategy", "zero3", "--accumulate", accumulate)
            parameters = 4 * report["parameters"]
            rows = self.rows(report)
            gather, scatter = rows["all_gather", "shard"], rows["reduce_scatter", "shard"]
            # Twice, but for the embeddings, which the backward pass does not read.
            self.assertLess(gather["minimum_wire_bytes_per_rank"], accumulate * 2 * 0.75 * parameters)
            self.assertGreater(gather["minimum_wire_bytes_per_rank"], accumulate * 1.7 * 0.75 * parameters)
            self.assertAlmostEqual(scatter["minimum_wire_bytes_per_rank"], accumulate * 0.75 * parameters, delta=1)
            for row in (gather, scatter):  # units are padded so that every shard begins on 64 bytes
                self.assertGreaterEqual(row["wire_bytes_per_rank"], row["minimum_wire_bytes_per_rank"])
                self.assertLess(row["wire_bytes_per_rank"], 1.02 * row["minimum_wire_bytes_per_rank"])
            self.assertEqual(gather["count"], 2 * scatter["count"] - accumulate)
            self.assertEqual(scatter["count"] % accumulate, 0)
            self.assertEqual((gather["ranks"], gather["nodes"]), (4, 2))  # cpu-host has two ranks per node

    def test_bf16_moves_half_of_the_parameters(self):
        flags = ("--batch", 4, "--mesh", "shard=4", "--strategy", "zero3")
        wide = self.rows(self.report(*flags))
        narrow = self.rows(self.report(*flags, "--precision", "bf16"))
        least = self.rows(self.report(*flags, "--precision", "bf16", "--reduce-dtype", "bf16"))
        for key in ("wire_bytes_per_rank", "minimum_wire_bytes_per_rank"):
            gathered, reduced = (rows[key] for rows in (wide["all_gather", "shard"], wide["reduce_scatter", "shard"]))
            self.assertAlmostEqual(2 * narrow["all_gather", "shard"][key], gathered, delta=2)
            self.assertAlmostEqual(narrow["reduce_scatter", "shard"][key], reduced, delta=2)
            self.assertAlmostEqual(2 * least["reduce_scatter", "shard"][key], reduced, delta=2)

    def test_joined_collectives_have_the_minimum_of_their_parts(self):
        for mesh, strategy, precision in (("shard=4", "zero3", "bf16"), ("replicate=2,shard=2", "hsdp", "fp32")):
            flags = ("--batch", 4, "--mesh", mesh, "--strategy", strategy, "--precision", precision,
                     "--prefetch", "forward=3,backward=pre")
            apart, joined = self.rows(self.report(*flags)), self.rows(self.report(*flags, "--combine-bytes", 10**9))
            self.assertEqual(list(apart), list(joined))
            for key, row in joined.items():
                self.assertEqual(row["minimum_wire_bytes_per_rank"], apart[key]["minimum_wire_bytes_per_rank"], key)
                if row["minimum_wire_bytes_per_rank"] > 0:  # not what adds up the loss and the norm
                    self.assertLess(row["count"], apart[key]["count"], key)

    def test_ddp_reduces_gradients_once_per_step(self):
        for accumulate in (1, 3):
            report = self.report("--batch", 4, "--mesh", "shard=4", "--strategy", "ddp", "--accumulate", accumulate)
            rows = self.rows(report)
            self.assertEqual(list(rows), [("all_reduce", "shard")])
            self.assertAlmostEqual(rows["all_reduce", "shard"]["minimum_wire_bytes_per_rank"],
                                   2 * 0.75 * 4 * report["parameters"], delta=1)

    def test_memory_is_that_of_the_artifact(self):
        flags = ("--batch", 4, "--mesh", "shard=2", "--strategy", "zero3")
        memory = self.report(*flags)["memory"]
        self.succeed("tessera-compile", os.path.join(MODELS, "gpt.ts17.onnx"), *flags, "-o", "gpt.tessera")
        dump = json.loads(self.succeed("tessera-dump", "gpt.tessera", "--memory", "--json"))["memory"]
        self.assertEqual(memory["reserved_per_rank"], sum(arena["bytes"] for arena in dump["arenas"]))
        self.assertEqual(memory["peak_per_rank"], sum(memory["at_peak_by_class"].values()))
        self.assertLessEqual(memory["peak_per_rank"], memory["reserved_per_rank"])

    def test_optimizer_memory_is_a_share_of_the_whole(self):
        whole = self.report("--batch", 4, "--strategy", "ddp")["memory"]["at_peak_by_class"]["optimizer"]
        share = self.report("--batch", 4, "--mesh", "shard=4", "--strategy", "zero3")["memory"]["at_peak_by_class"]
        self.assertLess(abs(share["optimizer"] - whole / 4), 0.02 * whole)

    def test_the_program_is_the_same_for_any_number_of_ranks(self):
        """One sample per rank: on 8, 512 and 4096 ranks every instruction is the same but for sizes."""
        texts, reports = [], []
        for ranks in (8, 512, 4096):
            flags = ("--batch", ranks, "--mesh", f"shard={ranks}", "--strategy", "zero3", "--target", "h100x8")
            reports.append(self.report(*flags))
            ir = self.succeed("tessera-compile", os.path.join(MODELS, "gpt.ts17.onnx"), *flags, "--compile-to", "lower")
            # Shapes differ; padding is filled where a unit has some, and large reductions take one kernel more. Probes go
            # with the kernels that read gradients.
            instructions = (line.split()[0] for line in ir.splitlines() if line.strip().startswith("exec."))
            texts.append([name for name in instructions if name not in ("exec.fill", "exec.launch", "exec.probe")])
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])
        for report in reports[1:]:
            self.assertEqual([(row["kind"], row["count"]) for row in report["collectives"]],
                             [(row["kind"], row["count"]) for row in reports[0]["collectives"]])
            self.assertEqual(report["collectives"][0]["nodes"], report["ranks"] // 8)
            self.assertEqual(report["tokens_per_step"], report["ranks"] / 8 * reports[0]["tokens_per_step"])

    def test_the_step_is_the_sum_of_its_parts(self):
        report = self.report("--batch", 4, "--mesh", "shard=2", "--strategy", "zero3")
        step = report["step"]
        self.assertAlmostEqual(step["seconds"], step["compute_seconds"] + step["exposed_communication_seconds"])
        parts = ("product_seconds", "attention_seconds", "kernel_seconds", "copy_seconds", "contention_seconds")
        self.assertAlmostEqual(step["compute_seconds"], sum(step[part] for part in parts), places=9)
        self.assertAlmostEqual(report["mfu"], report["model_flops_per_step"] / (step["seconds"] *
                                                                              report["peak_flops_per_second"]))
        self.assertIn("predicted step", self.text)

    def test_kernels_by_kind_are_the_generated_kernels(self):
        for accumulate in (1, 3):
            report = self.report("--batch", 4, "--accumulate", accumulate, "--target", "h100x8")
            kernels, instructions = report["kernels"], report["instructions"]
            self.assertEqual(sum(row["launches"] for row in kernels), instructions["launch"])
            self.assertLessEqual({row["kind"] for row in kernels}, {"elementwise", "row", "column", "reduce_all", "scatter"})
            self.assertAlmostEqual(sum(row["seconds"] for row in kernels), report["step"]["kernel_seconds"])
            # AdamW reads parameter, gradient and two moments and writes all but the gradient; the rest is more.
            elementwise = next(row for row in kernels if row["kind"] == "elementwise")
            self.assertGreater(elementwise["bytes_read"], 4 * 4 * report["parameters"])
            self.assertGreater(elementwise["bytes_written"], 3 * 4 * report["parameters"])
            self.assertRegex(self.text, rf"\n  elementwise +{elementwise['launches']} ")
            if accumulate == 1:
                products = instructions["gemm"]
        # A loop's body counts as often as it runs.
        self.assertEqual(instructions["gemm"], 3 * products)

    def test_fit_names_flags_that_make_it_fit(self):
        flags = ("--batch", 8, "--mesh", "shard=2", "--strategy", "ddp")
        reserved = self.report(*flags)["memory"]["reserved_per_rank"]
        self.assertTrue(self.report(*flags, f"--fit={reserved}")["fit"]["fits"])
        fit = self.report(*flags, f"--fit={reserved * 0.7:.0f}", status=3)["fit"]
        self.assertFalse(fit["fits"])
        self.assertTrue(fit["variants"][-1]["fits"], self.text)
        self.assertIn("it fits with " + fit["variants"][-1]["flags"], self.text)
        # What is promised holds.
        promised = fit["variants"][-1]
        merged = [*flags[2:4], *promised["flags"].split()]
        if "--batch" not in merged:
            merged += ["--batch", 8]
        self.assertEqual(self.report(*merged)["memory"]["reserved_per_rank"], promised["reserved_per_rank"])

    def test_fit_tries_from_the_least_change_to_the_largest(self):
        model = "gpt_manual.ts17.onnx"  # activations outweigh parameters, as in models of real size
        for strategy, mesh, strategies in (("ddp", "shard=2", ["zero1", "zero3"]), ("zero1", "shard=2", ["zero3"]),
                                           ("zero2", "shard=2", ["zero3"]), ("zero3", "shard=2", []),
                                           ("hsdp", "replicate=2,shard=2", [])):
            flags = ("--batch", 8, "--mesh", mesh, "--strategy", strategy, "--target", "h100x8")
            variants = self.report(*flags, "--fit=1000", status=3, model=model)["fit"]["variants"]
            self.assertIn("nothing that was tried fits", self.text)
            found = [dict(zip(words[::2], words[1::2])) for words in (variant["flags"].split() for variant in variants)]
            with self.subTest(strategy):
                for variant, changes in zip(variants, found):
                    self.assertEqual(2 * len(changes), len(variant["flags"].split()), "each flag once")
                self.assertEqual([changes for changes in found if list(changes) == ["--strategy"]],
                                 [{"--strategy": name} for name in strategies])
                small = found[len(strategies):]
                more = [changes for changes in small if "--mesh" in changes]
                self.assertEqual(len(more), 3)
                for changes in small:  # the same samples per step, unless there are more ranks than samples
                    batch = int(changes.get("--batch", 8))
                    self.assertEqual(batch * int(changes.get("--accumulate", 1)), max(batch, 8))
                self.assertEqual(list(dict.fromkeys(changes["--remat"] for changes in small)), ["selective", "full"])
                self.assertEqual(small[-4]["--offload"], "optimizer")
                used = [variant["reserved_per_rank"] for variant in variants]
                self.assertEqual(sorted(used, reverse=True), used, "each variant needs no more than the one before")
                # What is listed is what the flags give.
                merged = {"--batch": 8, "--mesh": mesh, "--strategy": strategy, "--target": "h100x8", **found[-1]}
                report = self.report(*[word for pair in merged.items() for word in pair], model=model)
                self.assertEqual(report["memory"]["reserved_per_rank"], used[-1])

    def test_fit_lists_zero2_where_it_differs_from_zero1(self):
        flags = ("--batch", 4, "--mesh", "shard=2", "--strategy", "ddp", "--accumulate")
        variants = self.report(*flags, 2, "--fit=1000", status=3)["fit"]["variants"]
        self.assertEqual([variant["flags"] for variant in variants[:3]],
                         ["--strategy zero1", "--strategy zero2", "--strategy zero3"])
        self.assertLess(variants[1]["reserved_per_rank"], variants[0]["reserved_per_rank"])
        one, two = (self.report(*flags[:-2], strategy, "--accumulate", 1)["memory"] for strategy in ("zero1", "zero2"))
        self.assertEqual(one["reserved_per_rank"], two["reserved_per_rank"])

    def test_fit_counts_the_memory_of_the_host(self):
        flags = ("--batch", 8, "--mesh", "shard=2", "--strategy", "zero3", "--offload", "optimizer")
        memory = self.report(*flags)["memory"]
        both = memory["reserved_per_rank"] + memory["host_per_rank"]
        # On a CPU both are the same memory, and moving state is of no use.
        self.assertFalse(self.report(*flags, f"--fit={both - 1}", status=3)["fit"]["fits"])
        self.assertTrue(self.report(*flags, f"--fit={both}")["fit"]["fits"])
        fit = self.report(*flags[:-2], "--fit=1000", status=3)["fit"]
        self.assertFalse([variant for variant in fit["variants"] if "--offload" in variant["flags"]])
        self.assertIn("--offload was not tried: on a CPU", self.text)
        # A GPU has memory of its own; the ranks of a node share its host.
        with open(os.path.join(ROOT, "compiler", "cost", "targets", "h100x8.json")) as file:
            machine = json.load(file)
        memory = self.report(*flags, "--target", "h100x8")["memory"]
        device = memory["reserved_per_rank"] + memory["libraries_per_rank"]
        for host, fits in ((2 * memory["host_per_rank"], True), (2 * memory["host_per_rank"] - 1, False)):
            machine["host_memory"]["value"] = host
            with open(self.path("machine.json"), "w") as file:
                json.dump(machine, file)
            fit = self.report(*flags, "--target", "machine.json", f"--fit={device}", status=0 if fits else 3)["fit"]
            self.assertEqual(fit["fits"], fits, self.text)
        self.assertIn("on the host of a node", self.text)
        variants = self.report(*flags[:-2], "--target", "machine.json", "--fit=target")["fit"]
        self.assertTrue(variants["fits"])

    def test_micro_batches_of_a_global_batch(self):
        """As --accumulate; with --fit the fewest micro-batches that fit, and the artifact has these."""
        by_hand = self.report("--batch", 4, "--accumulate", 6, "--mesh", "shard=2")["memory"]
        self.assertEqual(self.report("--batch", 4, "--global-batch", 24, "--mesh", "shard=2")["memory"], by_hand)
        whole = self.report("--global-batch", 24, "--mesh", "shard=2")["memory"]
        self.assertEqual(whole, self.report("--batch", 24, "--mesh", "shard=2")["memory"])
        found = self.report("--global-batch", 24, "--mesh", "shard=2", f"--fit={by_hand['reserved_per_rank']}", "-o", "net.tessera")
        rows = [line.split() for line in self.text.splitlines() if line.endswith(("  fits", "  too large"))]
        self.assertEqual([row[:2] for row in rows], [["24", "1"], ["12", "2"], ["8", "3"], ["6", "4"], ["4", "6"]])
        self.assertEqual(found["memory"], by_hand)
        summary = json.loads(self.succeed("tessera-dump", "net.tessera", "--json"))
        self.assertIn([6, 4, 64], [entry["shape"] for entry in summary.get("summary", summary)["batch"]])
        self.report("--global-batch", 24, "--mesh", "shard=2", "--fit=1000", status=3)
        model = os.path.join(MODELS, "gpt.ts17.onnx")
        for flags, problem in ((["--global-batch", 25, "--mesh", "shard=2"], "the nearest that does: 24 or 26"),
                               (["--global-batch", 1, "--mesh", "shard=4"], "the nearest that does: 4$"),
                               (["--global-batch", 24, "--batch", 10], "the nearest that is: 20 or 30"),
                               (["--global-batch", 24, "--accumulate", 2], "excludes"), (["--global-batch", 0], "at least 1")):
            self.fail_with("(?m)" + problem, "tessera-compile", model, *flags, "-o", "net.tessera")

    def test_the_longest_sequence_that_fits(self):
        """Each length is doubled until one does not fit; the report is that of the longest, and one more step would not fit."""
        flags = ("--batch", 2, "--mesh", "seq=2", "--attention", "ulysses", "--strategy", "zero3")
        model = "llama.dynamo18.onnx"
        limit = self.report(*flags, "--seq", 4096, model=model)["memory"]["reserved_per_rank"]
        for bytes_of_rank, least in ((limit, 1024), (2 * limit, 1024), (limit, 16384)):
            found = self.report(*flags, "--seq", least, f"--fit=sequence:{bytes_of_rank}", model=model)
            longest, tried = found["longest_sequence"]["longest"], found["longest_sequence"]["tried"]
            self.assertEqual(found["tokens_per_step"], 2 * longest)
            self.assertLessEqual(found["memory"]["reserved_per_rank"], bytes_of_rank)
            for row in tried:
                self.assertEqual(row["fits"], row["reserved_per_rank"] <= bytes_of_rank)
                self.assertEqual(row["fits"], row["positions"] <= longest)
                self.assertEqual(row["positions"] % 1024, 0)
            beyond = min(row["positions"] for row in tried if not row["fits"])
            self.assertLessEqual(beyond - longest, max(1024, longest // 32))
            self.assertGreaterEqual(longest, 4096)
            self.assertIn(f"the longest that fits has {longest} positions", self.text)
        self.report("--batch", 2, "--mesh", "seq=2", "--strategy", "zero3", "--seq", 1024, f"--fit=sequence:{limit}", model=model)
        self.assertRegex(self.text, r"the longest that fits has \d+ positions, with --attention (allgather|ring|ulysses)\n")
        nothing = self.tool("tessera-compile", os.path.join(MODELS, model), *flags, "--seq", 1024, "--fit=sequence:1MiB")
        self.assertEqual(nothing.returncode, 3)
        self.assertIn("not even 1024 positions fit", nothing.stdout)

    def test_a_fixed_sequence_has_no_longest(self):
        subprocess.run([sys.executable, os.path.join(ROOT, "tests", "bench", "shape_model.py"), "tiny", "--seq", "64", "-o",
                        self.path("tiny.onnx")], check=True)
        fixed = self.tool("tessera-compile", "tiny.onnx", "--fit=sequence", "--seq", 1024)
        self.assertEqual(fixed.returncode, 1)
        self.assertIn("has the fixed size 64 in dimension 1, got --seq 1024; export the model with a symbolic dimension", fixed.stderr)

    def test_attention_is_chosen_by_its_predicted_time(self):
        flags = ("--batch", 2, "--seq", 4096, "--mesh", "seq=2", "--strategy", "zero3", "--target", "h100x8", "--precision", "bf16")
        seconds = {way: self.report(*flags, "--attention", way, model="llama.dynamo18.onnx")["step"]["seconds"]
                   for way in ("allgather", "ring", "ulysses")}
        chosen = self.report(*flags, model="llama.dynamo18.onnx")
        self.assertEqual(chosen["step"]["seconds"], min(seconds.values()))
        done = self.tool("tessera-compile", os.path.join(MODELS, "llama.dynamo18.onnx"), *flags, "--report")
        best = min(seconds, key=seconds.get)
        self.assertRegex(done.stderr, rf"attention: {best} \([0-9.]+ .s a step, .* a rank\); not ")
        small = self.tool("tessera-compile", os.path.join(MODELS, "llama.dynamo18.onnx"), *flags, "--memory-limit", "1MiB", "--report")
        self.assertEqual(small.returncode, 1)
        self.assertIn("too large", small.stderr)

    def test_fast_gradients_of_attention_take_less_time_and_more_memory(self):
        flags = ("--batch", 2, "--seq", 65536, "--mesh", "seq=2", "--attention", "ulysses", "--strategy", "zero3", "--target", "h100x8",
                 "--precision", "bf16")
        slow, fast = (self.report(*flags, "--attention-gradient", gradient, model="llama.dynamo18.onnx")
                      for gradient in ("deterministic", "fast"))
        self.assertLess(fast["step"]["seconds"], slow["step"]["seconds"])
        # 4 bytes for each element of the queries' gradient: 2 samples, 2 of 4 heads of 16.
        self.assertEqual(fast["memory"]["libraries_per_rank"] - slow["memory"]["libraries_per_rank"], 4 * 2 * 2 * 65536 * 16)

    def test_libraries_of_a_gpu_count(self):
        """cuBLASLt's workspace, and for attention in bf16 the gradient of its scores: 2 bytes each, causal or not."""
        flags = ("--batch", 8, "--precision")
        sizes = {precision: self.report(*flags, precision, "--target", "h100x8")["memory"]["libraries_per_rank"]
                 for precision in ("fp32", "bf16")}
        self.assertEqual(sizes["fp32"], 32 << 20)
        self.assertEqual(sizes["bf16"], (32 << 20) + 2 * 8 * 4 * 64 * 64)  # 4 heads, 64 tokens
        self.assertEqual(self.report(*flags, "bf16")["memory"]["libraries_per_rank"], 0)
        self.assertNotIn("libraries", self.text)

    def test_long_gradients_need_no_workspace(self):
        """Above 10 GiB, own kernels that store no scores compute the gradient, with seven products instead of five."""
        found = [self.report("--batch", 1, "--seq", tokens, "--precision", "bf16", "--target", "h100x8", model="llama.dynamo18.onnx")
                 for tokens in (8192, 65536)]
        sizes = [report["memory"]["libraries_per_rank"] for report in found]
        self.assertGreater(sizes[0], 512 << 20)
        self.assertEqual(sizes[1], 32 << 20)
        attention = [report["step"]["attention_seconds"] for report in found]
        # Of the target: 5 products at 0.27 of the peak before, 7 at 0.30 of it, beside a forward pass of the same rate.
        self.assertGreater(attention[1], 64 * 1.15 * attention[0])

    def test_memory_limit_is_that_of_the_gpu(self):
        model = os.path.join(MODELS, "gpt.ts17.onnx")
        flags = ("--batch", 8, "--mesh", "shard=2", "--strategy", "zero3", "--offload", "optimizer", "--target", "sm_80")
        memory = self.report(*flags)["memory"]
        self.assertGreater(memory["host_per_rank"], 0)
        limit = memory["reserved_per_rank"]
        self.succeed("tessera-compile", model, *flags, "--report", "--memory-limit", limit)
        self.fail_with("--memory-limit: a rank needs", "tessera-compile", model, *flags, "--report", "--memory-limit", limit - 1)

    def test_a_machine_for_every_gpu(self):
        for target, name in (("sm_80", "a100x8"), ("sm_90", "h100x8"), ("sm_100", "b200x8")):
            report = self.report("--batch", 8, "--mesh", "shard=8", "--strategy", "zero3", "--prefetch", "auto", "--target",
                                 target, "--precision", "bf16", "--fit")
            self.assertEqual(report["target"], name)
            self.assertTrue(report["fit"]["fits"])

    def test_bad_flags(self):
        model = os.path.join(MODELS, "gpt.ts17.onnx")
        self.fail_with("--fit: expected bytes", "tessera-compile", model, "--fit=12parsecs")
        self.fail_with("--compile-to: a report needs all phases", "tessera-compile", model, "--report", "--compile-to",
                       "shard")
        self.fail_with("unknown target 'cray', expected cpu, sm_80, sm_90, sm_100, a target file", "tessera-compile", model, "--report",
                       "--target", "cray")
        self.fail_with("none/r.json': no such file", "tessera-compile", model, "--batch", 2, "--report=none/r.json")
        self.assertFalse(os.path.exists(self.path("x.tessera")))
        with open(self.path("bad.json"), "w") as file:
            file.write('{"format": "tessera-target"}')
        self.fail_with("bad.json: ", "tessera-compile", model, "--report", "--target", "bad.json")

    def test_report_beside_an_artifact(self):
        flags = Golden("gpt").compile_flags()
        self.succeed("tessera-compile", *flags, "--report=r.json", "-o", "mlp.tessera")
        self.assertTrue(os.path.exists(self.path("mlp.tessera")))
        self.assertTrue(os.path.exists(self.path("r.json")))
