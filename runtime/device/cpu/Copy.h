//===- Copy.h - strided copies and fills -----------------------------------===//

#ifndef TESSERA_RUNTIME_DEVICE_CPU_COPY_H
#define TESSERA_RUNTIME_DEVICE_CPU_COPY_H

#include "runtime/artifact/TensorView.h"
#include "runtime/device/cpu/Team.h"

#include <cstdint>
#include <vector>

namespace tessera::cpu {

/// A copy between two strided views of equal shape, with its loops chosen once: dimensions of size 1 dropped, adjacent
/// ones merged, the innermost loop the one that is contiguous in the target; transposes go in blocks.
class CopyPlan {
public:
  CopyPlan(const TensorView &source, const TensorView &target);
  void run(const void *source, void *target, const Team &team) const;
  size_t bytes() const { return totalBytes; }

private:
  struct Dim {
    int64_t size, sourceStride, targetStride; // strides in bytes
  };
  template <typename T> void copyInner(const std::byte *source, std::byte *target) const;
  void copyRange(const std::byte *source, std::byte *target, int64_t begin, int64_t end) const;

  std::vector<Dim> outer; ///< major first
  Dim rows, columns;      ///< the two innermost loops
  size_t width;
  size_t totalBytes;
};

/// Writes `value`, converted to the view's type, to every element.
void fill(const TensorView &target, double value, const Team &team);

} // namespace tessera::cpu

#endif // TESSERA_RUNTIME_DEVICE_CPU_COPY_H
