//===- Staging.h - what goes to and from a device around a step ------------===//
//
// Batches and scalars of a step are gathered in pinned memory of the host, which goes to the device with one wait; so
// do the results on their way back. Where the host sees a buffer itself nothing is copied.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STEP_STAGING_H
#define TESSERA_RUNTIME_STEP_STAGING_H

#include "runtime/device/Device.h"

#include <unordered_map>
#include <vector>

namespace tessera {

class Staging {
public:
  /// Takes host memory for all inputs and results of the program that the host does not see. The others must outlive
  /// this.
  Status open(Device &device, const BufferMap &buffers, const artifact::Program &program);

  /// Where the host writes an input of the next step: a buffer of the batch or a scalar.
  std::byte *input(uint32_t buffer);
  /// Copies what was written since the last call.
  Status send();
  /// Copies all results.
  Status receive();
  /// Where a result is after `receive`.
  const std::byte *result(uint32_t buffer) const;

private:
  Device *device = nullptr;
  const BufferMap *buffers = nullptr;
  std::unordered_map<uint32_t, std::byte *> places; ///< by buffer
  std::vector<HostCopy> results, written;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_STEP_STAGING_H
