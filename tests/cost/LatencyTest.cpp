//===- LatencyTest.cpp - latencies against calculation by hand ------------===//

#include "compiler/cost/Latency.h"

#include "compiler/dialect/exec/Exec.h"
#include "passes/Register.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::cost;

namespace {

/// Round numbers: 1 TFLOP/s, products at half of it, 100 GB/s of memory, 10 us per kernel, 10 GB/s inside a node of 4
/// and 1 GB/s per device between nodes.
Target roundTarget() {
  Target target;
  target.name = "round";
  target.kind = "cpu";
  target.devicesPerNode = 4;
  target.memoryBandwidth = Curve(1e11);
  target.launchSeconds = 1e-5;
  target.peakFlops["fp32"] = 1e12;
  target.gemm["fp32"] = {{128, 128, 128, 0.5}};
  target.attentionForward = Curve(0.25);
  target.attentionBackward = Curve(0.2);
  target.convolution = 0.5;
  for (LinkModel &link : target.intraNode)
    link = {1e-6, 1e-6, Curve(1e10)};
  for (LinkModel &link : target.interNode)
    link = {1e-5, 1e-5, Curve(1e9)};
  return target;
}

class LatencyTest : public testing::Test {
protected:
  LatencyTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  LatencyModel model(ArrayRef<StringRef> names, ArrayRef<int64_t> sizes) {
    return {roundTarget(), dist::MeshAttr::get(&context, builder.getStrArrayAttr(names), sizes)};
  }
  ArrayAttr axes(ArrayRef<StringRef> names) { return builder.getStrArrayAttr(names); }

  /// Seconds of all ops of a function, one after the other.
  double total(const LatencyModel &latency, const std::string &text) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    double seconds = 0;
    if (module)
      for (auto func : module->getOps<func::FuncOp>())
        for (Operation &op : func.getBody().front().without_terminator())
          seconds += latency.seconds(&op);
    return seconds;
  }

  MLIRContext context;
  Builder builder{&context};
};

TEST(WireBytes, TheoreticalMinimum) {
  EXPECT_DOUBLE_EQ(wireBytes(Collective::AllGather, 800, 8), 700);
  EXPECT_DOUBLE_EQ(wireBytes(Collective::ReduceScatter, 800, 8), 700);
  EXPECT_DOUBLE_EQ(wireBytes(Collective::AllReduce, 800, 8), 1400);
  EXPECT_DOUBLE_EQ(wireBytes(Collective::AllToAll, 800, 4), 600);
  EXPECT_DOUBLE_EQ(wireBytes(Collective::Permute, 800, 4), 800);
  EXPECT_DOUBLE_EQ(wireBytes(Collective::AllReduce, 800, 1), 0);
}

TEST_F(LatencyTest, GroupsLieOnNodesInRankOrder) {
  LatencyModel latency = model({"replicate", "shard"}, {4, 8}); // nodes of 4: a shard group has two of them
  EXPECT_EQ(latency.placement(axes({"shard"})).ranks, 8);
  EXPECT_EQ(latency.placement(axes({"shard"})).nodes, 2);
  EXPECT_EQ(latency.placement(axes({"replicate"})).ranks, 4);
  EXPECT_EQ(latency.placement(axes({"replicate"})).nodes, 4);
  EXPECT_EQ(latency.placement(axes({"replicate", "shard"})).ranks, 32);
  EXPECT_EQ(latency.placement(axes({"replicate", "shard"})).nodes, 8);
  EXPECT_EQ(model({"shard"}, {4}).placement(axes({"shard"})).nodes, 1);
  EXPECT_EQ(model({"shard"}, {4096}).placement(axes({"shard"})).nodes, 1024);
}

TEST_F(LatencyTest, CollectivesInsideANode) {
  LatencyModel latency = model({"shard"}, {4});
  // 3/4 of 1 GB at 10 GB/s, 1 us and two hops of 1 us.
  EXPECT_NEAR(latency.collectiveSeconds(Collective::AllGather, 1e9, axes({"shard"})), 0.075 + 3e-6, 1e-12);
  EXPECT_NEAR(latency.collectiveSeconds(Collective::AllReduce, 1e9, axes({"shard"})), 0.15 + 3e-6, 1e-12);
  EXPECT_EQ(model({"shard"}, {1}).collectiveSeconds(Collective::AllReduce, 1e9, axes({"shard"})), 0);
}

TEST_F(LatencyTest, CollectivesBetweenNodes) {
  LatencyModel latency = model({"shard"}, {8});
  // Half of 1 GB enters each of two nodes over 4 links of 1 GB/s: 0.125 s; inside, 7/8 GB at 10 GB/s are 0.0875 s and
  // run at the same time. Latencies: 10 us + one hop of 10 us, and 1 us + two hops of 1 us.
  EXPECT_NEAR(latency.collectiveSeconds(Collective::AllGather, 1e9, axes({"shard"})), 0.125 + 2e-5 + 3e-6, 1e-12);
  // One rank per node: 2 * 3/4 of 1 GB at 1 GB/s, 10 us and two hops.
  EXPECT_NEAR(model({"replicate", "shard"}, {4, 4}).collectiveSeconds(Collective::AllReduce, 1e9, axes({"replicate"})),
              1.5 + 3e-5, 1e-12);
  // Each rank sends 4/8 of its 1 GB to the other node over its own link.
  EXPECT_NEAR(latency.collectiveSeconds(Collective::AllToAll, 1e9, axes({"shard"})), 0.5 + 2e-5 + 3e-6, 1e-12);
}

TEST_F(LatencyTest, Kernels) {
  LatencyModel latency = model({"shard"}, {1});
  EXPECT_DOUBLE_EQ(latency.kernelSeconds(1e9), 0.01 + 1e-5);
  // 2 * 1000^3 FLOP at half of 1 TFLOP/s.
  EXPECT_DOUBLE_EQ(latency.gemmSeconds(builder.getF32Type(), 1, 1000, 1000, 1000), 4e-3 + 1e-5);
  // Bound by memory: 2 * 1e8 FLOP take 0.4 ms, 4 * (1e4 + 1e4 + 1e8) bytes 4 ms.
  EXPECT_NEAR(latency.gemmSeconds(builder.getF32Type(), 1, 10000, 10000, 1), 4.0008e-3 + 1e-5, 1e-9);
}

TEST_F(LatencyTest, TrainOpsCountWhatStaysAfterFusion) {
  LatencyModel latency = model({"shard"}, {2});
  // add and exp become one kernel: two operands and one result of 1 MiB; the slice costs nothing.
  const double mib = 1024 * 1024;
  EXPECT_NEAR(total(latency, R"mlir(
    func.func @step(%a: tensor<262144xf32>, %b: tensor<262144xf32>) -> tensor<131072xf32> {
      %0 = train.add %a, %b : tensor<262144xf32>
      %1 = train.exp %0 : tensor<262144xf32>
      %2 = train.slice %1 {starts = array<i64: 0>, limits = array<i64: 131072>, strides = array<i64: 1>} : (tensor<262144xf32>) -> tensor<131072xf32>
      return %2 : tensor<131072xf32>
    })mlir"),
              3 * mib / 1e11 + 2e-5, 1e-12);
  // A product: 2 * 128^3 FLOP at half the peak.
  EXPECT_NEAR(total(latency, R"mlir(
    func.func @step(%a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> {
      %0 = train.dot_general %a, %b {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      return %0 : tensor<128x128xf32>
    })mlir"),
              2.0 * 128 * 128 * 128 / 5e11 + 1e-5, 1e-12);
  // A gather over two ranks: half of 1 MiB at 10 GB/s, 1 us and one hop of 1 us; nothing for its end.
  EXPECT_NEAR(total(latency, R"mlir(
    func.func @step(%a: tensor<131072xf32>) -> tensor<262144xf32> {
      %0 = dist.all_gather_start %a {axes = ["shard"], dim = 0 : i64} : (tensor<131072xf32>) -> !dist.future<tensor<262144xf32>>
      %1 = dist.done %0 : (!dist.future<tensor<262144xf32>>) -> tensor<262144xf32>
      return %1 : tensor<262144xf32>
    })mlir"),
              0.5 * mib / 1e10 + 2e-6, 1e-12);
}

TEST_F(LatencyTest, Instructions) {
  LatencyModel latency = model({"shard"}, {2});
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"mlir(
    exec.program @step {
      exec.arena @a activations bytes 0
      %s = exec.slot "s" in @a activations : memref<262144xi8>
      %x = exec.buffer %s + 0 : memref<262144xi8> to memref<128x128xf32>
      %y = exec.buffer %s + 65536 : memref<262144xi8> to memref<128x128xf32>
      %z = exec.buffer %s + 131072 : memref<262144xi8> to memref<128x128xf32>
      exec.gemm %x, %y -> %z : memref<128x128xf32>, memref<128x128xf32> -> memref<128x128xf32>
      exec.loop 3 {
        exec.copy %x -> %y : memref<128x128xf32> -> memref<128x128xf32>
      }
      exec.record 0
    })mlir",
                                                             &context);
  ASSERT_TRUE(module);
  std::vector<double> seconds;
  for (auto program : module->getOps<exec::ProgramOp>())
    for (Operation &op : program.getBody().front())
      if (exec::isInstruction(&op))
        seconds.push_back(latency.seconds(&op));
  ASSERT_EQ(seconds.size(), 3u);
  EXPECT_NEAR(seconds[0], 2.0 * 128 * 128 * 128 / 5e11 + 1e-5, 1e-12);
  EXPECT_NEAR(seconds[1], 3 * (131072 / 1e11 + 1e-5), 1e-12);
  EXPECT_EQ(seconds[2], 0);
}

/// Which kernels a GPU computes attention by, and how many products that takes, as runtime/artifact/GpuAttention.h
/// says.
TEST_F(LatencyTest, AttentionOnAGpu) {
  Target target = roundTarget();
  target.peakFlops["bf16"] = 1e13;
  target.tensorForward = Curve(0.1);
  target.tensorBackward = Curve(0.08);
  target.scalarAttention = Curve(0.05);
  auto seconds = [&](const std::string &kind, int64_t tokens, const std::string &element, const std::string &flags,
                     bool isBackward) {
    target.kind = kind;
    const LatencyModel latency(target, dist::MeshAttr::get(&context, builder.getStrArrayAttr({"shard"}), {1}));
    const std::string rows = "tensor<1x2x" + std::to_string(tokens) + "x", q = rows + "64x" + element + ">",
                      lse = "tensor<1x2x" + std::to_string(tokens) + "xf32>",
                      attributes = " {scale = 0.125, causal" + flags + "}";
    const double found =
        total(latency, "func.func @step(%q: " + q + ", %k: " + q + ", %v: " + q + ", %o: " + q + ", %d: " + q +
                           ", %l: " + lse + ") {\n" +
                           (isBackward ? "%0:3 = train.attention_grad %q, %k, %v, %o, %l, %d" + attributes + " : (" +
                                             q + ", " + q + ", " + q + ", " + q + ", " + lse + ", " + q + ") -> (" + q +
                                             ", " + q + ", " + q + ")"
                                       : "%0:2 = train.attention %q, %k, %v" + attributes + " : (" + q + ", " + q +
                                             ", " + q + ") -> (" + q + ", " + lse + ")") +
                           "\nreturn\n}");
    return found - target.launchSeconds;
  };
  // Of one product of the size of QK^T, over all pairs.
  auto product = [](int64_t tokens) { return 2.0 * 2 * 64 * static_cast<double>(tokens * tokens); };
  constexpr int64_t few = 4096, many = 65536; // 64 MiB, and 16 GiB, of scores' gradients
  EXPECT_NEAR(seconds("cuda", few, "bf16", "", false) / (2 * product(few) / 2 / 1e13 / 0.25), 1, 1e-9);
  EXPECT_NEAR(seconds("cuda", few, "bf16", "", true) / (5 * product(few) / 2 / 1e13 / 0.2), 1, 1e-9);
  EXPECT_NEAR(seconds("cuda", many, "bf16", "", false) / (2 * product(many) / 2 / 1e13 / 0.25), 1, 1e-9);
  EXPECT_NEAR(seconds("cuda", many, "bf16", "", true) / (7 * product(many) / 2 / 1e13 / 0.08), 1, 1e-9);
  const double seen = 0.375; // part of all pairs, in a window of half of the keys
  EXPECT_NEAR(seconds("cuda", few, "bf16", ", window = 2048", false) / (2 * product(few) * seen / 1e13 / 0.1), 1, 1e-9);
  EXPECT_NEAR(seconds("cuda", few, "bf16", ", window = 2048", true) / (7 * product(few) * seen / 1e13 / 0.08), 1, 1e-9);
  EXPECT_NEAR(seconds("cuda", few, "f32", "", false) / (2 * product(few) / 2 / 1e12 / 0.05), 1, 1e-9);
  EXPECT_NEAR(seconds("cuda", few, "f32", "", true) / (7 * product(few) / 2 / 1e12 / 0.05), 1, 1e-9);
  // A CPU has one kind of kernels.
  EXPECT_NEAR(seconds("cpu", few, "f32", ", window = 2048", true) / (5 * product(few) * seen / 1e12 / 0.2), 1, 1e-9);
}

} // namespace
