//===- main.cpp - tessera-interp: runs the IR of any phase ----------------===//
//
// Evaluates functions with the reference interpreter on virtual ranks, prints or
// compares their results, and checks gradients against finite differences.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/exec/Exec.h"
#include "compiler/interp/Compare.h"
#include "compiler/interp/Inputs.h"
#include "compiler/interp/Program.h"
#include "passes/Register.h"
#include "tools/tessera-interp/TensorFiles.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

#include <cmath>

using namespace mlir;
using namespace tessera::interp;
namespace cl = llvm::cl;

static cl::OptionCategory category("tessera-interp options");
static cl::opt<std::string> inputFile(cl::Positional, cl::desc("<module.mlir>"), cl::init("-"), cl::cat(category));
static cl::opt<std::string> functionName("function", cl::desc("Function to run (default: all)"), cl::cat(category));
static cl::opt<int64_t> numRanks("ranks", cl::desc("Virtual ranks (default: those of the module's mesh, else 1)"),
                                 cl::init(0), cl::cat(category));
static cl::opt<uint64_t> seed("seed", cl::desc("Seed of the arguments"), cl::init(1), cl::cat(category));
static cl::opt<std::string> inputsFile("inputs", cl::desc("Values of arguments, by name"),
                                       cl::value_desc("x.safetensors"), cl::cat(category));
static cl::opt<std::string> dumpFile("dump", cl::desc("Write the results, by name"), cl::value_desc("out.safetensors"),
                                     cl::cat(category));
static cl::opt<std::string> compareFile("compare", cl::desc("Module that must give the same results"),
                                        cl::value_desc("module.mlir"), cl::cat(category));
static cl::opt<bool> commonOnly("common", cl::desc("Compare only results that both modules have"), cl::cat(category));
static cl::opt<double> relative("rtol", cl::desc("Relative tolerance (default 1e-5)"), cl::init(1.0e-5),
                                cl::cat(category));
static cl::opt<double> absolute("atol", cl::desc("Absolute tolerance (default 1e-6, with --gradcheck 1e-7)"),
                                cl::init(-1.0), cl::cat(category));
static cl::opt<bool> gradCheck("gradcheck", cl::desc("Check gradients against central differences of the loss, in f64"),
                               cl::cat(category));
static cl::opt<int64_t> samples("samples", cl::desc("Elements to check per gradient, with --gradcheck (default 64)"),
                                cl::init(64), cl::cat(category));
static cl::opt<StreamOrder> streams(
    "streams", cl::desc("Order in which a program's streams run:"), cl::init(StreamOrder::Issued), cl::cat(category),
    cl::values(clEnumValN(StreamOrder::Issued, "issued", "that of the program (default)"),
               clEnumValN(StreamOrder::ComputeFirst, "compute-first", "collectives and copies as late as events allow"),
               clEnumValN(StreamOrder::ComputeLast, "compute-last",
                          "collectives and copies as early as events allow")));
static cl::opt<bool> digest("digest", cl::desc("Print shape, sum, l2 norm and first elements of each result"),
                            cl::cat(category));
static cl::opt<bool> quiet("quiet", cl::desc("Print no results"), cl::cat(category));

static OwningOpRef<ModuleOp> parse(StringRef path, const std::shared_ptr<llvm::SourceMgr> &sources,
                                   MLIRContext &context) {
  std::string error;
  auto file = openInputFile(path, &error);
  if (!file) {
    llvm::errs() << "error: " << error << "\n";
    return nullptr;
  }
  sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
}

namespace {
/// A function, or the program that one was lowered to, with a function that has its arguments and results.
struct Step {
  explicit Step(func::FuncOp function) : function(function) {}
  explicit Step(tessera::exec::ProgramOp program) : program(program), signature(signatureOf(program)) {
    function = *signature->getOps<func::FuncOp>().begin();
  }
  FailureOr<std::vector<Tensor>> arguments(NamedTensors &known) {
    return makeArguments(function, seed, known, program);
  }
  FailureOr<std::vector<NamedResult>> results(ArrayRef<Tensor> arguments, int64_t ranks) {
    FailureOr<std::vector<Tensor>> results =
        program ? evaluateGlobal(function, arguments, ranks,
                                 [&](std::vector<RankTensors> perRank) {
                                   return evaluateProgram(program, std::move(perRank), ranks, streams);
                                 })
                : evaluateGlobal(function, arguments, ranks);
    if (failed(results) || failed(checkDerived(function, *results)))
      return failure();
    return nameResults(function, *results);
  }

  func::FuncOp function;
  tessera::exec::ProgramOp program;
  OwningOpRef<ModuleOp> signature;
};
} // namespace

/// What to run: the function or program asked for, or all that have a body.
static FailureOr<std::vector<Step>> stepsToRun(ModuleOp module) {
  std::vector<Step> steps;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && (functionName.empty() || function.getName() == functionName))
      steps.emplace_back(function);
  for (auto program : module.getOps<tessera::exec::ProgramOp>())
    if (functionName.empty() || program.getSymName() == functionName)
      steps.emplace_back(program);
  if (steps.empty())
    return module.emitError(functionName.empty() ? "there is no function to run"
                                                 : "there is no function '" + functionName + "'");
  return steps;
}

/// The function or program of this name.
static std::optional<Step> stepCalled(ModuleOp module, StringRef name) {
  if (auto function = module.lookupSymbol<func::FuncOp>(name))
    return Step(function);
  if (auto program = module.lookupSymbol<tessera::exec::ProgramOp>(name))
    return Step(program);
  return std::nullopt;
}

static void print(const NamedResult &result) {
  const Tensor &value = result.value;
  llvm::outs() << result.name << ": " << value.getType();
  if (digest) {
    double sum = 0.0, squares = 0.0;
    for (int64_t i = 0; i < value.size(); ++i) {
      sum += value.at(i);
      squares += value.at(i) * value.at(i);
    }
    llvm::outs() << llvm::format(" sum %.6g l2 %.6g", sum, std::sqrt(squares));
  }
  int64_t shown = std::min<int64_t>(value.size(), digest ? 4 : 64);
  llvm::outs() << " = [";
  for (int64_t i = 0; i < shown; ++i) {
    llvm::outs() << (i ? ", " : "");
    if (value.isFloat())
      llvm::outs() << llvm::format("%.7g", value.at(i));
    else
      llvm::outs() << value.intAt(i);
  }
  llvm::outs() << (shown < value.size() ? ", …]\n" : "]\n");
}

static int64_t ranksFor(ModuleOp module) {
  auto mesh = meshOf(module);
  return numRanks > 0 ? numRanks : mesh ? mesh.getNumRanks() : 1;
}

static LogicalResult runOne(Step &step, ModuleOp module, ModuleOp other) {
  func::FuncOp function = step.function;
  if (auto mesh = meshOf(module); mesh && numRanks > 0 && mesh.getNumRanks() != numRanks)
    return function.emitError("the module's mesh has ")
           << mesh.getNumRanks() << " ranks, --ranks says " << int64_t(numRanks);
  NamedTensors known;
  if (!inputsFile.empty() && failed(tessera::readTensors(inputsFile, function.getContext(), known)))
    return failure();
  std::optional<Step> twin;
  if (other && !(twin = stepCalled(other, function.getName())))
    return function.emitError("has no counterpart in ") << compareFile;
  // A program says least about the bounds of integers: the values are made for the other.
  FailureOr<std::vector<Tensor>> twinArguments = std::vector<Tensor>();
  if (twin && step.program && failed(twinArguments = twin->arguments(known)))
    return failure();
  FailureOr<std::vector<Tensor>> arguments = step.arguments(known);
  if (failed(arguments))
    return failure();
  if (twin && !step.program && failed(twinArguments = twin->arguments(known)))
    return failure();
  Tolerance tolerance{relative, absolute >= 0.0 ? absolute : gradCheck ? 1.0e-7 : 1.0e-6};
  if (gradCheck)
    return checkGradients(function, *arguments, samples, seed, tolerance, ranksFor(module));
  FailureOr<std::vector<NamedResult>> named = step.results(*arguments, ranksFor(module));
  if (failed(named))
    return failure();
  if (!dumpFile.empty() && failed(tessera::writeTensors(dumpFile, *named)))
    return failure();
  if (twin) {
    FailureOr<std::vector<NamedResult>> expected = twin->results(*twinArguments, ranksFor(other));
    if (failed(expected))
      return failure();
    return compareResults(function, *named, *expected, tolerance, commonOnly);
  }
  if (!quiet && !named->empty()) {
    llvm::outs() << "@" << function.getName() << "\n";
    for (const NamedResult &result : *named)
      print(result);
  }
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "Evaluates Tessera IR with the reference interpreter\n\n"
                              "Examples: tessera-interp step.mlir --ranks=4 --digest\n"
                              "          tessera-interp after.mlir --compare=before.mlir --rtol=1e-5\n"
                              "          tessera-interp grad.mlir --gradcheck\n");
  DialectRegistry registry;
  tessera::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false); // an operation can be the whole program
  // One source manager per file: a parser reads the main buffer of its own.
  auto sources = std::make_shared<llvm::SourceMgr>(), otherSources = std::make_shared<llvm::SourceMgr>();
  SourceMgrDiagnosticHandler handler(*sources, &context), otherHandler(*otherSources, &context);
  OwningOpRef<ModuleOp> module = parse(inputFile, sources, context);
  if (!module)
    return 1;
  OwningOpRef<ModuleOp> other;
  if (!compareFile.empty() && !(other = parse(compareFile, otherSources, context)))
    return 1;
  if (gradCheck) {
    if (auto programs = module->getOps<tessera::exec::ProgramOp>(); !programs.empty()) {
      (*programs.begin()).emitError("has no gradients to check: those are checked on functions");
      return 1;
    }
    widenToF64(*module);
    if (failed(verify(*module)))
      return 1;
  }
  FailureOr<std::vector<Step>> steps = stepsToRun(*module);
  if (failed(steps))
    return 1;
  if (steps->size() > 1 && !dumpFile.empty()) {
    module->emitError() << "there are " << steps->size() << " functions: --function says which to write the results of";
    return 1;
  }
  for (Step &step : *steps)
    if (failed(runOne(step, *module, other ? *other : ModuleOp())))
      return 1;
  return 0;
}
