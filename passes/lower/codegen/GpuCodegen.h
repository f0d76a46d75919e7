//===- GpuCodegen.h - kernels to PTX and machine code -----------*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_GPUCODEGEN_H
#define TESSERA_PASSES_LOWER_CODEGEN_GPUCODEGEN_H

#include "passes/lower/codegen/GpuKernel.h"

#include "mlir/IR/BuiltinOps.h"

#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// An NVIDIA architecture: sm_80, sm_90 or sm_100.
struct GpuTarget {
  std::string chip;
  static mlir::FailureOr<GpuTarget> parse(llvm::StringRef name, mlir::Location loc);
  /// Whether it has instructions that cast 8-bit floats.
  bool hasFloat8() const { return chip != "sm_80"; }
};

struct GpuCode {
  struct Kernel {
    std::string symbol;
    codegen::GpuLaunch launch;
  };
  std::vector<Kernel> kernels;
  std::string ptx;
  /// Machine code, if ptxas was found (CUDA_HOME, CUDA_PATH, /usr/local/cuda, PATH).
  std::string cubin;
};

/// Alignment, in bytes, that a kernel's buffers have in every launch: inputs, then outputs.
using KernelAlignments = std::function<llvm::SmallVector<int64_t>(llvm::StringRef symbol)>;

/// Kernels as functions of GPU threads.
struct GpuThreads {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<GpuCode::Kernel> kernels;
  /// Whether they have instructions that cast 8-bit floats.
  bool usesFloat8 = false;
};

/// The kernels of `kernels` (functions of train ops, as for a CPU) as functions of GPU threads: scf, arith and nvvm.
mlir::FailureOr<GpuThreads> emitGpuKernels(mlir::ModuleOp kernels, const GpuTarget &target, unsigned sharedAddressSpace,
                                           const KernelAlignments &alignments);

/// Generates the code of all kernels. Functions that only libdevice has (sine, cosine, powers, math in f64) need a CUDA
/// toolkit beside the compiler; an error says so if there is none. Nothing external is left in the PTX.
mlir::FailureOr<GpuCode> generateGpuCode(mlir::ModuleOp kernels, const GpuTarget &target,
                                         const KernelAlignments &alignments);

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_CODEGEN_GPUCODEGEN_H
