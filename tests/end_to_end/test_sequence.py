"""Sequence axes: ten steps equal PyTorch's for every way to compute attention, in both orders; what cannot be is refused."""

import json

import numpy as np

import test_oracle
from test_placement import LLAMA


class Sequence(test_oracle.TrainingTest):
    def test_every_attention_in_both_orders(self):
        """Two key heads of a Llama, rotary positions, a causal mask."""
        for attention in ("allgather", "ring", "ulysses"):
            for order in ("contiguous", "zigzag"):
                with self.subTest(attention=attention, order=order):
                    self.compare(f"{attention}-{order}", "--mesh", "seq=2", "--attention", attention, "--sequence-order", order,
                                 model="llama")

    def test_more_ranks_than_key_heads(self):
        self.compare("ring-4", "--mesh", "seq=4", "--attention", "ring", "--strategy", "zero3", model="llama")
        self.compare("gather-8", "--mesh", "seq=8", "--attention", "allgather", model="llama")
        self.compare("both-4", "--mesh", "ring:sequence=2,exchange:sequence=2", "--attention", "ring+ulysses", "--strategy", "zero3",
                     model="llama")

    def test_some_heads_at_a_time(self):
        """One query head of each of two key heads, and two of four heads."""
        self.compare("shared", "--mesh", "seq=2", "--attention", "ulysses:chunk=2", "--strategy", "zero3", "--remat", "attention",
                     model="llama")
        self.compare("own", "--mesh", "seq=2", "--attention", "ulysses:chunk=2", "--remat", "full")
        self.compare("both", "--mesh", "ring:sequence=2,exchange:sequence=2", "--attention", "ring+ulysses:chunk=2", model="llama")

    def test_keys_gathered_some_heads_at_a_time(self):
        """Of two key heads one at a time: every value is that of both at once."""
        self.compare("blocks", "--mesh", "seq=2", "--attention", "allgather", "--attention-memory", "1", model="llama")
        self.compare("zero3", "--mesh", "fsdp=2,seq=2", "--strategy", "zero3", "--attention", "allgather", "--attention-memory", "1",
                     "--remat", "full", "--prefetch", "auto")
        golden = test_oracle.Golden("gpt")
        for name, memory in (("one", "1"), ("all", "1GiB")):
            self.train(golden, name, "--mesh", "seq=2", "--attention", "allgather", "--attention-memory", memory)
        for what in ("dump-1/gradients", "dump-1/parameters", "model"):
            one, every = (test_oracle.safetensors.load(self.path(name, what + ".safetensors")) for name in ("one", "all"))
            for parameter, value in every.items():
                np.testing.assert_array_equal(one[parameter], value, err_msg=f"{what} of {parameter}")
        self.assertEqual(*([record["loss"] for record in self.metrics(name)] for name in ("one", "all")))

    def test_memory_falls_with_the_heads_that_are_gathered(self):
        """A step in which gathered keys are what takes most: each block of heads uses the memory of the one before the last."""
        flags = [test_oracle.Golden("llama").model, "--batch", 1, "--seq", 8192, "--mesh", "seq=8", "--attention", "allgather", "--strategy", "zero3",
                 "--loss-tile", "64KiB", "--mlp-tile", "64KiB", "--remat", "full"]
        reserved, gathered = {}, {}
        for memory in ("all", "1"):
            self.succeed("tessera-compile", *flags, "--attention-memory", memory, "-o", "x.tessera")
            reserved[memory] = json.loads(self.succeed("tessera-dump", "x.tessera", "--memory", "--json"))["memory"]["reserved"]
            gathered[memory] = [row for row in self.collectives("x.tessera") if row["kind"] == "all_gather" and row["label"] == ""]
        # Of K, V, and in the backward pass their gradients, one of two heads less; and as many bytes are sent in all.
        self.assertLess(reserved["1"], reserved["all"])
        self.assertEqual(*(sum(row["bytes"] for row in rows) for rows in gathered.values()))
        self.assertEqual(len(gathered["1"]), 2 * len(gathered["all"]))
        self.assertEqual({row["bytes"] for row in gathered["1"]}, {row["bytes"] // 2 for row in gathered["all"]})

    def test_gathers_of_heads_run_beside_attention(self):
        """Of each attention but that of its last block: what the next block needs is gathered when it begins."""
        self.succeed("tessera-compile", *test_oracle.Golden("gpt").compile_flags(), "--mesh", "seq=2", "--attention", "allgather",
                     "--attention-memory", "1", "-o", "x.tessera")
        schedule = json.loads(self.succeed("tessera-dump", "x.tessera", "--schedule", "--json"))["schedule"]
        kinds = [row["kind"] for row in schedule if row["kind"] in ("all_gather", "attention", "attention_grad")]
        heads = 4  # of the model's two layers each
        one = lambda name: ["all_gather"] * 4 + [name, "all_gather", "all_gather"] * (heads - 2) + [name] * 2
        self.assertEqual(kinds[:kinds.index("attention_grad") - 4], one("attention") * 2)
        backward = kinds[kinds.index("attention_grad") - 4:]
        while backward[-1] == "all_gather":  # of something else
            backward.pop()
        self.assertEqual(backward, one("attention_grad") * 2)
        self.assertTrue(any("ends at the first use of what arrives" in row.get("reasons", []) for row in schedule))

    def test_heads_at_a_time_where_the_attention_is_chosen(self):
        """Every way is compared; of one that gathers nothing it is a remark."""
        done = self.tool("tessera-compile", *test_oracle.Golden("llama").compile_flags(), "--mesh", "seq=2", "--attention-memory", "1",
                         "--remarks", "-o", "x.tessera")
        self.assertEqual(done.returncode, 0, done.stderr)
        chosen = json.loads(self.succeed("tessera-dump", "x.tessera", "--schedule", "--json"))["sequence"]
        self.assertTrue(all("error" not in way for way in chosen["ways"]), chosen)
        self.assertEqual("no keys and values are gathered" in done.stderr, chosen["attention"] != "allgather")

    def test_sums_of_gradients_in_f32_are_nearer(self):
        """In bf16, of what is added up over eight ranks; the reference is the step in f32."""
        golden = test_oracle.Golden("llama")
        wanted = golden.load("gradients")
        errors = {}
        for gather in ("compute", "fp32"):
            self.train(golden, gather, "--precision", "bf16", "--mesh", "seq=8", "--attention", "allgather", "--attention-gather", gather)
            gradients = test_oracle.safetensors.load(self.path(gather, "dump-1", "gradients.safetensors"))
            errors[gather] = sum(float(((gradients[name].astype(np.float64) - want) ** 2).sum()) for name, want in wanted.items()
                                 if "k_proj" in name or "v_proj" in name)
            sent = [row for row in self.collectives(gather + ".tessera") if row["kind"] == "reduce_scatter"]
            self.assertEqual(len(sent), 4)
            # Of two key heads, 16 wide.
            samples, positions = golden.batch, golden.sequence
            self.assertEqual({row["bytes"] for row in sent}, {samples * positions * 2 * 16 * (4 if gather == "fp32" else 2)})
        self.assertGreater(errors["fp32"], 0)
        self.assertLessEqual(errors["fp32"], errors["compute"])

    def test_beside_data_axes_replicas_and_micro_batches(self):
        self.compare("zero3", "--mesh", "fsdp=2,seq=2", "--strategy", "zero3", "--attention", "ring")
        self.compare("zero1", "--mesh", "seq=2,fsdp=2", "--strategy", "zero1", accumulate=2)
        self.compare("ddp", "--mesh", "dp=2,seq=2", "--strategy", "ddp", "--attention", "ulysses", accumulate=2)
        self.compare("hsdp", "--mesh", "dp=2,fsdp=2,seq=2", "--strategy", "hsdp", "--attention", "ring")

    def test_beside_model_axes(self):
        self.compare("placed", "--mesh", "seq=2,tp=2", "--attention", "ring", "--place", r"mlp\.c_fc\.=0", "--place",
                     r"mlp\.c_proj\.weight=1")
        # Two ranks have a key head each, so that there is none to exchange; and samples, positions and heads at once.
        self.compare("heads", "--mesh", "seq=2,tp=2", "--attention", "auto", *LLAMA, model="llama")
        self.compare("all", "--mesh", "fsdp=2,seq=2,tp=2", "--strategy", "zero3", "--attention", "ring", *LLAMA, model="llama")

    def test_recomputation_and_prefetch_by_time(self):
        self.compare("full", "--mesh", "seq=2", "--strategy", "zero3", "--attention", "ring", "--remat", "full")
        self.compare("selective", "--mesh", "seq=2", "--strategy", "zero3", "--attention", "ulysses", "--remat", "selective",
                     "--prefetch", "auto", model="llama")

    def test_bf16(self):
        """A ring rounds its result once, as one rank does."""
        golden = test_oracle.Golden("llama")
        one = [record["loss"] for record in self.train(golden, "one", "--precision", "bf16")]
        for attention in ("allgather", "ring", "ulysses", "ulysses:chunk=2"):
            records = self.train(golden, attention.replace(":", "-"), "--precision", "bf16", "--mesh", "seq=2", "--attention", attention)
            losses = [record["loss"] for record in records]
            np.testing.assert_allclose(losses, one, rtol=2e-3, err_msg=attention)

    def test_a_run_goes_on_with_another_split(self):
        golden = test_oracle.Golden("gpt")
        data = ["--data", golden.data, "--order", "sequential", "--threads", 1]
        meshes = {"one": [], "ring": ["--mesh", "seq=2", "--attention", "ring", "--strategy", "zero3"],
                  "both": ["--mesh", "fsdp=2,seq=2", "--strategy", "zero3"]}
        for name, flags in meshes.items():
            self.succeed("tessera-compile", *golden.compile_flags(), *flags, "-o", name + ".tessera")
            self.succeed("tessera-run", name + ".tessera", *data, "--weights", golden.weights, "--steps", 4, "--checkpoint-every", 4,
                         "--out", name)
        for first, then in (("one", "ring"), ("ring", "both"), ("both", "one")):
            out = f"{first}-{then}"
            self.succeed("tessera-run", then + ".tessera", *data, "--resume", self.path(first, "checkpoints", "ckpt-4"), "--steps",
                         golden.steps, "--out", out)
            for record, want in zip(self.metrics(out), golden.losses[4:], strict=True):
                self.assertLessEqual(abs(record["loss"] - want) / want, test_oracle.LOSS_TOLERANCE, out)

    def collectives(self, name):
        return json.loads(self.succeed("tessera-dump", name, "--collectives", "--json"))["collectives"]["list"]

    def test_what_is_sent(self):
        """Of each of two blocks: a ring of n passes keys and values n - 1 times, and their gradients n times."""
        golden = test_oracle.Golden("llama")
        for ranks in (2, 4):
            name = f"ring-{ranks}.tessera"
            self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", f"seq={ranks}", "--attention", "ring", "-o", name)
            kinds = [row["kind"] for row in self.collectives(name)]
            layers = kinds.count("permute") / (2 * (ranks - 1) + 2 * (ranks - 1) + 2 * ranks)
            self.assertEqual(layers, 2)
            self.assertEqual(set(kinds), {"permute", "all_reduce"})
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "seq=2", "--attention", "ulysses", "-o", "ulysses.tessera")
        kinds = [row["kind"] for row in self.collectives("ulysses.tessera")]
        # Query, key, value and result forward; the result again, its gradient and three gradients backward.
        self.assertEqual(kinds.count("all_to_all"), 2 * (4 + 5))
        self.assertEqual(set(kinds), {"all_to_all", "all_reduce"})
        # Two chunks: what has query heads in two parts, keys, values and their gradients once, of as many bytes in all.
        self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", "seq=2", "--attention", "ulysses:chunk=2", "-o",
                     "chunks.tessera")
        whole, chunks = ([row for row in self.collectives(name) if row["kind"] == "all_to_all"]
                         for name in ("ulysses.tessera", "chunks.tessera"))
        self.assertEqual(len(chunks), 2 * (2 * 2 + 2 + 3 * 2 + 2))
        self.assertEqual(*(sum(row["bytes"] for row in rows) for rows in (whole, chunks)))

    def test_dump_says_why_attention_is_so(self):
        """What was chosen is the shortest of what the artifact says of those that fit; what was asked for says that."""
        flags = test_oracle.Golden("llama").compile_flags()
        self.succeed("tessera-compile", *flags, "--mesh", "seq=2", "-o", "auto.tessera")
        chosen = json.loads(self.succeed("tessera-dump", "auto.tessera", "--schedule", "--json"))["sequence"]
        self.assertEqual(chosen["axes"], [{"name": "seq", "size": 2}])
        self.assertEqual([way["attention"] for way in chosen["ways"]], ["allgather", "ring", "ulysses"])
        best = min(chosen["ways"], key=lambda way: way["step_seconds"])
        self.assertTrue(all(way["fits"] for way in chosen["ways"]))
        self.assertEqual((chosen["attention"], chosen["reason"]), (best["attention"], "fastest"))
        # Of each way it is what compiling it alone predicts.
        for way in chosen["ways"]:
            self.succeed("tessera-compile", *flags, "--mesh", "seq=2", "--attention", way["attention"], "--report=way.json")
            with open(self.path("way.json")) as file:
                self.assertEqual(json.load(file)["step"]["seconds"], way["step_seconds"])
        # Heads that do not divide are said.
        self.succeed("tessera-compile", *flags, "--mesh", "seq=4", "-o", "four.tessera")
        four = json.loads(self.succeed("tessera-dump", "four.tessera", "--schedule", "--json"))["sequence"]
        self.assertIn("do not divide evenly among 4 ranks", four["ways"][2]["error"])
        text = self.succeed("tessera-dump", "four.tessera", "--schedule")
        self.assertIn(f"attention over seq(4): {four['attention']}, the shortest predicted step of those that fit", text)
        self.succeed("tessera-compile", *flags, "--mesh", "seq=2", "--attention", "ring", "-o", "asked.tessera")
        self.assertTrue(self.succeed("tessera-dump", "asked.tessera", "--schedule").startswith(
            "attention over seq(2): ring, it was asked for\npositions: zigzag, each rank has the same work of causal attention\n"))
        for order, reason, extra in (("contiguous", "asked", ["--attention", "ring", "--sequence-order", "contiguous"]),
                                     ("contiguous", "heads_split", ["--attention", "ulysses"])):
            self.succeed("tessera-compile", *flags, "--mesh", "seq=2", *extra, "-o", "order.tessera")
            asked = json.loads(self.succeed("tessera-dump", "order.tessera", "--schedule", "--json"))["sequence"]
            self.assertEqual((asked["reason"], asked["order"], asked["order_reason"]), ("asked", order, reason))
        self.succeed("tessera-compile", *flags, "-o", "one.tessera")
        self.assertNotIn("sequence", json.loads(self.succeed("tessera-dump", "one.tessera", "--schedule", "--json")))

    def test_summary_says_how_inputs_are_split(self):
        golden = test_oracle.Golden("llama")
        for mesh, attention, text, splits in (
                ("data=2,seq=2", "ring", "sample over data, position over seq (zigzag)",
                 [{"dim": 0, "axes": ["data"], "order": "contiguous"}, {"dim": 1, "axes": ["seq"], "order": "zigzag"}]),
                ("seq=2", "ulysses", "position over seq\n", [{"dim": 1, "axes": ["seq"], "order": "contiguous"}])):
            self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", mesh, "--attention", attention, "-o", "x.tessera")
            self.assertEqual(self.succeed("tessera-dump", "x.tessera").count(text), 2)
            for entry in json.loads(self.succeed("tessera-dump", "x.tessera", "--json"))["summary"]["batch"]:
                self.assertEqual(entry["splits"], splits)

    def test_memory_of_a_rank_stays_as_length_and_ranks_double(self):
        golden, reserved = test_oracle.Golden("llama"), {}
        for ranks in (2, 8, 16):
            self.succeed("tessera-compile", golden.model, "--batch", 1, "--seq", 2048 * ranks, "--mesh", f"seq={ranks}", "--attention",
                         "ring", "--strategy", "zero3", "--loss-tile", "256KiB", "-o", "long.tessera")
            reserved[ranks] = json.loads(self.succeed("tessera-dump", "long.tessera", "--memory", "--json"))["memory"]["reserved"]
        # The model's table of angles has 128 bytes for each token of the whole sequence; which keys of each block a query sees
        # takes 16.
        for ranks in (8, 16):
            self.assertLess(reserved[ranks], 1.02 * reserved[2] + (128 + 16) * 2048 * (ranks - 2))

    def refuse(self, message, *flags, model="llama"):
        done = self.tool("tessera-compile", *test_oracle.Golden(model).compile_flags(), *flags, "-o", "x.tessera")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(message, done.stderr)

    def test_what_is_refused(self):
        self.refuse("attention has 4 query heads and 2 key heads, which do not divide evenly among 4 ranks", "--mesh", "seq=4", "--attention", "ulysses")
        self.refuse("needs 2 axes of role sequence", "--mesh", "seq=4", "--attention", "ring+ulysses")
        self.refuse("of which 3 query heads cannot be taken at a time", "--mesh", "seq=2", "--attention", "ulysses:chunk=3")
        self.refuse("'ring' exchanges no heads", "--mesh", "seq=2", "--attention", "ring:chunk=2")
        self.refuse("expected 'ulysses:chunk=<query heads>'", "--mesh", "seq=2", "--attention", "ulysses:chunk=0")
        self.refuse("use more heads at a time, or all", "--mesh", "seq=2", "--attention", "ulysses:chunk=1", model="gpt")
        self.refuse("no sequence axis", "--attention", "ring")
        self.refuse("--attention-memory: the mesh has no sequence axis", "--attention-memory", "1MiB")
        self.refuse("--attention-memory: expected bytes", "--mesh", "seq=2", "--attention-memory", "0")
        self.refuse("--attention-gather: unknown value 'f16'", "--mesh", "seq=2", "--attention-gather", "f16")
        self.refuse("attention ring gathers no keys and values", "--mesh", "seq=2", "--attention", "ring", "--attention-memory", "1MiB")
        self.refuse("no sequence axis", "--sequence-order", "zigzag")
        self.refuse("unknown value 'rings'", "--mesh", "seq=2", "--attention", "rings")
        self.refuse("positions (dimension 1), expected a multiple of", "--mesh", "seq=7")
        self.refuse("splits positions, but no dimension of an input counts them", "--mesh", "seq=2", "--dim-role",
                    "tokens:0=batch", "--dim", "T=64")

