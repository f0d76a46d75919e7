"""tessera-compare: runs and plans a grid of configurations; leaves a table, raw results, charts and one page."""

import csv
import json
import os
import re
import shlex
import shutil
import subprocess

from harness import BIN, MODELS, ROOT, ToolTest

MODEL = os.path.join(MODELS, "gpt.ts17.onnx")
CHARTS = ("tokens-per-second", "flops-per-second", "memory", "communication", "utilisation", "step-time", "memory-over-step")


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
            with open(self.path(folder, chart + ".pdf"), "rb") as file:
                points = list(map(float, re.search(rb"/MediaBox \[ 0 0 ([0-9.]+) ([0-9.]+) \]", file.read()).groups()))
            self.assertLessEqual(points, [72 * 6.5, 72 * 9.5], chart)  # a page less its margins
            with open(self.path(folder, chart + ".svg")) as file:
                self.assertIn("<text", file.read(), "letters stay letters")
        with open(self.path(folder, "index.html")) as file:
            page = file.read()
        self.assertEqual(page.count("data:image/png;base64,"), len(charts))
        self.assertNotRegex(page, r'(src|href)="(?!data:)', "the page needs no other file")
        self.assertNotIn("<script", page)
        return page

    def test_a_pipe_that_is_closed_and_a_name_that_is_no_text(self):
        name = os.fsencode(self.path("gpt")) + b"\xfc.onnx"
        shutil.copy(MODEL, name)
        command = [os.path.join(BIN, "tessera-compare"), name, "--batch-sizes", "4", "--ranks", "2", "--plan-only", "--out", self.path("out")]
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=300)
        os.close(write)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check_files("out", [chart[:-4] for chart in os.listdir(self.path("out")) if chart.endswith(".png")])

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

    def test_what_does_not_fit_the_device_is_never_best(self):
        """The same machine, but with a memory between what ZeRO-3 and DDP need."""
        def plan(out, target):
            return self.succeed("tessera-compare", MODEL, "--strategies", "ddp,zero3", "--precision", "fp32,bf16", "--remat", "none,full",
                                "--batch-sizes", "16", "--ranks", "8", "--plan-only", "--target", target, "--out", out)
        output = plan("plan", "h100x8")
        rows = self.rows("plan")
        self.assertEqual(len(rows), 8)
        self.assertEqual({row["fits"] for row in rows}, {"yes"})
        self.assertIn("All fit: a device has ", output)
        needed = {row["strategy"]: [] for row in rows}
        for row in rows:
            needed[row["strategy"]].append(int(row["memory_reserved"]) + int(row["memory_libraries"]))
        limit = max(needed["zero3"])
        self.assertLess(limit, max(needed["ddp"]))
        with open(os.path.join(ROOT, "compiler", "cost", "targets", "h100x8.json")) as file:
            target = json.load(file)
        target["device_memory"]["value"] = limit
        with open(self.path("small.json"), "w") as file:
            json.dump(target, file)
        output = plan("small", "small.json")
        rows = self.rows("small")
        for row in rows:
            fits = int(row["memory_reserved"]) + int(row["memory_libraries"]) <= limit
            self.assertEqual(row["fits"], "yes" if fits else "no")
        large = [row for row in rows if row["fits"] == "no"]
        self.assertIn(f"{len(large)} of 8 need more memory than there is", output)
        best = max((row for row in rows if row["fits"] == "yes"), key=lambda row: float(row["tokens_per_second"]))
        name = f"{best['strategy']} {best['precision']} {best['remat']} b{best['batch']} a1"
        self.assertIn(f"Most tokens per second of those that fit: {name}.", output)
        page = self.check_files("small", CHARTS)
        self.assertIn(f'<tr class="best"><td>{name}</td>', page)
        self.assertEqual(page.count('<tr class="large">'), len(large))

    def test_lengths_and_what_is_said_of_strategies(self):
        """Lengths are an axis; a sentence has the ratios of all pairs that differ in the strategy only."""
        said = self.succeed("tessera-compare", os.path.join(ROOT, "tools", "demo", "gpt.pt2"), "--strategies", "zero2,zero3", "--seq", "32,64",
                            "--batch-sizes", "4", "--ranks", "2", "--plan-only", "--target", "h100x8", "--out", "lengths")
        rows = self.rows("lengths")
        self.assertEqual([(row["strategy"], row["sequence"]) for row in rows],
                         [("zero2", "32"), ("zero2", "64"), ("zero3", "32"), ("zero3", "64")])
        self.assertIn("zero3 s64 b4 a1", said)
        parts = []
        for column, of in (("memory_reserved", "memory of a rank"), ("communication_bytes", "bytes sent"), ("tokens_per_second", "tokens/s")):
            ratios = [f"{float(zero3[column]) / float(zero2[column]):.2f}" for zero2, zero3 in zip(rows[:2], rows[2:])]
            low, high = sorted(ratios, key=float)
            parts.append(f"{low if low == high else f'{low} to {high}'} of the {of}")
        sentence = f"zero3 has {', '.join(parts)} of zero2 (2 pairs)."
        self.assertIn(sentence, said)
        self.assertRegex(said, r"Of a step: .* exposed communication, 0\.0% data, 0\.0% host\. Utilisation: \S+% to \S+%\.")
        self.assertIn(sentence, self.check_files("lengths", CHARTS))

    def test_the_commands_of_the_docs(self):
        """Every command that the README and the page show is one that the tool takes, sizes of the model included."""
        open_sizes = os.path.join(ROOT, "tools", "demo", "gpt.pt2")
        for name in ("README.md", os.path.join("docs", "tessera-compare.md"), os.path.join("docs", "guides", "zero2-zero3.md")):
            with open(os.path.join(ROOT, name)) as file:
                commands = re.findall(r"^(?:\$ )?tessera-compare ((?:.*\\\n)*.*--.*)$", file.read(), re.MULTILINE)
            self.assertTrue(commands, name)
            for command in commands:
                words = shlex.split(command.replace("\\\n", " "))
                self.assertTrue("--seq" in words, command)
                known = subprocess.run(["/usr/bin/python3", "-c", "import configurations, sys; configurations.parser().parse_args(sys.argv[1:])",
                                        *words], cwd=os.path.join(ROOT, "tools", "tessera-compare"), capture_output=True, text=True)
                self.assertEqual(known.returncode, 0, command + known.stderr)
        done = self.tool("tessera-compare", open_sizes, "--batch-sizes", "4", "--data", "text.txt", "--out", "out")
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("--seq", done.stderr)

    def test_bad_flags_end_before_anything_runs(self):
        grid = ("--batch-sizes", "4", "--out", "out")
        for message, flags in (
                ("--strategy: unknown value 'zero9'", (MODEL, "--strategies", "ddp,zero9", *grid, "--data", "text.txt")),
                ("--remat: unknown value 'some'", (MODEL, "--remat", "none,some", *grid, "--data", "text.txt")),
                ("--precision: unknown value 'bf15'", (MODEL, "--precision", "bf15", *grid, "--data", "text.txt")),
                ("has a policy twice", (MODEL, "--remat", "full,full", *grid, "--data", "text.txt")),
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
