//===- Inputs.h - argument values made from a seed --------------*- C++ -*-===//
//
// Values for the arguments of a step function. A value depends only on the seed,
// the argument's name and the global index, so a module has the same arguments
// before and after flattening, accumulation and sharding.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_INPUTS_H
#define TESSERA_COMPILER_INTERP_INPUTS_H

#include "compiler/dialect/exec/Exec.h"
#include "compiler/interp/Tensor.h"

#include "compiler/dialect/train/Segments.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::interp {

/// Tensors by name. A flat unit is stored as one entry per segment.
using NamedTensors = llvm::StringMap<Tensor>;

/// A parameter in a flat unit, or a state of one.
struct Segment {
  std::string name;
  train::SegmentAttr attr;

  llvm::ArrayRef<int64_t> shape() const { return attr.getShape(); }
  /// Calls `fn(element of the unit, element of the parameter)` for all elements of the parameter, in a unit of `size`.
  void forEachElement(int64_t size, llvm::function_ref<void(int64_t, int64_t)> fn) const;
};

/// The segments of the unit that argument `index` is, or is the optimizer state of; empty if it is neither. The
/// segments of a state are named `<parameter>.<state>`.
llvm::SmallVector<Segment> segmentsOf(mlir::func::FuncOp function, unsigned index);

/// `train.name`, or `arg<index>`.
std::string nameOfArg(mlir::func::FuncOp function, unsigned index);

/// The argument before the derived argument `index` that this is a copy of.
mlir::FailureOr<unsigned> sourceOfDerived(mlir::func::FuncOp function, unsigned index);
/// `source`, rounded to the element type of `type`, which has its shape.
Tensor derivedFrom(const Tensor &source, mlir::RankedTensorType type);

/// Global values for all arguments: from `known` by name where it has them (with the same number of elements; they
/// are reshaped and rounded to the argument's type), else made from the seed. Made values are added to `known`. If
/// `function` is the signature of a program, that tells the bounds of integers.
mlir::FailureOr<std::vector<Tensor>> makeArguments(mlir::func::FuncOp function, uint64_t seed, NamedTensors &known,
                                                   exec::ProgramOp program = {});

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_INPUTS_H
