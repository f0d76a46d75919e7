//===- SimulateTest.cpp - time lines against calculation by hand ----------===//

#include "compiler/cost/Simulate.h"

#include "passes/Register.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera;
using namespace tessera::cost;

namespace {

/// A copy of n bytes moves 2n and takes 2n ns; a gather of n bytes per rank over two ranks takes n ns.
Target nanosecondTarget() {
  Target target;
  target.devicesPerNode = 2;
  target.memoryBandwidth = Curve(1e9);
  target.peakFlops["fp32"] = 1e12;
  target.gemm["fp32"] = {{128, 128, 128, 1}};
  for (Links *links : {&target.intraNode, &target.interNode})
    for (LinkModel &link : *links)
      link = {0, 0, Curve(1e9)};
  return target;
}

class SimulateTest : public testing::Test {
protected:
  SimulateTest() {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Plays `code` on buffers of 1000 bytes (%x, %y, copied in 2 us) and of 500 and 1000 (%part, %whole, gathered in
  /// 0.5 us). Times in the result are in nanoseconds.
  StepTime play(const Target &target, const std::string &code) {
    const std::string text = R"mlir(
      exec.program @step {
        exec.arena @a activations bytes 0
        %s = exec.slot "s" in @a activations : memref<4096xi8>
        %x = exec.buffer %s + 0 : memref<4096xi8> to memref<250xf32>
        %y = exec.buffer %s + 1000 : memref<4096xi8> to memref<250xf32>
        %part = exec.buffer %s + 2000 : memref<4096xi8> to memref<125xf32>
        %whole = exec.buffer %s + 2500 : memref<4096xi8> to memref<250xf32>
    )mlir" + code + "}";
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    Builder builder(&context);
    LatencyModel latency(target, dist::MeshAttr::get(&context, builder.getStrArrayAttr({"shard"}), {2}));
    StepTime time;
    if (module)
      for (auto program : module->getOps<exec::ProgramOp>())
        time = simulate(program, latency);
    for (double *value : {&time.total, &time.compute, &time.contention, &time.exposed, &time.hidden, &time.other})
      *value *= 1e9;
    return time;
  }

  MLIRContext context;
};

const char *const kCopy = "exec.copy %x -> %y : memref<250xf32> -> memref<250xf32>\n";
const char *const kGather = "exec.collective all_gather %part -> %whole over [\"shard\"] {stream = 1 : i64} : "
                            "memref<125xf32> -> memref<250xf32>\n";

TEST_F(SimulateTest, GatherThatIsWaitedForAtOnceIsExposed) {
  StepTime time =
      play(nanosecondTarget(), std::string(kGather) + "exec.record 0 {stream = 1 : i64}\nexec.wait 0\n" + kCopy);
  EXPECT_NEAR(time.total, 2500, 1e-6);
  EXPECT_NEAR(time.compute, 2000, 1e-6);
  EXPECT_NEAR(time.exposed, 500, 1e-6);
  EXPECT_NEAR(time.hidden, 0, 1e-6);
  EXPECT_NEAR(time.other, 2000, 1e-6);
}

TEST_F(SimulateTest, GatherBesideComputationIsHidden) {
  StepTime time = play(nanosecondTarget(),
                       std::string(kGather) + "exec.record 0 {stream = 1 : i64}\n" + kCopy + "exec.wait 0\n" + kCopy);
  EXPECT_NEAR(time.total, 4000, 1e-6);
  EXPECT_NEAR(time.exposed, 0, 1e-6);
  EXPECT_NEAR(time.hidden, 500, 1e-6);
}

TEST_F(SimulateTest, SharedCoresSlowBoth) {
  Target target = nanosecondTarget();
  target.overlapCompute = target.overlapCommunication = 0.5;
  StepTime time = play(target, std::string(kGather) + "exec.record 0 {stream = 1 : i64}\n" + kCopy + "exec.wait 0\n");
  // For 1000 ns both advance at half speed: the gather ends, the copy has 1500 ns left.
  EXPECT_NEAR(time.total, 2500, 1e-6);
  EXPECT_NEAR(time.compute, 2500, 1e-6);
  EXPECT_NEAR(time.contention, 500, 1e-6);
  EXPECT_NEAR(time.hidden, 1000, 1e-6);
}

TEST_F(SimulateTest, TwoCollectivesShareTheirLinks) {
  std::string reduce =
      "exec.collective reduce_scatter %x -> %part over [\"shard\"] {stream = 2 : i64} : memref<250xf32> "
      "-> memref<125xf32>\n";
  StepTime time = play(nanosecondTarget(), kGather + reduce);
  EXPECT_NEAR(time.total, 1000, 1e-6); // 500 ns each, at half speed
  EXPECT_NEAR(time.exposed, 1000, 1e-6);
}

TEST_F(SimulateTest, LoopsRepeatAndEventsMeanTheLatestRecord) {
  // In each iteration the gather waits for the copy before it, and the next copy for the gather.
  StepTime time = play(nanosecondTarget(), "exec.loop 3 {\n" + std::string(kCopy) + "exec.record 0\n" +
                                               "exec.wait 0 {stream = 1 : i64}\n" + kGather +
                                               "exec.record 1 {stream = 1 : i64}\nexec.wait 1\n}\n");
  EXPECT_NEAR(time.total, 7500, 1e-6);
  EXPECT_NEAR(time.exposed, 1500, 1e-6);
}

} // namespace
