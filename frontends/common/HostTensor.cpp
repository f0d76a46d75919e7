//===- HostTensor.cpp - tensors whose value is known at import ------------===//

#include "frontends/common/HostTensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::frontend {

std::optional<int64_t> countElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  bool zero = false;
  for (int64_t size : shape) {
    if (size < 0 || size > kMaxElements)
      return std::nullopt;
    if (size == 0)
      zero = true;
    else if (llvm::MulOverflow(count, size, count) || count > kMaxElements)
      return std::nullopt;
  }
  return zero ? 0 : count;
}

double roundTo(Type floatType, double value) {
  if (floatType.isF64())
    return value;
  if (floatType.isF32())
    return static_cast<float>(value);
  llvm::APFloat rounded(value);
  bool lossy = false;
  rounded.convert(cast<FloatType>(floatType).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
  return rounded.convertToDouble();
}

int64_t wrapTo(Type intType, int64_t value) {
  auto type = cast<IntegerType>(intType);
  unsigned width = type.getWidth();
  if (width == 64)
    return value;
  uint64_t bits = static_cast<uint64_t>(value) & ((uint64_t{1} << width) - 1);
  if (type.isUnsigned() || width == 1)
    return static_cast<int64_t>(bits);
  return llvm::SignExtend64(bits, width);
}

HostTensor HostTensor::ofShape(MLIRContext *context, ArrayRef<int64_t> values) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, IntegerType::get(context, 64));
  return ofInts(type, values.vec());
}

HostTensor HostTensor::splat(RankedTensorType type, double value) {
  HostTensor tensor{type, {}, {}};
  const auto count = static_cast<size_t>(type.getNumElements());
  if (tensor.isFloat())
    tensor.floats.assign(count, roundTo(type.getElementType(), value));
  else
    tensor.ints.assign(count, static_cast<int64_t>(value));
  return tensor;
}

std::optional<HostTensor> HostTensor::fromAttr(ElementsAttr attr) {
  auto type = cast<RankedTensorType>(attr.getType());
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (!dense || type.getNumElements() > kMaxConstantElements)
    return std::nullopt;
  HostTensor tensor{type, {}, {}};
  if (tensor.isFloat()) {
    for (const llvm::APFloat &value : dense.getValues<llvm::APFloat>())
      tensor.floats.push_back(value.convertToDouble());
  } else {
    const bool isUnsigned = type.getElementType().isUnsignedInteger() || type.getElementType().isInteger(1);
    for (const llvm::APInt &value : dense.getValues<llvm::APInt>())
      tensor.ints.push_back(isUnsigned ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue());
  }
  return tensor;
}

std::optional<double> HostTensor::uniform() const {
  if (size() == 0)
    return std::nullopt;
  if (!isFloat()) {
    if (!llvm::all_equal(ints))
      return std::nullopt;
    return static_cast<double>(ints.front());
  }
  const auto bits = llvm::bit_cast<uint64_t>(floats.front());
  if (llvm::any_of(floats, [bits](double value) { return llvm::bit_cast<uint64_t>(value) != bits; }))
    return std::nullopt;
  return floats.front();
}

DenseElementsAttr HostTensor::toAttr() const {
  Type element = type.getElementType();
  if (isFloat()) {
    if (element.isF32()) {
      std::vector<float> values(floats.begin(), floats.end());
      return DenseElementsAttr::get(type, ArrayRef<float>(values));
    }
    if (element.isF64())
      return DenseElementsAttr::get(type, ArrayRef<double>(floats));
    SmallVector<llvm::APFloat> values;
    for (double value : floats) {
      bool lossy = false;
      values.emplace_back(value);
      values.back().convert(cast<FloatType>(element).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &lossy);
    }
    return DenseElementsAttr::get(type, values);
  }
  const unsigned width = element.getIntOrFloatBitWidth();
  if (width == 64)
    return DenseElementsAttr::get(type, ArrayRef<int64_t>(ints));
  SmallVector<llvm::APInt> values;
  for (int64_t value : ints)
    values.emplace_back(width, static_cast<uint64_t>(value), /*isSigned=*/true, /*implicitTrunc=*/true);
  return DenseElementsAttr::get(type, values);
}

DenseElementsAttr HostTensor::elementAttr(int64_t i, ArrayRef<int64_t> shape) const {
  auto single = type.clone(ArrayRef<int64_t>());
  HostTensor one = isFloat() ? ofFloats(single, {floats[i]}) : ofInts(single, {ints[i]});
  return DenseElementsAttr::get(type.clone(shape), one.toAttr().getSplatValue<Attribute>());
}

DenseElementsAttr HostTensor::splatAttr(ArrayRef<int64_t> shape) const {
  return uniform() ? elementAttr(0, shape) : DenseElementsAttr();
}

HostTensor HostTensor::reshaped(ArrayRef<int64_t> shape) const {
  HostTensor tensor = *this;
  tensor.type = type.clone(shape);
  return tensor;
}

HostTensor HostTensor::runningSums(int64_t axis, bool exclusive, bool reverse) const {
  const HostTensor &x = *this;
  HostTensor result = x;
  const Type element = x.type.getElementType();
  const int64_t size = x.shape()[axis];
  int64_t stride = 1;
  for (int64_t dim : x.shape().drop_front(axis + 1))
    stride *= dim;
  for (int64_t begin = 0; begin < x.size(); ++begin) {
    if (begin / stride % size != 0)
      continue;
    double sum = 0;
    uint64_t wrapped = 0;
    for (int64_t step = 0; step < size; ++step) {
      const int64_t at = begin + (reverse ? size - 1 - step : step) * stride;
      if (x.isFloat()) {
        const double next = roundTo(element, sum + x.floats[at]);
        result.floats[at] = exclusive ? sum : next;
        sum = next;
      } else {
        const uint64_t next = wrapped + static_cast<uint64_t>(x.ints[at]);
        result.ints[at] = wrapTo(element, static_cast<int64_t>(exclusive ? wrapped : next));
        wrapped = next;
      }
    }
  }
  return result;
}

} // namespace tessera::frontend
