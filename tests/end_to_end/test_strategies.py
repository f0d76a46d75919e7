"""Every strategy trains as one rank does: by wrap policy, micro-batches, prefetch policy and mesh.

The reference of each case is one rank on the same batch. Runs whose sums are made in the same order are compared to the
bit: docs/strategies.md says which are, and why the others are not.
"""

import json
import os

import numpy as np

from harness import Golden, ToolTest
import safetensors

STEPS, SAMPLES, SEQUENCE = 3, 12, 64
MESHES = {"1": None, "2": "shard=2", "4": "shard=4", "2x2": "replicate=2,shard=2"}
STRATEGIES = ("ddp", "zero1", "zero2", "zero3")


class StrategyTest(ToolTest):
    """One model and one set of data, the first rows of the goldens."""

    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        safetensors.save(self.golden.cut(STEPS * SAMPLES, SEQUENCE), self.path("data.safetensors"))

    def compile(self, name, *flags, mesh="1", accumulate=1):
        flags = list(flags)
        if MESHES[mesh]:
            flags += ["--mesh", MESHES[mesh]]
        self.succeed("tessera-compile", self.golden.model, "--batch", SAMPLES // accumulate, "--seq", SEQUENCE,
                     "--accumulate", accumulate, "--lr", 1e-3, "--clip-norm", 0.3, *flags, "-o", name + ".tessera")

    def train(self, name, *flags, mesh="1", accumulate=1):
        self.compile(name, *flags, mesh=mesh, accumulate=accumulate)
        self.succeed("tessera-run", name + ".tessera", "--data", "data.safetensors", "--order", "sequential", "--steps",
                     STEPS, "--weights", self.golden.weights, "--out", name, "--threads", 1)
        return name

    def dump(self, name, section):
        return json.loads(self.succeed("tessera-dump", name + ".tessera", "--" + section, "--json"))[section]

    def losses(self, name):
        return [record["loss"] for record in self.metrics(name)]

    def final(self, name):
        return safetensors.load(self.path(name, "model.safetensors"))

    def assert_close(self, name, reference):
        self.assertEqual(len(self.losses(name)), STEPS)
        for got, want in zip(self.losses(name), self.losses(reference)):
            self.assertLessEqual(abs(got - want) / want, 1e-6, f"{name} against {reference}")

    def assert_bitwise(self, name, reference):
        self.assertEqual(self.losses(name), self.losses(reference), f"{name} against {reference}")
        first, second = self.final(name), self.final(reference)
        self.assertEqual(sorted(first), sorted(second))
        for parameter, value in first.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), second[parameter].view(np.uint32)),
                            f"{parameter} of {name} against {reference}")


class Equality(StrategyTest):
    """One training by many ways. The cases are a covering of strategy x wrap x micro-batches x prefetch x mesh."""

    def test_strategies(self):
        for accumulate in (1, 3):
            one = self.train(f"one-{accumulate}", accumulate=accumulate)
            for mesh in ("2", "4", "2x2"):
                for strategy in STRATEGIES:
                    name = f"{strategy}-{mesh}-{accumulate}"
                    self.train(name, "--strategy", strategy, mesh=mesh, accumulate=accumulate)
                    with self.subTest(name):
                        self.assert_close(name, one)
                with self.subTest(f"equal to the bit on {mesh}, {accumulate} micro-batches"):
                    self.assert_bitwise(f"zero2-{mesh}-{accumulate}", f"zero3-{mesh}-{accumulate}")
                    if mesh != "2x2":
                        self.assert_bitwise(f"zero1-{mesh}-{accumulate}", f"ddp-{mesh}-{accumulate}")
                    if accumulate == 1:
                        self.assert_bitwise(f"zero1-{mesh}-1", f"zero3-{mesh}-1")

    def test_schedules(self):
        """Where a collective stands changes no sum."""
        for mesh, accumulate, wrap in (("2", 3, "module"), ("4", 1, "size:40000"), ("2x2", 3, "none")):
            flags = ["--strategy", "zero3", "--wrap", wrap]
            one = self.train(f"one-{wrap}-{accumulate}", "--wrap", wrap, accumulate=accumulate)
            reference = self.train(f"reference-{wrap}", *flags, "--prefetch", "none", mesh=mesh, accumulate=accumulate)
            self.assert_close(reference, one)
            for number, schedule in enumerate((
                    ["--prefetch", "forward=2,backward=pre"],
                    ["--prefetch", "forward=1,backward=post"],
                    ["--prefetch", "auto"],
                    ["--keep-gathered", "."],
            )):
                name = f"{wrap.replace(':', '-')}-{number}"
                self.train(name, *flags, *schedule, mesh=mesh, accumulate=accumulate)
                with self.subTest(wrap=wrap, schedule=schedule):
                    self.assert_bitwise(name, reference)
            combined = self.train(f"combined-{wrap}", *flags, "--combine-bytes", 100000, mesh=mesh, accumulate=accumulate)
            self.assert_close(combined, one)

    def test_other_strategies_on_other_units(self):
        for strategy, mesh, accumulate, wrap, prefetch in (
                ("zero1", "2", 3, "none", "auto"), ("zero2", "4", 3, "size:40000", "forward=2,backward=post"),
                ("ddp", "2x2", 1, "size:40KB", "none"), ("zero1", "2x2", 3, "size:40000", "none"),
                ("zero2", "2x2", 1, "none", "auto"), ("hsdp", "2x2", 1, "module", "none"),
                ("hsdp", "2x2", 3, "size:40000", "forward=2,backward=post")):
            one = f"one-{wrap}-{accumulate}"
            if not os.path.exists(self.path(one)):
                self.train(one, "--wrap", wrap, accumulate=accumulate)
            flags = ["--wrap", wrap, "--prefetch", prefetch]
            name = self.train(f"{strategy}-{mesh}-{wrap}", "--strategy", strategy, *flags, mesh=mesh,
                              accumulate=accumulate)
            combined = self.train(f"{name}-combined", "--strategy", strategy, *flags, "--combine-bytes", 100000, mesh=mesh,
                                  accumulate=accumulate)
            with self.subTest(name):
                self.assert_close(name, one)
                self.assert_close(combined, one)
                if strategy == "hsdp":
                    zero3 = self.train(f"zero3-{mesh}-{wrap}", "--strategy", "zero3", *flags, mesh=mesh, accumulate=accumulate)
                    self.assert_bitwise(name, zero3)

    def test_frozen_parameters(self):
        flags = ["--frozen", "wpe|h\\.0\\..*weight"]
        one = self.train("one", *flags)
        before = self.golden.load("weights")
        for strategy in STRATEGIES:
            self.train(strategy, *flags, "--strategy", strategy, mesh="2")
            with self.subTest(strategy):
                self.assert_close(strategy, one)
                final = self.final(strategy)
                for name, value in before.items():
                    frozen = name.startswith("wpe") or (name.startswith("h.0.") and name.endswith("weight"))
                    if name in final:
                        self.assertEqual(frozen, np.array_equal(final[name], value), name)
                trained = sum(value.size for name, value in before.items()
                              if not (name.startswith("wpe") or (name.startswith("h.0.") and name.endswith("weight"))))
                padding = 4 * 64
                self.assertLess(self.dump(strategy, "collectives")["parameter_bytes"], 4 * (trained + padding))
                state = self.dump(strategy, "memory")["classes"]["optimizer"]["all_slots"]
                share = 1 if strategy == "ddp" else 2
                self.assertAlmostEqual(state * share, 2 * 4 * trained, delta=2 * 4 * padding)


class Counts(StrategyTest):
    """Collectives per step and their bytes, and the memory of parameters and state, against theory."""

    def large(self, name, kind, group=None):
        """(collectives per step, bytes per step) of those on units; scalars are left out."""
        rows = [row for row in self.dump(name, "collectives")["list"]
                if row["kind"] == kind and ":" in row["label"] and (group is None or group in row["group"])]
        return sum(row["iterations"] for row in rows), sum(row["iterations"] * row["bytes"] for row in rows)

    def test_collectives_per_step(self):
        for accumulate in (1, 3):
            self.compile("ddp", "--strategy", "ddp", mesh="2", accumulate=accumulate)
            units, parameters = self.large("ddp", "all_reduce")
            self.assertEqual(units, 4)  # embed, h.0, h.1, head
            self.assertEqual(self.large("ddp", "all_gather"), (0, 0))
            embedding = next(row["bytes"] for row in self.dump("ddp", "collectives")["list"]
                             if row["label"] == "gradient:embed")
            # Per strategy: how often the parameters are gathered and reduced in a step. The embedding is tied to the head
            # and not gathered again where backward begins.
            for strategy, gathers, reductions in (("zero1", 1, 1), ("zero2", 1, accumulate),
                                                  ("zero3", 2 * accumulate, accumulate)):
                self.compile(strategy, "--strategy", strategy, mesh="2", accumulate=accumulate)
                with self.subTest(strategy, accumulate=accumulate):
                    self.assertEqual(self.large(strategy, "reduce_scatter"),
                                     (reductions * units, reductions * parameters))
                    spared = accumulate if strategy == "zero3" else 0
                    self.assertEqual(self.large(strategy, "all_gather"),
                                     (gathers * units - spared, gathers * parameters - spared * embedding))
                    self.assertEqual(self.large(strategy, "all_reduce"), (0, 0))

    def test_replicas_reduce_a_part_once_per_step(self):
        self.compile("whole", "--strategy", "ddp", mesh="2", accumulate=3)
        units, parameters = self.large("whole", "all_reduce")
        for strategy, scatters in (("zero1", 1), ("zero2", 3), ("zero3", 3), ("hsdp", 3)):
            self.compile(strategy, "--strategy", strategy, mesh="2x2", accumulate=3)
            with self.subTest(strategy):
                self.assertEqual(self.large(strategy, "reduce_scatter", "shard"), (scatters * units, scatters * parameters))
                self.assertEqual(self.large(strategy, "all_reduce", "replicate"), (units, parameters // 2))

    def test_kept_units(self):
        flags = ["--strategy", "zero3"]
        self.compile("kept", *flags, "--keep-gathered", "^h\\.", mesh="2", accumulate=3)
        labels = [row["label"] for row in self.dump("kept", "collectives")["list"] if row["kind"] == "all_gather"]
        self.assertEqual(sorted(labels), ["backward:head", "forward:embed", "forward:head", "step:h.0", "step:h.1"])

    def test_units_kept_under_a_memory_limit(self):
        def reserved(name):
            return sum(arena["bytes"] for arena in self.dump(name, "memory")["arenas"])

        def kept(name):
            return sorted(row["label"] for row in self.dump(name, "collectives")["list"]
                          if row["kind"] == "all_gather" and row["label"].startswith("step:"))

        def auto(name, limit):
            flags = ["--strategy", "zero3", "--mesh", "shard=2", "--batch", 12, "--seq", SEQUENCE, "--prefetch", "none"]
            done = self.tool("tessera-compile", self.golden.model, *flags, "--keep-gathered", "auto", "--memory-limit",
                             limit, "--remarks", "-o", name + ".tessera")
            return done.returncode, done.stderr

        self.compile("none", "--strategy", "zero3", "--prefetch", "none", mesh="2")
        least = reserved("none")
        status, text = auto("all", 2 * least)
        self.assertEqual(status, 0, text)
        # The embedding, tied to the head, is gathered once per step anyway.
        self.assertEqual(kept("all"), ["step:h.0", "step:h.1", "step:head"])
        most = reserved("all")
        status, text = auto("some", (least + most) // 2)
        self.assertEqual(status, 0, text)
        self.assertIn("' is kept gathered: saves 1 gather, ", text)
        self.assertIn("' is gathered for each use", text)
        self.assertGreater(len(kept("some")), 0)
        self.assertLess(len(kept("some")), 3)
        self.assertLessEqual(reserved("some"), (least + most) // 2)
        status, text = auto("less", least - 4096)
        self.assertEqual(status, 1, text)
        self.assertRegex(text, "--memory-limit: a rank needs .* even if units are neither kept nor gathered ahead, the limit is")
        self.assertFalse(os.path.exists(self.path("less.tessera")))

    def test_state_is_divided_by_the_ranks(self):
        self.compile("one")
        whole = self.dump("one", "memory")["classes"]
        for mesh, ranks in (("2", 2), ("4", 4)):
            for strategy in ("zero1", "zero2", "zero3"):
                self.compile(strategy, "--strategy", strategy, mesh=mesh)
                part = self.dump(strategy, "memory")["classes"]
                with self.subTest(strategy, ranks=ranks):
                    # Units are padded to a multiple of 16 elements for each rank.
                    self.assertAlmostEqual(part["optimizer"]["all_slots"] * ranks, whole["optimizer"]["all_slots"],
                                           delta=2 * 4 * 4 * 16 * ranks)

    def test_every_parameter_changes_in_one_step(self):
        before = self.golden.load("weights")
        for strategy in STRATEGIES:
            self.compile(strategy, "--strategy", strategy, mesh="4", accumulate=3)
            self.succeed("tessera-run", strategy + ".tessera", "--data", "data.safetensors", "--order", "sequential",
                         "--steps", 1, "--weights", self.golden.weights, "--out", strategy, "--threads", 1)
            for name, value in self.final(strategy).items():
                with self.subTest(strategy, parameter=name):
                    self.assertGreater(np.abs(value - before[name]).max(), 0)

    def test_combined(self):
        self.compile("combined", "--strategy", "ddp", "--combine-bytes", 10000000, mesh="2")
        self.assertEqual(self.large("combined", "all_reduce")[0], 1)


class Flags(StrategyTest):
    def test_errors(self):
        def fails(message, *flags):
            self.fail_with(message, "tessera-compile", self.golden.model, "--batch", 4, "--seq", SEQUENCE, "-o", "x", *flags)
        fails("--strategy: unknown value 'zero4'", "--strategy", "zero4")
        fails("--keep-gathered needs --strategy zero3 or hsdp: zero1 gathers no unit twice", "--strategy", "zero1",
              "--mesh", "shard=2", "--keep-gathered", "h")
        fails(r"--keep-gathered: no unit matches '.*'; nearest: '", "--strategy",
              "zero3", "--mesh", "shard=2", "--keep-gathered", "block")
        fails("hsdp needs a mesh with an axis of role replica and one of role data", "--strategy", "hsdp", "--mesh", "shard=2")
        for text in ("forward", "forward=-1", "backward=late", "forward=1,", "forward=99999", "automatic"):
            fails("--prefetch: expected none, auto, or forward=<units>", f"--prefetch={text}")
        fails("--combine-bytes must not be negative", "--combine-bytes=-1")

    def test_reasons_reach_the_artifact(self):
        self.compile("reasons", "--strategy", "zero3", "--prefetch", "forward=1,backward=post", mesh="2")
        schedule = self.succeed("tessera-dump", "reasons.tessera", "--schedule")
        self.assertIn("- starts 1 unit ahead: at the first use of forward:", schedule)
        self.assertIn("- starts after the last use of backward:", schedule)
        self.assertIn("- ends at the first use of the unit", schedule)
        self.assertIn("- starts as soon as its operand is complete", schedule)
        self.compile("reasons", "--strategy", "zero3", "--prefetch", "auto", mesh="2")
        schedule = self.succeed("tessera-dump", "reasons.tessera", "--schedule")
        self.assertRegex(schedule, r"- starts [0-9.]+ [mu]s of gather before [0-9.]+ [mu]s of computation, ")
        # The sequence of collectives, and so its hash, is that of the program.
        hashes = set()
        for flags in (["--strategy", "zero3"], ["--strategy", "zero3"], ["--strategy", "ddp"]):
            self.compile("hash", *flags, mesh="2")
            hashes.add(json.loads(self.succeed("tessera-dump", "hash.tessera", "--collectives", "--json"))
                       ["collectives"]["hash"])
        self.assertEqual(len(hashes), 2)


class Wrappers(StrategyTest):
    def test_torch_ddp_and_fsdp2(self):
        """Ten steps on two ranks as PyTorch's wrappers take them (make_distributed_goldens.py)."""
        with open(self.golden.folder + "/distributed.json") as file:
            recorded = json.load(file)
        for theirs, strategy in (("ddp", "ddp"), ("ddp", "zero1"), ("fsdp2", "zero2"), ("fsdp2", "zero3")):
            self.succeed("tessera-compile", *self.golden.compile_flags(), "--mesh", "shard=2", "--strategy", strategy,
                         "-o", "x.tessera")
            self.succeed("tessera-run", "x.tessera", "--data", self.golden.data, "--order", "sequential", "--steps",
                         self.golden.steps, "--weights", self.golden.weights, "--out", strategy, "--threads", 1)
            records = self.metrics(strategy)
            self.assertEqual(len(records), self.golden.steps)
            for record, loss, norm in zip(records, recorded[theirs]["losses"], recorded[theirs]["gradient_norms"]):
                self.assertLessEqual(abs(record["loss"] - loss) / loss, 1e-5, theirs)
                self.assertLessEqual(abs(record["grad_norm"] - norm) / norm, 1e-4, theirs)
