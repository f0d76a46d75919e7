"""Data that change during a run, or differ between its ranks: the run ends with a message that names them."""

import os
import shutil
import unittest

import numpy as np

from harness import run_command
from launchers import free_port
from test_launch import LaunchTest
from test_tokens import MODEL, VOCABULARY

TOKENS = 1_000_000


class DataTest(LaunchTest):
    """A model over a token file, for two ranks."""

    def setUp(self):
        super().setUp()
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(MODEL)
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", ".", "--batch", 4, "--seq", 16, "--lr", 0.01,
                     "--mesh", "shard=2", "--strategy", "zero3", "-o", "model.tessera")
        self.ids = np.arange(TOKENS, dtype=np.uint32) * 7919 % VOCABULARY

    def write(self, name, ids, kind=np.uint16):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        ids.astype(kind).tofile(self.path(name))

    def command(self, out, steps, *flags, data="train.bin"):
        return run_command("model.tessera", "--data", data, "--steps", steps, "--out", out, "--threads", 1, *flags)

    def each(self, *commands):
        """One process per command, as ranks."""
        environment = {"WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        return [self.start(command, {**environment, "RANK": str(rank)}) for rank, command in enumerate(commands)]


class ChangesDuringARun(DataTest):
    def end_by(self, change, message, launch):
        self.write("train.bin", self.ids)
        runs = launch(self.command("run", 10_000_000, "--checkpoint-every", 5, "--keep", 2, "--log-every", 0))
        self.wait_for_steps("run", 20)
        change()
        for run in runs:
            self.assertRegex(self.finish(run, status=1, timeout=60), message)
        self.write("train.bin", self.ids)
        with open(self.path("run", "checkpoints", "latest")) as file:
            saved = int(file.read().strip().split("-")[1])
        self.assertGreaterEqual(saved, 5)
        output = self.finish(self.start(self.command("run", saved + 3, "--resume", "run")))
        self.assertIn(f"after step {saved}", output)
        self.assertNotIn("warn", output)
        shutil.rmtree(self.path("run"))

    def local(self, command):
        return [self.start(command)]

    def ranks(self, command):
        return self.each(command, command)

    def test_a_token_file_that_becomes_shorter(self):
        for launch in (self.local, self.ranks):
            for left in (0, 8192):
                with self.subTest(launch.__name__, left=left):
                    self.end_by(lambda: os.truncate(self.path("train.bin"), left),
                                rf"error: .*'train\.bin' has become shorter while it was read: it had {2 * TOKENS} bytes and has {left}",
                                launch)

    def test_a_token_file_that_grows(self):
        def append():
            with open(self.path("train.bin"), "ab") as file:
                file.write(b"\1\0")
        self.end_by(append, r"error: .*'train\.bin' has changed since it was opened: it had \d+ bytes and has \d+", self.local)

    def test_the_artifact_is_not_needed_after_the_start(self):
        self.write("train.bin", self.ids)
        run = self.start(self.command("run", 1000))
        self.wait_for_steps("run", 3)
        os.truncate(self.path("model.tessera"), 0)
        self.finish(run)
        self.assertEqual(len(self.metrics("run")), 1000)


class OtherData(DataTest):
    """Ranks that hold other files of the same names."""

    def setUp(self):
        super().setUp()
        other = self.ids.copy()
        other[TOKENS // 2:] += 1
        other %= VOCABULARY
        self.write("one/train.bin", self.ids)
        self.write("two/train.bin", other)
        self.write("same/train.bin", self.ids)
        self.write("short/train.bin", self.ids[:-100])

    def refused(self, message, *commands):
        for run in self.each(*commands):
            self.assertRegex(self.finish(run, status=1, timeout=60), r"error: (rank \d: )?rank 1 and rank 0 differ in " + message)
        self.assertFalse(os.path.exists(self.path("run", "metrics.jsonl")), "before the first step")

    def test_other_content(self):
        self.refused("the content of --data: [0-9a-f]{16} and [0-9a-f]{16}", self.command("run", 3, data="one/train.bin"),
                     self.command("run", 3, data="two/train.bin"))

    def test_other_length_is_said_as_such(self):
        self.refused(r"samples in --data: 62493 and 62499", self.command("run", 3, data="one/train.bin"),
                     self.command("run", 3, data="short/train.bin"))

    def test_the_same_content_elsewhere(self):
        for run in self.each(self.command("run", 3, data="one/train.bin"), self.command("run", 3, data="same")):
            self.finish(run)

    def test_other_weights_of_the_same_name(self):
        for name, seed in (("a", 1), ("b", 2)):
            os.mkdir(self.path(name))
            self.finish(self.start(self.command("seeded-" + name, 1, "--seed", seed, "--export", name + "/w.safetensors",
                                                data="one/train.bin")))
        self.refused(r"the initial values \(--weights\): [0-9a-f]{16} and [0-9a-f]{16}",
                     *(self.command("run", 3, "--weights", name + "/w.safetensors", data="one/train.bin") for name in "ab"))

    def test_other_settings(self):
        for flags, message in ((("--keep", 1), "--keep: 1 and 0"), (("--stall-timeout", 5), r"--stall-timeout: 5\.0+ and 60\.0+")):
            with self.subTest(message):
                self.refused(message, self.command("run", 3, data="one/train.bin"), self.command("run", 3, *flags, data="one/train.bin"))
        self.refused("the name of --out: other and run", self.command("run", 3, data="one/train.bin"),
                     self.command("other", 3, data="one/train.bin"))

    def test_resuming_on_other_data_warns(self):
        self.finish(self.start(self.command("half", 2, "--checkpoint-every", 2, data="one/train.bin")))
        for data, warns in (("two/train.bin", True), ("same", False)):
            with self.subTest(data):
                output = self.finish(self.start(self.command("on-" + data.split("/")[0], 3, "--resume", "half", data=data)))
                self.assertEqual("the data is not what 'half/checkpoints/ckpt-2' was trained on" in output, warns, output)


class OddFiles(DataTest):
    def test_a_folder_with_a_loop_of_links(self):
        self.write("data/a.bin", self.ids[:5000])
        self.write("elsewhere/b.bin", self.ids[5000:10000])
        os.symlink("../elsewhere", self.path("data", "more"))
        os.symlink("..", self.path("data", "up"))
        output = self.finish(self.start(self.command("run", 3, "--order", "sequential", data="data")))
        self.assertRegex(output, r"'data/up/data' is a link to what is read as 'data'")


if __name__ == "__main__":
    unittest.main()
