"""Launches, bytes and library calls of a GPU's training step against the table of tests/bench/step_counts.json."""

import os
import sys
import unittest

from harness import BIN, ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import step_counts  # noqa: E402

UPDATE = "if this is meant: tests/bench/step_counts.py --update"


class StepCounts(unittest.TestCase):
    maxDiff = None

    def test_no_figure_is_worse_than_the_table_and_the_table_is_not_old(self):
        table = step_counts.load()
        self.assertEqual(sorted(table), sorted(step_counts.MODELS))
        for name in step_counts.MODELS:
            with self.subTest(model=name):
                worse, better = step_counts.compare(name, table[name]["now"], step_counts.measure(BIN, name))
                self.assertFalse(worse, f"worse; {UPDATE}")
                self.assertFalse(better, "better, the table is old: tests/bench/step_counts.py --update")

    def test_the_page_is_that_of_the_table(self):
        with open(step_counts.PAGE) as file:
            self.assertEqual(file.read(), step_counts.page(step_counts.load()), "tests/bench/step_counts.py --update")

    def test_differences_name_model_class_and_figure(self):
        old = {"kernels: row": {"launches": 4, "bytes read": 4096, "ms": 0.5}, "copies": {"count": 1}}
        new = {"kernels: row": {"launches": 5, "bytes read": 4000, "ms": 0.5015}, "kernels: other": {"launches": 1}}
        worse, better = step_counts.compare("gpt", old, new)
        self.assertEqual(worse, ["gpt, kernels: other, launches: 0 before, 1 now",
                                 "gpt, kernels: row, launches: 4 before, 5 now"])
        self.assertEqual(better, ["gpt, copies, count: 1 before, 0 now",
                                  "gpt, kernels: row, bytes read: 4,096 before, 4,000 now"])
        self.assertEqual(step_counts.compare("gpt", old, old), ([], []))
        self.assertEqual(step_counts.compare("gpt", {"x": {"ms": 1.0}}, {"x": {"ms": 1.003}})[0],
                         ["gpt, x, ms: 1.0 before, 1.003 now"])


if __name__ == "__main__":
    unittest.main()
