//===- DerivedState.cpp - copies of state in a narrower type ----------------===//

#include "runtime/step/DerivedState.h"

#include "runtime/base/BFloat16.h"

#include <algorithm>
#include <vector>

namespace tessera {

static void narrow(const float *source, uint16_t *target, int64_t count) {
#pragma omp parallel for schedule(static) if (count > 65536)
  for (int64_t index = 0; index < count; ++index)
    target[index] = toBFloat16(source[index]);
}

/// Piece by piece through host memory, where the device's memory is reached by transfers only.
static Status deriveByTransfers(const TensorView &source, const TensorView &target, Device &device) {
  constexpr int64_t most = int64_t{16} << 20;
  const int64_t count = source.numElements();
  std::vector<float> wide(std::min(count, most));
  std::vector<uint16_t> halves(wide.size());
  for (int64_t begin = 0; begin < count; begin += most) {
    const int64_t part = std::min(most, count - begin);
    TESSERA_RETURN_IF_ERROR(device.copyToHost(wide.data(), source.as<float>() + begin, part * sizeof(float)));
    narrow(wide.data(), halves.data(), part);
    TESSERA_RETURN_IF_ERROR(device.copyToDevice(target.as<uint16_t>() + begin, halves.data(), part * sizeof(uint16_t)));
  }
  return Status::ok();
}

Status deriveState(const RankContext &context, Device &device) {
  const artifact::Package &package = context.artifact.package();
  if (!package.derived())
    return Status::ok();
  for (const artifact::DerivedTensor *derived : *package.derived()) {
    const uint32_t state = package.state()->Get(derived->state())->buffer();
    TensorView source = context.buffers.hostView(state), target = context.buffers.hostView(derived->buffer());
    if (source.data && target.data)
      narrow(source.as<float>(), target.as<uint16_t>(), source.numElements());
    else
      TESSERA_RETURN_IF_ERROR(
          deriveByTransfers(context.buffers.view(state), context.buffers.view(derived->buffer()), device));
  }
  return Status::ok();
}

} // namespace tessera
