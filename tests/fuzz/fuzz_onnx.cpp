//===- fuzz_onnx.cpp - the ONNX importer on any bytes ----------------------===//
//
// Bytes that start with `<` are read as ONNX text, others as protobuf. Whatever they are, the importer must return a
// module that verifies, or null after at least one error.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Import.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <cstdlib>

using namespace mlir;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // The importer verifies what it returns; threads would only slow the fuzzer down.
  MLIRContext context(MLIRContext::Threading::DISABLED);
  bool hasError = false;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    hasError |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
    return success();
  });
  tessera::ImportOptions options;
  options.batch = 2;
  options.sequence = 3;
  if (size % 2 == 0) // half of the files: without it most end at the question of what is trained
    options.parameters = ".";
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  auto module = tessera::importOnnxBytes(bytes, bytes.starts_with("<"), options, context);
  if (!module && !hasError)
    std::abort();
  return 0;
}
