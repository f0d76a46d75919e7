//===- Progress.cpp - how far each stream of a GPU has come -----------------===//

#include "runtime/device/cuda/Progress.h"

namespace tessera::cuda {

Progress::~Progress() {
  if (words)
    cuMemFreeHost(const_cast<uint32_t *>(words));
}

Status Progress::open(CUdevice device, size_t numInstructions) {
  numCommands = numInstructions;
  commands = std::make_unique<std::atomic<const Command *>[]>(numInstructions);
  int supports = 0;
  TESSERA_CU(cuDeviceGetAttribute(&supports, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device));
  isSupported = supports != 0;
  void *memory = nullptr;
  TESSERA_CU(cuMemHostAlloc(&memory, maxStreams * sizeof(uint32_t), CU_MEMHOSTALLOC_PORTABLE));
  words = static_cast<uint32_t *>(memory);
  reset();
  return Status::ok();
}

void Progress::reset() {
  for (int stream = 0; stream < maxStreams; ++stream)
    words[stream] = 0;
}

Status Progress::write(const Command &command, uint32_t value, CUstream stream) {
  if (!isSupported || command.stream >= maxStreams)
    return Status::ok();
  TESSERA_CU(cuStreamWriteValue32(stream, deviceAddress(const_cast<uint32_t *>(words + command.stream)), value, 0));
  return Status::ok();
}

std::vector<const Command *> Progress::underWay() const {
  std::vector<const Command *> found;
  for (int stream = 0; stream < maxStreams; ++stream)
    if (uint32_t word = words[stream]; word % 2 == 1 && word / 2 < numCommands)
      if (const Command *known = commands[word / 2].load(std::memory_order_acquire))
        found.push_back(known);
  return found;
}

std::string Progress::describe(const std::vector<const Command *> &commands) {
  std::string text;
  for (const Command *command : commands) {
    text += (text.empty() ? "" : ", ") + std::string(command->kind);
    if (!command->detail.empty())
      text += " '" + std::string(command->detail) + "'";
    text += " of node '" + std::string(command->location) + "' (instruction " + std::to_string(command->number) + ")";
  }
  return text;
}

uint64_t Progress::fingerprint() const {
  uint64_t hash = 0;
  for (int stream = 0; stream < maxStreams; ++stream)
    hash = hash * 1099511628211u + words[stream];
  return hash;
}

} // namespace tessera::cuda
