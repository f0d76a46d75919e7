//===- Units.h - which parameters are flattened together --------*- C++ -*-===//

#ifndef TESSERA_PASSES_OPTIMIZE_UNITS_H
#define TESSERA_PASSES_OPTIMIZE_UNITS_H

#include "compiler/dialect/train/NamePattern.h"
#include "compiler/dialect/train/Segments.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

#include <optional>
#include <string>

namespace tessera {

/// A parameter before flattening.
struct Parameter {
  mlir::BlockArgument arg;
  std::string name;
  mlir::RankedTensorType type;
  mlir::StringAttr init;          ///< null if it has none
  int64_t firstUse;               ///< number of the first forward op that reads it; the number of ops if none does
  int64_t operand = 0;            ///< of that op
  bool isJoined = false;          ///< that op concatenates it with others
  bool decays;                    ///< takes weight decay
  train::PlacementAttr placement; ///< null: not placed
  mlir::TypeAttr computeType;     ///< null: as the precision phase decides
  mlir::TypeAttr modelType;       ///< null: the model has it in its own type
  int64_t offset = 0;             ///< in its unit, in elements; in a row of it where there are several

  int64_t parts() const { return placement ? placement.getParts() : 1; }
  /// Of one part.
  int64_t elements() const { return type.getNumElements() / parts(); }
};

/// Parameters that are one flat argument, in the order of their offsets: those that decay first. Those that axes
/// split in m parts are m rows, one after the other: row r holds part r of each.
struct ParameterUnit {
  std::string name, module; ///< what `policy` puts together is one module, and may be several units
  train::ArgRole role;      ///< Param or Frozen
  llvm::SmallVector<Parameter> parameters;
  int64_t decayElements = 0; ///< elements of the parameters that decay
  int64_t elements = 0;      ///< of a row, without padding

  mlir::Type getElementType() const { return parameters.front().type.getElementType(); }
  mlir::TypeAttr getComputeType() const { return parameters.front().computeType; }
  mlir::TypeAttr getModelType() const { return parameters.front().modelType; }
  int64_t parts() const { return parameters.front().parts(); }
};

/// How parameters become units: "module", "size:<bytes>" or "none".
struct WrapPolicy {
  enum Kind { Module, Size, None } kind;
  int64_t bytes = 0;

  static std::optional<WrapPolicy> parse(llvm::StringRef text);
};

/// The op of the function's own block that is or contains `op`.
mlir::Operation *getAncestorInBlock(mlir::Operation *op, mlir::Block &block);

/// The step function's trained or frozen parameters in argument order. Of the frozen ones only floats that may begin
/// with any value: what must be given (a buffer of the model) stays whole. `noDecay` names those without weight decay;
/// without it these are the vectors and scalars (norms and biases).
llvm::SmallVector<Parameter> collectParameters(mlir::func::FuncOp func, train::ArgRole role,
                                               const std::optional<train::NamePattern> &noDecay);

/// Groups parameters of one role into units, in the order of first use, and assigns offsets. Of one module, those are
/// together that agree in element type, the axes that split them, and what they are read in. Names tell them apart, in
/// this order: ".frozen"; ".read_<type>" if they are read in a type of their own; ".<axis>" for each axis that splits
/// them, and there ".no_decay", since an update's elements that decay are the first of all rows together; the element
/// type, or a number, where the name is taken. `names` are those that are taken, and grows.
llvm::SmallVector<ParameterUnit> makeUnits(llvm::ArrayRef<Parameter> parameters, train::ArgRole role, WrapPolicy policy,
                                           llvm::StringSet<> &names);

} // namespace tessera

#endif // TESSERA_PASSES_OPTIMIZE_UNITS_H
