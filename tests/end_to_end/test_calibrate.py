"""tessera-calibrate writes a target file that the compiler takes, each number with its source; bad flags are refused."""

import json
import os

from harness import MODELS, ToolTest

COLLECTIVES = {"all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"}


class Calibrate(ToolTest):
    def sources(self, node):
        """(has a number, has a source) of every quantity and table."""
        if not isinstance(node, dict):
            return
        if "value" in node or "points" in node:
            yield node
        for child in node.values():
            yield from self.sources(child)

    def test_two_ranks(self):
        for clock in ("wall", "cpu"):
            self.succeed("tessera-calibrate", "--quick", "--ranks", 2, "--threads", 1, "--repeats", 1, "--clock", clock, "-o",
                         "here.json", "--name", "here")
            with open(self.path("here.json")) as file:
                target = json.load(file)
            quantities = list(self.sources(target))
            self.assertGreater(len(quantities), 30)
            for quantity in quantities:
                self.assertTrue(quantity["source"])
            self.assertEqual(target["devices_per_node"]["value"], 2)
            self.assertEqual(len(target["gemm_efficiency"]["fp32"]["points"]), 8)
            for side in ("intra_node", "inter_node"):
                self.assertEqual(set(target["communication"][side]), COLLECTIVES)
            output = self.succeed("tessera-compile", os.path.join(MODELS, "gpt.ts17.onnx"), "--batch", 4, "--mesh", "shard=2",
                                  "--strategy", "zero3", "--target", "here.json", "--report")
            self.assertIn("target here: ", output)
            self.assertIn("predicted step", output)

    def test_one_rank_has_no_communication_to_measure(self):
        self.succeed("tessera-calibrate", "--quick", "--ranks", 1, "--threads", 1, "--repeats", 1, "-o", "one.json")
        with open(self.path("one.json")) as file:
            link = json.load(file)["communication"]["intra_node"]["all_gather"]
        self.assertIn("not measured", link["bandwidth"]["source"])
        self.succeed("tessera-compile", os.path.join(MODELS, "gpt.ts17.onnx"), "--batch", 4, "--target", "one.json", "--report")

    def test_bad_flags(self):
        self.fail_with("expected a file \\*.json, got 'here.txt'", "tessera-calibrate", "-o", "here.txt")
        self.fail_with("none/here.json", "tessera-calibrate", "--quick", "-o", "none/here.json")
        self.fail_with("--clock cpu: needs --threads 1", "tessera-calibrate", "--quick", "--threads", 2, "--clock", "cpu", "-o",
                       "here.json")
        self.fail_with("--ranks", "tessera-calibrate", "--ranks", 0, "-o", "here.json")
        self.assertFalse(os.path.exists(self.path("here.json")))
