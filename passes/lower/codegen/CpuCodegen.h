//===- CpuCodegen.h - kernels to a shared object ----------------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_CPUCODEGEN_H
#define TESSERA_PASSES_LOWER_CODEGEN_CPUCODEGEN_H

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace tessera {

/// An x86 processor that code is made for.
struct CpuTarget {
  /// An LLVM CPU name, e.g. "x86-64-v3", "x86-64-v4" or "znver4".
  std::string cpu;
  /// LLVM's feature list, e.g. "+avx2,+fma"; may be empty.
  std::string features;

  /// The processor that the compiler runs on.
  static CpuTarget host();
  /// "host" or an LLVM CPU name.
  static mlir::FailureOr<CpuTarget> parse(llvm::StringRef name, mlir::Location loc);
};

struct CodegenResult {
  /// An ELF shared object. Each symbol is `void(void *const *buffers, int64_t begin, int64_t end)`; beside it is
  /// `const uint32_t <symbol>_buffers`, how many buffers it takes.
  std::string sharedObject;
  std::vector<std::string> symbols;
};

/// Generates code for every function of `kernels` (the module that outline-kernels makes). Equal inputs give equal
/// bytes.
mlir::FailureOr<CodegenResult> generateCpuCode(mlir::ModuleOp kernels, const CpuTarget &target);

/// Optimises and links functions of scalars (scf, arith, math, llvm) into an ELF shared object.
mlir::FailureOr<std::string> compileForCpu(mlir::ModuleOp functions, const CpuTarget &target);

/// The loops of the kernels before they are lowered to LLVM, for tests and for reading.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> emitKernelLoops(mlir::ModuleOp kernels);

/// The dialects that code generation creates; register them in the context before it runs multi-threaded.
void registerCodegenDialects(mlir::DialectRegistry &registry);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_CODEGEN_CPUCODEGEN_H
