"""The table of tests/sharded/refusals_of_others.py on the CPU: three steps of n ranks equal those of one, loss by loss, and every gradient of
the last; what is an error there is one of tessera-compile."""

import concurrent.futures
import os
import sys
import unittest

import numpy as np

from harness import ROOT, ToolTest
import safetensors
import test_oracle

sys.path.insert(0, os.path.join(ROOT, "tests", "sharded"))
from refusals_of_others import EXACT, ROWS, Case  # noqa: E402

STEPS = 3


def chosen(where):
    """Of the ways of a row one of each kind, in the order that is the more difficult one."""
    by_attention = {attention: (mesh, attention, order) for mesh, attention, order in where}
    hard = [by_attention[attention] for attention in ("ring", "ring+ulysses") if attention in by_attention]
    return hard or list(by_attention.values())


def flags(mesh, attention, order):
    return ["--mesh", mesh.replace(" ", ""), "--attention", attention, "--sequence-order", order]


class RefusalsOfOthers(ToolTest):
    def compile(self, name, *more):
        return self.tool("tessera-compile", name + ".mlir", "--loss", "output:loss", "--optimizer", "sgd", "--lr", 0.1, *more)

    def run_steps(self, artifact, data):
        self.succeed("tessera-run", artifact, "--data", data, "--order", "sequential", "--seed", 3, "--steps", STEPS, "--threads", 1, "--out",
                     artifact + ".run", "--dump", "gradients", "--dump-step", STEPS)
        return ([record["loss"] for record in self.metrics(artifact + ".run")],
                safetensors.load(self.path(artifact + ".run", f"dump-{STEPS}", "gradients.safetensors")))

    def write(self, name, settings):
        """The model and its data."""
        case = Case(**settings)
        with open(self.path(name + ".mlir"), "w") as file:
            file.write(case.write().replace('train.role = "loss"', 'train.role = "output", train.name = "loss"'))
        chance, samples = np.random.default_rng(5), case.batch * STEPS
        tokens = chance.integers(0, 8, (samples, case.time)).astype(np.int32)
        arrays = {"tokens": tokens, "targets": chance.integers(0, 8, tokens.shape).astype(np.int32)}
        if case.options.context:
            arrays["context"] = chance.standard_normal((samples, case.options.context, 8)).astype(np.float32)
        safetensors.save(arrays, self.path(name + ".safetensors"))

    def exact(self, number, row):
        name = f"row{number}"
        self.write(name, row[2])
        data, where = name + ".safetensors", f"{row[0]}: {row[1]}"
        done = self.compile(name, "-o", name + ".one")
        self.assertEqual(done.returncode, 0, where + done.stderr)
        losses, gradients = self.run_steps(name + ".one", data)
        self.assertEqual(len(set(losses)), STEPS)
        for index, (mesh, attention, order) in enumerate(chosen(row[3])):
            place, artifact = f"{where}: {mesh}, {attention}, {order}", f"{name}.many{index}"
            done = self.compile(name, *flags(mesh, attention, order), "-o", artifact)
            self.assertEqual(done.returncode, 0, place + done.stderr)
            theirs, parts = self.run_steps(artifact, data)
            np.testing.assert_allclose(theirs, losses, rtol=test_oracle.LOSS_TOLERANCE, err_msg=place)
            self.assertEqual(sorted(parts), sorted(gradients), place)
            for parameter, want in gradients.items():
                # A bias of all keys adds the same to all scores of a query, where it is not turned: its gradient is 0 but for rounding.
                scale = np.abs(gradients["k.weight" if parameter == "k.bias" else parameter]).max()
                self.assertLessEqual(np.abs(parts[parameter] - want).max(), test_oracle.GRADIENT_TOLERANCE * scale, f"{place}: {parameter}")

    def refused(self, number, row):
        name = f"row{number}"
        self.write(name, row[2])
        for mesh, attention, order in row[3]:
            done = self.compile(name, *flags(mesh, attention, order), "-o", name + ".many")
            self.assertEqual(done.returncode, 1, row[1])
            self.assertIn(row[4], done.stderr)
            self.assertFalse(os.path.exists(self.path(name + ".many")))

    def test_table(self):
        rows = list({(str(row[2]), row[4], str(chosen(row[3]))): row for row in ROWS}.values())  # some systems refuse the same
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(self.exact if row[4] is EXACT else self.refused, number, row) for number, row in enumerate(rows)]
        for run, row in zip(runs, rows):
            with self.subTest(f"{row[0]}: {row[1]}"):
                run.result()


if __name__ == "__main__":
    unittest.main()
