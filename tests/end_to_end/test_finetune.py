"""From a Hugging Face folder and conversations to a fine-tuned folder: rows, losses, gradients and answers (finetune_cases.py)."""

import unittest

from harness import ToolTest, torch_has


@unittest.skipUnless(torch_has("torch", "transformers", "safetensors"), "no Python with torch and transformers (TESSERA_TORCH_PYTHON)")
class Finetune(ToolTest):
    def test_three_commands(self):
        self.check_cases("finetune_cases.py", HF_HUB_OFFLINE="1")


if __name__ == "__main__":
    unittest.main()
