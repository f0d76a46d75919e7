//===- onnx-import-test.cpp - prints what the importer makes of a model ---===//
//
// For lit tests: the IR of the importer alone, before any pass.
// usage: onnx-import-test FILE [--dim=NAME=SIZE ...] [--batch=N] [--seq=N] [--ops]
//        [--parameters=REGEX] [--constants=REGEX] [--frozen=REGEX] [--tied=REGEX] [--padding-idx=REGEX=ROW]
//        [--batch-norm=train|inference]
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Import.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;

int main(int argc, char **argv) {
  cl::opt<std::string> input(cl::Positional, cl::desc("<model>"), cl::init(""));
  cl::list<std::string> dims("dim", cl::desc("size of a symbolic dimension, NAME=SIZE"));
  cl::list<std::string> dimRoles("dim-role", cl::desc("INPUT:DIMENSION=ROLE"));
  cl::opt<int64_t> batch("batch", cl::init(0));
  cl::opt<int64_t> sequence("seq", cl::init(0));
  cl::opt<std::string> parameters("parameters", cl::init("")), constants("constants", cl::init("")),
      frozen("frozen", cl::init("")), tied("tied", cl::init("")), batchNorm("batch-norm", cl::init(""));
  cl::list<std::string> paddingIdx("padding-idx", cl::desc("REGEX=ROW"));
  cl::opt<bool> locations("locations", cl::desc("print locations"));
  cl::opt<bool> ops("ops", cl::desc("print the op table"));
  cl::ParseCommandLineOptions(argc, argv);
  if (ops) {
    for (const tessera::OnnxOpSupport &op : tessera::supportedOnnxOps())
      llvm::outs() << (op.domain.empty() ? "ai.onnx" : op.domain) << " " << op.name << " " << op.minOpset << " "
                   << op.maxOpset << "\n";
    return 0;
  }
  tessera::ImportOptions options;
  options.batch = batch;
  options.sequence = sequence;
  options.parameters = parameters;
  options.constants = constants;
  options.frozen = frozen;
  options.tied = tied;
  options.batchNorm = batchNorm;
  options.dimRoles.assign(dimRoles.begin(), dimRoles.end());
  options.paddingIdx.assign(paddingIdx.begin(), paddingIdx.end());
  for (const std::string &dim : dims) {
    auto [name, size] = llvm::StringRef(dim).split('=');
    if (size.getAsInteger(10, options.dims[name.str()])) {
      llvm::errs() << "--dim=" << dim << ": expected NAME=SIZE\n";
      return 2;
    }
  }
  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context, llvm::errs());
  auto module = tessera::importOnnx(input, options, context);
  if (!module)
    return 1;
  mlir::OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo(true, true);
  module->print(llvm::outs(), flags);
  llvm::outs() << "\n";
  return 0;
}
