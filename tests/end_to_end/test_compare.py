"""tessera-compare: runs and plans a grid of configurations; leaves a table, raw results, charts and one page."""

import csv
import json
import os
import re

from harness import MODELS, ToolTest

MODEL = os.path.join(MODELS, "gpt.ts17.onnx")
CHARTS = ("tokens-per-second", "memory", "communication", "utilisation", "step-time", "memory-over-step")


class Compare(ToolTest):
    def setUp(self):
        super().setUp()
        with open(self.path("text.txt"), "w") as file:
            file.write("Some words to train on, and then some more of them. " * 15)  # 12 samples of 64 bytes

    def rows(self, folder):
        with open(self.path(folder, "results.csv"), newline="") as file:
            return list(csv.DictReader(file))

    def check_files(self, folder, charts):
        for chart in charts:
            with open(self.path(folder, chart + ".png"), "rb") as file:
                self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n", chart)
        with open(self.path(folder, "index.html")) as file:
            page = file.read()
        self.assertEqual(page.count("data:image/png;base64,"), len(charts))
        self.assertNotRegex(page, r'(src|href)="(?!data:)', "the page needs no other file")
        self.assertNotIn("<script", page)
        return page

    def test_runs_each_configuration_and_goes_on_after_a_failure(self):
        # 32 micro-batches of 4 samples do not fit the text: those two configurations fail, the others are measured.
        done = self.tool("tessera-compare", MODEL, "--strategies", "ddp,zero3", "--batch-sizes", "4", "--accumulate", "1,32",
                         "--ranks", "2", "--steps", "2", "--data", "text.txt", "--out", "results", "--run-flags=--threads 1 --weights fresh")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("2 of 4 configurations worked", done.stdout)
        rows = self.rows("results")
        self.assertEqual([(row["strategy"], row["accumulate"], row["status"]) for row in rows],
                         [("ddp", "1", "ok"), ("ddp", "32", "failed"), ("zero3", "1", "ok"), ("zero3", "32", "failed")])
        for row in rows:
            if row["status"] == "failed":
                self.assertRegex(row["error"], "tessera-run ended with 1: .*sample")
                continue
            parts = sum(float(row[name]) for name in ("compute_seconds", "exposed_communication_seconds",
                                                      "data_wait_seconds", "host_seconds"))
            self.assertAlmostEqual(parts, float(row["step_seconds"]), places=9)
            self.assertAlmostEqual(float(row["tokens_per_second"]) * float(row["step_seconds"]), 4 * 64, places=6)
            for name in ("utilisation", "memory_reserved", "rss_peak", "predicted_step_seconds", "loss"):
                self.assertGreater(float(row[name]), 0, name)
        ddp, zero3 = rows[0], rows[2]
        self.assertLess(int(zero3["memory_reserved"]), int(ddp["memory_reserved"]))
        self.assertGreater(float(zero3["communication_bytes"]), float(ddp["communication_bytes"]))
        self.assertAlmostEqual(float(zero3["loss"]), float(ddp["loss"]), places=5)
        page = self.check_files("results", (*CHARTS, "memory-over-run"))
        self.assertIn("tessera-run ended with 1", page)
        with open(self.path("results", "results.json")) as file:
            raw = json.load(file)
        self.assertEqual(raw["format"], "tessera-compare")
        self.assertEqual(len(raw["configurations"][0]["steps"]), 2)
        self.assertEqual(raw["configurations"][0]["record"]["step_seconds"], float(ddp["step_seconds"]))

    def test_all_strategies_on_a_hybrid_mesh(self):
        strategies = ["ddp", "zero1", "zero2", "zero3", "hsdp"]
        self.succeed("tessera-compare", MODEL, "--strategies", ",".join(strategies), "--batch-sizes", "4", "--accumulate", "2",
                     "--mesh", "replicate=2,shard=2", "--steps", "2", "--data", "text.txt", "--out", "results",
                     "--run-flags=--threads 1 --weights fresh")
        rows = {row["strategy"]: row for row in self.rows("results")}
        self.assertEqual(list(rows), strategies)
        for row in rows.values():
            self.assertEqual((row["status"], row["ranks"]), ("ok", "4"), row["error"])
            self.assertAlmostEqual(float(row["loss"]), float(rows["ddp"]["loss"]), places=5)
        memory = [int(rows[name]["memory_reserved"]) for name in strategies]
        self.assertEqual(memory, sorted(memory, reverse=True))
        sent = [float(rows[name]["communication_bytes"]) for name in strategies]
        self.assertEqual(sent, sorted(sent))
        for name in ("memory_reserved", "communication_bytes", "loss"):
            self.assertEqual(rows["hsdp"][name], rows["zero3"][name], name)

    def test_further_flags_are_passed_on_and_told(self):
        self.succeed("tessera-compare", MODEL, "--batch-sizes", "4", "--strategies", "ddp", "--steps", "2", "--data", "text.txt",
                     "--out", "results", "--compile-flags", "--remat full --lr 0.5", "--run-flags=--threads 1 --weights fresh")
        with open(self.path("results", "results.json")) as file:
            raw = json.load(file)
        self.assertEqual(raw["compile_flags"], ["--remat", "full", "--lr", "0.5"])
        self.assertEqual(raw["run_flags"], ["--threads", "1", "--weights", "fresh"])
        self.assertEqual([step["lr"] for step in raw["configurations"][0]["steps"]][0], 0.5)
        page = self.check_files("results", (*CHARTS, "memory-over-run"))
        self.assertIn("further flags of tessera-compile: --remat full --lr 0.5; further flags of tessera-run: --threads 1 "
                      "--weights fresh", page)

    def test_a_run_that_takes_too_long_is_given_up(self):
        done = self.tool("tessera-compare", MODEL, "--batch-sizes", "4", "--strategies", "ddp", "--steps", "1000000", "--data",
                         "text.txt", "--out", "results", "--timeout", "10", "--run-flags=--weights fresh")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("tessera-run took more than 10 s", done.stdout)
        [row] = self.rows("results")
        self.assertEqual(row["status"], "failed")
        log = self.path("results", "runs", "ddp-b4-a1", "log.txt")
        self.assertIn(os.path.join("results", "runs", "ddp-b4-a1", "log.txt"), row["error"])
        with open(log) as file:
            self.assertIn("planned per rank", file.read())  # what the run said before

    def test_plans_for_a_machine_that_is_not_there(self):
        output = self.succeed("tessera-compare", MODEL, "--strategies", "zero3,ddp", "--batch-sizes", "16,32", "--mesh",
                              "replicate=2,shard=8", "--plan-only", "--target", "h100x8", "--out", "plan")
        rows = self.rows("plan")
        self.assertEqual([row["ranks"] for row in rows], ["16"] * 4)
        for row in rows:
            self.assertEqual(row["status"], "ok", row["error"])
            self.assertEqual(row["step_seconds"], row["predicted_step_seconds"])
            self.assertEqual(row["loss"], "")
        self.check_files("plan", CHARTS)
        self.assertRegex(output, r"zero3 b16 a1 +[0-9,]+ ")
        again = self.succeed("tessera-compare", MODEL, "--strategies", "zero3,ddp", "--batch-sizes", "16,32", "--mesh",
                             "replicate=2,shard=8", "--plan-only", "--target", "h100x8", "--out", "again")
        self.assertEqual(re.sub(r"see .*", "", output), re.sub(r"see .*", "", again))
        with open(self.path("plan", "results.csv"), "rb") as first, open(self.path("again", "results.csv"), "rb") as second:
            self.assertEqual(first.read(), second.read())

    def test_bad_flags_end_before_anything_runs(self):
        grid = ("--batch-sizes", "4", "--out", "out")
        for message, flags in (
                ("--strategy: unknown value 'zero9'", (MODEL, "--strategies", "ddp,zero9", *grid, "--data", "text.txt")),
                ("has a strategy twice", (MODEL, "--strategies", "ddp,ddp", *grid, "--data", "text.txt")),
                ("expected a number of at least 1, got '0'", (MODEL, "--batch-sizes", "4,0", "--out", "out", "--data", "text.txt")),
                ("3 does not divide by 2 ranks", (MODEL, "--batch-sizes", "3", "--ranks", "2", "--out", "out", "--data", "text.txt")),
                ("no file 'none.onnx'", ("none.onnx", *grid, "--data", "text.txt")),
                ("--data: needed to run", (MODEL, *grid)),
                ("no file or folder 'nowhere'", (MODEL, *grid, "--data", "nowhere")),
                ("--plan-only: runs nothing, --data has no meaning", (MODEL, *grid, "--plan-only", "--data", "text.txt")),
                ("expected 0 to 1, got 2", (MODEL, *grid, "--data", "text.txt", "--steps", "2", "--warmup", "2")),
                ("unknown axis 'ring' needs a role", (MODEL, *grid, "--data", "text.txt", "--mesh", "ring=2")),
                ("No closing quotation", (MODEL, *grid, "--data", "text.txt", "--run-flags", "'"))):
            with self.subTest(message):
                done = self.tool("tessera-compare", *flags)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertIn(message, done.stderr)
                self.assertFalse(os.path.exists(self.path("out")))
        os.makedirs(self.path("full", "old"))
        done = self.tool("tessera-compare", MODEL, "--batch-sizes", "4", "--data", "text.txt", "--out", "full")
        self.assertEqual(done.returncode, 2)
        self.assertIn("exists and is not an empty folder", done.stderr)
