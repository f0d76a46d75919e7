"""tools/export_torch.py: what it exports trains as PyTorch does. Needs a Python with torch and onnx: python3, or the one that
TESSERA_TORCH_PYTHON names; without one these tests are skipped."""

import json
import os
import subprocess
import unittest

from harness import ROOT, ToolTest

PYTHON = os.environ.get("TESSERA_TORCH_PYTHON", "python3")
TOOL = os.path.join(ROOT, "tools", "export_torch.py")

# A network with everything that exporters tend to fold, and its training in PyTorch on data that it saves.
NET = '''
import json, torch, torch.nn.functional as F
from safetensors.torch import save_file


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.groups, self.drop = torch.nn.GroupNorm(2, 8), torch.nn.Dropout(0.1)
        self.first, self.second, self.head = torch.nn.LayerNorm(8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 5)

    def forward(self, x):
        h = self.groups(F.relu(self.norm(self.conv(x)))).mean((2, 3))
        return self.head(self.second(h + self.drop(F.gelu(self.first(h)))))


def build():
    return Net(), torch.randn(2, 3, 6, 6)


if __name__ == "__main__":
    torch.manual_seed(0)
    net, _ = build()
    net.drop.p = 0.0
    x, t = torch.randn(12, 3, 6, 6), torch.randint(0, 5, (12,))
    save_file({"x": x, "targets": t.int()}, "data.safetensors")
    optimizer, losses = torch.optim.SGD(net.parameters(), lr=0.1), []
    for rows in torch.arange(12).split(4):
        loss = F.cross_entropy(net(x[rows]), t[rows])
        optimizer.zero_grad(); loss.backward(); optimizer.step(); losses.append(loss.item())
    print(json.dumps(losses))
'''


def has(*modules):
    try:
        return subprocess.run([PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(has("torch", "onnx", "safetensors"), "no Python with torch and onnx (TESSERA_TORCH_PYTHON)")
class ExportTorch(ToolTest):
    def python(self, *arguments):
        return subprocess.run([PYTHON, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300)

    def test_a_module_trains_as_in_pytorch(self):
        with open(self.path("net.py"), "w") as file:
            file.write(NET)
        done = self.python("net.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        want = json.loads(done.stdout)
        done = self.python(TOOL, "net.py:build", "-o", "net.onnx", "--exporter", "torchscript")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("1 dropout rate set to 0", done.stdout)
        self.assertIn("x[B, 3, 6, 6]", done.stdout)
        self.assertEqual(done.stderr, "")
        self.succeed("tessera-compile", "net.onnx", "--batch", 4, "--optimizer", "sgd", "--lr", 0.1, "--weight-decay", 0,
                     "--mesh", "shard=2", "--strategy", "zero3", "-o", "net.tessera")
        self.succeed("tessera-run", "net.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 3,
                     "--weights", "net.onnx", "--threads", 1, "--out", "run")
        for record, loss in zip(self.metrics("run"), want):
            self.assertLessEqual(abs(record["loss"] - loss), 1e-5 * loss)

    def test_bad_targets(self):
        with open(self.path("bad.py"), "w") as file:
            file.write("def number():\n    return 3\n")
        for target, message in (("bad.py:number", "expected (model, inputs)"), ("bad.py:absent", "absent"),
                                ("absent.py:f", "absent.py"), ("nonsense", "is not module:function")):
            with self.subTest(target):
                done = self.python(TOOL, target, "-o", "bad.onnx")
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertFalse(os.path.exists(self.path("bad.onnx")))

    @unittest.skipUnless(has("transformers"), "no transformers")
    def test_a_hugging_face_model(self):
        settings = dict(n_layer=1, n_embd=16, n_head=2, vocab_size=40, bos_token_id=0, eos_token_id=0)
        flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        done = self.python(TOOL, "hf:gpt2", "-o", "gpt2.onnx", "--batch", "4", "--seq", "12", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("warning", done.stderr)
        self.assertIn("train.attention", self.succeed("tessera-compile", "gpt2.onnx", "--batch", 4, "--seq", 12,
                                                      "--compile-to", "import"))


if __name__ == "__main__":
    unittest.main()
