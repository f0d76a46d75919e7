"""The numpy reference of FP8 (tests/support/fp8.py) against what PyTorch gave: bytes and scales, bit for bit,
and products."""

import hashlib
import os
import sys
import unittest

import numpy as np

from harness import GOLDENS, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import fp8  # noqa: E402


class Casts(unittest.TestCase):
    def setUp(self):
        self.golden = np.load(os.path.join(GOLDENS, "fp8", "casts.npz"))

    def assert_same_bits(self, got, want):
        self.assertEqual((got.dtype, got.shape), (want.dtype, want.shape))
        nan = np.isnan(got) & np.isnan(want)
        self.assertTrue(np.array_equal(got.view(np.uint32)[~nan], want.view(np.uint32)[~nan]))

    def test_recorded_by_a_version_that_saturates(self):
        self.assertGreaterEqual([int(part) for part in str(self.golden["torch"]).split(".")[:2]], [2, 12])

    def test_all_bytes(self):
        for format in fp8.FORMATS:
            self.assert_same_bits(fp8.decode(np.arange(256), format), self.golden[format + "_decoded"])

    def test_casts(self):
        for format in fp8.FORMATS:
            inputs, want = self.golden[format + "_inputs"], self.golden[format + "_codes"]
            got = fp8.encode(inputs, format)
            numbers = ~np.isnan(inputs)
            self.assertGreater(numbers.sum(), 5000)
            self.assertTrue(np.array_equal(got[numbers], want[numbers]))
            self.assertTrue(np.isnan(fp8.decode(got[~numbers], format)).all())

    def test_scales(self):
        for format in fp8.FORMATS:
            for rounding in ("none", "down", "e8m0"):
                got = fp8.scale(self.golden[format + "_amax"], format, rounding)
                self.assert_same_bits(got, self.golden[f"{format}_scale_{rounding}"])

    def products(self):
        """(kind in the file, product, its operands as (name, values)): y = x wᵀ, dx = g w, dw = gᵀ x."""
        x, w, g = fp8.case_values()
        return (("y", "output", (("activation", x), ("weight", w))),
                ("dx", "input_grad", (("gradient", g), ("weight", w))),
                ("dw", "weight_grad", (("gradient", g), ("activation", x))))

    def test_operands_of_recipes(self):
        for recipe in fp8.RECIPES:
            for kind, product, operands in self.products():
                for i, (operand, values) in enumerate(operands):
                    with self.subTest(recipe=recipe, product=product, operand=operand):
                        key, policy = f"{recipe}_{kind}_codes_{i}", fp8.RECIPES[recipe].get(product, {}).get(operand)
                        self.assertEqual(policy is None, key not in self.golden.files)
                        if policy is None:
                            continue
                        blocks = fp8.blocks_of(values.shape, policy, *fp8.OPERANDS[product][operand], 1)
                        codes, inverse = fp8.quantize(values, blocks, policy[0], policy[3])
                        self.assert_same_bits(inverse, self.golden[f"{recipe}_{kind}_inverse_{i}"])
                        self.assertEqual(hashlib.sha256(codes.tobytes()).digest(), self.golden[key].tobytes())

    def outside(self, recorded, recipe):
        """Which of PyTorch's products of a recipe are not within the bound of fp8's of another.

        PyTorch rounds each operand to f32 when it multiplies by the inverse scale, then each of n products and n - 1
        sums; fp8 rounds once, a sum in f64. A rounding is off by at most 2^-24 of its value, so that a result is off
        by (n + 3) 2^-24 times the sum of absolute products (Higham 2002, 3.1), and by 2^-149 for a denormal product."""
        found = []
        for kind, product, operands in self.products():
            first, second = (fp8.read(values, recipe, product, operand) for operand, values in operands)
            if kind != "dx":
                second = second.T if kind == "y" else second
            first = first.T if kind == "dw" else first
            n = first.shape[1]
            bound = (n + 3) * 2.0**-24 * (np.abs(first) @ np.abs(second)) + n * 2.0**-149
            x, w, g = fp8.case_values()
            if kind == "y":
                want = fp8.linear_forward(x, w, recipe)
            else:
                want = fp8.linear_backward(x, w, g, recipe)[kind == "dw"]
            off = np.abs(self.golden[f"{recorded}_{kind}"].astype(np.float64) - want[::32])
            if not (off <= bound[::32]).all():
                found.append(kind)
        return found

    def test_products_of_recipes(self):
        for recipe in fp8.RECIPES:
            with self.subTest(recipe):
                self.assertEqual(self.outside(recipe, recipe), [])

    def test_products_tell_apart_what_they_can(self):
        """Powers of two change no digit but of denormals: those recipes differ in codes and scales, compared above."""
        for other in set(fp8.RECIPES) - {"tensorwise"}:
            self.assertEqual(self.outside("tensorwise", other), ["y", "dx", "dw"], other)
            self.assertEqual(self.outside(other, "tensorwise"), ["y", "dx", "dw"], other)
        self.assertEqual(self.outside("rowwise", "rowwise_hp"), ["dw"])


if __name__ == "__main__":
    unittest.main()
