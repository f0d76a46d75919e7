"""python -m tessera data: tokens and masks are those of transformers, rows are packed by the rule, builds go on after they were
ended, and what cannot be done is refused. The cases run in the Python of tools/setup.sh that has transformers."""

import os
import subprocess
import unittest

from harness import ROOT, ToolTest, with_package

PYTHON = os.path.join(ROOT, ".venv-tests", "bin", "python")  # made by tools/setup.sh
NEEDED = ("transformers", "tokenizers", "jinja2", "pyarrow", "zstandard", "numpy")
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "NO_COLOR": "1"}


def has_needed():
    """Whether the Python has all that the cases import; they are looked for, not loaded."""
    script = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {NEEDED})))"
    return os.path.exists(PYTHON) and subprocess.run([PYTHON, "-c", script]).returncode == 0


@unittest.skipUnless(has_needed(), "tools/setup.sh could not install transformers from PyPI")
class DataBuild(ToolTest):
    def without(self, module, *words):
        """Runs python -m tessera where a module cannot be imported."""
        script = (f"import sys; sys.modules['{module}'] = None; from tessera import command_line; "
                  "sys.exit(command_line.main(sys.argv[1:], ''))")
        return subprocess.run([PYTHON, "-c", script, *words], capture_output=True, text=True, env=with_package(),
                              cwd=self.folder)

    def test_tokens_and_masks(self):
        self.check_cases("data_token_cases.py", python=PYTHON, **ENVIRONMENT)

    def test_rows_splits_and_sources(self):
        self.check_cases("data_packing_cases.py", python=PYTHON, **ENVIRONMENT)

    def test_refusals(self):
        self.check_cases("data_refusal_cases.py", python=PYTHON, **ENVIRONMENT)

    def test_builds_that_are_ended(self):
        self.check_cases("data_resume_cases.py", python=PYTHON, **ENVIRONMENT)

    def test_commands_need_no_torch(self):
        done = self.without("torch", "data", "build", "--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--train-on", done.stdout)

    def test_a_missing_library_is_named(self):
        with open(self.path("text.txt"), "w") as file:
            file.write("text")
        done = self.without("transformers", "data", "build", "text.txt", "--model", self.folder, "--seq", "8", "-o", "sub/data")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^tessera: error: [^\n]*`pip install transformers` has it\n$")
