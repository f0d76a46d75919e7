"""Mesh axes have free names and a role; inputs say which of their dimensions count samples and positions."""

import json
import re

import numpy as np

from harness import Golden, ToolTest
import safetensors

STEPS, SAMPLES, SEQUENCE = 3, 8, 64


class AxisRoles(ToolTest):
    def setUp(self):
        super().setUp()
        self.golden = Golden("gpt")
        safetensors.save(self.golden.cut(STEPS * SAMPLES, SEQUENCE), self.path("data.safetensors"))

    def train(self, name, mesh, *flags):
        self.succeed("tessera-compile", self.golden.model, "--batch", SAMPLES // 2, "--accumulate", 2, "--seq", SEQUENCE,
                     "--clip-norm", 0.3, "--mesh", mesh, *flags, "-o", name + ".tessera")
        done = self.succeed("tessera-run", name + ".tessera", "--data", "data.safetensors", "--order", "sequential", "--steps",
                            STEPS, "--weights", self.golden.weights, "--out", name, "--threads", 1)
        return done, [record["loss"] for record in self.metrics(name)]

    def collectives(self, name):
        return self.succeed("tessera-dump", name + ".tessera", "--collectives", "--json")

    @staticmethod
    def but_hash(text):
        """The hash of the sequence has the axes' names in it."""
        dumped = json.loads(text)
        del dumped["collectives"]["hash"]
        return dumped

    def test_names_of_axes_change_nothing(self):
        for strategy in ("zero3", "ddp"):
            _, losses = self.train("plain-" + strategy, "replicate=2,shard=2", "--strategy", strategy)
            for number, mesh in enumerate(("dp=2,fsdp=2", "nodes:replica=2,gpus:data=2")):
                with self.subTest(strategy=strategy, mesh=mesh):
                    name = f"{strategy}-{number}"
                    head, same = self.train(name, mesh, "--strategy", strategy)
                    self.assertEqual(same, losses)
                    first, second = (axis.split("=")[0].split(":")[0] for axis in mesh.split(","))
                    self.assertIn(f"{first}=2 (replica), {second}=2 (data)", head)
                    text = re.sub(rf"\b{first}\b", "replicate", re.sub(rf"\b{second}\b", "shard", self.collectives(name)))
                    self.assertEqual(self.but_hash(text), self.but_hash(self.collectives("plain-" + strategy)))

    def test_several_axes_of_one_role_work_as_one(self):
        _, losses = self.train("one", "shard=4", "--strategy", "zero3")
        _, same = self.train("two", "a:data=2,b:data=2", "--strategy", "zero3")
        self.assertEqual(same, losses)
        _, losses = self.train("whole", "replicate=4")
        _, same = self.train("halves", "a:replica=2,b:replica=2")
        self.assertEqual(same, losses)

    def test_reports_say_the_names_of_the_user(self):
        done = self.tool("tessera-compile", self.golden.model, "--batch", 4, "--seq", SEQUENCE, "--mesh",
                         "nodes:replica=2,gpus:data=2", "--report=report.json", "--fit=1MiB")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("ddp on nodes:replica=2,gpus:data=2 (4 ranks)", done.stdout)
        self.assertIn("--mesh nodes:replica=2,gpus:data=4", done.stdout)
        self.assertIn("nodes,gpus", done.stdout)
        for name in ("replicate", "shard"):
            self.assertNotIn(name, done.stdout)
        with open(self.path("report.json")) as file:
            report = json.load(file)
        self.assertEqual(report["mesh_roles"], {"nodes": "replica", "gpus": "data"})
        ratios = [row["wire_bytes_per_rank"] / row["minimum_wire_bytes_per_rank"] for row in report["collectives"]
                  if row["minimum_wire_bytes_per_rank"]]
        self.assertTrue(ratios)
        self.assertTrue(all(1 <= ratio < 1.2 for ratio in ratios), ratios)

    def test_bad_meshes_are_refused(self):
        for mesh, message in (("ring=2", "unknown axis 'ring' needs a role"), ("a:tensor=2", "unknown role 'tensor'"),
                              ("a:data=2,a:replica=2", "axis 'a' is given twice"), ("a b:data=2", "no name of an axis"),
                              ("ep=2", "to experts yet"), ("x:stage=2", "one program on all ranks")):
            with self.subTest(mesh):
                self.fail_with(message, "tessera-compile", self.golden.model, "--batch", 4, "--seq", SEQUENCE, "--mesh", mesh,
                               "-o", "x.tessera")
        self.fail_with("needs a mesh with an axis of role replica and one of role data", "tessera-compile", self.golden.model,
                       "--batch", 4, "--seq", SEQUENCE, "--mesh", "fsdp=2", "--strategy", "hsdp", "-o", "x.tessera")
        self.fail_with("--strategy: unknown value 'zero9', expected ddp, zero1, zero2, zero3 or hsdp", "tessera-compile",
                       self.golden.model, "--strategy", "zero9", "-o", "x.tessera")


class DimRoles(ToolTest):
    """Small models in text, on arrays."""

    def model(self, name, inputs, output, body, *weights):
        values = np.random.default_rng(0)
        given = ", ".join(f"float[{rows},{columns}] {weight} = "
                          f"{{{', '.join(f'{value:.6f}' for value in values.normal(size=rows * columns))}}}"
                          for weight, rows, columns in weights)
        with open(self.path(name), "w") as file:
            file.write(f'<ir_version: 8, opset_import: ["" : 17]>\nmodel ({inputs}) => ({output})\n<{given}>\n{{\n{body}\n}}\n')

    def save(self, **arrays):
        safetensors.save({name: np.ascontiguousarray(value) for name, value in arrays.items()}, self.path("data.safetensors"))

    def train(self, model, *flags, mesh="fsdp=1", strategy="zero3"):
        self.succeed("tessera-compile", model, "--parameters", ".", "--optimizer", "sgd", "--mesh", mesh, "--strategy", strategy,
                     *flags, "-o", "x.tessera")
        self.runs = getattr(self, "runs", 0) + 1
        out = f"out{self.runs}"
        self.succeed("tessera-run", "x.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 3, "--out", out,
                     "--seed", 3, "--threads", 1)
        return [record["loss"] for record in self.metrics(out)]

    def assert_close(self, got, want):
        self.assertEqual(len(got), 3)
        for first, second in zip(got, want):
            self.assertLessEqual(abs(first - second), 2e-6 * abs(second))

    def summary(self):
        return json.loads(self.succeed("tessera-dump", "x.tessera", "--json"))["summary"]

    def dims(self):
        return [entry["dims"] for entry in self.summary()["batch"]]

    def test_a_time_first_model_is_split_over_its_samples(self):
        body = "  a = MatMul (x, w)\n  b = Tanh (a)\n  y = MatMul (b, v)"
        weights = ("w", 4, 6), ("v", 6, 5)
        self.model("time.onnxtxt", "float[T,B,4] x", "float[T,B,5] y", body, *weights)
        self.model("batch.onnxtxt", "float[B,T,4] x", "float[B,T,5] y", body, *weights)
        random = np.random.default_rng(1)
        self.save(x=random.normal(size=(24, 3, 4)).astype(np.float32), targets=random.integers(0, 5, (24, 3), dtype=np.int32))
        sizes = "--batch", 4, "--seq", 3, "--accumulate", 2
        reference = self.train("batch.onnxtxt", *sizes)
        for mesh in ("fsdp=1", "fsdp=2", "dp=2,fsdp=2"):
            with self.subTest(mesh):
                got = self.train("time.onnxtxt", *sizes, "--dim-role", "x:0=sequence,1=batch", mesh=mesh)
                self.assert_close(got, reference)
                self.assertEqual(self.dims(), [["micro_batch", "position", "sample", "none"],
                                               ["micro_batch", "position", "sample"]])
                record = self.summary()["model"]
                self.assertEqual((record["samples_per_step"], record["tokens_per_step"]), ("8", "24"))

    def test_inputs_may_have_their_samples_in_different_places_or_none(self):
        self.model("mixed.onnxtxt", "float[4,6] table, float[B,6] x, float[1,B] scale", "float[B,4] y",
                   "  s = Transpose (scale)\n  a = MatMul (x, w)\n  b = Mul (a, s)\n  t = Transpose (table)\n  c = Tanh (b)\n"
                   "  y = MatMul (c, t)", ("w", 6, 6))
        random = np.random.default_rng(2)
        rows = {"x": random.normal(size=(12, 6)).astype(np.float32), "targets": random.normal(size=(12, 4)).astype(np.float32),
                "scale": random.normal(size=(12, 1)).astype(np.float32),
                "table": random.normal(size=(4, 6)).astype(np.float32)}
        self.save(**rows)
        flags = ("--batch", 4, "--loss", "mse", "--dim-role", "table:0=none", "--dim-role", "scale:1=batch")
        reference = self.train("mixed.onnxtxt", *flags)
        self.assertEqual(self.dims(), [["none", "none"], ["sample", "none"], ["none", "sample"], ["sample", "none"]])
        for mesh, strategy in (("fsdp=2", "zero3"), ("dp=4", "ddp"), ("dp=2,fsdp=2", "zero3")):
            with self.subTest(mesh):
                self.assert_close(self.train("mixed.onnxtxt", *flags, mesh=mesh, strategy=strategy), reference)
        self.assert_close(self.train("mixed.onnxtxt", "--batch", 2, "--accumulate", 2, *flags[2:], mesh="fsdp=2"), reference)

    def test_wrong_roles_are_refused(self):
        self.model("two.onnxtxt", "float[B,4] x, float[T,B] z, float[3,4] u", "float[B,4] y",
                   "  a = MatMul (x, w)\n  s = ReduceSum (z)\n  t = ReduceSum (u)\n  b = Add (a, s)\n  y = Add (b, t)",
                   ("w", 4, 4))
        sizes = "--batch", 4, "--seq", 5, "--loss", "mse"
        for message, flags in (
                ("'B' counts samples as dimension 0 of 'x' and positions as dimension 1 of 'z'", ()),
                ("the model has no input 'q'", ("--dim-role", "q:0=batch")),
                ("expected <input>:<dimension>=<batch|sequence|none>", ("--dim-role", "z:0=time")),
                ("expected <input>:<dimension>=<batch|sequence|none>", ("--dim-role", "z:first=batch")),
                ("input 'z' has 2 dimensions", ("--dim-role", "z:2=batch")),
                ("two dimensions that count samples", ("--dim-role", "z:0=batch,1=batch")),
                ("has the fixed size 3 in dimension 0, got --batch 4",
                 ("--dim-role", "z:0=sequence,1=batch", "--dim-role", "u:0=batch"))):
            with self.subTest(message):
                self.fail_with(message, "tessera-compile", "two.onnxtxt", "--parameters", ".", *sizes, *flags, "-o", "x.tessera")
        self.fail_with("expected a multiple of the number of data-parallel ranks, 3", "tessera-compile", "two.onnxtxt",
                       "--parameters", ".", *sizes, "--dim-role", "z:0=sequence,1=batch", "--mesh", "dp=3", "-o", "x.tessera")
        with open(self.path("x.mlir"), "w") as file:
            file.write("module {}\n")
        self.fail_with("says by train.dims", "tessera-compile", "x.mlir", "--dim-role", "x:0=batch", "-o", "x.tessera")
