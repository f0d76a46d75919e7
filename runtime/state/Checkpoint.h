//===- Checkpoint.h - saves and resumes training ---------------------------------===//
//
// A checkpoint is a folder `ckpt-<step>` with one safetensors file per rank and a manifest. It appears under its name
// only when it is complete, and is read back into any layout by parameter name: other ranks, other units. See
// docs/checkpoints.md.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_CHECKPOINT_H
#define TESSERA_RUNTIME_STATE_CHECKPOINT_H

#include "runtime/state/CheckpointFolder.h"
#include "runtime/state/Manifest.h"
#include "runtime/state/Peers.h"
#include "runtime/state/Safetensors.h"

#include <atomic>
#include <functional>
#include <thread>

namespace tessera {

struct CheckpointOptions {
  std::string folder; ///< Holds the `ckpt-<step>` folders and the file `latest`; made if it does not exist.
  int keep = 0;       ///< How many of the newest checkpoints stay, the one just written among them; 0: all.
  Peers peers = {};
  /// Asked by rank 0's process before the checkpoint gets its name; an error withdraws it.
  std::function<Status()> mayPublish = {};
  /// Whether the checkpoint of a step is the best one; asked by rank 0's process when it has got its name.
  std::function<bool(uint64_t)> isBest = {};
  bool isStrict = true; ///< For `CheckpointWriter`: a state that is not finite is an error, not just a warning.
};

/// Writes a checkpoint; `ranks` are those of this process. On an error (in any of the processes) all of them return it,
/// nothing of the checkpoint remains and older ones are untouched.
Status saveCheckpoint(const CheckpointOptions &options, const CheckpointInfo &info,
                      const std::vector<RankState> &ranks);

/// Writes checkpoints on a thread of its own, one at a time. `save` copies the state, so training may go on at once.
class CheckpointWriter {
public:
  explicit CheckpointWriter(CheckpointOptions options) : options(std::move(options)) {}
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter &) = delete;
  CheckpointWriter &operator=(const CheckpointWriter &) = delete;

  /// Waits for the checkpoint before (and returns its error), copies the state and begins to write. If a parameter or
  /// optimizer state (in any of the processes) is not finite, nothing is written and older checkpoints stay: an error
  /// that names it, or a warning (once) where the options say so.
  Status save(const CheckpointInfo &info, const std::vector<RankState> &ranks);
  /// The error of the checkpoint before, if writing it has ended; does not wait.
  Status check() { return hasEnded ? finish() : Status::ok(); }
  /// Waits until everything is written.
  Status finish();

private:
  Status refuse(const CheckpointInfo &info, const std::string &problem);

  CheckpointOptions options;
  std::thread thread;
  std::atomic<bool> hasEnded{false}; ///< the thread has set `lastStatus`
  Status lastStatus;
  bool hasWarned = false;
};

/// Reads a checkpoint folder as a whole and compares it with its hashes.
Status checkCheckpoint(const std::string &folder);

/// Step and hash of the manifest, which covers those of all files: equal for equal checkpoints.
Result<std::string> identityOfCheckpoint(const std::string &folder);

/// Fills the states of all ranks given from a checkpoint; files are checked against their hashes first. Parameters are
/// matched by name and role; all that are missing, too many or different are reported in one error.
Result<CheckpointInfo> loadCheckpoint(const std::string &path, const std::vector<RankState> &ranks);

/// The parameters of one role, whole and by name, as pieces of the ranks' memory (which must outlive them).
Result<std::vector<SafetensorsTensor>> gatherParameters(const std::vector<RankState> &ranks,
                                                        StateRole role = StateRole::Parameter);

/// The parameters of one role, then frozen parameters and the model's buffers.
Result<std::vector<SafetensorsTensor>> gatherModel(const std::vector<RankState> &ranks, StateRole role);

/// Writes all parameters (frozen ones, too) and buffers of a model to one safetensors file; with the role Average, the
/// averages of those that are trained in place of them.
Status exportParameters(const std::string &path, const std::vector<RankState> &ranks,
                        const std::map<std::string, std::string> &metadata = {}, StateRole role = StateRole::Parameter);

/// Where the averages are written beside the weights: "model-average.safetensors" for "model.safetensors".
std::string averagePath(const std::string &path);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_CHECKPOINT_H
