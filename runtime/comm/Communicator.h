//===- Communicator.h - how ranks talk -------------------------------------===//
//
// One object per rank. Collectives run on a *channel* (the stream's number): collectives of one channel and group match
// in order of issue, those of different channels do not wait for each other, so that each stream may have its own
// thread.
//
// A rank that waits longer than the stall timeout for another one ends all ranks, except while the other one says that
// it is busy with something that may take long (`setBusy`: reading data, writing a checkpoint).
//
// Sums are taken in group order, for every element, in every implementation of this interface that promises
// `isDeterministic`; then all_reduce equals reduce_scatter followed by all_gather bit for bit. Maxima and minima are
// NaN where any rank's value is, and 0 is above -0: they are the same bits in every implementation, but for those of a
// NaN.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_COMM_COMMUNICATOR_H
#define TESSERA_RUNTIME_COMM_COMMUNICATOR_H

#include "runtime/artifact/CollectiveNames.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// What is named in messages when a collective fails or stalls.
struct CollectiveInfo {
  int64_t step = 0;
  std::string_view label;    ///< e.g. the unit that is gathered
  std::string_view location; ///< source node
};

struct CollectiveCall {
  artifact::CollectiveKind kind = artifact::CollectiveKind::AllGather;
  artifact::ReductionKind reduction = artifact::ReductionKind::Sum; ///< of ReduceScatter and AllReduce
  artifact::DataType dtype = artifact::DataType::F32;
  const std::vector<int> *group = nullptr; ///< ranks in group order; this rank is one of them
  const void *input = nullptr;
  void *output = nullptr;
  int64_t elements = 0; ///< of the input: n for AllGather, group·n for ReduceScatter and AllToAll
  int64_t shift = 0;    ///< Permute: the input of position p becomes the output of position p + shift
  int channel = 0;
  CollectiveInfo info;
};

/// Who exchanges blobs. Each purpose has an order of its own, so that its threads need not agree with others.
enum class BlobChannel {
  Control,     ///< The rank's own thread.
  Checkpoints, ///< The thread that writes: it waits as long as the others are alive.
};

class Communicator {
public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int numRanks() const = 0;
  virtual bool isDeterministic() const = 0;

  /// Sets up what collectives of a group on a channel need. All ranks of the world call it, each with its own group,
  /// in the same order, before the first `run` with them.
  virtual Status prepare(const std::vector<int> &group, int channel) = 0;

  /// Blocks until this rank's output is complete and its input may be overwritten.
  virtual Status run(const CollectiveCall &call) = 0;
  /// All ranks of the world; `what` is named in messages.
  virtual Status barrier(std::string_view what) = 0;
  /// `blob` of rank `root` replaces everyone's.
  virtual Status broadcast(std::string &blob, int root, std::string_view what) = 0;
  /// Every rank's blob, in rank order, to everyone.
  virtual Result<std::vector<std::string>> gatherBlobs(const std::string &blob, std::string_view what,
                                                       BlobChannel channel = BlobChannel::Control) = 0;
  /// Every rank's blob, in rank order, to rank `root`; the others get an empty list.
  virtual Result<std::vector<std::string>> collectBlobs(const std::string &blob, int root, std::string_view what) = 0;

  /// Others that wait for this rank are patient until the next call with `false`.
  virtual void setBusy(bool isBusy) = 0;

  /// For waits that this interface does not see, as a GPU's: an error that ends all ranks if the process of another one
  /// has ended, or if nothing was heard of it for the stall timeout. `what` is waited for. Does not block.
  virtual Status checkOthers(std::string_view what) {
    static_cast<void>(what);
    return Status::ok(); // threads of one process end together
  }

  /// Ends all ranks: their calls under way and every later call return an error with this reason. The first reason
  /// wins.
  virtual void abort(const Status &reason) = 0;
  /// The reason, or ok.
  virtual Status abortReason() const = 0;
};

/// While one lives, others wait for this rank without a limit.
class BusyScope {
public:
  explicit BusyScope(Communicator &communicator) : communicator(communicator) { communicator.setBusy(true); }
  ~BusyScope() { communicator.setBusy(false); }
  BusyScope(const BusyScope &) = delete;
  BusyScope &operator=(const BusyScope &) = delete;

private:
  Communicator &communicator;
};

/// Seconds by which a rank waits longer for one that waits itself: the one that is really missing is named by those
/// that wait for it directly.
double indirectPatience(double stallTimeoutSeconds);

/// "all_gather 'h.0' of step 3 (node /h.0/attn)", for messages.
std::string describe(std::string_view what, const CollectiveInfo &info);
/// The message of a stall: which ranks (of the list) did not come, to what, and who waits.
std::string describeStall(const std::vector<int> &missing, const std::string &what, double seconds, int waiting);

} // namespace tessera

#endif // TESSERA_RUNTIME_COMM_COMMUNICATOR_H
