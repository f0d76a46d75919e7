//===- RecognizeGelu.cpp - written-out GELU to train.gelu -----------------===//
//
// A file that has no node for GELU writes it as tanh or erf of a polynomial, and a polynomial of both. What is computed
// in another way is recognised by its values, and a remark says so.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Gelu.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"
#include "passes/simplify/Polynomial.h"
#include "passes/simplify/ScalarFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_RECOGNIZEGELU
#include "passes/simplify/Passes.h.inc"

namespace {

/// Values around the function that are looked at in either direction.
constexpr size_t kMaxValues = 24;

bool isFunction(Operation *op) { return isa<TanhOp, ErfOp, ExpOp, SigmoidOp>(op); }

/// What `op` computes its result from by smooth ops, the nearest first: one of them is the argument.
SmallVector<Value> argumentsOf(Operation *op) {
  llvm::SetVector<Value> found;
  found.insert(op->getOperand(0));
  for (size_t i = 0; i < found.size() && found.size() < kMaxValues; ++i)
    if (Operation *source = found[i].getDefiningOp(); source && simplify::isSmooth(source))
      for (Value operand : source->getOperands())
        if (!simplify::uniformConstant(operand))
          found.insert(operand);
  return found.takeVector();
}

/// Smooth ops that depend on `op`, near it, in the order of the block; those that something reads.
SmallVector<Operation *> readersOf(Operation *op) {
  llvm::SetVector<Operation *> found;
  found.insert(op);
  for (size_t i = 0; i < found.size() && found.size() < kMaxValues; ++i)
    for (Operation *user : found[i]->getUsers())
      if (user->getBlock() == op->getBlock() && simplify::isSmooth(user))
        found.insert(user);
  SmallVector<Operation *> readers = llvm::to_vector(
      llvm::make_filter_range(llvm::drop_begin(found), [](Operation *reader) { return !reader->use_empty(); }));
  llvm::sort(readers, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return readers;
}

void replace(Operation *root, GeluForm form, Value x) {
  OpBuilder builder(root);
  root->getResult(0).replaceAllUsesWith(Build(builder, root->getLoc()).gelu(form, x));
}

/// The form of whose function `inner` of `x` is a part.
std::optional<GeluForm> formOf(Operation *inner, Value x) {
  std::optional<simplify::Polynomial> of = simplify::Polynomial::of(inner->getOperand(0), x);
  if (of && isa<ErfOp>(inner) && of->is({{{1, 0}, std::numbers::sqrt2 / 2}}))
    return GeluForm::Exact;
  if (of && isa<TanhOp>(inner) && of->is({{{1, 0}, kGeluSlope}, {{3, 0}, kGeluSlope * kGeluCubic}}))
    return GeluForm::Tanh;
  return std::nullopt;
}

bool recognizeForm(Operation *inner) {
  for (Value x : argumentsOf(inner))
    if (std::optional<GeluForm> form = formOf(inner, x)) {
      for (Operation *root : readersOf(inner))
        if (auto product = simplify::Polynomial::of(root->getResult(0), x, inner->getResult(0));
            product && product->is({{{1, 0}, 0.5}, {{1, 1}, 0.5}})) {
          replace(root, *form, x);
          return true;
        }
      return false;
    }
  return false;
}

void recognizeValues(Operation *inner) {
  for (Operation *root : readersOf(inner))
    for (Value x : argumentsOf(inner)) {
      if (x.getType() != root->getResult(0).getType())
        continue;
      auto function = simplify::ScalarFunction::of(root->getResult(0), x);
      for (GeluForm form : {GeluForm::Exact, GeluForm::Tanh})
        if (function && function->agreesWith([form](double number) { return gelu(form, number); })) {
          root->emitRemark() << "recognised as GELU (" << stringifyGeluForm(form)
                             << ") by its values: it is written in no known form";
          replace(root, form, x);
          return;
        }
    }
}

struct RecognizeGelu : impl::RecognizeGeluBase<RecognizeGelu> {
  using RecognizeGeluBase::RecognizeGeluBase;
  void runOnOperation() override {
    SmallVector<Operation *> inner;
    getOperation().walk([&](Operation *op) {
      // Constants of a narrower type are those of another function.
      if (isFunction(op) && tensorType(op->getResult(0)).getElementTypeBitWidth() >= 32)
        inner.push_back(op);
    });
    for (Operation *op : inner)
      if (!recognizeForm(op) && byValues)
        recognizeValues(op);
  }
};

} // namespace
} // namespace tessera
