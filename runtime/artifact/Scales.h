//===- Scales.h - the scales of a product of 8-bit floats -------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_SCALES_H
#define TESSERA_RUNTIME_ARTIFACT_SCALES_H

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <vector>

namespace tessera {

inline bool isFloat8(artifact::DataType dtype) {
  return dtype == artifact::DataType::F8E4M3FN || dtype == artifact::DataType::F8E5M2;
}

/// Sizes of a product of 8-bit floats, bytes between its rows and where its operands and several scales begin are
/// multiples of it.
inline constexpr int64_t scaledMultiple = 16;

struct ScalesShape {
  artifact::DataType dtype;
  std::vector<int64_t> shape;
};
/// What artifact.fbs says of the scales of an operand with `rows` rows (or columns) of `contracted` elements.
inline ScalesShape scalesShape(artifact::ScaleMode mode, int64_t rows, int64_t contracted) {
  using artifact::DataType;
  using artifact::ScaleMode;
  auto blocks = [](int64_t size, int64_t block) { return (size + block - 1) / block; };
  switch (mode) {
  case ScaleMode::Row:
    return {DataType::F32, {rows}};
  case ScaleMode::Block128:
    return {DataType::F32, {blocks(contracted, 128), rows}};
  case ScaleMode::Block128x128:
    return {DataType::F32, {blocks(rows, 128), blocks(contracted, 512) * 4}};
  case ScaleMode::Block32:
    return {DataType::F8E8M0FNU, {blocks(rows, 128), blocks(contracted, 128), 32, 4, 4}};
  case ScaleMode::None:
  case ScaleMode::Tensor:
    break;
  }
  return {DataType::F32, {}};
}

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_SCALES_H
