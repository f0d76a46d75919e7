"""Every row of the table of PyTorch's operators (tests/pt2/operators) trains as in PyTorch, forward and gradient, or is
refused for the reason that the row gives. record.py wrote the programs; no torch is needed here."""

import gzip
import json
import os
import re
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OPERATORS = os.path.join(ROOT, "tests", "pt2", "operators")
sys.path[:0] = [os.path.join(ROOT, "tests", "end_to_end"), os.path.join(ROOT, "tests", "support")]
import safetensors  # noqa: E402
from harness import ToolTest  # noqa: E402
from tessera import compare, tools  # noqa: E402

sys.path.append(OPERATORS)  # last: it has names that tests/models has, too
from settings import FLAGS, TOLERANCES  # noqa: E402

RECORDED = os.path.join(OPERATORS, "recorded")


def rows_of(family):
    """[[name, overloads, what the refusal must match or None], …]"""
    with open(os.path.join(RECORDED, family + ".json")) as file:
        return json.load(file)


class Operators(ToolTest):
    def train(self, family):
        """All supported rows of a family, in one program."""
        with gzip.open(os.path.join(RECORDED, family + ".gz")) as file, open(self.path("arrays"), "wb") as target:
            target.write(file.read())
        arrays = safetensors.load(self.path("arrays"))

        def under(prefix):
            return {name[len(prefix):]: array for name, array in arrays.items() if name.startswith(prefix)}
        for name in ("weight", "data"):
            safetensors.save(under(name + "/"), self.path(name + ".safetensors"))
        artifact = self.path("model.tessera")
        self.succeed("tessera-compile", os.path.join(RECORDED, family + ".pt2"), "-o", artifact, *FLAGS)
        gradients = under("gradient/")
        want = tools.Training(arrays["losses"].tolist(), gradients, list(gradients))
        got = tools.train(artifact, self.path("data.safetensors"), self.path("weight.safetensors"), len(want.losses),
                            self.path("run"), timeout=120)
        verdict = compare.compare(want, got, lambda: under("rounding/"), *TOLERANCES.get(family, ()))
        self.assertTrue(verdict.same, verdict.line())
        # Which rows were compared: each has parameters of its own.
        return {name.split(".")[1] for name in [*verdict.errors, *verdict.rounding]}

    def check(self, family):
        rows = rows_of(family)
        supported = {name for name, _, refused in rows if not refused}
        if supported:
            self.assertEqual(self.train(family), supported)
        refused = [row for row in rows if row[2]]
        if refused:
            said = self.fail_with("cannot be imported", "tessera-compile", os.path.join(RECORDED, family + "-refused.pt2"), "-o",
                                  "refused.tessera", *FLAGS)
            self.assertFalse(os.path.exists(self.path("refused.tessera")))
            for name, overloads, reason in refused:
                with self.subTest(name):
                    lines = [line for line in said.splitlines() if f"'/rows.{name}/" in line]
                    self.assertTrue(any(re.search(reason, line) for line in lines), f"{overloads}: {reason}: {lines}")


for one in sorted(name[:-5] for name in os.listdir(RECORDED) if name.endswith(".json") and name != "core.json"):
    setattr(Operators, f"test_{one}", lambda self, family=one: self.check(family))

if __name__ == "__main__":
    unittest.main()
