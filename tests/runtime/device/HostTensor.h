//===- HostTensor.h - tensors for tests, with any strides ------------------===//

#ifndef TESSERA_TESTS_RUNTIME_DEVICE_HOSTTENSOR_H
#define TESSERA_TESTS_RUNTIME_DEVICE_HOSTTENSOR_H

#include "runtime/artifact/TensorView.h"
#include "runtime/base/BFloat16.h"

#include <cmath>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace tessera::test {

/// A float tensor whose dimensions lie in memory in the order `order` (major first), with `gap` unused elements after
/// each row of the last of them.
class HostTensor {
public:
  HostTensor(std::vector<int64_t> shape, std::vector<size_t> order = {}, int64_t gap = 0) {
    if (order.empty())
      for (size_t dim = 0; dim < shape.size(); ++dim)
        order.push_back(dim);
    tensor.shape = shape;
    tensor.strides.assign(shape.size(), 0);
    int64_t stride = 1;
    for (size_t index = order.size(); index-- > 0;) {
      tensor.strides[order[index]] = stride;
      stride *= shape[order[index]];
      if (index + 1 == order.size())
        stride += gap;
    }
    storage.assign(static_cast<size_t>(stride) + 1, guard);
    tensor.data = storage.data();
  }

  HostTensor &random(uint32_t seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    forEach([&](const std::vector<int64_t> &index) { at(index) = normal(generator); });
    return *this;
  }

  TensorView view() const {
    TensorView result = tensor;
    result.data = const_cast<float *>(storage.data());
    return result;
  }
  float &at(const std::vector<int64_t> &index) {
    int64_t offset = 0;
    for (size_t dim = 0; dim < index.size(); ++dim)
      offset += index[dim] * tensor.strides[dim];
    return storage[offset];
  }
  const std::vector<int64_t> &shape() const { return tensor.shape; }

  void forEach(const std::function<void(const std::vector<int64_t> &)> &body) {
    std::vector<int64_t> index(tensor.shape.size(), 0);
    for (int64_t count = tensor.numElements(); count-- > 0;) {
      body(index);
      for (size_t dim = index.size(); dim-- > 0;) {
        if (++index[dim] < tensor.shape[dim])
          break;
        index[dim] = 0;
      }
    }
  }

  /// Elements of the storage that no index reaches still have their first value.
  bool gapsAreUntouched() {
    std::vector<bool> used(storage.size(), false);
    forEach([&](const std::vector<int64_t> &index) { used[&at(index) - storage.data()] = true; });
    for (size_t position = 0; position < storage.size(); ++position)
      if (!used[position] && storage[position] != guard)
        return false;
    return true;
  }
  const std::vector<float> &raw() const { return storage; }

private:
  static constexpr float guard = 12345.5f;
  TensorView tensor;
  std::vector<float> storage;
};

/// A bf16 copy of a tensor, which is itself rounded to what the copy holds.
class HalfTensor {
public:
  explicit HalfTensor(HostTensor &tensor) : tensor(tensor), half(tensor.view()), bits(tensor.raw().size()) {
    half.dtype = artifact::DataType::BF16;
    for (size_t position = 0; position < bits.size(); ++position)
      bits[position] = toBFloat16(tensor.raw()[position]);
    copyBack();
    half.data = bits.data();
  }
  const TensorView &view() const { return half; }
  void copyBack() {
    const float *first = tensor.raw().data();
    tensor.forEach(
        [&](const std::vector<int64_t> &index) { tensor.at(index) = widenBFloat16(bits[&tensor.at(index) - first]); });
  }

private:
  HostTensor &tensor;
  TensorView half;
  std::vector<uint16_t> bits;
};

/// Largest difference to a reference, relative to the largest value of the reference.
inline double relativeError(HostTensor &actual, const std::vector<double> &expected) {
  double largest = 0, difference = 0;
  size_t position = 0;
  actual.forEach([&](const std::vector<int64_t> &index) {
    double wanted = expected[position++], found = actual.at(index);
    if (std::isinf(wanted) && wanted == found)
      return;
    difference = std::isnan(found) ? INFINITY : std::max(difference, std::abs(found - wanted));
    largest = std::max(largest, std::abs(wanted));
  });
  return difference / std::max(largest, 1e-30);
}

} // namespace tessera::test

#endif // TESSERA_TESTS_RUNTIME_DEVICE_HOSTTENSOR_H
