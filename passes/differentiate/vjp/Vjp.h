//===- Vjp.h - what every gradient rule is written with ---------*- C++ -*-===//
//
// A rule is a function of the op and a `Vjp`, which holds the builder, the
// cotangents of the results and the gradients of the operands that it fills in.
// `attachVjp` makes it the op's DifferentiableOpInterface.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_VJP_VJP_H
#define TESSERA_PASSES_DIFFERENTIATE_VJP_VJP_H

#include "compiler/dialect/train/Builders.h"
#include "compiler/interfaces/Interfaces.h"

#include "mlir/IR/DialectRegistry.h"

namespace tessera::vjp {

/// The state of one rule's application. Ops are built with the inherited builder functions.
class Vjp : public train::Build {
public:
  Vjp(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange cotangents, llvm::ArrayRef<bool> needs,
      llvm::SmallVectorImpl<mlir::Value> &grads)
      : Build(builder, loc), cotangents(cotangents), needs(needs), grads(grads) {
    grads.assign(needs.size(), mlir::Value());
  }

  /// Cotangent of a result; null where it is zero.
  mlir::Value cotangent(unsigned result = 0) const { return cotangents[result]; }
  bool wants(unsigned operand) const { return needs[operand]; }
  void set(unsigned operand, mlir::Value gradient) { grads[operand] = gradient; }

private:
  mlir::ValueRange cotangents;
  llvm::ArrayRef<bool> needs;
  llvm::SmallVectorImpl<mlir::Value> &grads;
};

template <typename Op> using Rule = llvm::LogicalResult (*)(Op, Vjp &);

inline bool never(mlir::Operation *, unsigned) { return false; }
/// Every operand that is not floating point is left out by the activity analysis; this is for those that are.
template <unsigned operand> bool operandIs(mlir::Operation *, unsigned index) { return index == operand; }

template <typename Op, Rule<Op> rule, bool (*isConstant)(mlir::Operation *, unsigned)>
struct Model : DifferentiableOpInterface::ExternalModel<Model<Op, rule, isConstant>, Op> {
  llvm::LogicalResult buildVJP(mlir::Operation *op, mlir::OpBuilder &builder, mlir::ValueRange cotangents,
                               llvm::ArrayRef<bool> needs, llvm::SmallVectorImpl<mlir::Value> &grads) const {
    mlir::Location loc = mlir::NameLoc::get(builder.getStringAttr("grad"), op->getLoc());
    Vjp vjp(builder, loc, cotangents, needs, grads);
    return rule(llvm::cast<Op>(op), vjp);
  }
  bool isNonDifferentiableOperand(mlir::Operation *op, unsigned index) const { return isConstant(op, index); }
};

template <typename Op, Rule<Op> rule, bool (*isConstant)(mlir::Operation *, unsigned) = never>
void attachVjp(mlir::MLIRContext *context) {
  Op::template attachInterface<Model<Op, rule, isConstant>>(*context);
}

void attachElementwise(mlir::MLIRContext *context);
void attachShape(mlir::MLIRContext *context);
void attachReduce(mlir::MLIRContext *context);
void attachContract(mlir::MLIRContext *context);
void attachNeural(mlir::MLIRContext *context);

} // namespace tessera::vjp

#endif // TESSERA_PASSES_DIFFERENTIATE_VJP_VJP_H
