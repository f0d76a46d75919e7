//===- Call.cpp - the inputs and results of one op of a file --------------===//

#include "frontends/common/Call.h"

using namespace mlir;

namespace tessera::frontend {

Value Call::input(int i) {
  Entry &entry = inputs[i];
  if (!entry.value) {
    DenseElementsAttr splat = entry.constant->splatAttr(entry.constant->shape());
    entry.value = b.constant(splat ? splat : entry.constant->toAttr());
  }
  return entry.value;
}

RankedTensorType Call::type(int i) const {
  const Entry &entry = inputs[i];
  return entry.constant ? entry.constant->type : train::tensorType(entry.value);
}

Value Call::inputTo(int i, ArrayRef<int64_t> shape) {
  if (const HostTensor *value = constant(i); value && value->shape() != shape)
    if (DenseElementsAttr splat = value->splatAttr(shape))
      return b.constant(splat);
  return b.broadcastTo(input(i), shape);
}

std::optional<SmallVector<int64_t>> Call::ints(int i) const {
  const HostTensor *value = constant(i);
  if (!value || value->isFloat() || value->type.getRank() > 1)
    return std::nullopt;
  return SmallVector<int64_t>(value->ints.begin(), value->ints.end());
}

std::optional<double> Call::scalar(int i) const {
  const HostTensor *value = constant(i);
  constexpr int64_t largest = int64_t{1} << 53; // beyond this a double does not hold every integer
  if (!value || value->size() != 1 || (!value->isFloat() && (value->ints[0] < -largest || value->ints[0] > largest)))
    return std::nullopt;
  return value->number(0);
}

LogicalResult Call::set(Value value, int i) {
  if (!countElements(train::shapeOf(value)))
    return fail("result of shape " + shapeText(train::shapeOf(value)) + " is too large");
  if (i < static_cast<int>(outputs.size()))
    outputs[i].value = value;
  return success();
}

LogicalResult Call::set(HostTensor constant, int i) {
  if (i < static_cast<int>(outputs.size()))
    outputs[i].constant = std::make_shared<const HostTensor>(std::move(constant));
  return success();
}

LogicalResult Call::set(Entry entry, int i) {
  if (i < static_cast<int>(outputs.size()))
    outputs[i] = std::move(entry);
  return success();
}

} // namespace tessera::frontend
