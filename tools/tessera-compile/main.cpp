//===- main.cpp - tessera-compile: from a model to an artifact ------------===//

#include "passes/Register.h"
#include "tools/common/CommandLine.h"
#include "tools/tessera-compile/Flags.h"
#include "tools/tessera-compile/PrintDiagnostic.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

namespace {

/// The exit status where --fit was asked for and the step fits no way that is known.
constexpr int kDoesNotFit = 3;

constexpr const char *kDescription =
    R"(Compiles a model into one artifact: the whole training step, for every rank.

Example (ZeRO-3 over two ranks):
  tessera-compile gpt.onnx -o gpt.tessera --loss cross-entropy --optimizer adamw \
      --mesh shard=2 --strategy zero3 --batch 8 --seq 256
  tessera-run gpt.tessera --data text/ --steps 200 --out runs/gpt

Regular expressions are those of RE2 (\d, (?:...), no look-around) and match a part of a name; ^ and $ are its ends.
One that matches nothing, or whose every match another flag overrules, is an error; instead of one that may be left
out, none names nothing.
)";

} // namespace

int main(int argc, char **argv) {
  CLI::App app{kDescription, "tessera-compile"};
  app.set_version_flag("--version", TESSERA_VERSION);
  tessera::Flags flags;
  addFlags(app, flags);
  if (std::optional<int> status = tessera::readCommandLine(app, argc, argv))
    return *status;
  if (std::string error = finishFlags(app, flags); !error.empty())
    return tessera::failUsage(app, error);
  tessera::CompileOptions &options = flags.options;
  tessera::registerAllPasses();
  mlir::DialectRegistry registry;
  tessera::registerAllDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false); // an operation can be the whole program
  bool reported = false;
  llvm::StringSet<> warnings; // once each, however often the model is compiled to find a plan
  context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
    reported |= diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error;
    if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Warning || warnings.insert(diagnostic.str()).second)
      tessera::printDiagnostic(diagnostic, options.remarks);
    return mlir::success();
  });
  if (flags.printPipelines) {
    if (failed(tessera::resolveTarget(options, context)))
      return 1;
    for (int i = 0; i <= static_cast<int>(tessera::Phase::Artifact); ++i)
      llvm::outs() << tessera::kPhaseNames[i] << ": " << tessera::phasePipeline(static_cast<tessera::Phase>(i), options)
                   << "\n";
    return 0;
  }
  auto outcome = tessera::compile(options, context, llvm::outs());
  llvm::outs().flush();
  if (llvm::outs().has_error()) {
    const std::string reason = llvm::outs().error().message();
    llvm::outs().clear_error();
    llvm::errs() << "tessera-compile: error: cannot write the output: " << reason << "\n";
    return 1;
  }
  if (succeeded(outcome))
    return *outcome == tessera::CompileOutcome::Done ? 0 : kDoesNotFit;
  if (!reported)
    llvm::errs() << "tessera-compile: error: compilation failed without a diagnostic; please report this\n";
  return 1;
}
