//===- ForwardEpilogues.cpp - biases and GELU into products ---------------===//
//
// Finds what a product's readers add to it and apply to the sum.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/lower/EpilogueProduct.h"

using namespace mlir;
using tessera::train::shapeOf;

namespace tessera::epilogue {

using exec::Epilogue;

/// Whether an op that is no kernel reads `value`, as it is or through views.
static bool readByLibrary(Value value, const FusionRoles &roles) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp, train::BarrierOp>(user))
      return readByLibrary(user->getResult(0), roles);
    return roles.of(user) == FusionRole::Fixed;
  });
}

/// Has `value` computed before `op`: moves views of what is known there.
static bool moveBefore(Value value, Operation *op, Operation *reader) {
  SmallVector<Operation *> views;
  while (Operation *source = value.getDefiningOp()) {
    if (source->getBlock() != op->getBlock() || source->isBeforeInBlock(op))
      break;
    if (!isa<train::SliceOp, train::ReshapeOp, train::BarrierOp>(source)) {
      reader->emitRemark() << "bias not fused into the product: it is computed later, by '" << source->getName() << "'";
      return false;
    }
    views.push_back(source);
    value = source->getOperand(0);
  }
  for (Operation *view : llvm::reverse(views))
    view->moveBefore(op);
  return true;
}

/// The bias that `add` adds to the product in each column, of the result's type; null with a remark if the library
/// cannot add it, null without one if it is none.
static Value biasOf(train::AddOp add, const Product &product, bool &isBias) {
  Value other = withoutConversions(add.getLhs()) == product.result ? add.getRhs() : add.getLhs();
  auto broadcast = withoutConversions(other).getDefiningOp<train::BroadcastOp>();
  isBias = broadcast && train::tensorType(broadcast.getOperand()).getRank() > 0;
  if (!isBias)
    return nullptr;
  int64_t rank = shapeOf(product.result).size(), columns = product.columnShape().size();
  if (ArrayRef(broadcast.getBroadcastDimensions()) != ArrayRef(llvm::to_vector(llvm::seq(rank - columns, rank))) ||
      shapeOf(broadcast.getOperand()) != product.columnShape()) {
    add.emitRemark() << "bias not fused into the product: it does not go along the product's columns";
    return nullptr;
  }
  Value bias = broadcast.getOperand();
  if (elementOf(bias) != elementOf(product.result))
    bias = withoutConversions(bias);
  if (elementOf(bias) != elementOf(product.result)) {
    add.emitRemark() << "bias not fused into the product: it is " << elementOf(broadcast.getOperand())
                     << ", the product " << elementOf(product.result);
    return nullptr;
  }
  return moveBefore(bias, product.op, add) ? bias : nullptr;
}

/// GELU of the pre-activation `sum`, in the product's type.
static Value findGelu(const Product &product, Value sum) {
  for (Operation *reader : readersOf(sum)) {
    auto gelu = dyn_cast<train::GeluOp>(reader);
    Value activation = gelu ? inType(gelu.getResult(), product.elementType()) : nullptr;
    if (!activation)
      continue;
    if (gelu.getForm() != train::GeluForm::Tanh) {
      gelu.emitRemark() << "GELU not fused into the product: it is the exact one, the library has the tanh "
                           "approximation";
      return nullptr;
    }
    if (!product.hasAlignedColumns()) {
      gelu.emitRemark() << "GELU not fused into the product: its " << product.columns()
                        << " columns are no multiple of 8";
      return nullptr;
    }
    return activation;
  }
  return nullptr;
}

static void fuseGelu(const Product &product, Value bias, Value kept, Value activation) {
  exec::EpilogueProductOp made =
      product.build(bias ? Epilogue::GeluAuxBias : Epilogue::GeluAux, bias, product.result.getType());
  activation.replaceAllUsesWith(made.getResult());
  kept.replaceAllUsesWith(made.getOutput());
}

bool fuseForward(const Product &product, const FusionRoles &roles, bool fusesGelu) {
  if (product.accumulator)
    return false;
  SmallVector<Operation *> readers = readersOf(product.result);
  Value bias, sum = product.result;
  for (Operation *reader : readers) {
    auto add = dyn_cast<train::AddOp>(reader);
    bool isBias = false;
    Value found = add ? biasOf(add, product, isBias) : nullptr;
    if (isBias && !found)
      return false;
    if (!found)
      continue;
    if (readers.size() != 1) {
      add.emitRemark() << "bias not fused into the product: the product has other readers";
      return false;
    }
    bias = found;
    sum = add.getResult();
  }
  // What is kept of the pre-activation has the product's type.
  Value kept = sum;
  if (elementOf(sum) != elementOf(product.result)) {
    auto convert = sum.hasOneUse() ? dyn_cast<train::ConvertOp>(*sum.user_begin()) : nullptr;
    if (!convert || elementOf(convert.getResult()) != elementOf(product.result))
      return false; // kernels read it wide: they add the bias for nothing
    kept = convert.getResult();
  }
  if (Value activation = fusesGelu ? findGelu(product, sum) : nullptr) {
    fuseGelu(product, bias, kept, activation);
    return true;
  }
  // Kernels add a bias for nothing; another kernel is saved only where a library call would wait for one.
  if (!bias || !readByLibrary(kept, roles))
    return false;
  kept.replaceAllUsesWith(product.build(Epilogue::Bias, bias, Type()).getResult());
  return true;
}

} // namespace tessera::epilogue
