//===- Reader.h - opens an artifact file -----------------------------------===//
//
// Reads the file into memory, checks header, hash, FlatBuffer structure and then every index, count and span
// (Verify.h), so that the rest of the runtime may use the program without checking again. The file is untrusted input
// up to here; it holds native code, so that running it is as dangerous as running any program.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_READER_H
#define TESSERA_RUNTIME_ARTIFACT_READER_H

#include "runtime/artifact/Mesh.h"
#include "runtime/artifact/TensorView.h"
#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

#include <memory>
#include <string>
#include <vector>

namespace tessera {

class Artifact {
public:
  static Result<std::shared_ptr<const Artifact>> open(const std::string &path);
  /// The same checks on bytes in memory (header and payload); `name` is used in messages.
  static Result<std::shared_ptr<const Artifact>> fromBytes(std::vector<uint8_t> bytes, const std::string &name);

  Artifact(const Artifact &) = delete;
  Artifact &operator=(const Artifact &) = delete;

  const artifact::Program &program() const { return *root; }
  const std::string &path() const { return name; }
  const Mesh &mesh() const { return ranks; }
  int64_t numRanks() const { return ranks.numRanks(); }
  /// Axes of a group of the program; none for -1 (a group of one).
  std::vector<std::string> groupAxes(int64_t group) const;
  int64_t groupSize(int64_t group) const { return ranks.groupSize(groupAxes(group)); }
  int64_t positionInGroup(int64_t group, int rank) const { return ranks.positionInGroup(groupAxes(group), rank); }
  std::vector<int> groupMembers(int64_t group, int rank) const { return ranks.groupMembers(groupAxes(group), rank); }

  /// Value of a key of Program.optimizer or Program.model; empty if there is none.
  std::string optimizerOption(const std::string &key) const;
  std::string modelOption(const std::string &key) const;

private:
  Artifact() = default;
  Status parse(const uint8_t *bytes, size_t size);

  std::string name;
  std::vector<uint8_t> owned;
  const artifact::Program *root = nullptr;
  Mesh ranks;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_READER_H
