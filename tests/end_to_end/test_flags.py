"""Flags of the tools, by what they change in a run."""

import json
import os
import re
import shutil
import subprocess

import numpy as np

from harness import BIN, MODELS, ROOT, Golden, ToolTest, safetensors


class CompileFlags(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        self.model = [self.golden.model, "--batch", self.golden.batch, "--seq", self.golden.sequence]

    def train(self, name, *flags, steps=1, run_flags=(), data=None):
        """Parameters before and after `steps` steps of the golden's data, or of `data`, and the metrics."""
        self.succeed("tessera-compile", *self.model, *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", data or self.golden.data, "--order", "sequential",
                     "--steps", steps, "--weights", self.golden.weights, "--threads", 1, "--out", name, *run_flags)
        return safetensors.load(self.path(name, "model.safetensors")), self.metrics(name)

    def test_values_that_no_pass_can_take(self):
        for message, *flags in (("--no-decay: braces must be balanced, got 'a}'", "--no-decay", "a}"),
                                ("--keep-gathered: braces must be balanced", "--strategy", "zero3", "--keep-gathered", "a{"),
                                ("--init: braces must be balanced", "--init", "b=zeros}"),
                                ("--loss: braces must be balanced", "--loss", "output:}{"),
                                ("the model has no output 'a b'", "--loss", "output:a b"),
                                ("--wrap: expected size:<bytes> .100MB., got 'size:1 2'", "--wrap", "size:1 2"),
                                ("--clip-norm must be finite and not negative", "--clip-norm", "inf"),
                                ("--lr and --min-lr must be finite and not negative", "--lr", "nan"),
                                ("--weight-decay must be finite and not negative", "--weight-decay", "inf"),
                                ("ignore-index must be a 32-bit integer", "--ignore-index", "4294967296"),
                                ("micro-batches of .* are too large", "--accumulate", "4611686018427387904")):
            with self.subTest(" ".join(flags)):
                self.fail_with(message, "tessera-compile", *self.model, *flags, "-o", "no.tessera")
                self.assertFalse(os.path.exists(self.path("no.tessera")))

    def test_names_of_nothing(self):
        """Every flag that takes names says so where it names nothing, or where another flag goes before all that it names."""
        zero3 = ("--mesh", "shard=2", "--strategy", "zero3")
        bf16, fp8, place = ("--precision", "bf16"), ("--precision", "fp8"), ("--mesh", "tp=2", "--place")
        for message, *flags in (
                ("--parameters: no tensor matches 'h.0.lm_1.weights'; nearest: 'h.0.ln_1.weight', ", "--parameters", "h.0.lm_1.weights"),
                ("--constants: no tensor matches 'zzz'; nearest: ", "--constants", "zzz"),
                ("--frozen: no tensor matches 'zzz'; nearest: ", "--frozen", "zzz"),
                ("--tied: no tensor matches 'zzz'; nearest: ", "--tied", "zzz"),
                ("--padding-idx: no tensor matches 'zzz'; nearest: ", "--padding-idx", "zzz=0"),
                ("--padding-idx: 'wte.weight' has row 1 and, by 'wte', row 2", "--padding-idx", "wte.weight=1", "--padding-idx", "wte=2"),
                ("--parameters: 'ln_1' changes nothing: 'h.0.ln_1.weight', which it matches, is a constant (--constants)",
                 "--parameters", "ln_1", "--constants", "h.0.ln|h.1.ln"),
                ("--parameters: 'ln_1' changes nothing: 'h.0.ln_1.weight', which it matches, is frozen (--frozen)",
                 "--parameters", "ln_1", "--frozen", r"^h\.\d"),
                ("--frozen: 'ln_1' changes nothing: 'h.0.ln_1.weight', which it matches, is a constant (--constants)",
                 "--frozen", "ln_1", "--constants", "h.0.ln|h.1.ln"),
                (r"--no-decay: no trained parameter matches 'h\.\d\.lm_1'; nearest: 'h.0.ln_1.weight', 'h.0.ln_1.bias'",
                 "--no-decay", r"h\.\d\.lm_1"),
                ("--no-decay: no trained parameter matches 'wte'; nearest: ", "--no-decay", "wte", "--frozen", "wte"),
                ("--init: no parameter matches 'zzz'; nearest: ", "--init", "zzz=zeros"),
                ("--init: rules before it match all that is matched by 'ln_1=zeros'", "--init", "ln=zeros", "--init", "ln_1=zeros"),
                ("--place: no parameter matches 'zzz'; nearest: ", *place, "zzz=0"),
                ("--place: rules before it match all that is matched by 'c_fc.weight=1'", *place, "c_fc=0", "--place", "c_fc.weight=1"),
                ("--lora: targets: no matrix that multiplies activations matches 'zzz'; nearest: ", "--lora", "rank=2,alpha=2,targets=zzz"),
                ("--lora: train: no trained parameter matches 'zzz'; nearest: ", "--lora", "rank=2,alpha=2,targets=c_fc,train=zzz"),
                ("--lora: both targets and train match 'h.0.mlp.c_fc.weight'", "--lora", "rank=2,alpha=2,targets=c_fc,train=c_fc"),
                ("--keep-f32: no parameter matches 'zzz'; nearest: ", *bf16, "--keep-f32", "zzz"),
                ("--fp8-filter: no parameter of a product matches 'zzz'; nearest: ", *fp8, "--fp8-filter", "zzz"),
                ("--keep-gathered: no unit matches 'zzz'; nearest: ", *zero3, "--keep-gathered", "zzz"),
                ("--dim: no input has a symbolic dimension 'zzz'", "--dim", "zzz=3"),
                ("--dim: 'zzz' is bound to 3 and to 4", "--dim", "zzz=3", "--dim", "zzz=4"),
                ("--dim-role zzz:0=batch: the model has no input 'zzz'; nearest: ", "--dim-role", "zzz:0=batch"),
                ("dimension 1 of 'tokens' is named twice", "--dim-role", "tokens:1=sequence,1=batch"),
                ("is not a regular expression of RE2: invalid perl operator: (?!", "--no-decay", "(?!ln)")):
            with self.subTest(" ".join(flags)):
                self.fail_with(re.escape(message), "tessera-compile", *self.model, *flags, "-o", "no.tessera")
                self.assertFalse(os.path.exists(self.path("no.tessera")))
        with open(self.path("step.mlir"), "w") as file:
            file.write("module {}\n")
        for flag in ("--parameters", "--constants", "--frozen", "--tied"):
            self.fail_with(f"{flag}: step.mlir says so itself", "tessera-compile", "step.mlir", flag, "x", "-o", "no.tessera")

    def test_one_dialect_of_regular_expressions(self):
        """Classes, groups that capture nothing, and what names nothing on purpose."""
        sgd = ("--optimizer", "sgd", "--lr", 0.5, "--momentum", 0, "--weight-decay", 0.5)
        some, _ = self.train("some", *sgd, "--no-decay", r"^h\.\d\.(?:ln_\w+|attn)\.")
        every, _ = self.train("every", *sgd, "--no-decay", "none")
        for name, value in some.items():
            decays = not re.search(r"^h\.\d\.(?:ln_\w+|attn)\.", name)
            self.assertEqual(np.array_equal(value, every[name]), decays or not np.any(self.golden.load("weights")[name]), name)

    def test_a_run_without_data_says_what_the_model_takes(self):
        self.succeed("tessera-compile", os.path.join(MODELS, "gpt.ts17.onnx"), "--batch", 8, "-o", "a.tessera")
        output = self.fail_with("'a.tessera' takes tokens, 65 for a sample and below 256: ", "tessera-run", "a.tessera")
        self.assertIn("  tokens: I64 [samples, 64], from 0 to 255\n", output)
        self.assertIn("  targets: I32 [samples, 64]", output)

    def test_help_fits_the_terminal(self):
        for tool in ("tessera-run", "tessera-dump"):
            with self.subTest(tool):
                done = subprocess.run([os.path.join(BIN, tool), "--help"], env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True)
                lines = done.stdout.split("\n")
                options = lines[:next((i for i, line in enumerate(lines) if line.startswith("Example")), len(lines))]
                self.assertGreater(len(options), 15)
                self.assertLessEqual(max(map(len, options)), 80)

    def test_a_model_is_no_artifact(self):
        shutil.copy(os.path.join(ROOT, "tools", "demo", "gpt.pt2"), self.path("net.pt2"))
        for tool, *words in (("tessera-dump",), ("tessera-run", "--data", "x", "--out", "o")):
            self.fail_with("'net.pt2': this is an exported PyTorch program, not an artifact; compile it first: tessera-compile net.pt2 -o ",
                           tool, "net.pt2", *words)

    def test_command_lines_that_are_wrong(self):
        """They end with 2, in one line."""
        for message, name, *words in (
                ("tessera-run: error: unknown flag --step; nearest: --steps", "tessera-run", "a.tessera", "--step", 5),
                ("tessera-run: error: unknown flag --stpes; nearest: --steps", "tessera-run", "a.tessera", "--stpes=5"),
                ("tessera-run: error: unknown flag --zzzzzz; --help lists those there are", "tessera-run", "a.tessera", "--zzzzzz"),
                ("tessera-run: error: 'b.tessera' is one word too many", "tessera-run", "a.tessera", "b.tessera"),
                ("tessera-run: error: --data is required, what to train on: ", "tessera-run", "a.tessera"),
                ("tessera-run: error: --out is required, a folder ", "tessera-run", "a.tessera", "--data", "x.bin"),
                ("tessera-run: error: artifact is required", "tessera-run"),
                ("tessera-compile: error: unknown flag --optimiser; nearest: --optimizer", "tessera-compile", "m.onnx", "--optimiser", "sgd"),
                ("tessera-compile: error: --batch must be at least 1, got 0", "tessera-compile", "m.onnx", "--batch", 0),
                ("tessera-compile: error: --seq must be at least 1, got -3", "tessera-compile", "m.onnx", "--seq", -3),
                ("tessera-compile: error: -o: the artifact needs a file name", "tessera-compile", "m.onnx"),
                ("tessera-compile: error: --label-smoothing and --ignore-index are of --loss cross-entropy, got --loss mse",
                 "tessera-compile", "m.onnx", "--loss", "mse", "--label-smoothing", 0.1, "-o", "a"),
                ("tessera-compile: error: --loss: unknown value 'hinge'", "tessera-compile", "m.onnx", "--loss", "hinge", "-o", "a"),
                ("tessera-dump: error: unknown flag --memry; nearest: --memory", "tessera-dump", "a.tessera", "--memry"),
                ("tessera-calibrate: error: -o: expected a file", "tessera-calibrate", "-o", "here")):
            with self.subTest(message):
                done = self.tool(name, *words)
                self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
                self.assertEqual(done.stderr.splitlines()[0][:len(message)], message)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        os.mkdir(self.path("folder"))
        self.fail_with("folder is a folder, expected a file of a model: .*export hf:folder -o net.pt2", "tessera-compile", "folder",
                       "-o", "a.tessera")

    def test_nesterov_adds_the_momentum_of_the_first_gradient(self):
        before = self.golden.load("weights")
        sgd = ("--optimizer", "sgd", "--lr", 0.125, "--weight-decay", 0, "--momentum", 0.5)
        plain, _ = self.train("plain", *sgd)
        nesterov, _ = self.train("nesterov", *sgd, "--nesterov")
        for name, value in plain.items():
            step, want = nesterov[name] - before[name], 1.5 * (value - before[name])
            self.assertLessEqual(np.abs(step - want).max(), 1e-6 * max(1, np.abs(before[name]).max()), name)
            self.assertGreater(np.abs(step).max(), 0, name)
        self.assertIn("nesterov=true", self.succeed("tessera-dump", "nesterov.tessera"))

    def test_parameters_without_decay_are_chosen_by_name(self):
        sgd = ("--optimizer", "sgd", "--lr", 0.5, "--momentum", 0)
        without, _ = self.train("without", *sgd, "--weight-decay", 0)
        chosen, _ = self.train("chosen", *sgd, "--weight-decay", 0.5, "--no-decay", "attn")
        for name, value in without.items():
            same = np.array_equal(value, chosen[name])
            self.assertEqual(same, "attn" in name or not np.any(self.golden.load("weights")[name]), name)

    def test_targets_ignored_and_smoothed(self):
        _, (plain,) = self.train("plain")
        # Smoothing is linear in its amount: at 0.5 it moves the loss twice as far as at 0.25.
        _, (smooth,) = self.train("smooth", "--label-smoothing", 0.25)
        _, (more,) = self.train("more", "--label-smoothing", 0.5)
        self.assertAlmostEqual(more["loss"] - plain["loss"], 2 * (smooth["loss"] - plain["loss"]), places=5)
        self.assertGreater(abs(smooth["loss"] - plain["loss"]), 1e-4)
        # -100, the default, and another index ignore the same targets.
        data = {name: value[: self.golden.batch].copy() for name, value in self.golden.load("data").items()}
        ignored = np.isin(data["targets"], (-100, 7))
        losses = {}
        for index, flags in ((-100, ()), (7, ("--ignore-index", 7))):
            data["targets"][ignored] = index
            safetensors.save(data, self.path("data.safetensors"))
            _, (record,) = self.train(f"ignored{index}", *flags, data="data.safetensors")
            losses[index] = record["loss"]
        self.assertEqual(losses[-100], losses[7])
        self.assertNotEqual(losses[7], plain["loss"])
        data["targets"][:] = -100
        safetensors.save(data, self.path("data.safetensors"))
        done = self.tool("tessera-run", "plain.tessera", "--data", "data.safetensors", "--steps", 1, "--out", "none")
        self.assertIn("the loss of step 1 is 0: where all targets of a step are ignored, this is its loss", done.stderr)

    def test_threads_that_the_environment_takes_away(self):
        """oneDNN is wrong with fewer threads than it asked for: a rank computes with as many as OpenMP gives it, and says so."""
        self.succeed("tessera-compile", *self.model, "-o", "net.tessera")

        def run(name, threads, **variables):
            done = self.tool("tessera-run", "net.tessera", "--data", self.golden.data, "--order", "sequential", "--steps", 2, "--weights",
                             self.golden.weights, "--threads", threads, "--out", name, env={**os.environ, **variables})
            self.assertEqual(done.returncode, 0, done.stderr)
            return [record["loss"] for record in self.metrics(name)], done
        one, _ = run("one", 1)
        two, _ = run("two", 2)
        for at, variables in enumerate(({"OMP_DYNAMIC": "true"}, {"OMP_MAX_ACTIVE_LEVELS": "0"}, {"OMP_NUM_THREADS": "1"})):
            self.assertEqual(run(f"same{at}", 2, **variables)[0], two, variables)
        losses, done = run("limited", 2, OMP_THREAD_LIMIT="1")
        self.assertEqual(losses, one)
        self.assertIn("OpenMP gives a rank 1 of 2 threads", done.stderr)
        self.assertIn("1 rank x 1 threads", done.stdout)

    def test_a_cosine_ends_at_its_lowest_rate(self):
        _, records = self.train("cosine", "--schedule", "cosine", "--lr", 0.01, "--min-lr", 0.001, steps=3)
        self.assertAlmostEqual(records[-1]["lr"], 0.001, places=9)
        _, records = self.train("other", "--schedule", "cosine", "--lr", 0.01, steps=3, run_flags=("--min-lr", 0.002))
        self.assertAlmostEqual(records[-1]["lr"], 0.002, places=9)

    def test_utilisation_of_a_given_peak(self):
        _, (record,) = self.train("peak", run_flags=("--peak-gflops", 100))
        flops = re.search(r"flops_per_step=(\d+)", self.succeed("tessera-dump", "peak.tessera"))
        self.assertAlmostEqual(record["mfu"], int(flops[1]) / (record["step_seconds"] * 100e9), places=6)

    def test_printed_pipelines_do_what_the_phases_do(self):
        flags = [*self.model, "--mesh", "fsdp=2,tp=2", "--strategy", "zero3", "--place", "mlp.c_fc.=0", "--place",
                 "mlp.c_proj.weight=1", "--no-decay", "x{1,3}, y|bias", "--init", "c_fc.weigh[t]{1,2}=normal:0.01", "--remat",
                 "budget=1e9", "--ema", 0.987654321, "--clip-norm", 0.1234567891, "--label-smoothing", 0.12345678901]
        pipelines = dict(line.split(": ", 1)
                         for line in self.succeed("tessera-compile", *flags, "--print-pipelines").splitlines())
        phases = ("import", "differentiate", "optimize", "precision", "shard", "schedule", "lower")
        for phase in phases:
            with open(self.path(phase + ".mlir"), "w") as file:
                file.write(self.succeed("tessera-compile", *flags, "--compile-to", phase))
        for before, phase in zip(phases, phases[1:]):
            with self.subTest(phase):
                # Read and written again, so that both are printed without locations.
                ours = self.succeed("tessera-opt", phase + ".mlir")
                theirs = self.succeed("tessera-opt", before + ".mlir", f"--pass-pipeline={pipelines[phase]}")
                self.assertEqual(ours, theirs)

    def test_timing_lists_the_phases(self):
        done = self.tool("tessera-compile", *self.model, "-o", "a.tessera", "--timing")
        self.assertEqual(done.returncode, 0)
        for phase in ("import", "differentiate", "optimize", "precision", "shard", "schedule", "lower", "artifact", "total"):
            self.assertRegex(done.stdout + done.stderr, rf"(?m)^{phase} +\d+\.\d+")

    def test_versions_agree(self):
        version = self.succeed("tessera-compile", "--version")
        self.assertRegex(version, r"^\d+\.\d+\.\d+\n$")
        for tool in ("tessera-run", "tessera-dump", "tessera-calibrate", "tessera-compare"):
            self.assertEqual(self.succeed(tool, "--version"), version, tool)


class DataFlags(ToolTest):
    def test_the_field_that_holds_the_text(self):
        golden = Golden("gpt")
        self.succeed("tessera-compile", golden.model, "--batch", 2, "--seq", golden.sequence, "-o", "a.tessera")
        os.mkdir(self.path("data"))
        with open(self.path("data", "a.jsonl"), "w") as file:
            for _ in range(200):
                file.write(json.dumps({"text": "ab", "body": "aaaaaaaaaaaaaaaa"}) + "\n")
        for field, low, high in (("text", 0.9, 1.2), ("body", 0.1, 0.4)):
            self.succeed("tessera-run", "a.tessera", "--data", "data", "--steps", 1, "--text-field", field, "--out", field)
            with open(self.path(field, "run.json")) as file:
                self.assertTrue(low < json.load(file)["unigram_entropy"] < high)
        self.fail_with("has no field 'title'", "tessera-run", "a.tessera", "--data", "data", "--steps", 1, "--text-field",
                       "title", "--out", "title")
