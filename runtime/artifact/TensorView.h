//===- TensorView.h - a strided view of this rank's memory -----------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_TENSORVIEW_H
#define TESSERA_RUNTIME_ARTIFACT_TENSORVIEW_H

#include "runtime/artifact/artifact_generated.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tessera {

/// Bytes of one element.
size_t byteWidth(artifact::DataType dtype);

struct TensorView {
  void *data = nullptr;
  artifact::DataType dtype = artifact::DataType::F32;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides; ///< elements

  int64_t numElements() const {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    return count;
  }
  size_t bytes() const { return static_cast<size_t>(numElements()) * byteWidth(dtype); }
  /// Row-major without gaps; strides of dimensions of size 1 do not matter.
  bool isContiguous() const {
    int64_t expected = 1;
    for (size_t dim = shape.size(); dim-- > 0;) {
      if (shape[dim] != 1 && strides[dim] != expected)
        return false;
      expected *= shape[dim];
    }
    return true;
  }
  template <typename T> T *as() const { return static_cast<T *>(data); }
};

/// The type and the strides of a buffer, without an address.
TensorView viewOf(const artifact::Buffer &buffer);

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_TENSORVIEW_H
