//===- RepeatedElements.cpp - equal elements along a dimension ------------===//

#include "passes/differentiate/RepeatedElements.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Loss.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace tessera {

namespace {
/// Whether all elements along a dimension are equal because they were repeated.
class Repeated {
public:
  bool along(Value value, int64_t dim) {
    if (auto known = found.find({value, dim}); known != found.end())
      return known->second;
    const bool result = look(value, dim);
    found[{value, dim}] = result;
    return result;
  }

private:
  bool look(Value value, int64_t dim) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getNumResults() != 1)
      return false;
    if (train::splatOf(value))
      return true;
    if (auto broadcast = dyn_cast<train::BroadcastOp>(op)) {
      auto *source = llvm::find(broadcast.getBroadcastDimensions(), dim);
      if (source == broadcast.getBroadcastDimensions().end())
        return true;
      const int64_t from = source - broadcast.getBroadcastDimensions().begin();
      return train::shapeOf(broadcast.getOperand())[from] != train::shapeOf(value)[dim] ||
             along(broadcast.getOperand(), from);
    }
    return op->hasTrait<OpTrait::Elementwise>() &&
           llvm::all_of(op->getOperands(), [&](Value operand) { return along(operand, dim); });
  }

  llvm::DenseMap<std::pair<Value, int64_t>, bool> found;
};

} // namespace

bool isConstantAlong(train::ConstantOp constant, int64_t dim, int64_t blocks, int64_t batchSize) {
  auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!dense)
    return false;
  ArrayRef<int64_t> shape = train::shapeOf(constant.getResult());
  const int64_t size = shape[dim] / blocks / batchSize; // of one sample
  const int64_t inner = llvm::product_of(shape.drop_front(dim + 1)) * size;
  auto isSame = [&](auto first, auto areEqual) {
    for (int64_t at = 0, end = dense.getNumElements(); at < end; ++at) {
      const int64_t place = at / inner % batchSize;
      if (place > 0 && !areEqual(*(first + at), *(first + (at - place * inner))))
        return false;
    }
    return true;
  };
  if (isa<FloatType>(dense.getElementType()))
    return isSame(dense.getValues<APFloat>().begin(),
                  [](const APFloat &one, const APFloat &two) { return one.bitwiseIsEqual(two); });
  return isSame(dense.getValues<APInt>().begin(), std::equal_to<APInt>());
}

bool isRepeatedAlong(Value value, int64_t dim) { return Repeated().along(value, dim); }

bool hasUnclearCount(Operation &op, int64_t batchSize) {
  auto reduce = dyn_cast<train::ReduceOp>(op);
  Repeated repeated;
  return reduce && reduce.getKind() == train::ReduceKind::Sum && !reduce->hasAttr(train::kMean) &&
         llvm::any_of(reduce.getDimensions(), [&](int64_t dim) {
           return train::shapeOf(reduce.getOperand())[dim] % batchSize == 0 && repeated.along(reduce.getOperand(), dim);
         });
}

} // namespace tessera
