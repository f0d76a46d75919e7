"""Low-rank adapters train as in PyTorch beside a frozen model, on one rank and sharded, and are left alone or merged."""

import json
import os

import numpy as np

from harness import GOLDENS, Golden, ToolTest
import safetensors
from test_oracle import GRADIENT_TOLERANCE, LOSS_TOLERANCE, NOISE, PARAMETER_TOLERANCE, error

FOLDER = os.path.join(GOLDENS, "lora")
PREFIX = "base_model.model."


def bf16(values):
    """Rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype(np.uint32).view(np.float32)


class AdaptersTest(ToolTest):
    """A Llama with adapters, its compilation and its run."""

    def setUp(self):
        super().setUp()
        self.golden = Golden("llama")
        with open(os.path.join(FOLDER, "golden.json")) as file:
            self.lora = json.load(file)
        self.adapters = self.load("adapters")
        self.weights = self.golden.load("weights")
        safetensors.save({**self.weights, **self.adapters}, self.path("all.safetensors"))

    def load(self, what):
        return safetensors.load(os.path.join(FOLDER, what + ".safetensors"))

    def compile(self, name, *flags, train=None):
        train = train if train is not None else ",train=^" + self.lora["trained"].replace(".", "[.]") + "$"
        spec = f"rank={self.lora['rank']},alpha={self.lora['alpha']},targets={self.lora['targets']}{train}"
        return self.succeed("tessera-compile", *self.golden.compile_flags(), *flags, "--lora", spec, "-o", name + ".tessera")

    def run_steps(self, name, *flags, weights="all.safetensors", steps=None):
        return self.succeed("tessera-run", name + ".tessera", "--data", self.golden.data, "--order", "sequential", "--steps",
                            steps or self.golden.steps, "--weights", self.path(weights), "--out", name, "--threads", 1, *flags)

    def load_adapter(self, run):
        return safetensors.load(self.path(run, "adapter", "adapter_model.safetensors"))


class Lora(AdaptersTest):
    def compare(self, name, *flags):
        self.compile(name, *flags)
        self.run_steps(name, "--export-lora", "both", "--dump=gradients", "--dump-step", 1)
        for step, (record, want) in enumerate(zip(self.metrics(name), self.lora["losses"], strict=True), 1):
            self.assertLessEqual(abs(record["loss"] - want) / want, LOSS_TOLERANCE, f"loss of step {step}")
        gradients, wanted = safetensors.load(self.path(name, "dump-1", "gradients.safetensors")), self.load("gradients")
        self.assertEqual(sorted(gradients), sorted(wanted))
        for parameter, want in wanted.items():
            self.assertLessEqual(error(gradients[parameter], want), GRADIENT_TOLERANCE, f"gradient of {parameter}")
        before, final = {**self.weights, **self.adapters}, self.load("final")
        left = safetensors.load(self.path(name, "adapter", "adapter_model.safetensors"))
        self.assertEqual(sorted(left), sorted(PREFIX + parameter for parameter in final))
        for parameter, want in final.items():
            moved = np.abs(want - before[parameter]).max()
            gradient = np.abs(wanted[parameter])
            noise = (gradient > 0) & (gradient < NOISE * gradient.max())
            difference = np.where(noise, 0, np.abs(left[PREFIX + parameter] - want))
            self.assertLessEqual(difference.max(), PARAMETER_TOLERANCE * moved, parameter)
        model = safetensors.load(self.path(name, "model.safetensors"))
        self.assertEqual(sorted(model), sorted(self.weights))
        merged = self.load("merged")
        for parameter, value in model.items():
            if parameter in merged:
                a, b = (left[PREFIX + parameter.replace(".weight", f".lora_{part}.weight")].astype(np.float64) for part in "AB")
                sum_here = self.weights[parameter] + self.lora["alpha"] / self.lora["rank"] * (b @ a)
                np.testing.assert_allclose(value, sum_here, rtol=1e-6, atol=1e-8, err_msg=parameter)
                self.assertLessEqual(error(value, merged[parameter]), 1e-3, parameter)
                self.assertGreater(error(value, self.weights[parameter]), 1e-2, parameter)
            elif parameter != self.lora["trained"]:
                np.testing.assert_array_equal(value, self.weights[parameter], err_msg=parameter)

    def test_one_rank(self):
        self.compare("one")

    def test_zero3_on_2_ranks(self):
        self.compare("zero3", "--mesh", "shard=2", "--strategy", "zero3")

    def test_ddp_on_3_ranks(self):
        self.compare("ddp", "--mesh", "shard=3", "--strategy", "ddp")

    def test_what_peft_reads(self):
        self.compile("run")
        self.run_steps("run", steps=1)
        with open(self.path("run", "adapter", "adapter_config.json")) as file:
            config = json.load(file)
        self.assertEqual((config["peft_type"], config["r"], config["lora_alpha"], config["fan_in_fan_out"]),
                         ("LORA", self.lora["rank"], self.lora["alpha"], False))
        self.assertEqual(config["target_modules"], sorted({name.split(".lora_")[0] for name in self.adapters}))
        self.assertEqual(config["modules_to_save"], [self.lora["trained"].rpartition(".")[0]])
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))

    def test_begins_as_the_model(self):
        """Weights without adapters do: B begins with zeros, so that the first loss is the model's own."""
        self.succeed("tessera-compile", *self.golden.compile_flags(), "-o", "plain.tessera")
        self.run_steps("plain", weights=self.golden.weights, steps=1)
        self.compile("run", train="")
        self.run_steps("run", weights=self.golden.weights, steps=1)
        self.assertEqual(self.metrics("run")[0]["loss"], self.metrics("plain")[0]["loss"])

    def test_resume_is_bitwise(self):
        self.compile("run", "--mesh", "shard=2", "--strategy", "zero3")
        self.run_steps("run", "--checkpoint-every", 2, steps=4)
        whole = self.load_adapter("run")
        self.succeed("tessera-run", "run.tessera", "--data", self.golden.data, "--order", "sequential", "--steps", 4, "--resume",
                     self.path("run", "checkpoints", "ckpt-2"), "--out", "again", "--threads", 1)
        for name, value in self.load_adapter("again").items():
            np.testing.assert_array_equal(value, whole[name], err_msg=name)

    def test_refusals(self):
        flags = [*self.golden.compile_flags(), "-o", "x.tessera"]
        self.fail_with("--lora: expected rank=<number>", "tessera-compile", *flags, "--lora", "rank=4,targets=q_proj")
        self.fail_with("--lora: targets: no matrix that multiplies activations matches 'nothing'; nearest: ",
                       "tessera-compile", *flags, "--lora", "rank=4,alpha=8,targets=nothing")
        self.succeed("tessera-compile", *flags)
        self.fail_with("--export-lora: artifact 'x.tessera' has no adapters", "tessera-run", "x.tessera", "--data",
                       self.golden.data, "--steps", 1, "--out", "x", "--export-lora", "merged")


class FrozenInBf16(AdaptersTest):
    """--frozen-dtype bf16 holds the frozen model in bf16 alone."""

    def adapters_after(self, name, *flags, weights="all.safetensors"):
        self.compile(name, *flags)
        self.run_steps(name, weights=weights, steps=3)
        return [record["loss"] for record in self.metrics(name)], self.load_adapter(name)

    def assert_same(self, one, other):
        self.assertEqual(one[0], other[0])
        for parameter, value in one[1].items():
            self.assertTrue(np.array_equal(value, other[1][parameter]), parameter)

    def arena(self, name, kind):
        memory = json.loads(self.succeed("tessera-dump", name + ".tessera", "--memory", "--json"))["memory"]
        return next(arena["bytes"] for arena in memory["arenas"] if arena["kind"] == kind)

    def test_no_bit_of_training_in_bf16_changes(self):
        for name, flags in (("one", ()), ("remat", ("--remat", "full")), ("zero3", ("--mesh", "shard=2", "--strategy", "zero3"))):
            with self.subTest(name):
                wide = self.adapters_after(name, "--precision", "bf16", *flags)
                narrow = self.adapters_after(name + "-narrow", "--precision", "bf16", "--frozen-dtype", "bf16", *flags)
                self.assert_same(wide, narrow)
                self.assertLess(self.arena(name + "-narrow", "state"), 0.6 * self.arena(name, "state"))
                # No f32 copy of what is held, such as the embedding's table.
                self.assertLessEqual(self.arena(name + "-narrow", "activations"), self.arena(name, "activations"))

    def test_fp32_computes_with_rounded_weights(self):
        """As without the flag, where the weights were rounded before."""
        rounded = {}
        for name, value in safetensors.load(self.path("all.safetensors")).items():
            if name in self.weights and name != self.lora["trained"]:
                value = bf16(value)
            rounded[name] = value
        safetensors.save(rounded, self.path("rounded.safetensors"))
        want = self.adapters_after("want", weights="rounded.safetensors")
        self.assert_same(want, self.adapters_after("got", "--frozen-dtype", "bf16"))

    def test_merged_weights_are_bf16(self):
        """The model in bf16 and its adapters in f32, added in f64 and rounded once to what the model is held in."""
        self.compile("run", "--frozen-dtype", "bf16")
        self.run_steps("run", "--export-lora", "both", steps=2)
        left = self.load_adapter("run")
        model, types = (each(self.path("run", "model.safetensors")) for each in (safetensors.load, safetensors.types))
        matrices = {name.removeprefix(PREFIX).split(".lora_")[0] + ".weight" for name in left if ".lora_" in name}
        self.assertTrue(matrices)
        for parameter, value in model.items():
            if parameter == self.lora["trained"]:
                self.assertEqual(types[parameter], "F32")
                continue
            want = bf16(self.weights[parameter])
            if parameter in matrices:
                a, b = (left[PREFIX + parameter.replace(".weight", f".lora_{part}.weight")].astype(np.float64) for part in "AB")
                want = bf16((want + self.lora["alpha"] / self.lora["rank"] * (b @ a)).astype(np.float32))
            self.assertEqual(types[parameter], "BF16")
            np.testing.assert_array_equal(value, want, err_msg=parameter)

    def test_nothing_to_hold(self):
        self.fail_with("--frozen-dtype bf16: there is no frozen parameter that is f32", "tessera-compile", *self.golden.compile_flags(),
                       "--frozen-dtype", "bf16", "-o", "a.tessera")
