"""Bad input: one clear error that names the cause, a non-zero exit, nothing half-written."""

import math
import os
import random
import resource
import subprocess

import numpy as np

from harness import BIN, Golden, MODELS, ToolTest
import safetensors

GPT = os.path.join(MODELS, "gpt.dynamo18.onnx")
COMPILE = [GPT, "--batch", 4, "--seq", 64, "-o", "gpt.tessera"]


class LimitedTest(ToolTest):
    def fail_within(self, limit, message, name, *arguments):
        """The tool ends with a clear error when no file may grow beyond `limit` bytes, as on a full disk."""
        done = subprocess.run([os.path.join(BIN, name), *map(str, arguments)], cwd=self.folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120, restore_signals=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertGreater(done.returncode, 0, done.stdout)
        self.assertLess(done.returncode, 126, done.stdout)
        self.assertRegex(done.stdout, message)


class BadIndices(ToolTest):
    """An index beyond its table is refused when the data is read, whatever else the data is used for."""

    BOTH = """<ir_version: 8, opset_import: ["" : 17]>
both (int64[B,T] ids) => (float loss)
<float[8,8] embed = {%s}>
{
  logits = Gather (embed, ids)
  rows = Transpose <perm = [0, 2, 1]> (logits)
  loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (rows, ids)
}
"""
    NEXT = """<ir_version: 8, opset_import: ["" : 17]>
next (int64[B,T] ids) => (float loss)
<float[8,8] embed = {%s}, int64[1] first = {0}, int64[1] second = {1}, int64[1] last = {-1}, int64[1] end = {9223372036854775807},
 int64[1] axis = {1}>
{
  inputs = Slice (ids, first, last, axis)
  targets = Slice (ids, second, end, axis)
  logits = Gather (embed, inputs)
  rows = Transpose <perm = [0, 2, 1]> (logits)
  loss = SoftmaxCrossEntropyLoss <ignore_index = -100> (rows, targets)
}
"""
    COLUMNS = """<ir_version: 8, opset_import: ["" : 17]>
columns (int64[B,C] ids) => (float loss)
<float[8,4] few = {%s}, float[50,4] many = {%s}, int64 first = {0}, int64 second = {1}>
{
  a = Gather <axis = 1> (ids, first)
  b = Gather <axis = 1> (ids, second)
  x = Gather (few, a)
  y = Gather (many, b)
  z = Mul (x, y)
  loss = ReduceMean <keepdims = 0> (z)
}
"""

    def run_on(self, text, ids, accumulate):
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write(text.replace("[8,4] few = {%s}", "[8,4] few = {" + ", ".join(["0"] * 32) + "}").replace(
                "[50,4] many = {%s}", "[50,4] many = {" + ", ".join(["0"] * 200) + "}").replace("{%s}", "{" + ", ".join(["0"] * 64) + "}"))
        safetensors.save({"ids": np.array(ids, np.int64)}, self.path("data.safetensors"))
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", ".", "--batch", 2 // accumulate, "--accumulate", accumulate, "--seq", len(ids[0]),
                     "--loss", "output:loss", "--init", ".*=normal:1", "-o", "model.tessera")
        return ("tessera-run", "model.tessera", "--data", "data.safetensors", "--steps", 1, "--order", "sequential", "--out",
                f"run-{len(os.listdir(self.folder))}")

    def test_what_the_loss_ignores_is_no_index(self):
        for accumulate in (1, 2):
            self.succeed(*self.run_on(self.BOTH, [[1, 2, 3], [4, 5, 7]], accumulate))
            self.fail_with(r"element 2 of sample 1 of array 'ids' in '.*' is -100, but 'ids' must be in \[0, 8\).*only a target that "
                           "does not count may be negative", *self.run_on(self.BOTH, [[1, 2, 3], [4, 5, -100]], accumulate))

    def test_only_the_last_token_is_no_index(self):
        self.fail_with("element 1 of sample 0 of array 'ids' in '.*' is -100", *self.run_on(self.NEXT, [[1, -100, 3], [4, 5, 7]], 1))
        self.fail_with(r"element 2 of sample 1 of array 'ids' in '.*' is 8, but 'ids' must be in \[0, 8\)",
                       *self.run_on(self.NEXT, [[1, 2, 3], [4, 5, 8]], 1))
        command = self.run_on(self.NEXT, [[1, 2, -100], [4, 5, 6]], 1)
        self.succeed(*command)
        self.assertTrue(math.isfinite(self.metrics(command[-1])[0]["loss"]))

    def test_columns_have_tables_of_their_own(self):
        for accumulate in (1, 2):
            self.succeed(*self.run_on(self.COLUMNS, [[7, 49], [0, 8]], accumulate))
            self.fail_with(r"element 0 of sample 1 of array 'ids' in '.*' is 8, but 'ids' must be in \[0, 8\)",
                           *self.run_on(self.COLUMNS, [[7, 49], [8, 8]], accumulate))
            self.fail_with(r"element 1 of sample 0 of array 'ids' in '.*' is 50, but 'ids' must be in \[0, 50\)",
                           *self.run_on(self.COLUMNS, [[7, 50], [0, 8]], accumulate))


class BadModel(LimitedTest):
    def refuse(self, message, *arguments):
        self.fail_with(message, "tessera-compile", *arguments)
        self.assertFalse(os.path.exists(self.path("gpt.tessera")), "an artifact was written")

    def test_missing_file(self):
        self.refuse(r"absent\.onnx: no such file", "absent.onnx", "-o", "gpt.tessera")

    def test_truncated_and_random_files(self):
        with open(GPT, "rb") as file:
            data = file.read()
        generator = random.Random(1)
        for name, content in (("cut", data[:len(data) // 2]), ("empty", b""), ("noise", generator.randbytes(5000))):
            with self.subTest(name):
                with open(self.path(name + ".onnx"), "wb") as file:
                    file.write(content)
                self.refuse(name + r"\.onnx", name + ".onnx", "-o", "gpt.tessera")

    def test_unbound_dimension(self):
        self.refuse(r"dim", GPT, "-o", "gpt.tessera")

    def test_unknown_dimension(self):
        self.refuse(r"--dim|no.*dimension", *COMPILE, "--dim", "Z=3")

    def test_too_long_sequence(self):
        self.refuse(r"wpe|Gather|100|64", GPT, "--batch", 4, "--seq", 100, "-o", "gpt.tessera")

    def test_bad_flags(self):
        for flags, message in ((["--mesh", "shard"], "--mesh"), (["--mesh", "tensor=2"], "unknown axis 'tensor'"),
                               (["--strategy", "zero9"], "--strategy"), (["--optimizer", "adagrad"], "--optimizer"),
                               (["--accumulate", "0"], "--accumulate"), (["--loss", "hinge"], "--loss"),
                               (["--init", "a=b"], "--init"), (["--precision", "fp4"], "--precision")):
            with self.subTest(flags):
                self.refuse(message, *COMPILE, *flags)

    def test_flags_of_fp8_without_fp8(self):
        """Also where a flag says what is the default."""
        for flags in (["--fp8-recipe", "rowwise"], ["--fp8-recipe", "block128"], ["--fp8-filter", "mlp"], ["--fp8-filter", ""],
                      ["--fp8-keep-bf16", "first:1"], ["--fp8-select", "all"], ["--fp8-amax", "global"],
                      ["--fp8-nonfinite", "propagate"]):
            for precision in ([], ["--precision", "bf16"]):
                with self.subTest(flags + precision):
                    self.refuse(f"^tessera-compile: error: {flags[0]} needs --precision fp8$", *COMPILE, *precision, *flags)
        self.refuse("error: --fp8-recipe, --fp8-amax need --precision fp8$", *COMPILE, "--fp8-amax", "local", "--fp8-recipe", "rowwise")

    def test_batch_that_does_not_divide(self):
        self.refuse(r"divide|multiple", *COMPILE, "--mesh", "shard=3")

    def test_attributes_of_a_step_function(self):
        param, loss = 'train.role = "param", train.name = "w"', 'train.role = "output", train.name = "l"'
        good_input = 'train.role = "input", train.name = "x"'
        segment = '#train.segment<"a", offset = 0, shape = [4611686018427387904, 4]>'
        for attributes, message in (
                (('train.role = "weight"', good_input, loss), r"argument 0: train\.role expected one of"),
                ((param + ", train.init = 1 : i64", good_input, loss), r"train\.init expected zeros, constant"),
                ((f"{param}, train.segments = [{segment}]", good_input, loss), r"a shape that is negative or too large"),
                ((param + ', dist.sharding = #dist.sharding<[{}, {}]>', good_input, loss), r"of the rank of .tensor<4xf32>"),
                ((param + ", dist.sharding = #dist.sharding<[{}]>, dist.global = tensor<4xf32>", good_input, loss),
                 r"dist\.global cannot be given"),
                (("train.init = \"zeros\"", "train.index_bound = 3 : i64", loss), r"no argument with a train\.role"),
                ((param, good_input, "train.alias = 7 : i64"), r"train\.alias is 7, the function has 2 arguments"),
                ((param, good_input, 'train.role = "grad"'), r"a gradient needs train\.of")):
            with self.subTest(message):
                with open(self.path("step.mlir"), "w", encoding="utf-8") as file:
                    file.write("func.func @step(%%w: tensor<4xf32> {%s}, %%x: tensor<4xf32> {%s}) -> (tensor<f32> {%s}) {\n"
                               "  %%0 = train.mul %%w, %%x : tensor<4xf32>\n"
                               "  %%1 = train.reduce sum, %%0 {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>\n"
                               "  return %%1 : tensor<f32>\n}\n" % attributes)
                self.refuse(message, "step.mlir", "--loss", "output:l", "-o", "gpt.tessera")

    def test_full_disk(self):
        for limit, message in ((2000, "cannot write .*: .*"), (60000, r"cannot write artifact .gpt\.tessera.: File too large")):
            with self.subTest(limit):
                self.fail_within(limit, message, "tessera-compile", *COMPILE)
                self.assertEqual(os.listdir(self.folder), [], "something half-written is left")

    def test_types_that_the_cpu_has_not(self):
        head = '<ir_version: 8, opset_import: ["" : 17]>\n'
        zeros = ", ".join(["0"] * 9)
        for name, model, message in (
                ("double", "m (double[B,1,4,4] x) => (double[B,1,2,2] y) <double[1,1,3,3] w = {%s}> { y = Conv (x, w) }" % zeros,
                 "node 'y': .* element type 'f64'; the CPU's convolutions compute in f32"),
                ("int16", "m (int16[B,3] x) => (float[B,3] y) <float[3,3] w = {%s}> { f = Cast <to = 1> (x) y = MatMul (f, w) }" % zeros,
                 "'x': element type 'i16' has no representation")):
            with self.subTest(name):
                with open(self.path("model.onnxtxt"), "w") as file:
                    file.write(head + model)
                self.refuse(message, "model.onnxtxt", "--parameters", ".", "--batch", 2, "--loss", "mse", "-o", "gpt.tessera")

    def test_output_folder_that_does_not_exist(self):
        self.fail_with(r"nowhere", "tessera-compile", *COMPILE[:-1], "nowhere/gpt.tessera")


class BadRun(LimitedTest):
    def setUp(self):
        super().setUp()
        self.succeed("tessera-compile", *COMPILE, "--mesh", "shard=2", "--strategy", "zero3")
        self.data = Golden("gpt").data

    def refuse(self, message, *arguments):
        self.fail_with(message, "tessera-run", *arguments, "--steps", 2, "--out", "run")
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")), "weights were written")

    def test_missing_truncated_and_damaged_artifacts(self):
        self.refuse(r"absent\.tessera", "absent.tessera", "--data", self.data)
        with open(self.path("gpt.tessera"), "rb") as file:
            data = file.read()
        flipped = bytearray(data)
        flipped[len(data) // 2] ^= 0x40
        for name, content in (("cut", data[:-100]), ("empty", b""), ("noise", os.urandom(4000)), ("flip", flipped)):
            with self.subTest(name):
                with open(self.path(name + ".tessera"), "wb") as file:
                    file.write(content)
                self.refuse(name + r"\.tessera", name + ".tessera", "--data", self.data)

    def test_data(self):
        os.mkdir(self.path("empty"))
        self.refuse(r"empty", "gpt.tessera", "--data", "empty")
        self.refuse(r"absent", "gpt.tessera", "--data", "absent")
        with open(self.path("short.txt"), "w") as file:
            file.write("few")
        self.refuse(r"short\.txt|tokens", "gpt.tessera", "--data", "short.txt")

    def test_token_beyond_the_vocabulary(self):
        np.array([1, 2, 300] * 500, np.uint16).tofile(self.path("tokens.bin"))
        self.refuse(r"tokens\.bin.*300|300.*tokens\.bin", "gpt.tessera", "--data", "tokens.bin")

    def test_arrays_of_the_wrong_shape_or_name(self):
        arrays = safetensors.load(self.data)
        safetensors.save({"tokens": arrays["tokens"]}, self.path("half.safetensors"))
        self.refuse(r"targets", "gpt.tessera", "--data", "half.safetensors")
        safetensors.save({"tokens": arrays["tokens"][:, :32].copy(), "targets": arrays["targets"]},
                         self.path("narrow.safetensors"))
        self.refuse(r"tokens", "gpt.tessera", "--data", "narrow.safetensors")

    def test_weights(self):
        weights = dict(Golden("gpt").load("weights"))
        name = sorted(weights)[0]
        del weights[name]
        safetensors.save(weights, self.path("missing.safetensors"))
        self.refuse(name.replace(".", r"\."), "gpt.tessera", "--data", self.data, "--weights", "missing.safetensors")

    def test_number_of_ranks(self):
        self.refuse(r"2.*ranks|ranks.*2", "gpt.tessera", "--data", self.data, "--ranks", 3)

    def test_full_disk_at_a_checkpoint(self):
        """The step is named, nothing is left of what was begun, and the checkpoint before stays whole."""
        self.succeed("tessera-run", "gpt.tessera", "--data", self.data, "--steps", 2, "--out", "run", "--no-export",
                     "--checkpoint-every", 2)
        self.fail_within(60000, "checkpoint of step 3 is not written: .*", "tessera-run", "gpt.tessera", "--data", self.data,
                         "--steps", 3, "--out", "run", "--resume", "run", "--checkpoint-every", 1)
        self.assertEqual(sorted(os.listdir(self.path("run", "checkpoints"))), ["ckpt-2", "latest"])
        self.assertFalse(os.path.exists(self.path("run", "model.safetensors")))
        self.succeed("tessera-run", "gpt.tessera", "--data", self.data, "--steps", 3, "--out", "again", "--resume", "run")

    def test_full_disk(self):
        """/dev/full accepts no byte: a checkpoint that cannot be written is an error, not a smaller checkpoint."""
        self.refuse(r"full|No space|space", "gpt.tessera", "--data", self.data, "--dump=losses", "--export", "/dev/full")
