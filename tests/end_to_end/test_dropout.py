"""Dropout in training: masks differ from step to step and are the same on any mesh and after a run was resumed."""

from harness import Golden, ToolTest

# An embedding and a classifier with dropout between them, over the vocabulary of the GPT golden's data.
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
dropout (int64[B,T] tokens) => (float[B,T,V] logits)
<float ratio = {0.5}, bool training = {1}, float[256,16] embed = {%s}, float[16,256] head = {%s}>
{
  embedded = Gather (embed, tokens)
  dropped = Dropout (embedded, ratio, training)
  logits = MatMul (dropped, head)
}
""" % ((", ".join(["0.0"] * 4096),) * 2)


class Dropout(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(MODEL)

    def losses(self, name, *flags, compile_flags=(), accumulate=1):
        """Losses of steps with learning rate 0 on the data in order: they differ by batch and masks only."""
        golden = self.golden
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", "embed|head", "--constants", "ratio", "--batch", golden.batch // accumulate, "--seq", golden.sequence,
                     "--accumulate", accumulate, "--init", ".*=normal:1", *compile_flags, "-o", name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", golden.data, "--order", "sequential", "--out", name,
                     "--threads", 1, "--lr", 0, *flags)
        return [record["loss"] for record in self.metrics(name)]

    def assertClose(self, got, want):
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            self.assertLess(abs(a - b), 1e-5 * abs(b))

    def test_masks_are_the_same_on_any_mesh(self):
        want = self.losses("one", "--steps", 3)
        self.assertEqual(want, self.losses("again", "--steps", 3))
        self.assertClose(self.losses("zero3", "--steps", 3, compile_flags=["--mesh", "shard=2", "--strategy", "zero3"]), want)
        self.assertClose(self.losses("ddp", "--steps", 3, compile_flags=["--mesh", "shard=4", "--strategy", "ddp"]), want)
        micro = self.losses("micro", "--steps", 3, accumulate=2)
        self.assertClose(self.losses("micro2", "--steps", 3, accumulate=2, compile_flags=["--mesh", "shard=2"]), micro)

    def test_the_order_of_axes_does_not_matter(self):
        """A rank's rows and the random numbers for them are those of one position, however the mesh is written."""
        for accumulate in (1, 2):
            want = self.losses(f"one-{accumulate}", "--steps", 2, accumulate=accumulate)
            for mesh in ("replicate=2,shard=2", "shard=2,replicate=2", "shard=1,replicate=4", "replicate=1,shard=4"):
                for strategy in ("ddp", "zero1", "zero3", "hsdp"):
                    if strategy == "hsdp" and "1" in mesh:
                        continue
                    with self.subTest(mesh=mesh, strategy=strategy, accumulate=accumulate):
                        name = f"{strategy}-{mesh}-{accumulate}".replace("=", "").replace(",", "-")
                        self.assertClose(self.losses(name, "--steps", 2, accumulate=accumulate,
                                                     compile_flags=["--mesh", mesh, "--strategy", strategy]), want)

    def test_masks_depend_on_seed_and_step(self):
        # The second epoch has the batches of the first: only the masks differ.
        steps = self.golden.steps
        want = self.losses("seed-0", "--steps", 2 * steps)
        first, second = want[:steps], want[steps:]
        self.assertEqual(len(second), steps)
        for a, b in zip(first, second):
            self.assertNotEqual(a, b)
        self.losses("half", "--steps", 3, "--checkpoint-every", 3)
        self.assertEqual(self.losses("resumed", "--steps", 5, "--resume", "half"), want[3:5])


if __name__ == "__main__":
    import unittest
    unittest.main()
