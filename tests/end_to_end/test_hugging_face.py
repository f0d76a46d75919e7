"""Folders of Hugging Face: what transformers saves, runs read, and what runs write, transformers reads (hugging_face_cases.py)."""

import unittest

from harness import ToolTest, torch_has


@unittest.skipUnless(torch_has("torch", "transformers", "safetensors"), "no Python with torch and transformers (TESSERA_TORCH_PYTHON)")
class HuggingFace(ToolTest):
    def test_folders(self):
        self.check_cases("hugging_face_cases.py", HF_HUB_OFFLINE="1")


if __name__ == "__main__":
    unittest.main()
