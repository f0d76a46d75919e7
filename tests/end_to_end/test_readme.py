"""README shows what the tools print: its examples are run, but for what a machine or a build decides."""

import os
import re

from harness import ROOT, ToolTest
from shown import missing

# What another machine, or another build, says otherwise.
OF_BUILD = re.compile(r"^  (producer|target|kernels|fingerprint|embedded IR) ")


def examples():
    """{command: lines that it prints} of the blocks of README that show both."""
    with open(os.path.join(ROOT, "README.md")) as file:
        blocks = re.findall(r"^```\n\$ (.*?)\n(.*?)^```", file.read(), re.M | re.S)
    return {command: text.splitlines() for command, text in blocks}


class Readme(ToolTest):
    begins_by_rule = False

    def words(self, command):
        """A command of README, run in the clone, as words."""
        return [os.path.join(ROOT, word) if word.startswith("tools/") else word for word in command.replace("\\\n", " ").split()]

    def assert_shown(self, lines, printed):
        """Each line that README shows is printed."""
        line = missing([line for line in lines if not OF_BUILD.match(line)], printed)
        self.assertIsNone(line, f"README shows '{line}', which is not printed:\n{printed}")

    def test_examples(self):
        with open(os.path.join(ROOT, "README.md")) as file:
            compiles = re.search(r"^tessera-compile tools/demo/gpt.pt2 -o gpt.tessera (?:.*\\\n)*.*$", file.read(), re.M).group()
        tool, *flags = self.words(compiles)
        self.succeed(tool, *flags)
        shown = examples()
        for command in (command for command in shown if command.startswith(("tessera-dump", "tessera-compile"))):
            with self.subTest(command):
                tool, *flags = self.words(command)
                self.assert_shown(shown[command], self.succeed(tool, *flags))
        self.assertEqual(sum(command.startswith(("tessera-dump", "tessera-compile")) for command in shown), 2)


if __name__ == "__main__":
    import unittest
    unittest.main()
