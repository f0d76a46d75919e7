"""What a model's tensors are: the record of python -m tessera export and the exporter's signature decide, values and names never;
what nobody decided, and what a record contradicts, is refused."""

import json
import os
import shutil
import sys

import numpy as np

from harness import ROOT, ToolTest
import safetensors

sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from onnx_file import FLOAT, INT64, Graph, value_info  # noqa: E402

ROWS, WIDTH, CLASSES, LENGTH = 6, 4, 5, 3


def parameter(name, shape, **more):
    return {"name": name, "shape": list(shape), "dtype": "float32", "trained": True, **more}


class Lookup(Graph):
    """logits = (table[tokens] * scale + offset) @ head, where every initializer has its data and looks like something
    else: the table like one of positions, the head like a mask, and the offset, a buffer, like random weights."""

    def __init__(self, table=None):
        super().__init__()
        self.values = {
            "table": np.zeros((ROWS, WIDTH), np.float32) if table is None else table,
            "causal_mask": np.tril(np.ones((WIDTH, CLASSES), np.float32)),
            "scale": np.float32(0.5),
            "offset": np.float32([0.7, -0.3, 0.2, 0.1]),
            "lifted_tensor_0": np.float32([1.5]),
        }
        if table is None:
            self.values["table"][1:] = np.sin(np.arange(1, ROWS)[:, None] * [1, 0.5, 0.25, 0.125])
        for name, value in self.values.items():
            self.constant(value.ravel().tolist(), value.shape, FLOAT, name)
        rows = self.op("Gather", "table", "tokens", axis=0)
        sums = self.op("Add", self.op("Mul", rows, "scale"), "offset")
        self.logits = self.op("MatMul", self.op("Mul", sums, "lifted_tensor_0"), "causal_mask")
        self.parameters = [parameter("table", (ROWS, WIDTH)), parameter("causal_mask", (WIDTH, CLASSES)), parameter("scale", ())]
        self.buffers = [{"name": "offset", "shape": [WIDTH], "dtype": "float32"}]

    def save(self, path, **arguments):
        if arguments.get("record") is not False:
            arguments["record"] = {"buffers": self.buffers, **arguments.get("record", {})}
        self.store(path, [value_info("tokens", INT64, ["B", LENGTH])], [value_info(self.logits, FLOAT, ["B", LENGTH, CLASSES])],
                   **arguments)

    def gradients(self, tokens, targets, padding=None):
        """Gradients of the mean cross-entropy, in float64, by name."""
        v = {name: value.astype(np.float64) for name, value in self.values.items()}
        rows = v["table"][tokens]
        sums = (rows * v["scale"] + v["offset"]) * v["lifted_tensor_0"]
        logits = sums @ v["causal_mask"]
        d = np.exp(logits - logits.max(-1, keepdims=True))
        d /= d.sum(-1, keepdims=True)
        np.put_along_axis(d, targets[..., None], np.take_along_axis(d, targets[..., None], -1) - 1, -1)
        d /= targets.size
        inner = (d @ v["causal_mask"].T) * v["lifted_tensor_0"]
        table = np.zeros_like(v["table"])
        np.add.at(table, tokens, inner * v["scale"])
        if padding is not None:
            table[padding] = 0
        return {"table": table, "scale": np.sum(inner * rows), "causal_mask": np.einsum("btw,btc->wc", sums, d)}


class RolesTest(ToolTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(3)
        self.tokens, self.targets = random.integers(0, ROWS, (8, LENGTH)), random.integers(0, CLASSES, (8, LENGTH))
        safetensors.save({"tokens": self.tokens, "targets": self.targets.astype(np.int32)}, self.path("data.safetensors"))

    def step(self, name, *flags, weights="model.onnx", accumulate=1):
        """The gradients of one step of model.onnx."""
        self.succeed("tessera-compile", "model.onnx", "--batch", 8 // accumulate, "--accumulate", accumulate, *flags, "-o",
                     name + ".tessera")
        self.succeed("tessera-run", name + ".tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", weights, "--threads", 1, "--out", name, "--dump=gradients", "--dump-step", 1)
        return safetensors.load(self.path(name, "dump-1", "gradients.safetensors"))

    def assert_gradients(self, got, want):
        self.assertEqual(sorted(got), sorted(want))
        for name, value in want.items():
            self.assertEqual(got[name].shape, np.shape(value), name)
            self.assertLessEqual(np.abs(got[name] - value).max(), 1e-6 * np.abs(value).max(), name)


class Record(RolesTest):
    def test_parameters_are_what_the_record_says(self):
        """A zero first row, a mask's values and a mask's name are trained; a buffer of random numbers is not."""
        model = Lookup()
        model.save(self.path("model.onnx"))
        want = model.gradients(self.tokens, self.targets)
        for name, *flags in (("one",), ("zero3", "--mesh", "shard=2", "--strategy", "zero3"),
                             ("ddp", "--mesh", "replicate=2,shard=2", "--strategy", "ddp")):
            with self.subTest(name):
                self.assert_gradients(self.step(name, *flags), want)

    def test_requires_grad_and_frozen(self):
        model = Lookup()
        model.parameters[1]["trained"] = False
        model.save(self.path("model.onnx"))
        want = model.gradients(self.tokens, self.targets)
        del want["causal_mask"]
        self.assert_gradients(self.step("recorded"), want)
        self.assert_gradients(self.step("flag", "--frozen", "^scale$"), {"table": want["table"]})
        final = safetensors.load(self.path("flag", "model.safetensors"))
        self.assertEqual(final["scale"], np.float32(0.5))

    def test_padding_idx_on_every_strategy(self):
        """The row takes no gradient from lookups, and from another use it does."""
        model = Lookup(np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32))
        model.parameters[0]["padding_idx"] = 2
        self.assertIn(2, self.tokens)
        model.save(self.path("model.onnx"))
        want = model.gradients(self.tokens, self.targets, padding=2)
        for name, accumulate, *flags in (("one", 1), ("micro", 4), ("ddp", 1, "--mesh", "shard=2"),
                                         ("zero1", 1, "--mesh", "shard=2", "--strategy", "zero1"),
                                         ("zero2", 2, "--mesh", "shard=4", "--strategy", "zero2"),
                                         ("zero3", 2, "--mesh", "shard=2", "--strategy", "zero3"),
                                         ("hsdp", 1, "--mesh", "replicate=2,shard=2", "--strategy", "hsdp"),
                                         ("remat", 1, "--remat", "full")):
            with self.subTest(name):
                got = self.step(name, *flags, accumulate=accumulate)
                self.assert_gradients(got, want)
                self.assertTrue(np.all(got["table"][2] == 0))
        self.assertTrue(np.all(self.step("bf16", "--precision", "bf16")["table"][2] == 0))

    def test_a_padded_table_that_is_also_a_head(self):
        """Tied embeddings: the row takes the head's gradient, and none of the lookups'."""
        table = np.random.default_rng(2).standard_normal((ROWS, WIDTH)).astype(np.float32)
        graph = Graph()
        graph.constant(table.ravel().tolist(), table.shape, FLOAT, "table")
        rows = graph.op("Gather", "table", "tokens", axis=0)
        logits = graph.op("MatMul", rows, graph.op("Transpose", "table", perm=[1, 0]))
        graph.parameters = [parameter("table", (ROWS, WIDTH), padding_idx=2, tied=["head.weight"])]
        graph.store(self.path("model.onnx"), [value_info("tokens", INT64, ["B", LENGTH])],
                    [value_info(logits, FLOAT, ["B", LENGTH, ROWS])])
        t = table.astype(np.float64)
        scores = t[self.tokens] @ t.T
        d = np.exp(scores - scores.max(-1, keepdims=True))
        d /= d.sum(-1, keepdims=True)
        np.put_along_axis(d, self.targets[..., None], np.take_along_axis(d, self.targets[..., None], -1) - 1, -1)
        d /= self.targets.size
        want = np.zeros_like(t)
        np.add.at(want, self.tokens, d @ t)
        want[2] = 0
        want += np.einsum("btr,btw->rw", d, t[self.tokens])
        for name, *flags in (("one",), ("zero3", "--mesh", "shard=2", "--strategy", "zero3")):
            with self.subTest(name):
                self.assert_gradients(self.step(name, *flags), {"table": want})

    def test_summary_and_list(self):
        Lookup().save(self.path("model.onnx"))
        done = self.tool("tessera-compile", "model.onnx", "--batch", 8, "--verbose", "-o", "model.tessera")
        self.assertIn("model.onnx: trains 45 elements in 3 parameters; none frozen; 5 constant in 2; optimizer state 90\n",
                      done.stderr)
        self.assertRegex(done.stderr, r"param +table +tensor<6x4xf32> +a parameter of the module")
        self.assertRegex(done.stderr, r"constant +offset +tensor<4xf32> +a buffer of the module")
        self.assertRegex(done.stderr, r"constant +lifted_tensor_0 +tensor<1xf32> +a number in the module's code")
        self.assertNotIn("warning", done.stderr)
        self.assertIn("45 in 3 tensors", self.succeed("tessera-dump", "model.tessera"))
        self.assertIn("; 5 constant in 2", self.succeed("tessera-dump", "model.tessera"))
        listed = self.succeed("tessera-dump", "model.tessera", "--tensors")
        self.assertRegex(listed, r"param +scale +f32\[\] +a parameter of the module")
        tensors = json.loads(self.succeed("tessera-dump", "model.tessera", "--tensors", "--json"))["tensors"]
        self.assertEqual([tensor["role"] for tensor in tensors], ["param", "param", "param", "constant", "constant"])

    def test_the_list_survives_a_stop_at_any_phase(self):
        Lookup().save(self.path("model.onnx"))
        for phase in ("import", "optimize", "schedule"):
            with open(self.path(phase + ".mlir"), "w") as file:
                file.write(self.succeed("tessera-compile", "model.onnx", "--batch", 8, "--compile-to", phase))
            with open(self.path(phase + ".mlir")) as file:
                self.assertIn('#train.tensor<"scale", tensor<f32>, param, "a parameter of the module">', file.read())
        self.succeed("tessera-compile", "import.mlir", "-o", "model.tessera")
        self.assertRegex(self.succeed("tessera-dump", "model.tessera", "--tensors"), "constant +lifted_tensor_0")

    def test_a_record_that_does_not_fit_is_refused(self):
        def missing(model):
            model.parameters.append(parameter("h.1.ln.weight", (4,)))

        def reshaped(model):
            model.parameters[0]["shape"] = [WIDTH, ROWS]

        def unread(model):
            model.constant([1.0], [1], FLOAT, "bias")
            model.parameters.append(parameter("bias", (1,)))

        def row(model):
            model.parameters[0]["padding_idx"] = ROWS

        def nameless(model):
            del model.parameters[0]["name"]

        def undecided(model):
            del model.parameters[0]["trained"]

        def twice(model):
            model.parameters.append(model.parameters[0])

        def not_looked_up(model):
            model.parameters[1]["padding_idx"] = 1

        cases = ((missing, {}, r"'h\.1\.ln\.weight' is not in the graph: it was merged with another, folded or renamed"),
                 (reshaped, {}, r"'table' has shape \[6, 4\] in the graph and \[4, 6\] in the module"),
                 (unread, {}, "'bias' is read by no node: something computed from it was folded"),
                 (row, {}, "'padding_idx' of 'table' is no row of it"),
                 (nameless, {}, "a tensor needs a name and a shape"),
                 (undecided, {}, "parameter 'table' needs 'trained'"),
                 (twice, {}, "'table' is listed twice"),
                 (not_looked_up, {}, "row 1 of 'causal_mask' is a padding row .* but no Gather node"),
                 (None, {"version": 2}, "it has version 2, this compiler reads 1"),
                 (None, {"version": "1"}, "it has no version"),
                 (None, {"batch_norm": [{"running_mean": "m"}]}, "an entry of 'batch_norm' needs"),
                 (None, {"buffers": 3}, "it has no list 'buffers'"),
                 (None, {"dropout": [{"module": "drop", "p": 0.1, "count": 2}]},
                  "dropout was on in 2 places of the module, the graph has 0: the exporter dropped it"))
        for change, record, message in cases:
            with self.subTest(message):
                model = Lookup()
                if change:
                    change(model)
                model.save(self.path("model.onnx"), record=record)
                self.fail_with(message, "tessera-compile", "model.onnx", "--batch", 8, "-o", "model.tessera")
                self.assertFalse(os.path.exists(self.path("model.tessera")))

    def test_hostile_records(self):
        for text in ("", "{", "[" * 100000, '{"version": 1e400}', "\xff\xfe", '{"version": 1, "parameters": [[]]}',
                     '{"exporter": "' + "}" * 100000 + '", "parameters": ' + "[" * 100000):
            with self.subTest(text[:20]):
                model = Lookup()
                original, json.dumps = json.dumps, lambda _: text
                try:
                    model.save(self.path("model.onnx"))
                finally:
                    json.dumps = original
                self.fail_with("the record of the model .* is malformed", "tessera-compile", "model.onnx", "--batch", 8,
                               "-o", "model.tessera")

    def test_flags_that_contradict_the_record_are_warned_of(self):
        for flags, names in ((("--constants", "scale"), "1 tensor: 'scale'"),
                             (("--parameters", "offset|lifted"), "2 tensors: 'offset', 'lifted_tensor_0'")):
            with self.subTest(flags):
                Lookup().save(self.path("model.onnx"))
                done = self.tool("tessera-compile", "model.onnx", "--batch", 8, *flags, "-o", "model.tessera")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"warning: model.onnx: flags contradict the file's record of what is trained for {names}", done.stderr)

    def test_padding_is_of_lookups_of_the_table_itself(self):
        """Indexing a copy of the table is no lookup of an embedding."""
        graph = Graph()
        graph.constant(np.arange(24).tolist(), (ROWS, WIDTH), FLOAT, "table")
        one = graph.op("Gather", "table", "tokens", axis=0)
        other = graph.op("Gather", graph.op("Identity", "table"), "tokens", axis=0)
        y = graph.op("Add", one, other)
        graph.parameters = [parameter("table", (ROWS, WIDTH), padding_idx=2)]
        graph.store(self.path("model.onnx"), [value_info("tokens", INT64, ["B", LENGTH])], [value_info(y, FLOAT, ["B", LENGTH, WIDTH])])
        ir = self.succeed("tessera-compile", "model.onnx", "--batch", 8, "--loss", "mse", "--compile-to", "import")
        self.assertEqual(ir.count("train.gather_rows"), 2)
        self.assertEqual(ir.count("padding_index = 2"), 1)

    def test_dropout_that_was_cleared(self):
        Lookup().save(self.path("model.onnx"), record={"dropout_cleared": 3})
        done = self.tool("tessera-compile", "model.onnx", "--batch", 8, "-o", "model.tessera")
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: model.onnx: the step has no dropout: 3 rates were set to 0", done.stderr)
        Lookup().save(self.path("model.onnx"), record={"dropout_cleared": "all"})
        self.fail_with("'dropout_cleared' is no number", "tessera-compile", "model.onnx", "--batch", 8, "-o", "model.tessera")

    def test_unused_parameters(self):
        model = Lookup()
        model.parameters.append(parameter("head.bias", (3,), unused=True))
        model.save(self.path("model.onnx"))
        self.assert_gradients(self.step("one"), model.gradients(self.tokens, self.targets))

    def test_a_buffer_without_its_data_needs_weights(self):
        """Its value is computed by the module's code: no initialiser may make one up."""
        graph = Graph()
        for name, shape in (("w", (LENGTH, 2)), ("positions", (8, 2))):
            graph.weight(name, *shape)
        x = graph.op("MatMul", graph.op("MatMul", "x", "w"), graph.op("Transpose", "positions", perm=[1, 0]))
        graph.parameters = [parameter("w", (LENGTH, 2))]
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", LENGTH])], [value_info(x, FLOAT, ["B", 8])],
                    record={"buffers": [{"name": "positions", "shape": [8, 2], "dtype": "float32"}]})
        self.succeed("tessera-compile", "model.onnx", "--batch", 4, "--loss", "mse", "-o", "model.tessera")
        random = np.random.default_rng(0)
        safetensors.save({"x": random.standard_normal((8, LENGTH), np.float32),
                          "targets": random.standard_normal((8, 8), np.float32)}, self.path("arrays.safetensors"))
        run = ["model.tessera", "--data", "arrays.safetensors", "--steps", 1, "--out", "run"]
        self.fail_with("need weights: 'positions'", "tessera-run", *run)
        safetensors.save({"w": np.ones((LENGTH, 2), np.float32), "positions": np.ones((8, 2), np.float32)},
                         self.path("weights.safetensors"))
        self.succeed("tessera-run", *run, "--weights", "weights.safetensors")


class BatchNormalisation(RolesTest):
    """relu(norm(x)) with different batches: by the batch's statistics, or by the running ones."""

    def save(self, training, recorded):
        graph = Graph()
        values = {"norm.weight": [1.5, 0.5], "norm.bias": [0.25, -0.5], "norm.running_mean": [1.0, -1.0],
                  "norm.running_var": [4.0, 0.25]}
        for name, value in values.items():
            graph.constant(value, [2], FLOAT, name)
        y = graph.op("BatchNormalization", "x", *values, epsilon=1e-5, **({"training_mode": 1} if training else {}))
        graph.parameters = [parameter(name, (2,)) for name in ("norm.weight", "norm.bias")]
        graph.store(self.path("model.onnx"), [value_info("x", FLOAT, ["B", 2])], [value_info(y, FLOAT, ["B", 2])],
                    record={"buffers": [{"name": name, "shape": [2], "dtype": "float32"} for name in list(values)[2:]],
                            "batch_norm": [] if recorded is None else
                            [{"running_mean": "norm.running_mean", "training": recorded}]})
        random = np.random.default_rng(0)
        x, targets = (random.standard_normal((8, 2), np.float32) for _ in range(2))
        safetensors.save({"x": x, "targets": targets}, self.path("data.safetensors"))

        def loss(mean, variance):
            y = (x - mean) / np.sqrt(variance + 1e-5) * np.array(values["norm.weight"]) + np.array(values["norm.bias"])
            return np.mean((y - targets)**2)

        return loss(x.mean(0), x.var(0)), loss(np.array([1.0, -1.0]), np.array([4.0, 0.25]))

    def loss(self, *flags):
        self.succeed("tessera-compile", "model.onnx", "--batch", 8, "--loss", "mse", *flags, "-o", "model.tessera")
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", "model.onnx", "--out", "run")
        loss = self.metrics("run")[0]["loss"]
        shutil.rmtree(self.path("run"))
        return loss

    def test_forms(self):
        for training, recorded, flags, by_batch in (
                (False, True, [], True), (False, False, [], False), (True, None, [], True), (True, True, [], True),
                (False, None, ["--batch-norm", "train"], True), (False, None, ["--batch-norm", "inference"], False),
                (False, True, ["--batch-norm", "inference"], False)):
            with self.subTest(training=training, recorded=recorded, flags=flags):
                losses = self.save(training, recorded)
                want = losses[0] if by_batch else losses[1]
                self.assertGreater(abs(losses[0] - losses[1]), 0.1)
                self.assertLessEqual(abs(self.loss(*flags) - want), 1e-6 * want)

    def test_an_unknown_mode_is_refused(self):
        self.save(False, None)
        self.fail_with("--batch-norm train .* or --batch-norm inference", "tessera-compile", "model.onnx", "--batch", 8,
                       "--loss", "mse", "-o", "model.tessera")
        self.fail_with("--batch-norm: unknown value 'eval'", "tessera-compile", "model.onnx", "--batch", 8, "--batch-norm",
                       "eval", "-o", "model.tessera")


class WithoutRecord(RolesTest):
    SIGNATURE = {"table": "PARAMETER", "causal_mask": "PARAMETER", "scale": "PARAMETER", "offset": "BUFFER",
                 "lifted_tensor_0": "CONSTANT_TENSOR"}

    def test_the_signature_of_the_dynamo_exporter(self):
        model = Lookup()
        model.save(self.path("model.onnx"), record=False, signature=self.SIGNATURE)
        self.assert_gradients(self.step("one"), model.gradients(self.tokens, self.targets))
        done = self.tool("tessera-compile", "model.onnx", "--batch", 8, "--verbose", "-o", "model.tessera")
        self.assertRegex(done.stderr, "param +causal_mask .* a parameter in the exporter's signature")
        self.assertIn("warning: ", done.stderr)
        self.assertIn("has no record of the module", done.stderr)

    def test_what_the_signature_leaves_open_is_refused(self):
        """The exporter's optimiser folds parameters into tensors of its own, `val_12`, which it signs as nothing."""
        signature = dict(self.SIGNATURE)
        del signature["causal_mask"], signature["scale"]
        Lookup().save(self.path("model.onnx"), record=False, signature=signature)
        output = self.fail_with("2 tensors are not certain", "tessera-compile", "model.onnx", "--batch", 8, "-o", "model.tessera")
        self.assertIn("'scale', read by node '/Mul_2'", output)
        self.assertNotIn("'table'", output)

    def test_flags_decide(self):
        model = Lookup()
        model.save(self.path("model.onnx"), record=False)
        self.fail_with("5 tensors are not certain", "tessera-compile", "model.onnx", "--batch", 8, "-o", "model.tessera")
        got = self.step("one", "--parameters", "table|mask|scale", "--constants", "offset|lifted", "--padding-idx", "table=2")
        self.assert_gradients(got, model.gradients(self.tokens, self.targets, padding=2))


if __name__ == "__main__":
    import unittest
    unittest.main()
