//===- NcclRing.cpp - collectives of the simulated NCCL ------------------------===//

#include "NcclRing.h"

#include "Numbers.h"

#include <algorithm>
#include <cstring>

namespace tessera::sim {

size_t widthOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  default:
    return 8;
  }
}

namespace {

template <typename T, typename Add>
void addTo(std::vector<std::byte> &sum, const std::vector<std::byte> &other, Add add) {
  auto *to = reinterpret_cast<T *>(sum.data());
  auto *from = reinterpret_cast<const T *>(other.data());
  for (size_t index = 0; index < sum.size() / sizeof(T); ++index)
    to[index] = add(to[index], from[index]);
}

/// Of a NaN and a number NCCL may give either: here the number, so that one who relies on the NaN finds out.
template <typename T> void pickTo(std::vector<std::byte> &best, const std::vector<std::byte> &other, bool isMax) {
  addTo<T>(best, other, [isMax](T a, T b) { return a != a ? b : b != b ? a : (a > b) == isMax ? a : b; });
}

bool pickTo(ncclDataType_t type, std::vector<std::byte> &best, const std::vector<std::byte> &other, bool isMax) {
  switch (type) {
  case ncclFloat32:
    pickTo<float>(best, other, isMax);
    return true;
  case ncclFloat64:
    pickTo<double>(best, other, isMax);
    return true;
  case ncclInt32:
    pickTo<int32_t>(best, other, isMax);
    return true;
  case ncclInt64:
    pickTo<int64_t>(best, other, isMax);
    return true;
  default:
    return false;
  }
}

bool addTo(ncclDataType_t type, std::vector<std::byte> &sum, const std::vector<std::byte> &other) {
  constexpr auto plus = [](auto a, auto b) { return static_cast<decltype(a)>(a + b); };
  switch (type) {
  case ncclFloat32:
    addTo<float>(sum, other, plus);
    return true;
  case ncclFloat64:
    addTo<double>(sum, other, plus);
    return true;
  case ncclInt32:
    addTo<uint32_t>(sum, other, plus);
    return true;
  case ncclInt64:
    addTo<uint64_t>(sum, other, plus);
    return true;
  case ncclBfloat16:
    addTo<uint16_t>(sum, other, [](uint16_t a, uint16_t b) { return Bf16::narrow(Bf16::widen(a) + Bf16::widen(b)); });
    return true;
  case ncclFloat16:
    addTo<uint16_t>(sum, other, [](uint16_t a, uint16_t b) { return F16::narrow(F16::widen(a) + F16::widen(b)); });
    return true;
  default:
    return false;
  }
}

std::vector<std::byte> load(const Gpu &gpu, uint64_t address, size_t bytes) {
  const std::byte *from = gpu.resolve(address, bytes, "NCCL");
  return {from, from + bytes};
}
void store(const Gpu &gpu, uint64_t address, const std::vector<std::byte> &bytes, size_t from, size_t size) {
  std::memcpy(gpu.resolve(address, size, "NCCL"), bytes.data() + from, size);
}

} // namespace

void finish(std::vector<std::shared_ptr<Arrival>> &all) {
  const Call &call = all[0]->call;
  size_t ranks = all.size(), bytes = call.count * widthOf(call.type);
  for (auto &one : all)
    if (one->call.kind != call.kind || one->call.count != call.count || one->call.type != call.type ||
        one->call.operation != call.operation)
      throw KernelFault(CUDA_ERROR_LAUNCH_FAILED, "NCCL: the ranks' collectives are not the same, which would hang");
  size_t inputBytes = call.kind == Exchange::ReduceScatter ? bytes * ranks : bytes;
  std::vector<std::vector<std::byte>> inputs;
  for (auto &one : all)
    inputs.push_back(load(*one->gpu, one->call.input, inputBytes));
  std::vector<std::byte> joined;
  if (call.kind == Exchange::AllGather)
    for (auto &input : inputs)
      joined.insert(joined.end(), input.begin(), input.end());
  else {
    joined = inputs[0];
    for (size_t rank = 1; rank < ranks; ++rank)
      if (call.operation == ncclSum ? !addTo(call.type, joined, inputs[rank])
                                    : !pickTo(call.type, joined, inputs[rank], call.operation == ncclMax))
        throw KernelFault(CUDA_ERROR_LAUNCH_FAILED, "NCCL: a reduction of this type is not simulated");
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (call.kind == Exchange::ReduceScatter)
      store(*all[rank]->gpu, all[rank]->call.output, joined, rank * bytes, bytes);
    else
      store(*all[rank]->gpu, all[rank]->call.output, joined, 0, joined.size());
    all[rank]->isDone = true;
  }
}

void match(Ring &ring) {
  for (auto &[sender, from] : ring.pointToPoint)
    for (Transfer &send : from->call.transfers) {
      if (!send.sends || send.isMatched)
        continue;
      for (auto &[receiver, to] : ring.pointToPoint) {
        if (receiver != send.peer)
          continue;
        auto wanted =
            std::find_if(to->call.transfers.begin(), to->call.transfers.end(), [rank = sender](const Transfer &one) {
              return !one.sends && !one.isMatched && one.peer == rank;
            });
        if (wanted == to->call.transfers.end())
          continue;
        if (wanted->bytes != send.bytes)
          throw KernelFault(CUDA_ERROR_LAUNCH_FAILED, "NCCL: send and receive are of different sizes");
        store(*to->gpu, wanted->address, load(*from->gpu, send.address, send.bytes), 0, send.bytes);
        send.isMatched = wanted->isMatched = true;
        break;
      }
    }
  std::erase_if(ring.pointToPoint, [](auto &entry) {
    auto &transfers = entry.second->call.transfers;
    entry.second->isDone = std::all_of(transfers.begin(), transfers.end(), [](auto &one) { return one.isMatched; });
    return entry.second->isDone;
  });
}

} // namespace tessera::sim
