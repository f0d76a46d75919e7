"""The numpy reference of FP8 (tests/support/fp8.py) against what PyTorch gave: bytes and scales, bit for bit."""

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
        self.assertEqual(got.dtype, want.dtype)
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


if __name__ == "__main__":
    unittest.main()
