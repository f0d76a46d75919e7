//===- RemoteCommunicator.cpp - one rank per process -----------------------===//

#include "runtime/comm/remote/RemoteCommunicator.h"

#include "runtime/artifact/TensorView.h"
#include "runtime/base/Log.h"
#include "runtime/comm/local/LocalMove.h"
#include "runtime/comm/remote/RemoteWorld.h"

#include <cstring>

namespace tessera {
namespace {

using artifact::CollectiveKind;

/// Memory for parts of peers on their way into a reduction, per link.
constexpr size_t stagingBytes = size_t{16} << 20;
/// Reductions of so few bytes are taken by every rank for itself: one message round instead of two.
constexpr size_t smallBytes = 4096;
/// Blobs up to this size travel with their length.
constexpr size_t inlineBytes = 248;

struct BlobHeader {
  uint64_t size = 0;
  char text[inlineBytes] = "";
};

class RemoteCommunicator : public Communicator {
public:
  explicit RemoteCommunicator(std::unique_ptr<RemoteWorld> world) : world(std::move(world)) {}
  ~RemoteCommunicator() override {
    if (!world->abortReason().isOk())
      return;
    if (Status status = world->finish(); !status.isOk())
      log::error("{}", status.message());
  }

  int rank() const override { return world->rank(); }
  int numRanks() const override { return world->numRanks(); }
  bool isDeterministic() const override { return true; }
  void abort(const Status &reason) override { world->abort(reason); }
  Status checkOthers(std::string_view what) override { return world->checkOthers(what); }
  Status abortReason() const override { return world->abortReason(); }
  void setBusy(bool isBusy) override { world->setBusy(isBusy); }
  Status prepare(const std::vector<int> &group, int channel) override { return world->prepare(group, channel); }

  Status run(const CollectiveCall &call) override {
    if (Status status = runOn(call); !status.isOk()) {
      world->abort(status);
      return world->abortReason();
    }
    return Status::ok();
  }

  Status barrier(std::string_view what) override { return gatherBlobs("", what, BlobChannel::Control).status(); }

  Status broadcast(std::string &blob, int root, std::string_view what) override {
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> blobs,
                             gatherBlobs(rank() == root ? blob : "", what, BlobChannel::Control));
    blob = blobs[root];
    return Status::ok();
  }

  Result<std::vector<std::string>> gatherBlobs(const std::string &blob, std::string_view what,
                                               BlobChannel channel) override {
    return exchangeBlobs(blob, -1, {what, {}, channel == BlobChannel::Checkpoints}, world->blobLink(channel));
  }

  Result<std::vector<std::string>> collectBlobs(const std::string &blob, int root, std::string_view what) override {
    return exchangeBlobs(blob, root, {what, {}, false}, world->blobLink(BlobChannel::Control));
  }

private:
  Status runOn(const CollectiveCall &call) {
    TESSERA_ASSIGN_OR_RETURN(RemoteLink * link, world->link(*call.group, call.channel));
    RemoteActivity activity{toString(call.kind), call.info, false};
    bool reduces = call.kind == CollectiveKind::ReduceScatter || call.kind == CollectiveKind::AllReduce;
    if (reduces && !local::canReduce(call.dtype))
      return TESSERA_ERROR(Unsupported, describe(toString(call.kind), call.info) + " of type " +
                                            artifact::EnumNameDataType(call.dtype));
    switch (call.kind) {
    case CollectiveKind::AllGather:
      return allGather(*link, call, activity);
    case CollectiveKind::AllToAll:
      return allToAll(*link, call, activity);
    case CollectiveKind::Permute:
      return permute(*link, call, activity);
    case CollectiveKind::ReduceScatter: {
      std::vector<Range> parts;
      int64_t part = call.elements / static_cast<int64_t>(link->members.size());
      for (int64_t position = 0; position < static_cast<int64_t>(link->members.size()); ++position)
        parts.push_back({position * part, (position + 1) * part});
      return reduceParts(*link, call, activity, parts, static_cast<std::byte *>(call.output));
    }
    case CollectiveKind::AllReduce:
      return allReduce(*link, call, activity);
    }
    return TESSERA_ERROR(Internal, "an unknown collective");
  }

  struct Range {
    int64_t begin, end;
  };

  /// Calls `body(peer)` for all other members, the next one in the group first, so that ranks do not all turn to the
  /// same one.
  template <typename Body> static void forPeers(const RemoteLink &link, const Body &body) {
    int size = static_cast<int>(link.members.size());
    for (int step = 1; step < size; ++step)
      body((link.position + step) % size);
  }

  Status allGather(RemoteLink &link, const CollectiveCall &call, const RemoteActivity &activity) {
    size_t bytes = static_cast<size_t>(call.elements) * byteWidth(call.dtype);
    auto *output = static_cast<std::byte *>(call.output);
    std::vector<Transfer> transfers;
    forPeers(link, [&](int peer) {
      transfers.push_back(receiveFrom(peer, output + peer * bytes, bytes));
      transfers.push_back(sendTo(peer, call.input, bytes));
    });
    local::copy(output + link.position * bytes, call.input, bytes);
    return world->exchange(link, std::move(transfers), activity);
  }

  Status allToAll(RemoteLink &link, const CollectiveCall &call, const RemoteActivity &activity) {
    size_t part = static_cast<size_t>(call.elements) * byteWidth(call.dtype) / link.members.size();
    const auto *input = static_cast<const std::byte *>(call.input);
    auto *output = static_cast<std::byte *>(call.output);
    std::vector<Transfer> transfers;
    forPeers(link, [&](int peer) {
      transfers.push_back(receiveFrom(peer, output + peer * part, part));
      transfers.push_back(sendTo(peer, input + peer * part, part));
    });
    local::copy(output + link.position * part, input + link.position * part, part);
    return world->exchange(link, std::move(transfers), activity);
  }

  Status permute(RemoteLink &link, const CollectiveCall &call, const RemoteActivity &activity) {
    int64_t size = static_cast<int64_t>(link.members.size());
    int64_t shift = (call.shift % size + size) % size;
    size_t bytes = static_cast<size_t>(call.elements) * byteWidth(call.dtype);
    if (shift == 0) {
      local::copy(call.output, call.input, bytes);
      return Status::ok();
    }
    int to = static_cast<int>((link.position + shift) % size),
        from = static_cast<int>((link.position + size - shift) % size);
    return world->exchange(link, {receiveFrom(from, call.output, bytes), sendTo(to, call.input, bytes)}, activity);
  }

  /// output = the reduction, in group order, of this rank's part of all inputs. The others' parts come in rounds, so
  /// that staging stays small.
  Status reduceParts(RemoteLink &link, const CollectiveCall &call, const RemoteActivity &activity,
                     const std::vector<Range> &parts, std::byte *output) {
    int64_t width = static_cast<int64_t>(byteWidth(call.dtype)), longest = 0;
    size_t others = link.members.size() - 1;
    for (const Range &part : parts)
      longest = std::max(longest, part.end - part.begin);
    int64_t chunk = std::clamp<int64_t>(static_cast<int64_t>(stagingBytes / std::max<size_t>(others, 1)) / width, 4096,
                                        std::max<int64_t>(longest, 4096));
    link.staging.resize(std::max(link.staging.size(), others * static_cast<size_t>(std::min(chunk, longest) * width)));
    const auto *input = static_cast<const std::byte *>(call.input);
    const Range &mine = parts[link.position];
    for (int64_t first = 0; first < longest; first += chunk) {
      auto round = [&](const Range &part) {
        return Range{std::min(part.begin + first, part.end), std::min(part.begin + first + chunk, part.end)};
      };
      Range own = round(mine);
      size_t ownBytes = static_cast<size_t>((own.end - own.begin) * width), slot = 0;
      std::vector<const void *> inputs(link.members.size());
      inputs[link.position] = input + own.begin * width;
      std::vector<Transfer> transfers;
      forPeers(link, [&](int peer) {
        std::byte *place = link.staging.data() + slot++ * ownBytes;
        inputs[peer] = place;
        if (ownBytes > 0)
          transfers.push_back(receiveFrom(peer, place, ownBytes));
        if (Range theirs = round(parts[peer]); theirs.end > theirs.begin)
          transfers.push_back(
              sendTo(peer, input + theirs.begin * width, static_cast<size_t>((theirs.end - theirs.begin) * width)));
      });
      TESSERA_RETURN_IF_ERROR(world->exchange(link, std::move(transfers), activity));
      local::reduce(call.reduction, call.dtype, output + (own.begin - mine.begin) * width, inputs, own.end - own.begin);
    }
    return Status::ok();
  }

  Status allReduce(RemoteLink &link, const CollectiveCall &call, const RemoteActivity &activity) {
    size_t count = link.members.size(), width = byteWidth(call.dtype);
    size_t bytes = static_cast<size_t>(call.elements) * width;
    auto *output = static_cast<std::byte *>(call.output);
    std::vector<Transfer> transfers;
    if (bytes <= smallBytes) {
      link.staging.resize(std::max(link.staging.size(), bytes * (count - 1)));
      std::vector<const void *> inputs(count, call.input);
      size_t slot = 0;
      forPeers(link, [&](int peer) {
        std::byte *place = link.staging.data() + slot++ * bytes;
        inputs[peer] = place;
        transfers.push_back(receiveFrom(peer, place, bytes));
        transfers.push_back(sendTo(peer, call.input, bytes));
      });
      TESSERA_RETURN_IF_ERROR(world->exchange(link, std::move(transfers), activity));
      local::reduce(call.reduction, call.dtype, output, inputs, call.elements);
      return Status::ok();
    }
    std::vector<Range> parts;
    for (size_t position = 0; position < count; ++position) {
      auto [begin, end] = local::part(call.elements, position, count);
      parts.push_back({begin, end});
    }
    auto place = [&](int position) { return output + parts[position].begin * static_cast<int64_t>(width); };
    auto size = [&](int position) { return static_cast<size_t>(parts[position].end - parts[position].begin) * width; };
    TESSERA_RETURN_IF_ERROR(reduceParts(link, call, activity, parts, place(link.position)));
    forPeers(link, [&](int peer) {
      if (size(peer) > 0)
        transfers.push_back(receiveFrom(peer, place(peer), size(peer)));
      if (size(link.position) > 0)
        transfers.push_back(sendTo(peer, place(link.position), size(link.position)));
    });
    return world->exchange(link, std::move(transfers), activity);
  }

  /// Everyone's blob to `root`, or to all (-1).
  Result<std::vector<std::string>> exchangeBlobs(const std::string &blob, int root, const RemoteActivity &activity,
                                                 RemoteLink &link) {
    int self = rank();
    BlobHeader mine;
    mine.size = blob.size();
    std::memcpy(mine.text, blob.data(), std::min(blob.size(), inlineBytes));
    std::vector<BlobHeader> headers(numRanks());
    auto sendsTo = [&](int peer) { return root < 0 || root == peer; };
    bool receives = root < 0 || root == self;
    std::vector<Transfer> transfers;
    forPeers(link, [&](int peer) {
      if (receives)
        transfers.push_back(receiveFrom(peer, &headers[peer], sizeof(BlobHeader)));
      if (sendsTo(peer))
        transfers.push_back(sendTo(peer, &mine, sizeof(BlobHeader)));
    });
    TESSERA_RETURN_IF_ERROR(world->exchange(link, std::move(transfers), activity));
    transfers.clear();
    std::vector<std::string> result(receives ? numRanks() : 0);
    if (receives)
      result[self] = blob;
    forPeers(link, [&](int peer) {
      if (receives && headers[peer].size > inlineBytes) {
        result[peer].resize(headers[peer].size);
        transfers.push_back(receiveFrom(peer, result[peer].data(), result[peer].size()));
      } else if (receives) {
        result[peer].assign(headers[peer].text, headers[peer].size);
      }
      if (sendsTo(peer) && blob.size() > inlineBytes)
        transfers.push_back(sendTo(peer, blob.data(), blob.size()));
    });
    TESSERA_RETURN_IF_ERROR(world->exchange(link, std::move(transfers), activity));
    return result;
  }

  std::unique_ptr<RemoteWorld> world;
};

} // namespace

Result<std::unique_ptr<Communicator>> createRemoteCommunicator(std::unique_ptr<Transport> transport,
                                                               const RemoteWorldOptions &options) {
  TESSERA_ASSIGN_OR_RETURN(std::unique_ptr<RemoteWorld> world, RemoteWorld::create(std::move(transport), options));
  return std::unique_ptr<Communicator>(std::make_unique<RemoteCommunicator>(std::move(world)));
}

} // namespace tessera
