//===- TargetTest.cpp - target files: what ships, what is refused ---------===//

#include "compiler/cost/Target.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera::cost;

namespace {

class TargetTest : public testing::Test {
protected:
  MLIRContext context;
  std::string error;
  ScopedDiagnosticHandler handler{&context, [this](Diagnostic &diagnostic) {
                                    error = diagnostic.str();
                                    return success();
                                  }};

  FailureOr<Target> load(StringRef name) { return Target::load(name, UnknownLoc::get(&context)); }

  llvm::json::Object shippedJson(const std::string &name) {
    auto buffer = llvm::MemoryBuffer::getFile(std::string(TESSERA_TARGETS) + "/" + name + ".json");
    return *llvm::cantFail(llvm::json::parse((*buffer)->getBuffer())).getAsObject();
  }

  /// The message for a file with this content.
  std::string refusal(const std::string &text) {
    llvm::SmallString<128> path;
    int descriptor = -1;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("target", "json", descriptor, path));
    llvm::raw_fd_ostream(descriptor, /*shouldClose=*/true) << text;
    error.clear();
    EXPECT_TRUE(failed(load(path)));
    llvm::sys::fs::remove(path);
    EXPECT_TRUE(error.starts_with((path + ": ").str())) << error;
    return error.substr(std::min(error.size(), path.size() + 2));
  }
  std::string refusal(llvm::json::Object object) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object));
    return refusal(text);
  }
};

TEST_F(TargetTest, ShippedTargetsAreValid) {
  EXPECT_EQ(Target::shipped(), (std::vector<std::string>{"a100x8", "b200x8", "cpu-host", "h100x8", "h200x8"}));
  for (const std::string &name : Target::shipped()) {
    FailureOr<Target> target = load(name);
    ASSERT_TRUE(succeeded(target)) << error;
    EXPECT_EQ(target->name, name);
    for (const Links *links : {&target->intraNode, &target->interNode})
      for (const LinkModel &link : *links)
        EXPECT_GT(link.bandwidth.at(1e6), 0);
  }
  FailureOr<Target> h100 = load("h100x8");
  EXPECT_EQ(h100->devicesPerNode, 8);
  EXPECT_EQ(h100->kind, "cuda");
  EXPECT_DOUBLE_EQ(h100->peakFlops.at("bf16"), 989.4e12);
  FailureOr<Target> a100 = load("sm_80");
  EXPECT_EQ(a100->name, "a100x8");
  EXPECT_DOUBLE_EQ(a100->peakFlops.at("bf16"), 312e12);
  EXPECT_EQ(a100->peakFlops.count("fp8"), 0u);
  EXPECT_GT(a100->hostMemory, 8 * a100->deviceMemory);
  FailureOr<Target> cpu = load("cpu");
  EXPECT_EQ(cpu->name, "cpu-host");
}

TEST_F(TargetTest, UnknownNames) {
  EXPECT_TRUE(failed(load("tpu")));
  EXPECT_EQ(
      error,
      "unknown target 'tpu', expected cpu, sm_80, sm_90, sm_100, a target file (*.json), or one of a100x8, b200x8, "
      "cpu-host, h100x8, h200x8");
  EXPECT_TRUE(failed(load("/nowhere/m.json")));
  EXPECT_EQ(error, "/nowhere/m.json: No such file or directory");
}

TEST_F(TargetTest, BadFiles) {
  EXPECT_NE(refusal(std::string("{")).find("Expected"), std::string::npos);
  EXPECT_EQ(refusal(std::string("[]")), "expected a JSON object");
  auto object = shippedJson("h100x8");
  object["colour"] = "red";
  EXPECT_EQ(refusal(object), "the target has an unknown field 'colour'");
  object = shippedJson("h100x8");
  object["version"] = 2;
  EXPECT_EQ(refusal(object), "version must be 1");
  object = shippedJson("h100x8");
  object["kind"] = "tpu";
  EXPECT_EQ(refusal(object), "kind must be 'cpu' or 'cuda', got 'tpu'");
  object = shippedJson("h100x8");
  object.erase("overlap");
  EXPECT_EQ(refusal(object), "the target needs an object 'overlap'");
  object = shippedJson("h100x8");
  object.getObject("device_memory")->erase("source");
  EXPECT_EQ(refusal(object), "the target.device_memory needs a text 'source'");
  object = shippedJson("h100x8");
  (*object.getObject("device_memory"))["value"] = -1;
  EXPECT_EQ(refusal(object), "the target.device_memory.value must be a positive number");
  object = shippedJson("h100x8");
  (*object.getObject("overlap")->getObject("compute"))["value"] = 1.5;
  EXPECT_EQ(refusal(object), "overlap.compute.value must be at most 1");
  object = shippedJson("h100x8");
  object.getObject("gemm_efficiency")->erase("bf16");
  EXPECT_EQ(refusal(object), "gemm_efficiency needs an object 'bf16'");
  object = shippedJson("h100x8");
  (*object.getObject("gemm_efficiency")->getObject("bf16")->getArray("points"))[0] = llvm::json::Array{1, 2, 3};
  EXPECT_EQ(refusal(object), "gemm_efficiency.bf16: each point needs 4 positive numbers");
  object = shippedJson("h100x8");
  object.getObject("communication")->getObject("inter_node")->erase("permute");
  EXPECT_EQ(refusal(object), "communication.inter_node needs an object 'permute'");
  object = shippedJson("h100x8");
  object.getObject("attention_efficiency")->erase("scalar");
  EXPECT_EQ(refusal(object), "attention_efficiency needs an object 'scalar'");
  object = shippedJson("cpu-host"); // it has no tensor cores
  (*object.getObject("attention_efficiency"))["tensor_forward"] = 1;
  EXPECT_EQ(refusal(object), "attention_efficiency has an unknown field 'tensor_forward'");
}

TEST(Curve, InterpolatesBetweenPointsOnLogarithmicAxes) {
  Curve curve({{1, 10}, {100, 1000}});
  EXPECT_DOUBLE_EQ(curve.at(0.1), 10);
  EXPECT_NEAR(curve.at(10), 100, 1e-9);
  EXPECT_DOUBLE_EQ(curve.at(1e6), 1000);
  EXPECT_DOUBLE_EQ(Curve(7.0).at(3), 7);
}

TEST_F(TargetTest, GemmEfficiencyIsExactAtThePoints) {
  Target target;
  target.peakFlops["fp32"] = 1e12;
  target.gemm["fp32"] = {{64, 64, 64, 0.2}, {1024, 1024, 1024, 0.8}};
  Type f32 = Builder(&context).getF32Type();
  EXPECT_DOUBLE_EQ(target.gemmEfficiency(f32, 64, 64, 64), 0.2);
  EXPECT_DOUBLE_EQ(target.gemmEfficiency(f32, 1024, 1024, 1024), 0.8);
  EXPECT_NEAR(target.gemmEfficiency(f32, 256, 256, 256), 0.5, 1e-12); // half way on every axis
  EXPECT_DOUBLE_EQ(target.peak(Builder(&context).getI32Type()), 1e12);
}

} // namespace
