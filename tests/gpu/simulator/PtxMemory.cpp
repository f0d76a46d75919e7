//===- PtxMemory.cpp - loads and stores of PTX ------------------------------===//

#include "Ptx.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tessera::sim {
namespace {

enum class Space { Global, Shared, Local, Parameter };

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

template <Space S>
std::byte *place(Warp &warp, uint64_t address, uint32_t bytes, const Instruction &i, int lane, bool writes) {
  if (address & (bytes - 1))
    warp.fail(misaligned, "address " + hex(address) + " is no multiple of " + std::to_string(bytes), i);
  if constexpr (S == Space::Global)
    return warp.global(address, bytes, i);
  else if constexpr (S == Space::Shared)
    return warp.shared(address, bytes, i, lane, writes);
  else if constexpr (S == Space::Local)
    return warp.local(address, bytes, i, lane);
  else
    return const_cast<std::byte *>(warp.parameter(address, bytes, i));
}

/// Where the memory of an instruction lies, if all its lanes are inside of one piece, and aligned: then address + shift
/// is the place.
struct Piece {
  bool holdsAll = false;
  uint64_t shift = 0;
};

/// The addresses of all lanes; what lanes that do not take part have is not defined.
template <Space S>
Piece pieceOf(Warp &warp, const Instruction &i, uint32_t lanes, uint32_t bytes, uint64_t (&addresses)[warpSize]) {
  const auto offset = static_cast<uint64_t>(i.offset);
  if (i.hasWideAddress) {
    const uint64_t *base = warp.at<uint64_t>(i.a);
    for (int lane = 0; lane < warpSize; ++lane)
      addresses[lane] = base[lane] + offset;
  } else {
    const uint32_t *base = warp.at<uint32_t>(i.a);
    for (int lane = 0; lane < warpSize; ++lane)
      addresses[lane] = base[lane] + offset;
  }
  const Block &block = *warp.block;
  uint64_t begin = 0, size = 0, data = 0;
  if constexpr (S == Space::Global) {
    const Window &window = block.windows[i.cache];
    begin = window.begin;
    size = window.end - window.begin;
    data = begin + static_cast<uint64_t>(window.shift);
    if (window.end <= window.begin)
      return {};
  } else if constexpr (S == Space::Shared) {
    if (!block.shadows.empty())
      return {};
    size = block.shared.size();
    data = reinterpret_cast<uint64_t>(block.shared.data());
  } else if constexpr (S == Space::Parameter) {
    size = block.launch->parameters.size();
    data = reinterpret_cast<uint64_t>(block.launch->parameters.data());
  } else {
    return {};
  }
  if (size < bytes)
    return {};
  uint64_t wrong = 0;
  const uint64_t last = size - bytes, low = bytes - 1;
  if (lanes == everyLane)
    for (int lane = 0; lane < warpSize; ++lane)
      wrong |= static_cast<uint64_t>(addresses[lane] - begin > last) | (addresses[lane] & low);
  else
    for (uint32_t left = lanes; left; left &= left - 1) {
      uint64_t address = addresses[std::countr_zero(left)];
      wrong |= static_cast<uint64_t>(address - begin > last) | (address & low);
    }
  return {wrong == 0, data - begin};
}

/// `Memory` is as wide as the value in memory, `Register` as its register.
template <Space S, typename Memory, typename Register> void load(Warp &warp, const Instruction &i, uint32_t lanes) {
  const uint32_t bytes = sizeof(Memory) * i.count;
  uint64_t addresses[warpSize];
  Piece piece = pieceOf<S>(warp, i, lanes, bytes, addresses);
  if (piece.holdsAll && lanes == everyLane && i.count == 1) {
    Register *d = warp.at<Register>(i.vector[0]);
    for (int lane = 0; lane < warpSize; ++lane)
      d[lane] = static_cast<Register>(*reinterpret_cast<const Memory *>(addresses[lane] + piece.shift));
    return;
  }
  for (; lanes; lanes &= lanes - 1) {
    int lane = std::countr_zero(lanes);
    const std::byte *from = piece.holdsAll ? reinterpret_cast<const std::byte *>(addresses[lane] + piece.shift)
                                           : place<S>(warp, addresses[lane], bytes, i, lane, false);
    for (int part = 0; part < i.count; ++part) {
      Memory value;
      std::memcpy(&value, from + part * sizeof(Memory), sizeof(Memory));
      warp.at<Register>(i.vector[part])[lane] = static_cast<Register>(value);
    }
  }
}
template <Space S, typename Memory, typename Register> void store(Warp &warp, const Instruction &i, uint32_t lanes) {
  const uint32_t bytes = sizeof(Memory) * i.count;
  uint64_t addresses[warpSize];
  Piece piece = pieceOf<S>(warp, i, lanes, bytes, addresses);
  for (; lanes; lanes &= lanes - 1) {
    int lane = std::countr_zero(lanes);
    std::byte *to = piece.holdsAll ? reinterpret_cast<std::byte *>(addresses[lane] + piece.shift)
                                   : place<S>(warp, addresses[lane], bytes, i, lane, true);
    for (int part = 0; part < i.count; ++part) {
      auto value = static_cast<Memory>(warp.at<Register>(i.vector[part])[lane]);
      std::memcpy(to + part * sizeof(Memory), &value, sizeof(Memory));
    }
  }
}

template <Space S, typename Memory> Execute ofRegister(bool isLoad, uint32_t bytes) {
  switch (bytes) {
  case 2:
    return isLoad ? load<S, Memory, uint16_t> : store<S, Memory, uint16_t>;
  case 4:
    return isLoad ? load<S, Memory, uint32_t> : store<S, Memory, uint32_t>;
  case 8:
    return isLoad ? load<S, Memory, uint64_t> : store<S, Memory, uint64_t>;
  default:
    return nullptr;
  }
}

template <Space S> Execute ofSpace(bool isLoad, const std::string &type, uint32_t bytes) {
  bool isSigned = type[0] == 's' && isLoad;
  switch (typeBytes(type)) {
  case 1:
    return isSigned ? ofRegister<S, int8_t>(isLoad, bytes) : ofRegister<S, uint8_t>(isLoad, bytes);
  case 2:
    return isSigned ? ofRegister<S, int16_t>(isLoad, bytes) : ofRegister<S, uint16_t>(isLoad, bytes);
  case 4:
    return isSigned ? ofRegister<S, int32_t>(isLoad, bytes) : ofRegister<S, uint32_t>(isLoad, bytes);
  case 8:
    return ofRegister<S, uint64_t>(isLoad, bytes);
  default:
    return nullptr;
  }
}

} // namespace

Execute selectMemory(Mnemonic &mnemonic, Instruction &instruction, uint32_t registerBytes) {
  bool isLoad = mnemonic.name == "ld";
  std::string type = mnemonic.modifiers.back();
  mnemonic.modifiers.pop_back();
  mnemonic.take("nc");
  if (instruction.count > 1 && !mnemonic.take("v" + std::to_string(instruction.count)))
    return nullptr;
  if (mnemonic.take("global"))
    return ofSpace<Space::Global>(isLoad, type, registerBytes);
  if (mnemonic.take("shared"))
    return ofSpace<Space::Shared>(isLoad, type, registerBytes);
  if (mnemonic.take("local"))
    return ofSpace<Space::Local>(isLoad, type, registerBytes);
  if (isLoad && mnemonic.take("param"))
    return ofSpace<Space::Parameter>(isLoad, type, registerBytes);
  return nullptr;
}

void Warp::fail(int code, const std::string &what, const Instruction &instruction) {
  const Kernel &kernel = *block->launch->kernel;
  throw KernelFault(code, "kernel " + kernel.name + ", PTX line " + std::to_string(instruction.line) + ", block " +
                              std::to_string(block->index[0]) + "," + std::to_string(block->index[1]) +
                              ", warp of thread " + std::to_string(first) + ": " + what);
}

std::byte *Warp::global(uint64_t address, uint32_t bytes, const Instruction &instruction) {
  Window &window = block->windows[instruction.cache];
  if (address < window.begin || address + bytes > window.end) {
    window = block->memory->find(address);
    if (address < window.begin || address + bytes > window.end)
      fail(illegalAddress,
           std::to_string(bytes) + " bytes at " + hex(address) +
               (window.end ? " cross the end of an allocation" : " are in no allocation"),
           instruction);
  }
  return reinterpret_cast<std::byte *>(address + static_cast<uint64_t>(window.shift));
}

std::byte *Warp::local(uint64_t address, uint32_t bytes, const Instruction &instruction, int lane) {
  uint32_t size = block->launch->kernel->localBytes;
  if (address + bytes > size)
    fail(illegalAddress, "local address " + hex(address) + " of " + std::to_string(size), instruction);
  return locals + static_cast<size_t>(lane) * size + address;
}

const std::byte *Warp::parameter(uint64_t address, uint32_t bytes, const Instruction &instruction) {
  const std::vector<std::byte> &all = block->launch->parameters;
  if (address + bytes > all.size())
    fail(illegalAddress, "parameter address " + hex(address) + " of " + std::to_string(all.size()), instruction);
  return all.data() + address;
}

std::byte *Warp::shared(uint64_t address, uint32_t bytes, const Instruction &instruction, int lane, bool writes) {
  if (address + bytes > block->shared.size())
    fail(illegalAddress, "shared address " + hex(address) + " of " + std::to_string(block->shared.size()), instruction);
  if (!block->shadows.empty()) {
    auto thread = static_cast<uint16_t>(threadOf(lane));
    uint32_t epoch = block->epoch;
    for (uint64_t place = address; place < address + bytes; ++place) {
      Block::Shadow &shadow = block->shadows[place];
      bool wasWritten = shadow.writeEpoch == epoch && shadow.writer != thread;
      bool wasRead = shadow.readEpoch == epoch && (shadow.hasManyReaders || shadow.reader != thread);
      if (wasWritten || (writes && wasRead))
        fail(719,
             "race: thread " + std::to_string(thread) + (writes ? " writes" : " reads") + " shared byte " +
                 std::to_string(place) + " that another thread has " + (wasWritten ? "written" : "read") +
                 " since the last barrier",
             instruction);
      if (writes) {
        shadow.writeEpoch = epoch;
        shadow.writer = thread;
      } else {
        shadow.hasManyReaders = shadow.readEpoch == epoch && (shadow.hasManyReaders || shadow.reader != thread);
        shadow.readEpoch = epoch;
        shadow.reader = thread;
      }
    }
  }
  return block->shared.data() + address;
}

} // namespace tessera::sim
