"""Samples packed of documents: losses, gradients and parameters are those that PyTorch has of the documents alone, on one rank and over
sequence axes; documents follow from positions, from tokens, and from what tessera-run counts."""

import json

import numpy as np

from harness import Golden, safetensors
from test_oracle import TrainingTest

MODELS = ("packed_positions", "packed_ends", "packed_ids")


class Documents(TrainingTest):
    def test_one_rank(self):
        for model in MODELS:
            with self.subTest(model):
                self.compare(model, model=model)

    def test_sequence_axes(self):
        """Two key heads: not for an exchange of heads among more ranks."""
        for model in MODELS:
            for ranks, attention in ((2, "allgather"), (2, "ulysses"), (3, "allgather"), (3, "ring"), (4, "ring")):
                for order in ("contiguous", "zigzag", *(["dealt:blocks=4"] if attention != "ulysses" and ranks != 4 else [])):
                    with self.subTest(model=model, ranks=ranks, attention=attention, order=order):
                        self.compare(f"{model}-{attention}-{ranks}-{order}", "--mesh", f"seq={ranks}", "--attention", attention,
                                     "--sequence-order", order, "--strategy", "zero3", model=model)

    def test_beside_data_axes_and_micro_batches(self):
        self.compare("data", "--mesh", "fsdp=2,seq=2", "--strategy", "zero3", "--attention", "ring", model="packed_positions")
        self.compare("micro", "--mesh", "dp=2", "--strategy", "ddp", model="packed_positions", accumulate=2)
        for model in MODELS:
            self.compare(f"{model}-full", "--mesh", "seq=2", "--attention", "ring", "--remat", "full", model=model)
        self.compare("both", "--mesh", "ring:sequence=2,exchange:sequence=2", "--attention", "ring+ulysses", "--remat", "full",
                     model="packed_ends", accumulate=3)

    def test_no_tensor_of_all_pairs(self):
        """What a rank holds grows with the length, not with its square."""
        for model in MODELS:
            reserved = {}
            for length in (8192, 32768):
                self.succeed("tessera-compile", Golden(model).model, "--batch", 1, "--seq", length, "--mesh", "seq=2", "--attention",
                             "ring", "-o", "long.tessera")
                memory = json.loads(self.succeed("tessera-dump", "long.tessera", "--memory", "--json"))["memory"]
                reserved[length] = memory["reserved"]
            self.assertLess(reserved[32768], 4.1 * reserved[8192])
            self.assertLess(reserved[32768], 32768 ** 2)

    def given(self, *flags):
        """A model whose documents are an input; returns what its compilation remarks."""
        with open(self.path("given.onnxtxt"), "w") as file:
            file.write("""<ir_version: 8, opset_import: ["" : 18]>
given (int64[B,T] tokens, int64[B,T] document_ids) => (float[B,T,8] logits)
<float[8,8] table = {%s}, int64[1] one = {1}, int64[2] keys = {1, 2}, int64[2] queries = {1, 3}, float low = {-1e9}>
{
  x = Gather (table, tokens)
  x1 = Unsqueeze (x, one)
  here = Unsqueeze (document_ids, queries)
  there = Unsqueeze (document_ids, keys)
  same = Equal (here, there)
  xt = Transpose <perm = [0, 1, 3, 2]> (x1)
  scores = MatMul (x1, xt)
  masked = Where (same, scores, low)
  p = Softmax <axis = -1> (masked)
  y = MatMul (p, x1)
  logits = Squeeze (y, one)
}""" % ", ".join(["0.1"] * 64))
        done = self.tool("tessera-compile", "given.onnxtxt", "--parameters", "table", "--constants", "low", "--batch", 2, "--seq", 8,
                         "--remarks", *flags, "-o", "given.tessera")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def test_ids_that_are_given(self):
        promised = "equal ids of documents are taken to lie side by side in 'document_ids'"
        self.assertIn(promised, self.given())
        np.tile(np.array([3, 0, 2, 5, 0], np.uint16), 20).tofile(self.path("tokens.bin"))
        self.fail_with("'document_ids' numbers documents: --end-of-document says", "tessera-run", "given.tessera", "--data", "tokens.bin",
                       "--steps", 1, "--out", "run")
        self.succeed("tessera-run", "given.tessera", "--data", "tokens.bin", "--steps", 1, "--out", "run", "--end-of-document", 0)
        rest = self.given("--document-ids", "any")
        self.assertNotIn(promised, rest)
        self.assertIn("equal ids are not known to lie side by side", rest)

    def test_ids_that_come_back_are_refused(self):
        """On every rank, also where the same id is in another rank's positions; a mask of all pairs takes them."""
        ids = np.repeat(np.array([[7, 1, 3, 3], [4, -2, 4, 9]]), 2, axis=1)
        arrays = {"tokens": np.ones_like(ids), "document_ids": ids, "targets": np.ones_like(ids)}
        safetensors.save({name: np.tile(array, (2, 1)) for name, array in arrays.items()}, self.path("back.safetensors"))
        run = ("given.tessera", "--data", "back.safetensors", "--order", "sequential", "--steps", 1, "--out", "run")
        losses = []
        for mesh in ("shard=1", "seq=4"):
            self.given("--mesh", mesh)
            self.fail_with(r"is 4, which has come before, but not right before; equal ids of 'document_ids' must lie side by side",
                           "tessera-run", *run)
            self.given("--mesh", mesh, "--document-ids", "any")
            self.succeed("tessera-run", *run[:-1], mesh)
            losses += [record["loss"] for record in self.metrics(mesh)]
        self.assertAlmostEqual(losses[0], losses[1], places=6)

    def test_tokens_say_where_documents_end(self):
        """A token file gives the training of arrays whose positions begin at 0 after each token 0."""
        golden = Golden("packed_positions")
        tokens = golden.load("data")["tokens"].reshape(-1)
        length, samples = golden.sequence, golden.steps * golden.batch - 1
        tokens.astype(np.uint16).tofile(self.path("tokens.bin"))
        rows = tokens[:samples * length].reshape(samples, length)
        positions = np.zeros_like(rows)
        for row, place in zip(rows, positions):
            for i in range(1, length):
                place[i] = 0 if row[i - 1] == 0 else place[i - 1] + 1
        np.testing.assert_array_equal(positions, golden.load("data")["position_ids"][:samples])
        targets = tokens[1:samples * length + 1].reshape(rows.shape)
        safetensors.save({"tokens": rows, "position_ids": positions, "targets": targets}, self.path("arrays.safetensors"))
        losses, golden.batch = {}, 6
        for mesh in ("shard=1", "seq=2"):
            self.succeed("tessera-compile", *golden.compile_flags(), "--mesh", mesh, "-o", "x.tessera")
            for name, flags in (("arrays.safetensors", ()), ("tokens.bin", ("--end-of-document", 0)), ("tokens.bin", ())):
                run = f"{mesh}-{name}-{len(flags)}"
                self.succeed("tessera-run", "x.tessera", "--data", name, *flags, "--order", "sequential", "--steps", 4, "--weights",
                             golden.weights, "--out", run, "--threads", 1)
                losses[name, bool(flags)] = [record["loss"] for record in self.metrics(run)]
            self.assertEqual(losses["tokens.bin", True], losses["arrays.safetensors", False])
            self.assertNotEqual(losses["tokens.bin", False], losses["tokens.bin", True])

    def test_going_on_with_other_documents_is_said(self):
        golden = Golden("packed_positions")
        golden.load("data")["tokens"].reshape(-1).astype(np.uint16).tofile(self.path("tokens.bin"))
        self.succeed("tessera-compile", *golden.compile_flags(), "-o", "x.tessera")
        run = ("tessera-run", "x.tessera", "--data", "tokens.bin", "--out", "run")
        self.fail_with("--end-of-document: '99999999999' is no whole number", *run, "--steps", 1, "--end-of-document", 99999999999)
        self.fail_with(r"--end-of-document is 4000000000, but tokens of 'tokens' are in \[0, \d+\) \(the model's vocabulary\)", *run,
                       "--steps", 1, "--end-of-document", 4000000000)
        self.succeed(*run, "--steps", 1, "--checkpoint-every", 1, "--end-of-document", 0)
        for flags, now in ((("--end-of-document", 0), ""), (("--end-of-document", 1), "token 1"), ((), "none")):
            with self.subTest(flags):
                done = self.tool(*run[:-1], "to" + now, "--steps", 2, "--resume", "run", *flags)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("warning"), 1 if now else 0, done.stderr)
                if now:
                    self.assertRegex(done.stderr, rf"the end of a document \(--end-of-document\) is {now}, that of .* was token 0: the run "
                                                  r"continues at sample \d+ with other positions or documents")
