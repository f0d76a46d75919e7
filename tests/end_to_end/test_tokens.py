"""Token files of a vocabulary beyond bytes: uint16, uint32 and llm.c's headers give the same training; ids are checked."""

import numpy as np

from harness import ToolTest

VOCABULARY, WIDTH = 1000, 8

# An embedding and a classifier over 1000 tokens.
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
bigram (int64[B,T] tokens) => (float[B,T,V] logits)
<float[1000,8] embed = {%s}, float[8,1000] head = {%s}>
{
  embedded = Gather (embed, tokens)
  logits = MatMul (embedded, head)
}
""" % ((", ".join(["0.0"] * (VOCABULARY * WIDTH)),) * 2)


class TokenFiles(ToolTest):
    def setUp(self):
        super().setUp()
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(MODEL)
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", ".", "--batch", 4, "--seq", 16, "--lr", 0.05, "--mesh", "shard=2",
                     "--strategy", "zero3", "-o", "model.tessera")

    def losses(self, out, *flags):
        self.succeed("tessera-run", "model.tessera", "--steps", 20, "--out", out, "--threads", 1, *flags)
        return [record["loss"] for record in self.metrics(out)]

    def test_formats_give_the_same_training(self):
        # Each token follows its predecessor in a fixed walk through the vocabulary: context tells everything.
        ids = np.arange(4000) * 7 % 40 * 25 + 24
        self.assertGreater(ids.max(), 255)
        ids.astype(np.uint16).tofile(self.path("plain.bin"))
        ids.astype(np.uint32).tofile(self.path("wide.bin"))
        for name, magic, version, kind in (("gpt2.bin", 20240520, 1, np.uint16), ("llama3.bin", 20240801, 7, np.uint32)):
            header = np.zeros(256, np.int32)
            header[:3] = magic, version, len(ids)
            with open(self.path(name), "wb") as file:
                file.write(header.tobytes() + ids.astype(kind).tobytes())
        want = self.losses("plain", "--data", "plain.bin")
        self.assertLess(abs(want[0] - np.log(VOCABULARY)), 0.01)
        self.assertLess(want[-1], want[0] - 1)
        self.assertEqual(self.losses("wide", "--data", "wide.bin", "--token-bytes", 4), want)
        self.assertEqual(self.losses("gpt2", "--data", "gpt2.bin"), want)
        self.assertEqual(self.losses("llama3", "--data", "llama3.bin"), want)

    def test_ids_beyond_the_vocabulary_are_refused(self):
        ids = np.arange(400) % VOCABULARY
        ids[123] = VOCABULARY
        for name, kind, flags in (("narrow.bin", np.uint16, ()), ("wide.bin", np.uint32, ("--token-bytes", 4))):
            with self.subTest(name):
                ids.astype(kind).tofile(self.path(name))
                self.fail_with(r"token 123 of '" + name + r"' is 1000, but 'tokens' must be in \[0, 1000\)", "tessera-run",
                               "model.tessera", "--data", name, "--steps", 20, "--out", name + "-run", *flags)


if __name__ == "__main__":
    import unittest
    unittest.main()
