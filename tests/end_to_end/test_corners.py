"""Functions at corners, at ties and far out have the values and gradients that PyTorch has (docs/differentiate.md)."""

import json
import os
import re

from harness import GOLDENS, ToolTest, safetensors

import numpy as np

# f32 against f64: functions within 2 units in the last place, and a handful of roundings around them.
RELATIVE, ABSOLUTE = 4e-6, 1e-37
# The exponent 1/3 is rounded in the file.
LOOSER = {"norm_3": 1e-5}
# Slopes made of results near 1 lose what the result has lost to rounding, in PyTorch too: 1 - y, 1 - y^2.
OF_RESULTS = {name: 1.2e-7 for name in ("sigmoid", "one_minus_sigmoid", "sigmoid_by_exp", "tanh", "softsign", "mish")}
# PyTorch has y + 1 in f64, which cancels where y is near -1.
OF_RESULTS["expm1"] = 1.2e-16
# bf16 rounds values, and sums of cotangents, to 8 bits.
BF16 = 2.0 ** -6


class Corners(ToolTest):
    def setUp(self):
        super().setUp()
        with open(os.path.join(GOLDENS, "corners.json")) as file:
            self.cases = json.load(file)["cases"]

    def write(self, cases):
        """One model whose loss adds up all cases; of each the gradient of c is the value, and of p the gradient."""
        weights, heads, body, terms = {}, [], [], []
        for name, case in cases.items():
            points, value = np.float32(case["points"]), np.float32(case["value"])
            parameters = {f"p_{name}": points, f"c_{name}": np.ones(value.shape, np.float32)}
            for parameter, data in parameters.items():
                sizes = ",".join(map(str, data.shape))
                heads.append(f"float{f'[{sizes}]' if sizes else ''} {parameter} = {{{', '.join(['0'] * data.size)}}}")
            weights.update(parameters)
            for node in [*case["nodes"], "z = Mul (y, c)", "loss = ReduceSum <keepdims = 0> (z)"]:
                body.append(re.sub(r"\b([a-z]|low|high|loss)\b(?=( =|,|\)))", rf"\1_{name}", node))
            terms.append(f"loss_{name}")
        total = f"  sum = Sum ({', '.join(terms)})\n  scaled = Mul (x, sum)\n  loss = ReduceSum <keepdims = 0> (scaled)\n"
        with open(self.path("model.onnxtxt"), "w") as file:
            file.write('<ir_version: 8, opset_import: ["" : 17]>\ncorners (float[B] x) => (float loss)\n<'
                       + ",\n ".join(heads) + ">\n{\n" + "".join(f"  {line}\n" for line in body) + total + "}\n")
        safetensors.save(weights, self.path("weights.safetensors"))
        safetensors.save({"x": np.ones(1, np.float32)}, self.path("data.safetensors"))

    def gradients(self, *flags):
        self.succeed("tessera-compile", "model.onnxtxt", "--parameters", "^[pc]_", "--tied", "^[pc]_", "--batch", 1, "--loss", "output:loss",
                     "--optimizer", "sgd", *flags, "-o", "model.tessera")
        self.succeed("tessera-run", "model.tessera", "--data", "data.safetensors", "--order", "sequential", "--steps", 1,
                     "--weights", "weights.safetensors", "--threads", 1, "--no-export", "--dump=gradients", "--dump-step", 1,
                     "--out", "out")
        return safetensors.load(self.path("out", "dump-1", "gradients.safetensors"))

    def check(self, name, what, points, got, want, relative, absolute):
        got, want = np.float64(got).ravel(), np.float64(want).ravel()
        far = np.abs(want) > np.finfo(np.float32).max
        want = np.where(far, np.sign(want) * np.inf, want)
        with np.errstate(invalid="ignore"):
            same = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) <= relative * np.abs(want) + absolute)
        wrong = [f"{got[i]:.9g}, expected {want[i]:.9g}" + (f" at {np.ravel(points)[i]:g}" if np.size(points) == got.size else "")
                 for i in np.flatnonzero(~same)]
        self.assertEqual(wrong, [], f"{what} of {name}")

    def test_fp32(self):
        self.write(self.cases)
        gradients = self.gradients()
        for name, case in self.cases.items():
            with self.subTest(name):
                bound = LOOSER.get(name, RELATIVE)
                self.check(name, "value", case["points"], gradients[f"c_{name}"], case["value"], bound, ABSOLUTE)
                self.check(name, "gradient", case["points"], gradients[f"p_{name}"], case["gradient"], bound,
                           OF_RESULTS.get(name, ABSOLUTE))

    def test_bf16(self):
        """What PyTorch has in f64 at points that bf16 holds, so that only roundings differ: no NaN and no wrong side."""
        cases = {name: case for name, case in self.cases.items() if "bce" in name or "sigmoid" in name or name in (
            "relu", "elu", "softplus", "max_dim", "max_pool", "norm", "normalize", "logsumexp", "mish")}
        self.write(cases)
        gradients = self.gradients("--precision", "bf16")
        for name, case in cases.items():
            with self.subTest(name):
                self.check(name, "value", case["points"], gradients[f"c_{name}"], case["value"], BF16, BF16)
                self.check(name, "gradient", case["points"], gradients[f"p_{name}"], case["gradient"], BF16, BF16)
