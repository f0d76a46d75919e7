"""Pages of docs/guides name flags that there are, and their commands do what they show.

A block of a page that begins with ```sh run is run; one that begins with ```text prints has lines of its output. The blocks of a page
are run in their order in one folder, in which tools and docs are those of the clone, and python is one with torch. A page that needs
packages names them in its first line; where they are missing, its commands are not run."""

import os
import re
import subprocess
import sys
import unittest

from harness import BIN, ROOT, TORCH_PYTHON, ToolTest, torch_has, with_package
from shown import missing

GUIDES = os.path.join(ROOT, "docs", "guides")
PAGES = sorted(name.removesuffix(".md") for name in os.listdir(GUIDES) if name.endswith(".md"))
# Flags of torchrun, sbatch, TensorBoard and programs of the guides.
OF_OTHERS = {"--no-python", "--nproc-per-node", "--gpus-per-task", "--logdir"}
BLOCK = re.compile(r"^```sh run\n(.*?)^```\n(?:\n```text prints\n(.*?)^```)?", re.M | re.S)
MOST_SECONDS = 600


def flags_of(*command):
    text = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, env=with_package()).stdout
    return set(re.findall(r"--[a-z0-9][a-z0-9-]*", text))


def text_of(page):
    with open(os.path.join(GUIDES, page + ".md")) as file:
        return file.read()


class Guides(unittest.TestCase):
    def test_flags(self):
        module = [sys.executable, "-m", "tessera"]
        there = OF_OTHERS.union(*(flags_of(os.path.join(BIN, tool)) for tool in ("tessera-compile", "tessera-run", "tessera-dump", "tessera-compare")),
                                *(flags_of(*module, *words) for words in (["build"], ["data", "build"], ["track"], ["finetune"])),
                                flags_of("/usr/bin/python3", os.path.join(ROOT, "tools", "plot-memory.py")))
        self.assertTrue(PAGES)
        for page in PAGES:
            with self.subTest(page):
                spoken = [word for code in re.findall(r"`[^`\n]+`", text_of(page))
                          for word in re.findall(r"(?<![\w-])--[a-z0-9][a-z0-9_-]*", code) if "_" not in word]  # that is PyTorch's way
                self.assertTrue(spoken)
                self.assertEqual(set(spoken) - there, set())


    def test_the_recipe_that_a_page_shows(self):
        with open(os.path.join(GUIDES, "chess.yaml")) as file:
            self.assertIn(file.read(), text_of("chess-slurm"))


class Commands(ToolTest):
    def run_page(self, page):
        text = text_of(page)
        needs = re.match(r"<!-- needs: (.*?) -->", text)
        if needs and not torch_has(*needs[1].split()):
            self.skipTest(f"no Python with {needs[1]} (TESSERA_TORCH_PYTHON)")
        for name in ("tools", "docs"):
            os.symlink(os.path.join(ROOT, name), self.path(name))
        os.mkdir(self.path("bin"))
        with open(self.path("bin", "python"), "w") as file:
            file.write(f'#!/bin/sh\nexec "{TORCH_PYTHON}" "$@"\n')
        os.chmod(self.path("bin", "python"), 0o755)
        path = os.pathsep.join([self.path("bin"), BIN, os.environ["PATH"]])
        self.assertEqual(text.count("\n```text prints\n"), sum(bool(shown) for _, shown in BLOCK.findall(text)))
        for commands, shown in BLOCK.findall(text):
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", commands], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=MOST_SECONDS, env=with_package() | {"PATH": path, "TESSERA_BIN": BIN})
            self.assertEqual(done.returncode, 0, f"{commands}\n{done.stdout}")
            line = missing(shown.splitlines(), done.stdout)
            self.assertIsNone(line, f"the page shows '{line}', which is not printed by\n{commands}\n{done.stdout}")


for guide in filter(lambda page: BLOCK.search(text_of(page)), PAGES):
    setattr(Commands, f"test_{guide.replace('-', '_')}", lambda self, page=guide: self.run_page(page))


if __name__ == "__main__":
    unittest.main()
