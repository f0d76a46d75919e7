//===- Staging.cpp - what goes to and from a device around a step ----------===//

#include "runtime/step/Staging.h"

#include <algorithm>

namespace tessera {

Status Staging::open(Device &usedDevice, const BufferMap &usedBuffers, const artifact::Program &program) {
  device = &usedDevice;
  buffers = &usedBuffers;
  constexpr size_t alignment = 64;
  size_t total = 0;
  std::vector<std::pair<uint32_t, size_t>> offsets;
  auto add = [&](uint32_t buffer) {
    if (buffers->hostView(buffer).data)
      return;
    offsets.emplace_back(buffer, total);
    total += (buffers->view(buffer).bytes() + alignment - 1) / alignment * alignment;
  };
  if (program.batch())
    for (const artifact::BatchTensor *batch : *program.batch())
      add(batch->buffer());
  if (program.hyper())
    for (const auto *hyper : *program.hyper())
      add(hyper->buffer());
  const size_t inputs = offsets.size();
  if (program.results())
    for (const artifact::ResultTensor *result : *program.results())
      add(result->buffer());
  if (total == 0)
    return Status::ok();
  TESSERA_ASSIGN_OR_RETURN(std::byte * memory, device->allocateStaging(total));
  for (size_t index = 0; index < offsets.size(); ++index) {
    auto [buffer, offset] = offsets[index];
    places[buffer] = memory + offset;
    TensorView view = buffers->view(buffer);
    if (index >= inputs && view.bytes() > 0)
      results.push_back({memory + offset, view.data, view.bytes()});
  }
  return Status::ok();
}

std::byte *Staging::input(uint32_t buffer) {
  if (auto *host = static_cast<std::byte *>(buffers->hostView(buffer).data))
    return host;
  TensorView view = buffers->view(buffer);
  std::byte *place = places.at(buffer);
  auto isSame = [&](const HostCopy &each) { return each.source == place; };
  if (view.bytes() > 0 && std::none_of(written.begin(), written.end(), isSame))
    written.push_back({view.data, place, view.bytes()});
  return place;
}

Status Staging::send() {
  if (written.empty())
    return Status::ok();
  Status sent = device->copyAllToDevice(written);
  written.clear();
  return sent;
}

Status Staging::receive() { return results.empty() ? Status::ok() : device->copyAllToHost(results); }

const std::byte *Staging::result(uint32_t buffer) const {
  const void *host = buffers->hostView(buffer).data;
  return host ? static_cast<const std::byte *>(host) : places.at(buffer);
}

} // namespace tessera
