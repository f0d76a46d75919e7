"""python -m tessera export to ONNX: what it exports trains as PyTorch does, the record says what the graph does not, and what would train
otherwise is refused. Needs a Python with torch and onnx: python3, or the one that TESSERA_TORCH_PYTHON names; without one these
tests are skipped."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import BIN, ROOT, TORCH_PYTHON, ToolTest, torch_has, with_package

CASES = os.path.join(ROOT, "tests", "end_to_end", "export_torch_cases.py")

# Cases of export_cases that are refused, and words of the reason.
CUT = "exporters leave out what cuts or changes gradients: that of "
REFUSED = {
    "padded_table_read": ["e.weight, which has a padding_idx, is looked up 1 times as an embedding and read by 2 Gather"],
    "copied_by_tensor": ["tensor copies values without their gradient"],
    "requires_grad_changes": ["requires_grad of b.weight changes in the forward pass"],
    "hook_after_accumulation": ["a.bias has a hook on its gradient"],
    "attribute_of_a_parameter": ["copy shares the memory of the parameter a.bias"],
    "detached_item": ("keeps 0 of the 1 places where gradients are cut", "item() ("),
    "float_of": ("becomes a number of Python (cuts.py:",),
    "straight": (CUT + "a.weight", "the backward of Round ("), "new_straight": (CUT + "a.weight", "the backward of NewRound ("),
    "tensor_hook": (CUT + "a.weight", "register_hook ("), "parameter_hook": ("a.weight has a hook on its gradient",),
    "module_hook": ("a has a hook on its backward pass",),
    "checkpoint_without_gradient": ("CheckpointFunction passes no gradient",),
    "spectral": ("changes buffers", "a.parametrizations.weight.0._u, a.parametrizations.weight.0._v"),
    "moving_average": ("changes buffers", ": mean"), "clamped_weight": ("the forward pass changes parameters: a.weight",),
    "noise": ("random, beyond dropout: randn_like (state.py:",),
    "shared_memory": ("a.weight and c.weight are two parameters in the same memory",),
    "padded_and_not": ("e.weight is looked up with padding_idx=0 (e, ", "and with no padding_idx ("),
    "padded_and_indexed": ("e.weight is looked up with padding_idx=0", "and with no padding_idx"),
    "padded_twice": ("with padding_idx=0 (e, ", "and with padding_idx=2 (f, "),
    "max_norm": ("embedding with max_norm=1.0", "(e, "), "by_frequency": ("embedding with scale_grad_by_freq",),
    "sparse": ("embedding with sparse",), "bag": ("embedding_bag with padding_idx=1",),
    "kept_dropout2d": ("dropout2d with a rate of 0.1: ONNX has no such operation (drop, ",),
    "divisor": ("differs from PyTorch's by 25.0%", "divisor_override of avg_pool2d"),
    "unchecked_divisor": ("known to drop divisor_override", "--check shows"),
    "baked_number": ("what exporters make of detach and no_grad does not run",),
}

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


@unittest.skipUnless(torch_has("torch", "onnx"), "no Python with torch and onnx (TESSERA_TORCH_PYTHON)")
class Record(unittest.TestCase):
    """The record and the refusals, on the modules of export_cases. Needs none of Tessera's tools."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="tessera-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        done = subprocess.run([TORCH_PYTHON, CASES, cls.folder], capture_output=True, text=True, timeout=1800)
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.results = json.loads(done.stdout)

    def record(self, name):
        self.assertNotIn("error", self.results[name])
        return self.results[name]["record"]

    def parameter(self, case, name):
        return next(entry for entry in self.record(case)["parameters"] if entry["name"] == name)

    def test_refusals_name_the_reason_and_write_nothing(self):
        for name, texts in REFUSED.items():
            with self.subTest(name):
                self.assertIn("error", self.results[name], self.results[name])
                for text in texts:
                    self.assertIn(text, self.results[name]["error"])
                self.assertEqual(len(self.results[name]["error"].splitlines()), 1)
                self.assertFalse([file for file in os.listdir(self.folder) if file.startswith((name + ".onnx", "."))])

    def test_everything_else_is_exported(self):
        for name, result in self.results.items():
            if name not in REFUSED and name != "batch_norm_dynamo":
                with self.subTest(name):
                    self.assertEqual(result["record"]["version"], 1, result)
                    self.assertTrue(os.path.exists(os.path.join(self.folder, name + ".onnx")))

    def test_the_module_is_as_before(self):
        for name, result in self.results.items():
            if name != "clamped_weight":
                with self.subTest(name):
                    self.assertTrue(result["restored"])

    def test_the_file_has_the_record_and_the_values(self):
        with open(os.path.join(self.folder, "read.py"), "w") as file:
            file.write("import json, sys, onnx\n"
                       "model = onnx.load(sys.argv[1])\n"
                       "entries = {entry.key: entry.value for entry in model.metadata_props}\n"
                       "names = [tensor.name for tensor in model.graph.initializer]\n"
                       "ones = [t.name for t in model.graph.initializer if onnx.numpy_helper.to_array(t).tolist() == [1.0] * 8]\n"
                       "notes = [1 for node in model.graph.node if node.metadata_props or node.doc_string]\n"
                       "dims = [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]\n"
                       "print(json.dumps([entries, names, ones, notes, dims]))\n")
        for name in ("tied_padded", "tied_padded_dynamo"):
            with self.subTest(name):
                done = subprocess.run([TORCH_PYTHON, "read.py", name + ".onnx"], cwd=self.folder, capture_output=True, text=True)
                entries, names, ones, notes, dims = json.loads(done.stdout)
                self.assertEqual(json.loads(entries["tessera"]), self.record(name))
                self.assertEqual(list(entries), ["tessera"])
                for wanted in ("e.weight", "norms.0.weight", "norms.1.weight", "norms.2.bias", "table"):
                    self.assertEqual(names.count(wanted), 1, names)
                self.assertNotIn("out.weight", names)
                self.assertEqual(ones, [f"norms.{i}.weight" for i in range(3)])
                self.assertFalse(notes)
                self.assertEqual(dims, ["B", "T"])

    def test_evaluation_mode(self):
        """What eval() changes beside dropout and batch norms is in the record, and an evaluation is refused for it."""
        self.assertNotIn("evaluation_differs", self.record("unused"))
        self.assertIn("return y * 2 if self.training else y", self.record("by_mode")["evaluation_differs"])
        done = subprocess.run([os.path.join(BIN, "tessera-compile"), "by_mode.onnx", "--batch", "4", "--evaluate", "--loss", "mse", "-o",
                               "by_mode.tessera"], cwd=self.folder, capture_output=True, text=True)
        self.assertIn("after eval() the module computes something else: ", done.stderr)
        self.assertEqual(done.returncode, 1)

    def test_parameters(self):
        for name in ("tied_padded", "tied_padded_dynamo"):
            table = {"name": "e.weight", "shape": [10, 8], "dtype": "float32", "trained": True, "tied": ["out.weight"],
                     "padding_idx": 0, "lookups": 1}
            self.assertEqual(self.parameter(name, "e.weight"), table)
            self.assertEqual(self.record(name)["buffers"], [{"name": "table", "shape": [8], "dtype": "float32"}])
            self.assertEqual(self.record(name)["outputs"], ["output"])
        self.assertEqual(self.parameter("padded", "e.weight")["padding_idx"], 9)
        unused = {entry["name"]: (entry["trained"], entry.get("unused", False)) for entry in self.record("unused")["parameters"]}
        self.assertEqual(unused, {"cold": (False, True), "a.weight": (True, False), "a.bias": (False, False),
                                  "b.weight": (True, False), "b.bias": (True, False),
                                  "extra.weight": (True, True), "extra.bias": (True, True)})
        self.assertIn("note: no output depends on extra.weight, extra.bias", self.results["unused"]["said"])
        self.assertEqual(self.record("named")["outputs"], ["hidden", "logits", "probe"])
        self.assertIn("no gradient comes from probe", self.results["named"]["said"][0])
        self.assertTrue(self.record("auto")["exporter"].startswith("torchscript, torch "))

    def test_cut_gradients_are_marked(self):
        """Each detach, .data and what is computed under no_grad is a StopGradient in the file, and only where it matters."""
        with open(os.path.join(self.folder, "marks.py"), "w") as file:
            file.write("import json, sys, onnx\n"
                       "models = [onnx.load(path) for path in sys.argv[1:]]\n"
                       "print(json.dumps([[node.op_type for node in model.graph.node if node.domain == 'tessera']"
                       " for model in models]))\n")
        names = ["detach", "detach_dynamo", "data", "no_grad", "no_grad_dynamo", "zero_behind_detach", "harmless", "auto"]
        done = subprocess.run([TORCH_PYTHON, "marks.py", *(name + ".onnx" for name in names)], cwd=self.folder, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = dict(zip(names, map(len, json.loads(done.stdout))))
        # Under no_grad the input, the weight and the bias of a layer are marked, what it returns is not.
        self.assertEqual(counts, {"detach": 1, "detach_dynamo": 1, "data": 1, "no_grad": 3, "no_grad_dynamo": 3,
                                  "zero_behind_detach": 1, "harmless": 0, "auto": 0})
        self.assertEqual([entry["trained"] for entry in self.record("no_grad")["parameters"]], [False, False, True, True])

    def test_dropout(self):
        self.assertEqual(self.record("attention")["dropout"], [])
        self.assertEqual([self.record(name)["dropout_cleared"] for name in ("attention", "kept_attention")], [2, 0])
        self.assertIn("2 dropout rates set to 0", self.results["attention"]["said"][0])
        for name in ("kept_attention", "kept_attention_dynamo"):  # the exporters write attention's in inference form
            self.assertEqual(self.record(name)["dropout"], [{"module": "m", "p": 0.2, "count": 1},
                                                            {"module": "drop", "p": 0.1, "count": 2}])
        self.assertEqual(self.record("dropout_in_code")["dropout"], [{"module": "", "p": 0.25, "count": 1}])

    def test_batch_norm(self):
        wanted = [{"running_mean": "first.running_mean", "training": False},
                  {"running_mean": "second.running_mean", "training": True}]
        self.assertEqual(self.record("batch_norm")["batch_norm"], wanted)
        result = self.results["batch_norm_dynamo"]  # torch 2.6 cannot, newer ones write inference form
        if "error" in result:
            self.assertIn("the dynamo exporter failed", result["error"])
        else:
            self.assertEqual(result["record"]["batch_norm"], wanted)

    def test_a_size_in_the_code_is_fixed_in_the_file(self):
        self.assertIn("note: the file has the example's B: with B=4", self.results["baked_size"]["said"][0])


@unittest.skipUnless(torch_has("torch", "onnx", "safetensors"), "no Python with torch and onnx (TESSERA_TORCH_PYTHON)")
class ExportTorch(ToolTest):
    def python(self, *arguments):
        return subprocess.run([TORCH_PYTHON, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env=with_package())

    def test_a_module_trains_as_in_pytorch(self):
        with open(self.path("net.py"), "w") as file:
            file.write(NET)
        done = self.python("net.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        want = json.loads(done.stdout)
        done = self.python("-m", "tessera", "export", "net.py:build", "-o", "net.onnx", "--exporter", "torchscript")
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
                done = self.python("-m", "tessera", "export", target, "-o", "bad.onnx")
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
                self.assertFalse(os.path.exists(self.path("bad.onnx")))
        for words in (["export", "bad.py:number", "-o", "bad.txt"], ["export", "bad.py:number", "-o", "bad.onnx", "--no-weights"],
                      ["export", "bad.py:number", "-o", "bad.pt2", "--", "--mesh", "shard=2"], ["export", "bad.py:number"],
                      ["verify", "bad.py:number", "--steps", "0"]):
            with self.subTest(words):
                self.assertEqual(self.python("-m", "tessera", *words).returncode, 2)

    def test_nothing_is_left_of_a_refused_model(self):
        with open(self.path("cut.py"), "w") as file:
            file.write("import torch\n\n\nclass Cut(torch.nn.Linear):\n    def forward(self, x):\n"
                       "        h = super().forward(x)\n        h.register_hook(lambda g: 2 * g)\n        return h\n\n\n"
                       "def build():\n    return Cut(2, 2), torch.randn(3, 2)\n")
        with open(self.path("cut.onnx"), "w") as file:
            file.write("before")
        done = self.python("-m", "tessera", "export", "cut.py:build", "-o", "cut.onnx")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("that of weight would differ from PyTorch's", done.stderr)
        self.assertIn("register_hook (cut.py:7)", done.stderr)
        with open(self.path("cut.onnx")) as file:
            self.assertEqual(file.read(), "before")
        self.assertEqual(sorted(os.listdir(self.folder)), ["__pycache__", "cut.onnx", "cut.py"] if os.path.isdir(self.path(
            "__pycache__")) else ["cut.onnx", "cut.py"])

    @unittest.skipUnless(torch_has("transformers"), "no transformers")
    def test_a_hugging_face_model(self):
        settings = dict(n_layer=1, n_embd=16, n_head=2, vocab_size=40, bos_token_id=0, eos_token_id="[0, 2]")
        flags = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        done = self.python("-m", "tessera", "export", "hf:gpt2", "-o", "gpt2.onnx", "--batch", "4", "--seq", "12", *flags)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, "")
        self.assertIn("train.attention", self.succeed("tessera-compile", "gpt2.onnx", "--batch", 4, "--seq", 12,
                                                      "--compile-to", "import"))

    @unittest.skipUnless(torch_has("transformers"), "no transformers")
    def test_settings_that_a_configuration_does_not_know(self):
        """transformers takes any key, and makes the usual model of seven billion parameters."""
        config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "torch_dtype": "bfloat16", "hidden_size": 32,
                  "transformers_version": "4.40.0", "_name_or_path": "x", "auto_map": {"AutoConfig": "a.B"}, "vocab_size": 40,
                  "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48, "rope_theta": 5e5,
                  "rope_scaling": {"type": "linear", "factor": 2.0}, "temperature": 0.6}
        with open(self.path("known.json"), "w") as file:
            json.dump(config, file)
        with open(self.path("unknown.json"), "w") as file:
            json.dump({**config, "hiden_act": "relu", "n_ctx": 8}, file)

        def export(target, *settings):
            flags = [word for setting in settings for word in ("--set", setting)]
            return self.python("-m", "tessera", "export", f"hf:{target}", "-o", "net.pt2", "--no-weights", *flags)

        for target, settings, message in (
                ("llama", ["hiden_size=64"], "--set hiden_size: LlamaConfig has no such key; nearest: hidden_size, "),
                ("known.json", ["hiden_size=64"], "--set hiden_size: LlamaConfig has no such key; nearest: hidden_size, "),
                ("gemma3", ['text_config={"hiden_size": 64}'],
                 "--set text_config.hiden_size: Gemma3TextConfig has no such key; nearest: hidden_size"),
                ("gemma3", ["text_config.hiden_size=64"],
                 "--set text_config.hiden_size: Gemma3TextConfig has no such key; nearest: hidden_size"),
                ("llama", ['rope_parameters={"rope_typ": "llama3"}'],
                 "--set rope_parameters.rope_typ: rope_parameters has no such key; nearest: rope_type"),
                ("llama", ["hidden_size=64", "hidden_size=32"], "--set hidden_size=32: 'hidden_size' is given twice"),
                ("llama", ["=3"], "--set expects KEY=VALUE"),
                ("lama", [], "hf:lama: neither a file or folder nor a type of model that transformers knows; nearest: llama")):
            with self.subTest(target=target, settings=settings):
                done = export(target, *settings)
                self.assertEqual(done.returncode, 1)
                self.assertIn(message, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        done = export("unknown.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: unknown.json: LlamaConfig does not know, and the model is made without: hiden_act, n_ctx\n",
                      done.stdout)
        # What is derived of a setting follows it: 2 heads of 8.
        done = export("known.json", "hidden_size=16")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("warning", done.stdout)
        self.assertIn("net.pt2: 4656 parameters without values", done.stdout)


if __name__ == "__main__":
    unittest.main()
