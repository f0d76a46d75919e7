//===- EpilogueProduct.cpp - a product whose epilogue is free -------------===//
//
// See EpilogueProduct.h.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/EpilogueProduct.h"

#include "compiler/dialect/train/Builders.h"

using namespace mlir;
using tessera::train::shapeOf;

namespace tessera::epilogue {

static constexpr int64_t kAuxAlignment = 8;

Type elementOf(Value value) { return train::tensorType(value).getElementType(); }

int64_t elementsOf(ArrayRef<int64_t> shape) { return llvm::product_of(shape); }

static bool isFloatConversion(Operation *op) {
  auto convert = dyn_cast<train::ConvertOp>(op);
  return convert && isa<FloatType>(elementOf(convert.getOperand())) && isa<FloatType>(elementOf(convert.getResult()));
}

Value withoutConversions(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isFloatConversion(op) && !isa<train::BarrierOp>(op))
      break;
    value = op->getOperand(cast<OpResult>(value).getResultNumber());
  }
  return value;
}

SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  for (Operation *user : value.getUsers()) {
    if (isFloatConversion(user))
      llvm::append_range(readers, readersOf(user->getResult(0)));
    else
      readers.push_back(user);
  }
  return readers;
}

Value inType(Value value, Type elementType) {
  if (elementOf(value) == elementType)
    return value;
  for (Operation *user : value.getUsers())
    if (isFloatConversion(user) && elementOf(user->getResult(0)) == elementType)
      return user->getResult(0);
  return nullptr;
}

Product::Product(Operation *op) : op(op), result(op->getResult(0)) {
  if (auto dot = dyn_cast<train::DotGeneralOp>(op)) {
    isPlain = dot.getLhsBatch().empty();
    lhs = dot.getLhs(), rhs = dot.getRhs();
    lhsContract = dot.getLhsContract(), rhsContract = dot.getRhsContract();
  } else if (auto add = dyn_cast<exec::AddProductOp>(op)) {
    isPlain = add.getLhsBatch().empty();
    accumulator = add.getAccumulator();
    lhs = add.getLhs(), rhs = add.getRhs();
    lhsContract = add.getLhsContract(), rhsContract = add.getRhsContract();
  }
  isPlain = isPlain && isa<FloatType>(elementType());
}

ArrayRef<int64_t> Product::columnShape() const {
  return shapeOf(result).drop_front(shapeOf(lhs).size() - lhsContract.size());
}

int64_t Product::columns() const { return elementsOf(columnShape()); }

Type Product::elementType() const { return elementOf(result); }

bool Product::hasAlignedColumns() const { return columns() % kAuxAlignment == 0; }

Type Product::vectorType(bool isRows) const {
  ArrayRef<int64_t> shape = shapeOf(result);
  return train::tensorType(result).clone(isRows ? shape.drop_back(columnShape().size()) : columnShape());
}

exec::EpilogueProductOp Product::build(exec::Epilogue epilogue, Value input, Type output, Operation *before) const {
  OpBuilder builder(before ? before : op);
  auto made = exec::EpilogueProductOp::create(builder, op->getLoc(), result.getType(), output, epilogue, lhs, rhs,
                                              accumulator, input, lhsContract, rhsContract);
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  return made;
}

} // namespace tessera::epilogue
