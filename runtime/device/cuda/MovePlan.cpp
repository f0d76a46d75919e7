//===- MovePlan.cpp - chooses the dimensions of a strided copy --------------===//

#include "runtime/device/cuda/MovePlan.h"

#include "runtime/base/Half.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <string>

namespace tessera::cuda {

using artifact::DataType;

Result<MoveLayout> moveLayout(const TensorView &source, const TensorView &target) {
  MoveLayout layout;
  for (size_t dim = target.shape.size(); dim-- > 0;) {
    int64_t size = target.shape[dim], from = source.strides[dim], to = target.strides[dim];
    layout.elements *= size;
    if (size == 1)
      continue;
    int last = layout.dims - 1;
    if (last >= 0 && from == layout.sourceStrides[last] * layout.sizes[last] &&
        to == layout.targetStrides[last] * layout.sizes[last]) {
      layout.sizes[last] *= size;
      continue;
    }
    if (layout.dims == MoveLayout::maxDims)
      return TESSERA_ERROR(Unsupported, "a copy with more than " + std::to_string(MoveLayout::maxDims) +
                                            " dimensions that cannot be merged");
    layout.sizes[layout.dims] = size;
    layout.sourceStrides[layout.dims] = from;
    layout.targetStrides[layout.dims++] = to;
  }
  return layout;
}

bool isDense(const MoveLayout &layout) {
  return layout.dims == 0 || (layout.dims == 1 && layout.sourceStrides[0] == 1 && layout.targetStrides[0] == 1);
}

template <typename T> static uint64_t bitsOf(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}

Result<uint64_t> encodeNumber(DataType dtype, double value) {
  switch (dtype) {
  case DataType::F32:
    return bitsOf(static_cast<float>(value));
  case DataType::F64:
    return bitsOf(value);
  case DataType::I32:
    return bitsOf(static_cast<int32_t>(value));
  case DataType::I64:
    return bitsOf(static_cast<int64_t>(value));
  case DataType::I8:
    return bitsOf(static_cast<int8_t>(value));
  case DataType::U8:
    return bitsOf(static_cast<uint8_t>(value));
  case DataType::Bool:
    return uint64_t{value != 0};
  case DataType::BF16: {
    uint32_t wide = std::bit_cast<uint32_t>(static_cast<float>(value));
    if (std::isnan(value))
      return uint64_t{0x7fc0};
    return uint64_t{(wide + 0x7fff + ((wide >> 16) & 1)) >> 16}; // to nearest, ties to even
  }
  case DataType::F16:
    return uint64_t{toHalf(static_cast<float>(value))};
  default:
    if (value == 0)
      return uint64_t{0};
    return TESSERA_ERROR(Unsupported, std::string("a fill of type ") + artifact::EnumNameDataType(dtype) +
                                          " with a value other than 0");
  }
}

} // namespace tessera::cuda
