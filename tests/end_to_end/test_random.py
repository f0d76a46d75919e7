"""Random numbers that a model draws by itself (tests/pt2/programs/drawn.pt2, vae.pt2, diffusion.pt2): they have the distributions that
they should have, differ from draw to draw, from sample to sample and from step to step, and are the same on any mesh, under
recomputation and after a run was resumed."""

import math
import os

import numpy as np
from harness import ROOT, ToolTest, safetensors

PROGRAMS = os.path.join(ROOT, "tests", "pt2", "programs")
BATCH, STEPS = 8, 2


class Draws(ToolTest):
    def drawn(self, name, *flags, batch=BATCH, step=1):
        """{parameter: what was drawn for it in a step}."""
        self.succeed("tessera-compile", os.path.join(PROGRAMS, "drawn.pt2"), "--batch", batch, "--loss", "output:output", "--init",
                     ".*=zeros", *flags, "-o", name + ".tessera")
        rows = np.arange(64, dtype=np.int64).reshape(-1)
        safetensors.save({"index": rows}, self.path("index.safetensors"))
        self.succeed("tessera-run", name + ".tessera", "--data", "index.safetensors", "--order", "sequential", "--steps", STEPS, "--lr", 0,
                     "--out", name, "--no-export", "--dump=gradients", "--dump-step", step)
        return safetensors.load(self.path(name, f"dump-{step}", "gradients.safetensors"))

    def assertMoments(self, numbers, mean, deviation):
        """Mean and variance within five standard errors; that of the variance is not above that of a fourth moment of 10."""
        count = numbers.size
        self.assertLess(abs(numbers.mean() - mean), 5 * deviation / math.sqrt(count))
        self.assertLess(abs(numbers.std() / deviation - 1), 5 * 1.5 / math.sqrt(count))

    def test_distributions(self):
        drawn = {name: array.astype(np.float64) for name, array in self.drawn("one").items()}
        for name in ("uniform", "again", "narrow", "bfloat"):
            self.assertMoments(drawn[name], 0.5, math.sqrt(1 / 12))
            self.assertGreaterEqual(drawn[name].min(), 0)
            self.assertLess(drawn[name].max(), 1)
            self.assertGreater(drawn[name].max(), 0.99)
        self.assertMoments(drawn["normal"], 0, 1)
        self.assertTrue(3.5 < drawn["normal"].max() < 6 and -6 < drawn["normal"].min() < -3.5)
        self.assertLess(abs((drawn["normal"] ** 4).mean() - 3), 0.25)
        self.assertLess(abs((drawn["normal"] ** 3).mean()), 0.15)
        values, counts = np.unique(drawn["integers"], return_counts=True)
        self.assertEqual(values.tolist(), list(range(-3, 7)))
        self.assertLess(np.abs(counts / counts.mean() - 1).max(), 5 / math.sqrt(counts.mean()))
        self.assertEqual(np.unique(drawn["choices"]).tolist(), [0, 1])
        self.assertMoments(drawn["choices"], 0.3, math.sqrt(0.21))
        self.assertMoments(drawn["exponential"], 0.5, 0.5)
        self.assertGreater(drawn["exponential"].min(), 0)
        self.assertMoments(drawn["tries"], 4, math.sqrt(12))
        self.assertEqual(drawn["tries"].min(), 1)
        self.assertTrue(np.all(drawn["tries"] == np.round(drawn["tries"])))
        # Of the standard Cauchy distribution, the quartiles are -1, 0 and 1; their standard errors below pi / sqrt(count).
        for share, quartile in ((0.25, -1), (0.5, 0), (0.75, 1)):
            self.assertLess(abs(np.quantile(drawn["cauchy"], share) - quartile), 5 * math.pi / math.sqrt(drawn["cauchy"].size))
        self.assertTrue(np.all(np.isfinite(drawn["cauchy"])))
        self.assertMoments(drawn["bounded"], 1, 4 / math.sqrt(12))
        self.assertTrue(-1 <= drawn["bounded"].min() and drawn["bounded"].max() < 3)
        counts = np.bincount(drawn["kinds"].astype(int), minlength=4)
        self.assertEqual(counts[0], 0)
        np.testing.assert_allclose(counts / counts.sum(), [0, 1 / 14, 4 / 14, 9 / 14], atol=5 * 0.5 / math.sqrt(counts.sum()))
        # The first of two without replacement has the weights' shares, too.
        counts = np.bincount(drawn["pair"].astype(int), minlength=3) / drawn["pair"].size
        np.testing.assert_allclose(counts, [1 / 14, 4 / 14, 9 / 14], atol=5 * 0.5 / math.sqrt(drawn["pair"].size))
        self.assertEqual(sorted(drawn["order"]), list(range(256)))
        self.assertLess(abs(np.corrcoef(drawn["order"], np.arange(256))[0, 1]), 5 / 16)
        self.assertMoments(drawn["dropped"], 1, 1)

    def test_no_two_draws_are_the_same(self):
        """Of all pairs of draws, steps, samples, and of a draw and itself moved, correlations are those of chance."""
        one, two = self.drawn("first"), self.drawn("second", step=2)
        names = [name for name in one if one[name].shape == one["uniform"].shape and name != "cauchy"]
        rows = [one[name] for name in names] + [two[name] for name in names] + [np.roll(one[name], 1) for name in names]
        correlations = np.corrcoef(np.stack(rows).astype(np.float64))
        np.fill_diagonal(correlations, 0)
        self.assertLess(np.abs(correlations).max(), 6 / math.sqrt(one["uniform"].size))
        samples = np.concatenate([one["table"][:BATCH], two["table"][BATCH:2 * BATCH]]).astype(np.float64)
        self.assertMoments(samples, 0, 1)
        correlations = np.corrcoef(samples)
        np.fill_diagonal(correlations, 0)
        self.assertLess(np.abs(correlations).max(), 6 / 16)
        self.assertTrue(np.all(one["table"][BATCH:] == 0))

    def test_they_are_the_same_on_any_mesh(self):
        want = self.drawn("one", "--remat", "none")
        micro = self.drawn("micro", "--accumulate", 2, batch=BATCH // 2)
        for name, flags in (("zero3", ["--mesh", "shard=2", "--strategy", "zero3"]), ("ddp", ["--mesh", "shard=4", "--strategy", "ddp"]),
                            ("hsdp", ["--mesh", "replicate=2,shard=2", "--strategy", "hsdp"])):
            with self.subTest(name):
                self.assertSame(self.drawn(name, *flags), want)
                self.assertSame(self.drawn(name + "-micro", *flags, "--accumulate", 2, batch=BATCH // 2), micro)
        # Each micro-batch draws for itself, as each forward pass does in PyTorch.
        correlations = np.corrcoef(micro["table"][:BATCH].astype(np.float64))
        np.fill_diagonal(correlations, 0)
        self.assertLess(np.abs(correlations).max(), 6 / 16)
        self.assertMoments(micro["table"][:BATCH].astype(np.float64), 0, 1)
        self.assertMoments(micro["uniform"].astype(np.float64), 0.5, math.sqrt(1 / 24))  # the mean of two

    def assertSame(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for name, array in want.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6, err_msg=name)


class Models(ToolTest):
    """A variational autoencoder and a diffusion model: of two factors, eight numbers."""

    def setUp(self):
        super().setUp()
        generator = np.random.default_rng(0)
        data = generator.standard_normal((256, 2)) @ generator.standard_normal((2, 8))
        safetensors.save({"x": data.astype(np.float32)}, self.path("data.safetensors"))

    def losses(self, model, name, *flags, steps=60, accumulate=1, run=()):
        program = os.path.join(PROGRAMS, model + ".pt2")
        self.succeed("tessera-compile", program, "--batch", 32 // accumulate, "--accumulate", accumulate, "--loss", "output:output",
                     "--optimizer", "adamw", "--lr", 0.01, *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", steps, "--out", name,
                     "--threads", 1, *(run or ["--weights", program]))
        return [record["loss"] for record in self.metrics(name)]

    def assertClose(self, got, want):
        np.testing.assert_allclose(got, want, rtol=1e-4)

    def test_losses_go_down(self):
        for model, share in (("vae", 0.4), ("diffusion", 0.8)):
            with self.subTest(model):
                losses = self.losses(model, model, steps=160)
                self.assertLess(np.mean(losses[-8:]), share * np.mean(losses[:8]))
                micro = self.losses(model, model + "-micro", steps=160, accumulate=4)
                # Other numbers of the same distribution.
                self.assertLess(np.mean(micro[-8:]), share * np.mean(micro[:8]))
                self.assertNotEqual(micro[0], losses[0])

    def test_they_train_the_same_in_any_way(self):
        for model in ("vae", "diffusion"):
            want = self.losses(model, model, steps=6)
            for name, flags in (("again", []), ("full", ["--remat", "full"]), ("zero3", ["--mesh", "shard=2", "--strategy", "zero3"]),
                                ("ddp", ["--mesh", "shard=4", "--strategy", "ddp"])):
                with self.subTest(f"{model}, {name}"):
                    self.assertClose(self.losses(model, f"{model}-{name}", *flags, steps=6), want)
            micro = self.losses(model, model + "-micro", steps=6, accumulate=2)
            self.assertClose(self.losses(model, model + "-micro2", "--mesh", "shard=2", steps=6, accumulate=2), micro)
            half = self.losses(model, model + "-half", steps=3, run=["--checkpoint-every", 3, "--weights", os.path.join(PROGRAMS, model + ".pt2")])
            resumed = self.losses(model, model + "-resumed", steps=6, run=["--resume", model + "-half"])
            self.assertEqual([*half, *resumed[-3:]], want)
            # The numbers are f32 there, too, and rounded like what they are added to.
            np.testing.assert_allclose(self.losses(model, model + "-bf16", "--precision", "bf16", steps=6), want, rtol=0.03)

    def test_they_are_not_evaluated(self):
        self.fail_with("cannot be evaluated: it draws random numbers other than those of dropout", "tessera-compile",
                       os.path.join(PROGRAMS, "vae.pt2"), "--batch", 4, "--loss", "output:output", "--evaluate", "-o", "no.tessera")


if __name__ == "__main__":
    import unittest
    unittest.main()
