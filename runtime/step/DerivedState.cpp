//===- DerivedState.cpp - copies of state in a narrower type ----------------===//

#include "runtime/step/DerivedState.h"

#include "runtime/base/BFloat16.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tessera {

/// An error where a finite number would become infinite: what a step makes of it would be another result without a
/// word.
static Status narrow(const float *source, uint16_t *target, int64_t count) {
  int64_t lost = 0;
#pragma omp parallel for schedule(static) reduction(+ : lost) if (count > 65536)
  for (int64_t index = 0; index < count; ++index) {
    target[index] = toBFloat16(source[index]);
    lost += std::isinf(widenBFloat16(target[index])) && !std::isinf(source[index]);
  }
  if (lost == 0)
    return Status::ok();
  return TESSERA_ERROR(InvalidArgument, std::to_string(lost) +
                                            " finite numbers would be infinite in bf16, in which the step "
                                            "reads them; compile with --keep-f32 and the parameter's name");
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
    TESSERA_RETURN_IF_ERROR(narrow(wide.data(), halves.data(), part));
    TESSERA_RETURN_IF_ERROR(device.copyToDevice(target.as<uint16_t>() + begin, halves.data(), part * sizeof(uint16_t)));
  }
  return Status::ok();
}

Status deriveState(const RankContext &context, Device &device) {
  const artifact::Package &package = context.artifact.package();
  if (!package.derived())
    return Status::ok();
  for (const artifact::DerivedTensor *derived : *package.derived()) {
    const artifact::StateTensor *state = package.state()->Get(derived->state());
    TensorView source = context.buffers.hostView(state->buffer()), target = context.buffers.hostView(derived->buffer());
    const Status status =
        source.data && target.data
            ? narrow(source.as<float>(), target.as<uint16_t>(), source.numElements())
            : deriveByTransfers(context.buffers.view(state->buffer()), context.buffers.view(derived->buffer()), device);
    if (!status.isOk())
      return status.withContext("unit '" + state->name()->str() + "'");
  }
  return Status::ok();
}

} // namespace tessera
