"""Pages of docs/guides name flags that there are."""

import os
import re
import subprocess
import sys
import unittest

from harness import BIN, ROOT, with_package

GUIDES = os.path.join(ROOT, "docs", "guides")
OF_OTHERS = {"--no-python", "--nproc-per-node"}  # torchrun's


def flags_of(*command):
    text = subprocess.run([*command, "--help"], capture_output=True, text=True, check=True, env=with_package()).stdout
    return set(re.findall(r"--[a-z0-9][a-z0-9-]*", text))


class Guides(unittest.TestCase):
    def test_flags(self):
        module = [sys.executable, "-m", "tessera"]
        there = OF_OTHERS.union(*(flags_of(os.path.join(BIN, tool)) for tool in ("tessera-compile", "tessera-run", "tessera-dump")),
                                flags_of(*module, "build"), flags_of(*module, "data", "build"), flags_of(*module, "track"))
        pages = [os.path.join(GUIDES, name) for name in sorted(os.listdir(GUIDES)) if name.endswith(".md")]
        self.assertTrue(pages)
        for page in pages:
            with open(page) as file, self.subTest(os.path.basename(page)):
                spoken = [word for code in re.findall(r"`[^`\n]+`", file.read()) for word in re.findall(r"(?<![\w-])--[a-z0-9][a-z0-9-]*", code)]
                self.assertTrue(spoken)
                self.assertEqual(set(spoken) - there, set())


if __name__ == "__main__":
    unittest.main()
