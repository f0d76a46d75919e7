"""Ten AdamW steps of a GPT and a Llama equal PyTorch's: losses, every gradient, every parameter; on one rank and sharded."""



import numpy as np

from harness import Golden, ToolTest
import safetensors

# fp32 on different kernels: sums differ in order only.
LOSS_TOLERANCE = 1e-5      # relative
GRADIENT_TOLERANCE = 1e-4  # of a tensor's largest element
# AdamW divides by the root of the second moment: where a gradient is nearly 0 its sign decides a step of the size of the
# learning rate, so parameters are compared relative to how far training moved the tensor.
PARAMETER_TOLERANCE = 2e-3
NOISE = 1e-6                # of a tensor's largest gradient: what rounding leaves where the gradient is 0


def error(got, want):
    """Largest difference relative to the largest element."""
    return float(np.abs(got.astype(np.float64) - want).max() / max(np.abs(want).max(), 1e-30))


class TrainingTest(ToolTest):
    def train(self, golden, name, *flags, accumulate=1):
        self.succeed("tessera-compile", *golden.compile_flags(accumulate), *flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--order", "sequential", "--steps",
                     golden.steps, "--weights", golden.weights, "--out", name, "--threads", 1,
                     "--dump=gradients,parameters,losses", "--dump-step", 1)
        return self.metrics(name)

    def compare(self, name, *flags, accumulate=1, model="gpt"):
        golden = Golden(model)
        records = self.train(golden, name, *flags, accumulate=accumulate)
        losses = [record["loss"] for record in records]
        self.assertEqual(len(losses), golden.steps)
        for step, (got, want) in enumerate(zip(losses, golden.losses), 1):
            self.assertLessEqual(abs(got - want) / want, LOSS_TOLERANCE, f"loss of step {step}: {got} and {want}")
        for step, (record, want) in enumerate(zip(records, golden.norms), 1):
            self.assertLessEqual(abs(record["grad_norm"] - want) / want, GRADIENT_TOLERANCE, f"norm of step {step}")
        gradients = safetensors.load(self.path(name, "dump-1", "gradients.safetensors"))
        wanted = golden.load("gradients")
        self.assertEqual(sorted(gradients), sorted(wanted))
        for parameter, want in wanted.items():
            self.assertLessEqual(error(gradients[parameter], want), GRADIENT_TOLERANCE, f"gradient of {parameter}")
        final, before = safetensors.load(self.path(name, "model.safetensors")), golden.load("weights")
        for parameter, want in golden.load("final").items():
            moved = np.abs(want - before[parameter]).max()
            self.assertGreater(np.abs(final[parameter] - before[parameter]).max(), 0, f"{parameter} never changed")
            # The bias of the keys has no gradient but rounding, which AdamW turns into whole steps of any sign.
            gradient = np.abs(wanted[parameter])
            noise = (gradient > 0) & (gradient < NOISE * gradient.max())
            difference = np.where(noise, 0, np.abs(final[parameter] - want))
            self.assertLessEqual(difference.max(), PARAMETER_TOLERANCE * moved, parameter)


class Oracle(TrainingTest):
    def test_gpt(self):
        self.compare("gpt")

    def test_gpt_with_epilogues(self):
        """The products that a GPU's library finishes by itself; with micro-batches weight gradients add to sums too."""
        self.compare("gpt-epilogues", "--epilogues", "all")
        self.compare("gpt-epilogues-2", "--epilogues", "all", "--mesh", "shard=2", "--strategy", "zero3", accumulate=2)
        text = self.succeed("tessera-dump", self.path("gpt-epilogues-2.tessera"), "--schedule")
        for epilogue in ("Bias", "GeluAuxBias", "GeluGradBiasGrad", "BiasGradA"):
            self.assertIn(f"epilogue {epilogue}", text)

    def test_llama(self):
        self.compare("llama", model="llama")

    def test_gpt_zero3_on_2_ranks(self):
        self.compare("gpt-zero3", "--mesh", "shard=2", "--strategy", "zero3")

    def test_llama_zero3_on_3_ranks_with_accumulation(self):
        self.compare("llama-zero3", "--mesh", "shard=3", "--strategy", "zero3", accumulate=4, model="llama")

    def test_gpt_ddp_on_4_ranks_with_accumulation(self):
        self.compare("gpt-ddp", "--mesh", "shard=4", "--strategy", "ddp", accumulate=4)


class Ranks(TrainingTest):
    """The same training on 1 to 4 ranks; runs that must agree to the bit are compared to the bit."""

    def final(self, name):
        return safetensors.load(self.path(name, "model.safetensors"))

    def losses(self, name):
        return [record["loss"] for record in self.metrics(name)]

    def assert_close(self, name, reference):
        """Losses within 1e-6, as the issue of equal training on any number of ranks asks."""
        for got, want in zip(self.losses(name), self.losses(reference)):
            self.assertLessEqual(abs(got - want) / want, 1e-6, f"{name} against {reference}")

    def assert_bitwise(self, name, reference):
        self.assertEqual(self.losses(name), self.losses(reference))
        first, second = self.final(name), self.final(reference)
        self.assertEqual(sorted(first), sorted(second))
        for parameter, value in first.items():
            self.assertTrue(np.array_equal(value.view(np.uint32), second[parameter].view(np.uint32)), parameter)

    def test_ranks_equal_one_rank(self):
        golden = Golden("gpt")
        for accumulate in (1, 4):
            reference = f"one-{accumulate}"
            self.train(golden, reference, accumulate=accumulate)
            for ranks in (2, 3, 4):
                for strategy in ("ddp", "zero3"):
                    name = f"{strategy}-{ranks}-{accumulate}"
                    self.train(golden, name, "--mesh", f"shard={ranks}", "--strategy", strategy, accumulate=accumulate)
                    with self.subTest(name):
                        self.assert_close(name, reference)
                if accumulate == 1:
                    # With micro-batches ddp adds over them before it reduces over ranks, zero3 after: another order.
                    with self.subTest(f"zero3 = ddp on {ranks} ranks"):
                        self.assert_bitwise(f"zero3-{ranks}-1", f"ddp-{ranks}-1")

    def test_two_runs_are_equal(self):
        golden = Golden("gpt")
        for name in ("first", "second"):
            self.train(golden, name, "--mesh", "shard=2", "--strategy", "zero3")
        self.assert_bitwise("first", "second")

    def test_equal_inputs_give_equal_artifacts(self):
        golden = Golden("llama")
        for name in ("a.tessera", "b.tessera"):
            self.succeed("tessera-compile", *golden.compile_flags(4), "--mesh", "shard=2", "--strategy", "zero3", "-o", name)
        with open(self.path("a.tessera"), "rb") as first, open(self.path("b.tessera"), "rb") as second:
            self.assertEqual(first.read(), second.read())
