"""Token files of a vocabulary beyond bytes: uint16, uint32, int64 and llm.c's headers give the same training, which says
how it reads them; ids are checked, and files that are no tokens of the model are refused."""

import json

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
                     "--strategy", "zero3", "--evaluate", "-o", "model.tessera")

    def losses(self, out, *flags, says):
        printed = self.succeed("tessera-run", "model.tessera", "--steps", 20, "--out", out, "--threads", 1, *flags)
        self.assertIn(f" samples of {says}, unigram entropy", printed.splitlines()[0])
        with open(self.path(out, "run.json")) as file:
            self.assertEqual(json.load(file)["data_format"], says)
        return [record["loss"] for record in self.metrics(out)]

    def refused(self, message, *flags):
        self.fail_with(message, "tessera-run", "model.tessera", "--steps", 20, "--out", "refused", *flags)

    def test_formats_give_the_same_training(self):
        # Each token follows its predecessor in a fixed walk through the vocabulary: context tells everything.
        ids = np.arange(4000) * 7 % 40 * 25 + 24
        self.assertGreater(ids.max(), 255)
        ids.astype(np.uint16).tofile(self.path("plain.bin"))
        ids.astype(np.uint32).tofile(self.path("wide.bin"))
        ids.astype(np.int64).tofile(self.path("long.bin"))
        for name, magic, version, kind in (("gpt2.bin", 20240520, 1, np.uint16), ("llama3.bin", 20240801, 7, np.uint32)):
            header = np.zeros(256, np.int32)
            header[:3] = magic, version, len(ids)
            with open(self.path(name), "wb") as file:
                file.write(header.tobytes() + ids.astype(kind).tobytes())
        want = self.losses("plain", "--data", "plain.bin", says="uint16 tokens (by values and a vocabulary of 1000)")
        self.assertLess(abs(want[0] - np.log(VOCABULARY)), 0.01)
        self.assertLess(want[-1], want[0] - 1)
        for name, kind, width in (("plain", "uint16", 2), ("wide", "uint32", 4), ("long", "int64", 8)):
            for flags, reason in (((), "values and a vocabulary of 1000"), (("--token-bytes", width), "--token-bytes")):
                with self.subTest(name, reason=reason):
                    got = self.losses(f"{name}-{len(flags)}", "--data", name + ".bin", *flags, says=f"{kind} tokens (by {reason})")
                    self.assertEqual(got, want)
        self.assertEqual(self.losses("gpt2", "--data", "gpt2.bin", says="uint16 tokens (by a header)"), want)
        self.assertEqual(self.losses("llama3", "--data", "llama3.bin", says="uint32 tokens (by a header)"), want)

    def test_ids_beyond_the_vocabulary_are_refused(self):
        ids = np.arange(400) % VOCABULARY
        ids[123] = VOCABULARY
        for name, kind, flags in (("narrow.bin", np.uint16, ()), ("wide.bin", np.uint32, ("--token-bytes", 4)),
                                  ("long.bin", np.int64, ())):
            with self.subTest(name):
                ids.astype(kind).tofile(self.path(name))
                self.fail_with(r"token 123 of '" + name + r"' is 1000, but 'tokens' must be in \[0, 1000\)", "tessera-run",
                               "model.tessera", "--data", name, "--steps", 20, "--out", name + "-run", *flags)

    def test_files_of_another_type_are_refused(self):
        ids = np.arange(4000) % VOCABULARY
        for name, kind in (("narrow", np.uint16), ("wide", np.uint32), ("long", np.int64)):
            ids.astype(kind).tofile(self.path(name + ".bin"))
        for name, width, message in (
                ("narrow", 4, r"'narrow\.bin' .*vocabulary of 1000: as uint32, 2000 of 2000 values .*give --token-bytes 2"),
                ("narrow", 8, "give --token-bytes 2"), ("wide", 2, "does not look like uint16 .*; give --token-bytes 4"),
                ("long", 2, "give --token-bytes 8"), ("long", 4, "does not look like uint32 .*; give --token-bytes 8")):
            with self.subTest(name, width=width):
                self.refused(message, "--data", name + ".bin", "--token-bytes", width)
                self.refused("error: --eval-data: token file .*" + message, "--data", "plain.npz", "--token-bytes", width,
                             "--eval-data", name + ".bin", "--eval-only", "--weights", "model.onnxtxt")
        with open(self.path("a.txt"), "w") as file:
            file.write("text that is long enough for some samples. " * 50)
        message = "'a.txt' is text, which would be read as bytes .* vocabulary of 1000.* or --tokenizer bytes"
        self.refused(message, "--data", "a.txt")
        self.refused("--eval-data: .*" + message, "--data", "wide.bin", "--eval-data", "a.txt")
        self.losses("bytes", "--data", "a.txt", "--tokenizer", "bytes", says="bytes of text")

    def test_evaluation_data_have_their_own_width(self):
        ids = np.arange(4000) % VOCABULARY
        ids.astype(np.uint16).tofile(self.path("narrow.bin"))
        ids.astype(np.uint32).tofile(self.path("wide.bin"))
        printed = self.succeed("tessera-run", "model.tessera", "--steps", 1, "--out", "out", "--threads", 1, "--data", "narrow.bin",
                               "--eval-data", "wide.bin")
        self.assertIn("249 samples of uint16 tokens (by values and a vocabulary of 1000)", printed.splitlines()[0])
        self.assertIn("; evaluations over 249 samples of uint32 tokens (by values and a vocabulary of 1000)",
                      printed.splitlines()[0])


if __name__ == "__main__":
    import unittest
    unittest.main()
