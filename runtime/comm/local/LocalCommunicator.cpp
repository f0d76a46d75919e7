//===- LocalCommunicator.cpp - ranks are threads of one process ------------===//

#include "runtime/comm/local/LocalCommunicator.h"

#include "runtime/artifact/TensorView.h"
#include "runtime/comm/local/LocalMove.h"
#include "runtime/comm/local/LocalWorld.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace tessera {
namespace {

using artifact::CollectiveKind;

class LocalCommunicator : public Communicator {
public:
  LocalCommunicator(std::shared_ptr<LocalWorld> shared, int rank) : world(std::move(shared)), self(rank) {
    everyone.resize(world->numRanks);
    std::iota(everyone.begin(), everyone.end(), 0);
  }

  int rank() const override { return self; }
  int numRanks() const override { return world->numRanks; }
  bool isDeterministic() const override { return true; }
  void abort(const Status &reason) override { world->abort(reason); }
  Status abortReason() const override { return world->abortReason(); }
  void setBusy(bool isBusy) override { world->setBusy(self, isBusy); }
  Status prepare(const std::vector<int> &, int) override { return Status::ok(); }

  Status run(const CollectiveCall &call) override {
    LocalGroup &group = world->group(*call.group, call.channel);
    auto found = std::find(group.members.begin(), group.members.end(), self);
    if (found == group.members.end())
      return fail(TESSERA_ERROR(Internal, "rank " + std::to_string(self) + " is not in the group of " +
                                              describe(toString(call.kind), call.info)));
    int position = static_cast<int>(found - group.members.begin());
    if (call.kind == CollectiveKind::ReduceScatter || call.kind == CollectiveKind::AllReduce)
      if (!local::canReduce(call.dtype))
        return fail(TESSERA_ERROR(Unsupported, describe(toString(call.kind), call.info) + " of type " +
                                                   artifact::EnumNameDataType(call.dtype)));
    LocalActivity activity{toString(call.kind), call.info, false};
    group.calls[position] = call;
    TESSERA_RETURN_IF_ERROR(world->meet(group, position, activity));
    TESSERA_RETURN_IF_ERROR(compare(group, call));
    move(group, position, call);
    if (call.kind == CollectiveKind::AllReduce) {
      TESSERA_RETURN_IF_ERROR(world->meet(group, position, activity));
      collectParts(group, position, call);
    }
    return world->meet(group, position, activity);
  }

  Status barrier(std::string_view what) override {
    return world->meet(world->group(everyone, controlChannel), self, {what, {}, false});
  }

  Status broadcast(std::string &blob, int root, std::string_view what) override {
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> blobs, gatherBlobs(blob, what, BlobChannel::Control));
    blob = blobs[root];
    return Status::ok();
  }

  Result<std::vector<std::string>> gatherBlobs(const std::string &blob, std::string_view what,
                                               BlobChannel channel) override {
    return exchangeBlobs(blob, what, channel == BlobChannel::Control ? controlChannel : checkpointChannel, true);
  }

  Result<std::vector<std::string>> collectBlobs(const std::string &blob, int root, std::string_view what) override {
    return exchangeBlobs(blob, what, controlChannel, self == root);
  }

private:
  static constexpr int controlChannel = -1, checkpointChannel = -2;

  Result<std::vector<std::string>> exchangeBlobs(const std::string &blob, std::string_view what, int channel,
                                                 bool takesResult) {
    LocalGroup &group = world->group(everyone, channel);
    group.blobs[self] = &blob;
    LocalActivity activity{what, {}, channel == checkpointChannel};
    TESSERA_RETURN_IF_ERROR(world->meet(group, self, activity));
    std::vector<std::string> result;
    if (takesResult)
      for (const std::string *each : group.blobs)
        result.push_back(*each);
    TESSERA_RETURN_IF_ERROR(world->meet(group, self, activity));
    return result;
  }

  Status fail(Status status) {
    world->abort(status);
    return status;
  }

  /// All members must be at the same collective; anything else is a bug that would corrupt memory.
  Status compare(const LocalGroup &group, const CollectiveCall &call) {
    for (size_t position = 0; position < group.members.size(); ++position) {
      const CollectiveCall &other = group.calls[position];
      if (other.kind != call.kind || other.elements != call.elements || other.dtype != call.dtype ||
          other.shift != call.shift || other.reduction != call.reduction)
        return fail(TESSERA_ERROR(Internal, "rank " + std::to_string(self) + " is at " +
                                                describe(toString(call.kind), call.info) + ", rank " +
                                                std::to_string(group.members[position]) + " at " +
                                                describe(toString(other.kind), other.info)));
    }
    return Status::ok();
  }

  static const std::byte *inputOf(const LocalGroup &group, size_t position) {
    return static_cast<const std::byte *>(group.calls[position].input);
  }

  /// This rank's share of the work. Peers' inputs are only read, and only this rank's output is written.
  void move(const LocalGroup &group, size_t position, const CollectiveCall &call) {
    size_t count = group.members.size(), width = byteWidth(call.dtype);
    size_t bytes = static_cast<size_t>(call.elements) * width;
    auto *output = static_cast<std::byte *>(call.output);
    switch (call.kind) {
    case CollectiveKind::AllGather:
      // Each starts with its neighbour's part, so that ranks do not all read the same memory at once.
      for (size_t step = 0; step < count; ++step) {
        size_t from = (position + step) % count;
        local::copy(output + from * bytes, inputOf(group, from), bytes);
      }
      return;
    case CollectiveKind::AllToAll:
      for (size_t step = 0; step < count; ++step) {
        size_t from = (position + step) % count, part = bytes / count;
        local::copy(output + from * part, inputOf(group, from) + position * part, part);
      }
      return;
    case CollectiveKind::Permute: {
      int64_t size = static_cast<int64_t>(count), from = (static_cast<int64_t>(position) - call.shift) % size;
      local::copy(output, inputOf(group, from < 0 ? from + size : from), bytes);
      return;
    }
    case CollectiveKind::ReduceScatter: {
      int64_t part = call.elements / static_cast<int64_t>(count);
      reduceInto(group, call, output, part * static_cast<int64_t>(position), part);
      return;
    }
    case CollectiveKind::AllReduce: {
      auto [begin, end] = local::part(call.elements, position, count);
      reduceInto(group, call, output + begin * width, begin, end - begin);
      return;
    }
    }
  }

  /// output[0, elements) = reduction over the group, in its order, of input[first, first + elements).
  void reduceInto(const LocalGroup &group, const CollectiveCall &call, void *output, int64_t first, int64_t elements) {
    std::vector<const void *> inputs;
    for (size_t position = 0; position < group.members.size(); ++position)
      inputs.push_back(inputOf(group, position) + first * static_cast<int64_t>(byteWidth(call.dtype)));
    local::reduce(call.reduction, call.dtype, output, inputs, elements);
  }

  /// Second half of an all_reduce: the parts that the others have reduced.
  void collectParts(const LocalGroup &group, size_t position, const CollectiveCall &call) {
    size_t count = group.members.size(), width = byteWidth(call.dtype);
    for (size_t step = 1; step < count; ++step) {
      size_t from = (position + step) % count;
      auto [begin, end] = local::part(call.elements, from, count);
      local::copy(static_cast<std::byte *>(call.output) + begin * width,
                  static_cast<const std::byte *>(group.calls[from].output) + begin * width, (end - begin) * width);
    }
  }

  std::shared_ptr<LocalWorld> world;
  int self;
  std::vector<int> everyone;
};

} // namespace

std::vector<std::unique_ptr<Communicator>> createLocalWorld(int numRanks, const LocalWorldOptions &options) {
  auto world = std::make_shared<LocalWorld>(numRanks, options);
  std::vector<std::unique_ptr<Communicator>> result;
  result.reserve(numRanks);
  for (int rank = 0; rank < numRanks; ++rank)
    result.push_back(std::make_unique<LocalCommunicator>(world, rank));
  return result;
}

} // namespace tessera
