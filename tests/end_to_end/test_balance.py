"""Work of the ranks of a sequence axis: pairs of a query and a key, counted from the ranges of keys that a rank's program says its queries see."""

import random
import re

import numpy as np

from harness import ToolTest, safetensors

STEP = """module attributes {{dist.mesh = #dist.mesh<seq = {ranks}>}} {{
func.func @step(%tokens: tensor<1x{t}xi32> {{train.dims = #train.dims<[sample, position]>, train.name = "tokens", train.role = "input"}},
                %x: tensor<1x{t}xf32> {{train.dims = #train.dims<[sample, position]>, train.name = "x", train.role = "input"}})
    -> (tensor<f32> {{train.role = "loss"}}) {{
  %zero = train.constant dense<0> : tensor<1x{t}xi32>
  %ends = train.compare eq, %tokens, %zero : (tensor<1x{t}xi32>, tensor<1x{t}xi32>) -> tensor<1x{t}xi1>
  %starts = train.broadcast %ends {{broadcast_dimensions = array<i64: 0, 2>}} : (tensor<1x{t}xi1>) -> tensor<1x{t}x{t}xi1>
  %there = train.iota {{dim = 2 : i64}} : tensor<1x{t}x{t}xi64>
  %here = train.iota {{dim = 1 : i64}} : tensor<1x{t}x{t}xi64>
  %seen = train.compare le, %there, %here : (tensor<1x{t}x{t}xi64>, tensor<1x{t}x{t}xi64>) -> tensor<1x{t}x{t}xi1>
  %both = train.mul %seen, %starts : tensor<1x{t}x{t}xi1>
  %none = train.constant dense<0> : tensor<1x{t}x{t}xi64>
  %place = train.select %both, %there, %none : tensor<1x{t}x{t}xi1>, tensor<1x{t}x{t}xi64>
  %begin = train.reduce max, %place {{dimensions = array<i64: 2>}} : (tensor<1x{t}x{t}xi64>) -> tensor<1x{t}xi64>
  %end = train.constant dense<{t}> : tensor<1x{t}xi64>
  %q = train.reshape %x : (tensor<1x{t}xf32>) -> tensor<1x1x{t}x1xf32>
  %y, %lse = train.attention %q, %q, %q keys(%begin to %end) {{causal, {window}scale = 0.5}} :
    (tensor<1x1x{t}x1xf32>, tensor<1x1x{t}x1xf32>, tensor<1x1x{t}x1xf32>, tensor<1x{t}xi64>, tensor<1x{t}xi64>) -> (tensor<1x1x{t}x1xf32>, tensor<1x1x{t}xf32>)
  %loss = train.reduce sum, %y {{dimensions = array<i64: 0, 1, 2, 3>}} : (tensor<1x1x{t}x1xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}}
}}
"""
PASSES = ("builtin.module(func.func(annotate-sharding{{attention=allgather sequence-order={order}}},split-attention{{attention=allgather "
          "sequence-order={order}}},propagate-sharding,insert-reshards,verify-sharding,localize,verify-sharding,canonicalize,cse))")
COUNT = """  %own = train.sub {end}, {begin} : {type}
  %own.sum = train.reduce sum, %own {{dimensions = array<i64: 0, 1>}} : ({type}) -> tensor<i64>
  %own.one = train.reshape %own.sum : (tensor<i64>) -> tensor<1xi64>
  %work = dist.all_gather %own.one {{axes = ["seq"], dim = 0 : i64}} : (tensor<1xi64>) -> tensor<{ranks}xi64>
  return %work : tensor<{ranks}xi64>
"""




def counting(text, ranks):
    """The rank's program with its pairs as the result."""
    (begin, end, kind), = re.findall(r"train\.attention .* keys\((\S+) to (\S+)\).* : \([^()]*, (tensor<\w+>), tensor<\w+>\) ->", text)
    text = re.sub(r"\n\s*return .*", lambda _: "\n" + COUNT.format(begin=begin, end=end, type=kind, ranks=ranks).rstrip(), text)
    return re.sub(r"-> \(tensor<f32> \{.*?\}\) \{", f'-> (tensor<{ranks}xi64> {{dist.global = tensor<{ranks}xi64>, '
                  'dist.sharding = #dist.sharding<[{}]>, train.name = "work", train.role = "output"}) {', text)


class Balance(ToolTest):
    def works(self, order, ranks, length=128, documents=1, window=None, samples=1):
        """For some samples: pairs of each rank, and those of each query."""
        with open(self.path("step.mlir"), "w") as file:
            file.write(STEP.format(ranks=ranks, t=length, window=f"window = {window} : i64, " if window else ""))
        local = self.succeed("tessera-opt", "step.mlir", "--pass-pipeline=" + PASSES.format(order=order))
        with open(self.path("local.mlir"), "w") as file:
            file.write(counting(local, ranks))
        for seed in range(samples):
            tokens = np.ones((1, length), np.int32)
            tokens[0, random.Random(seed).sample(range(1, length), documents - 1)] = 0
            safetensors.save({"tokens": tokens, "x": np.zeros((1, length), np.float32)}, self.path("in.safetensors"))
            self.succeed("tessera-interp", "local.mlir", "--inputs=in.safetensors", "--dump=out.safetensors", "--quiet")
            first = np.maximum.accumulate(np.where(tokens[0] == 0, np.arange(length), 0))
            if window:
                first = np.maximum(first, np.arange(length) + 1 - window)
            pairs = np.arange(length) + 1 - first
            work = safetensors.load(self.path("out.safetensors"))["work"]
            self.assertEqual(work.sum(), pairs.sum())
            yield work, pairs

    def test_documents_are_dealt_by_their_work(self):
        """Ranks differ by at most the largest work of a block; in a zigzag of whole sequences by far more."""
        worst = {}
        for ranks, blocks, length, documents, window in ((2, 4, 128, 3, None), (3, 8, 96, 5, None), (4, 8, 128, 6, None), (8, 16, 256, 9, None),
                                                         (4, 8, 128, 4, 16)):
            for work, pairs in self.works(f"dealt:blocks={blocks}", ranks, length, documents, window, samples=4):
                with self.subTest(ranks=ranks, documents=documents, work=list(work)):
                    of_blocks = pairs.reshape(ranks * blocks, -1).sum(1)
                    self.assertLessEqual(work.max() - work.min(), of_blocks.max() - of_blocks.min())
                    worst[ranks] = min(worst.get(ranks, 1), work.mean() / work.max())
        self.assertGreaterEqual(worst[8], 0.95)
        zigzag = min(work.mean() / work.max() for work, _ in self.works("zigzag", 8, 256, 9, samples=4))
        self.assertLess(zigzag, 0.85)

    def test_what_is_left_open(self):
        """Documents that follow from the batch are dealt without being asked for."""
        for work, pairs in self.works("auto", 4, 512, 6, samples=2):
            of_blocks = pairs.reshape(4 * 4, -1).sum(1)
            self.assertLessEqual(work.max() - work.min(), of_blocks.max())
