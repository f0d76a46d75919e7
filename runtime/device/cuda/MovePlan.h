//===- MovePlan.h - chooses the dimensions of a strided copy ----------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CUDA_MOVEPLAN_H
#define TESSERA_RUNTIME_DEVICE_CUDA_MOVEPLAN_H

#include "runtime/artifact/TensorView.h"
#include "runtime/base/Status.h"
#include "runtime/device/cuda/MoveLayout.h"

namespace tessera::cuda {

/// Views of equal shape: dimensions of size 1 dropped, adjacent ones merged.
Result<MoveLayout> moveLayout(const TensorView &source, const TensorView &target);
/// Whether the move is one of adjacent bytes.
bool isDense(const MoveLayout &layout);
/// `value` converted to a type, in the low bytes.
Result<uint64_t> encodeNumber(artifact::DataType dtype, double value);

} // namespace tessera::cuda

#endif // TESSERA_RUNTIME_DEVICE_CUDA_MOVEPLAN_H
