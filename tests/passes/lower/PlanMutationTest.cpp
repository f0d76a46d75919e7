//===- PlanMutationTest.cpp - verify-exec notices every defect of a plan --===//
//
// Plans whole models, breaks the plans in one place at a time, in each of the ways of PlanDefects.h, and counts that
// verify-exec rejects every one of them.
//
//===----------------------------------------------------------------------===//

#include "passes/Register.h"
#include "tests/passes/lower/PlanDefects.h"
#include "tools/tessera-compile/driver/Compile.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace tessera;

namespace {

constexpr const char *kPlan =
    "builtin.module(func.func(decompose,canonicalize,cse,lower-accumulate,accumulate-products,fuse),outline-kernels,"
    "to-exec{keep-step=true},exec.program(plan-memory))";
constexpr const char *kProof = "builtin.module(exec.program(verify-exec{values=true}))";

// --- Models ----------------------------------------------------------------------

struct Model {
  const char *name;
  std::function<void(CompileOptions &)> choose;
};

const Model kModels[] = {
    {"gpt.dynamo18",
     [](CompileOptions &options) {
       options.batch = 2;
       options.mesh = {{"shard", 2, dist::AxisRole::Data}};
       options.strategy = "zero3";
     }},
    {"gpt_manual.ts17",
     [](CompileOptions &options) {
       options.batch = 4;
       options.mesh = {{"replicate", 2, dist::AxisRole::Replica}, {"shard", 2, dist::AxisRole::Data}};
       options.strategy = "hsdp";
       options.accumulate = 3;
       options.precision = "bf16";
     }},
    {"llama.ts17",
     [](CompileOptions &options) {
       options.batch = 2;
       options.sequence = 16;
       options.mesh = {{"shard", 2, dist::AxisRole::Data}};
       options.strategy = "zero1";
       options.remat = "selective";
       options.offload = {"optimizer", "parameters", "activations"};
     }},
    {"llama_manual.ts17",
     [](CompileOptions &options) {
       options.batch = 4;
       options.sequence = 8;
       options.mesh = {{"shard", 4, dist::AxisRole::Data}};
       options.strategy = "zero2";
       options.wrap = "none";
       options.accumulate = 4;
       options.remat = "full";
     }},
    {"bert.dynamo18",
     [](CompileOptions &options) {
       options.batch = 4;
       options.sequence = 8;
       options.mesh = {{"replicate", 2, dist::AxisRole::Replica}, {"shard", 2, dist::AxisRole::Data}};
       options.strategy = "zero3";
       options.accumulate = 2;
     }},
    {"cnn.ts17",
     [](CompileOptions &options) {
       options.batch = 2;
       options.accumulate = 2;
     }},
};

class PlanMutation : public ::testing::Test {
protected:
  PlanMutation() : context(makeRegistry(), MLIRContext::Threading::DISABLED) {
    registerAllPasses();
    context.loadAllAvailableDialects();
  }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }

  LogicalResult run(ModuleOp module, const char *pipeline) {
    auto parsed = parsePassPipeline(pipeline);
    if (failed(parsed))
      return failure();
    PassManager manager(&context);
    static_cast<OpPassManager &>(manager) = std::move(*parsed);
    return manager.run(module);
  }

  OwningOpRef<ModuleOp> plan(const Model &model) {
    CompileOptions options;
    options.input = std::string(TESSERA_MODELS) + "/" + model.name + ".onnx";
    options.compileTo = Phase::Schedule;
    model.choose(options);
    std::string text;
    llvm::raw_string_ostream out(text);
    if (failed(compile(options, context, out)))
      return nullptr;
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module || failed(run(*module, kPlan)))
      return nullptr;
    return module;
  }

  /// True if the plan is rejected.
  bool isNoticed(ModuleOp module) {
    ScopedDiagnosticHandler handler(&context, [](Diagnostic &) { return success(); });
    return failed(run(module, kProof));
  }

  MLIRContext context;
};

TEST_F(PlanMutation, EveryDefectIsNoticed) {
  const std::vector<PlanDefect> defects = planDefects();
  std::map<std::string, int> tried;
  int total = 0;
  for (const Model &model : kModels) {
    OwningOpRef<ModuleOp> planned = plan(model);
    ASSERT_TRUE(planned) << model.name;
    {
      OwningOpRef<ModuleOp> sound = planned->clone();
      ASSERT_TRUE(succeeded(run(*sound, kProof))) << model.name;
    }
    for (const auto &[name, defect] : defects)
      for (size_t number = 0;; ++number) {
        OwningOpRef<ModuleOp> broken = planned->clone();
        if (!defect(*broken->getOps<exec::ProgramOp>().begin(), number))
          break;
        ++tried[name];
        ++total;
        EXPECT_TRUE(isNoticed(*broken)) << model.name << ": " << name << ", candidate " << number;
      }
  }
  for (const auto &[name, defect] : defects) {
    EXPECT_GE(tried[name], 1) << name;
    RecordProperty(name, tried[name]);
    std::printf("%-32s %4d noticed\n", name, tried[name]);
  }
  EXPECT_GE(total, 1000);
}

} // namespace
