"""Folders of Hugging Face: what transformers saves, runs read, and what runs write, transformers reads (hugging_face_cases.py)."""

import json
import os
import subprocess
import unittest

from harness import ROOT, TORCH_PYTHON, ToolTest, torch_has, with_package

CASES = os.path.join(ROOT, "tests", "end_to_end", "hugging_face_cases.py")


@unittest.skipUnless(torch_has("torch", "transformers", "safetensors"), "no Python with torch and transformers (TESSERA_TORCH_PYTHON)")
class HuggingFace(ToolTest):
    def test_folders(self):
        done = subprocess.run([TORCH_PYTHON, CASES, self.folder], capture_output=True, text=True, timeout=900,
                              env=with_package() | {"HF_HUB_OFFLINE": "1"})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = json.loads(done.stdout.splitlines()[-1])
        self.assertTrue(results)
        for name, problem in results.items():
            with self.subTest(name):
                self.assertIsNone(problem)


if __name__ == "__main__":
    unittest.main()
