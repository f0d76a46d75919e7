//===- Eval.h - one function per op of the interpreter ----------*- C++ -*-===//
//
// The table from op names to the functions that evaluate them on one rank. An
// op that communicates or holds a region is evaluated by Interp.cpp instead.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_EVAL_H
#define TESSERA_COMPILER_INTERP_EVAL_H

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/interp/Tensor.h"

#include "llvm/ADT/StringMap.h"

#include <functional>
#include <optional>

namespace tessera::interp {

using Operands = llvm::ArrayRef<const Tensor *>;
using Results = llvm::SmallVector<Tensor, 1>;

/// A failed evaluation: what is streamed into it becomes a diagnostic, unless nobody wants to hear it.
class EvalFailure {
public:
  EvalFailure() = default;
  explicit EvalFailure(mlir::InFlightDiagnostic diagnostic) : diagnostic(std::move(diagnostic)) {}
  template <typename Part> EvalFailure &operator<<(Part &&part) {
    if (diagnostic)
      *diagnostic << std::forward<Part>(part);
    return *this;
  }
  operator mlir::LogicalResult() const { return mlir::failure(); }
  template <typename Value> operator mlir::FailureOr<Value>() const { return mlir::failure(); }

private:
  std::optional<mlir::InFlightDiagnostic> diagnostic;
};

/// What an evaluation function knows besides the op: whether its errors are to be reported.
struct EvalContext {
  mlir::Operation *op;
  bool silent;                              ///< constant folding: fail without a message
  mlir::RankedTensorType instead = nullptr; ///< type of the only result, if not the op's own

  EvalFailure error() const { return silent ? EvalFailure() : EvalFailure(op->emitError()); }
  mlir::RankedTensorType resultType(unsigned index = 0) const {
    return instead ? instead : mlir::cast<mlir::RankedTensorType>(op->getResult(index).getType());
  }
};

using EvalFn = std::function<mlir::FailureOr<Results>(EvalContext, Operands)>;

class EvalTable {
public:
  /// `fn(Op, EvalContext, Operands) -> FailureOr<Results>`.
  template <typename Op, typename Fn> void add(Fn fn) {
    table[Op::getOperationName()] = [fn](EvalContext context, Operands operands) -> mlir::FailureOr<Results> {
      return fn(mlir::cast<Op>(context.op), context, operands);
    };
  }
  const EvalFn *find(llvm::StringRef name) const {
    auto it = table.find(name);
    return it == table.end() ? nullptr : &it->second;
  }

private:
  llvm::StringMap<EvalFn> table;
};

/// A result list of one tensor.
inline Results one(Tensor tensor) {
  Results results;
  results.push_back(std::move(tensor));
  return results;
}

/// The product of float tensors over pairs of dimensions, without a batch.
Tensor evalContraction(mlir::RankedTensorType type, const Tensor &lhs, const Tensor &rhs,
                       llvm::ArrayRef<int64_t> lhsContract, llvm::ArrayRef<int64_t> rhsContract);

void addElementwise(EvalTable &table);
void addShape(EvalTable &table);
void addReduce(EvalTable &table);
void addContract(EvalTable &table);
void addNeural(EvalTable &table);
void addState(EvalTable &table);

/// Null if the op is not in the table.
const EvalFn *findEvaluation(llvm::StringRef opName);

/// True if `op` is a collective, its asynchronous start, `slice_local` or `axis_index`.
bool isCollective(mlir::Operation *op);
/// Evaluates such an op on all ranks at once; `operand[rank]`.
mlir::FailureOr<std::vector<Tensor>> evalCollective(mlir::Operation *op, Operands operand, dist::MeshAttr mesh);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_EVAL_H
