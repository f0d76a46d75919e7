//===- CheckpointFolder.h - the checkpoints of a run -----------------------------===//
//
// Names in a folder of checkpoints: `ckpt-<step>`, the file `latest`, and hidden ones of what is being written or
// replaced. Files inside a checkpoint are of no concern here.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_CHECKPOINTFOLDER_H
#define TESSERA_RUNTIME_STATE_CHECKPOINTFOLDER_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tessera {

std::string checkpointName(uint64_t step);
/// The step of "ckpt-<step>", or nothing for other names.
std::optional<uint64_t> stepOfCheckpoint(const std::string &name);

/// Makes an empty hidden folder to write checkpoint `name` into.
Result<std::filesystem::path> makeTemporaryCheckpoint(const std::string &folder, const std::string &name);
/// Gives a complete temporary folder its name; one of the same step (from before a resume) is replaced. At any moment
/// one of the two is whole under a name that `recoverCheckpoints` knows. Then `latest` names it.
Status publishCheckpoint(const std::filesystem::path &temporary, const std::filesystem::path &target);
/// Removes all but the `keep` newest checkpoints (0: none) and the best one. Those of later steps than `current`, which
/// was just written, are older: the run was resumed before them. Failing is no reason to stop training.
void removeOldCheckpoints(const std::string &folder, int keep, uint64_t current);

/// Ends what a process that was killed had begun: a replacement that was half done is undone, temporary files and
/// folders are removed. Only while no other process writes there.
Status recoverCheckpoints(const std::string &folder);

/// Makes a checkpoint the default of --resume: the file `latest` names it.
Status makeLatest(const std::filesystem::path &checkpoint);

/// The file `best` names a checkpoint, which then stays until another one is the best.
Status makeBest(const std::filesystem::path &checkpoint);
/// The step of the checkpoint that `best` names, if it is there.
std::optional<uint64_t> bestCheckpoint(const std::string &folder);
/// No checkpoint is the best one.
void forgetBest(const std::string &folder);
/// Removes a checkpoint, if it is there. Failing is no reason to stop training.
void removeCheckpoint(const std::string &folder, uint64_t step);

/// The checkpoint that `path` means: itself, the one that its file `latest` names, or `path` is a file `latest` or
/// `best`. If that one is missing, the error names the newest that is whole.
Result<std::string> findCheckpoint(const std::string &path);
/// The newest checkpoint of a folder whose files all pass their checks, with a warning for each newer one. Nothing if
/// there is none at all; none whole is an error.
Result<std::optional<std::string>> newestWholeCheckpoint(const std::string &folder);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_CHECKPOINTFOLDER_H
