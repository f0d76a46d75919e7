//===- Tensor.cpp - a value of the reference interpreter ------------------===//

#include "compiler/interp/Tensor.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;

namespace tessera::interp {

double toDouble(llvm::APFloat value) {
  if (value.isNaN()) // of a format without digits it would be converted to an infinity
    return std::numeric_limits<double>::quiet_NaN();
  bool losesInfo = false;
  value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return value.convertToDouble();
}

double roundTo(Type floatType, double value) {
  if (floatType.isF64())
    return value;
  if (floatType.isF32())
    return static_cast<float>(value);
  llvm::APFloat rounded(value);
  bool losesInfo = false;
  rounded.convert(cast<FloatType>(floatType).getFloatSemantics(), llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return toDouble(rounded);
}

int64_t wrapTo(Type integerType, int64_t value) {
  auto integer = cast<IntegerType>(integerType);
  unsigned unused = 64 - integer.getWidth();
  auto shifted = static_cast<uint64_t>(value) << unused;
  if (integer.isUnsigned() || integer.getWidth() == 1)
    return static_cast<int64_t>(shifted >> unused);
  return static_cast<int64_t>(shifted) >> unused;
}

Tensor::Tensor(RankedTensorType type) : type(type), isFloating(isa<FloatType>(type.getElementType())) {
  if (isFloating)
    floats.assign(type.getNumElements(), 0.0);
  else
    ints.assign(type.getNumElements(), 0);
}

Tensor Tensor::scalar(RankedTensorType type, double value) {
  Tensor result(type);
  for (int64_t i = 0, end = result.size(); i < end; ++i)
    result.set(i, value);
  return result;
}

void Tensor::set(int64_t index, double value) {
  if (isFloating)
    floats[index] = roundTo(getElementType(), value);
  else if (getElementType().isInteger(1))
    ints[index] = value != 0.0;
  else if (std::isnan(value))
    ints[index] = 0;
  else if (value >= 0x1p63)
    ints[index] = wrapTo(getElementType(), INT64_MAX);
  else if (value < -0x1p63)
    ints[index] = wrapTo(getElementType(), INT64_MIN);
  else
    ints[index] = wrapTo(getElementType(), static_cast<int64_t>(value));
}

void Tensor::setInt(int64_t index, int64_t value) {
  if (isFloating)
    floats[index] = roundTo(getElementType(), static_cast<double>(value));
  else if (getElementType().isInteger(1))
    ints[index] = value != 0;
  else
    ints[index] = wrapTo(getElementType(), value);
}

void Tensor::copyFrom(int64_t index, const Tensor &source, int64_t sourceIndex) {
  if (isFloating)
    floats[index] = source.floats[sourceIndex];
  else
    ints[index] = source.ints[sourceIndex];
}

bool Tensor::bitwiseEquals(const Tensor &other) const {
  if (type != other.type || ints != other.ints)
    return false;
  return llvm::equal(floats, other.floats,
                     [](double a, double b) { return llvm::bit_cast<uint64_t>(a) == llvm::bit_cast<uint64_t>(b); });
}

Tensor Tensor::reshaped(RankedTensorType newType) const {
  assert(newType.getNumElements() == size() && newType.getElementType() == getElementType());
  Tensor result = *this;
  result.type = newType;
  return result;
}

// --- Attributes ----------------------------------------------------------------

/// An attribute whose bytes live in a resource, as an ordinary dense one.
static DenseElementsAttr toDense(ElementsAttr attr) {
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      return DenseElementsAttr::getFromRawBuffer(cast<ShapedType>(attr.getType()), blob->getData());
  return cast<DenseElementsAttr>(attr);
}

bool Tensor::canRead(Attribute attr) {
  if (auto resource = dyn_cast_if_present<DenseResourceElementsAttr>(attr)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    bool isSplat = false;
    return blob && DenseElementsAttr::isValidRawBuffer(resource.getType(), blob->getData(), isSplat);
  }
  return isa_and_present<DenseIntOrFPElementsAttr>(attr);
}

Tensor Tensor::fromAttr(ElementsAttr attr) {
  DenseElementsAttr dense = toDense(attr);
  Tensor result(cast<RankedTensorType>(dense.getType()));
  bool splat = dense.isSplat();
  int64_t stored = splat ? std::min<int64_t>(1, result.size()) : result.size();
  if (result.isFloating) {
    auto element = cast<FloatType>(result.getElementType());
    if (element.isF32()) {
      llvm::copy(llvm::make_range(dense.value_begin<float>(), dense.value_begin<float>() + stored),
                 result.floats.begin());
    } else {
      auto values = dense.value_begin<APFloat>();
      for (int64_t i = 0; i < stored; ++i)
        result.floats[i] = toDouble(*(values + i));
    }
    if (splat && stored)
      std::fill(result.floats.begin(), result.floats.end(), result.floats.front());
    return result;
  }
  bool zeroExtended = result.getElementType().isInteger(1) || cast<IntegerType>(result.getElementType()).isUnsigned();
  auto values = dense.value_begin<APInt>();
  for (int64_t i = 0; i < stored; ++i) {
    APInt value = *(values + i);
    result.ints[i] = zeroExtended ? static_cast<int64_t>(value.getZExtValue()) : value.getSExtValue();
  }
  if (splat && stored)
    std::fill(result.ints.begin(), result.ints.end(), result.ints.front());
  return result;
}

DenseElementsAttr Tensor::toAttr() const {
  auto sameBits = [](double a, double b) { return llvm::bit_cast<uint64_t>(a) == llvm::bit_cast<uint64_t>(b); };
  bool splat = size() > 0;
  for (int64_t i = 1, end = size(); splat && i < end; ++i)
    splat = isFloating ? sameBits(floats[i], floats[0]) : ints[i] == ints[0];
  int64_t stored = splat ? 1 : size();
  if (isFloating && getElementType().isF32()) {
    std::vector<float> values(floats.begin(), floats.begin() + stored);
    return DenseElementsAttr::get(type, ArrayRef<float>(values));
  }
  if (isFloating) {
    SmallVector<APFloat> values;
    for (double value : ArrayRef(floats).take_front(stored)) {
      APFloat element(value);
      bool losesInfo = false;
      element.convert(cast<FloatType>(getElementType()).getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      values.push_back(element);
    }
    return DenseElementsAttr::get(type, values);
  }
  SmallVector<APInt> values;
  for (int64_t value : ArrayRef(ints).take_front(stored))
    values.push_back(APInt(getElementType().getIntOrFloatBitWidth(), static_cast<uint64_t>(value),
                           /*isSigned=*/false, /*implicitTrunc=*/true));
  return DenseElementsAttr::get(type, values);
}

// --- Indices -------------------------------------------------------------------

SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

void forEachIndex(ArrayRef<int64_t> shape, llvm::function_ref<void(ArrayRef<int64_t>, int64_t)> fn) {
  int64_t count = ShapedType::getNumElements(shape);
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t linear = 0; linear < count; ++linear) {
    fn(index, linear);
    for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
      if (++index[dim] < shape[dim])
        break;
      index[dim] = 0;
    }
  }
}

int64_t linearIndex(ArrayRef<int64_t> index, ArrayRef<int64_t> strides) {
  int64_t linear = 0;
  for (auto [position, stride] : llvm::zip_equal(index, strides))
    linear += position * stride;
  return linear;
}

SmallVector<int64_t> delinearize(int64_t linear, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 1; dim >= 0; --dim) {
    index[dim] = linear % shape[dim];
    linear /= shape[dim];
  }
  return index;
}

std::string printIndex(ArrayRef<int64_t> index) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "[";
  llvm::interleaveComma(index, os);
  os << "]";
  return text;
}

} // namespace tessera::interp
