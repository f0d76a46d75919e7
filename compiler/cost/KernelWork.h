//===- KernelWork.h - what a generated kernel reads and computes -*- C++ -*-===//

#ifndef TESSERA_COMPILER_COST_KERNELWORK_H
#define TESSERA_COMPILER_COST_KERNELWORK_H

#include "compiler/dialect/exec/Exec.h"

namespace tessera::cost {

/// Bytes of a shaped value.
double bytesOf(mlir::Value value);
/// Bytes of different values, each counted once.
double bytesOf(mlir::ValueRange values);

struct KernelWork {
  double bytes = 0;      ///< read and written
  double written = 0;    ///< the part of them that is written
  double operations = 0; ///< additions and the like; an exponential counts as what it takes of them
};

/// Of a fusion, or of a launch with the kernel that it names. Of a table from which rows are gathered, only those rows
/// are read.
KernelWork kernelWork(exec::FusionOp fusion);
KernelWork kernelWork(exec::LaunchOp launch);

} // namespace tessera::cost

#endif // TESSERA_COMPILER_COST_KERNELWORK_H
