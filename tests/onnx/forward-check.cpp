//===- forward-check.cpp - a whole model on the CPU against the interpreter -===//
//
// Imports a model, gives its parameters and inputs values made from a seed, and compares the outputs of the CPU backend
// with those of the reference interpreter.
//
// usage: onnx-forward-check MODEL [--batch=N] [--seq=N] [--parameters=REGEX] [--tied=REGEX]
//
//===----------------------------------------------------------------------===//

#include "compiler/interp/Inputs.h"
#include "compiler/interp/Interp.h"
#include "frontends/onnx/Import.h"
#include "passes/Register.h"
#include "tests/onnx/CpuBackend.h"

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;
using namespace tessera;
namespace cl = llvm::cl;

/// Relative to the largest element: sums over a layer cancel, and what is left of them carries the layer's rounding.
static constexpr double kTolerance = 1e-4;

static bool areClose(const interp::Tensor &got, const interp::Tensor &expected) {
  double largest = 0, worst = 0;
  for (int64_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    const double difference = std::abs(got.at(i) - expected.at(i));
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  llvm::outs() << expected.getType() << ": largest " << largest << ", worst difference " << worst << "\n";
  return largest > 0 && worst <= kTolerance * largest;
}

/// Padding masks, which must be 0 or 1: the last quarter of each row is padding.
static interp::NamedTensors makeMasks(func::FuncOp step) {
  interp::NamedTensors masks;
  for (unsigned i = 0; i < step.getNumArguments(); ++i) {
    const std::string name = interp::nameOfArg(step, i);
    auto type = cast<RankedTensorType>(step.getArgument(i).getType());
    if (!llvm::StringRef(name).contains("mask") || !type.getElementType().isInteger() || type.getRank() == 0)
      continue;
    interp::Tensor mask(type);
    const int64_t row = type.getShape().back();
    for (int64_t j = 0; j < mask.size(); ++j)
      mask.setInt(j, j % row < row - row / 4);
    masks[name] = std::move(mask);
  }
  return masks;
}

int main(int argc, char **argv) {
  cl::opt<std::string> path(cl::Positional, cl::Required, cl::desc("<model>"));
  cl::opt<int64_t> batch("batch", cl::desc("samples"), cl::init(2));
  cl::opt<int64_t> sequence("seq", cl::desc("tokens of a sample"), cl::init(0));
  cl::opt<std::string> parameters("parameters"), tied("tied");
  cl::ParseCommandLineOptions(argc, argv);
  registerAllPasses();
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  ImportOptions options;
  options.batch = batch;
  options.sequence = sequence;
  options.parameters = parameters;
  options.tied = tied;
  auto module = importOnnx(path, options, context);
  if (!module)
    return 1;
  auto step = module->lookupSymbol<func::FuncOp>("step");
  interp::NamedTensors known = makeMasks(step);
  auto arguments = interp::makeArguments(step, /*seed=*/1, known);
  if (failed(arguments))
    return 1;
  auto expected = interp::evaluateOnOneRank(step, *arguments);
  if (failed(expected) || expected->empty())
    return 1;
  test::CpuRun run = test::runOnCpu(*module, *arguments);
  if (run.kind != test::CpuRun::Ran) {
    llvm::errs() << "error: not run: " << run.why << "\n";
    return 1;
  }
  for (auto [got, reference] : llvm::zip_equal(run.results, *expected))
    if (!areClose(got, reference)) {
      llvm::errs() << "error: the CPU and the interpreter disagree\n";
      return 1;
    }
  return 0;
}
