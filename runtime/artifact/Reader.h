//===- Reader.h - opens an artifact file -----------------------------------===//
//
// Reads the file into memory, checks header, hash, FlatBuffer structure and then every index, count and span
// (Verify.h), so that the rest of the runtime may use the programs without checking again. The file is untrusted input
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
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// The number of the program of a training step.
inline constexpr size_t trainingProgram = 0;

class Artifact {
public:
  static Result<std::shared_ptr<const Artifact>> open(const std::string &path);
  /// The same checks on bytes in memory (header and payload); `name` is used in messages.
  static Result<std::shared_ptr<const Artifact>> fromBytes(std::vector<uint8_t> bytes, const std::string &name);

  Artifact(const Artifact &) = delete;
  Artifact &operator=(const Artifact &) = delete;

  const artifact::Package &package() const { return *root; }
  /// The program of a training step; every artifact has one.
  const artifact::Program &training() const { return program(trainingProgram); }
  const artifact::Program &program(size_t number) const {
    return *root->programs()->Get(static_cast<uint32_t>(number));
  }
  size_t numPrograms() const { return root->programs()->size(); }
  /// The number of the program of a kind, if there is one.
  std::optional<size_t> findProgram(artifact::ProgramKind kind) const;
  const std::string &path() const { return name; }
  const Mesh &mesh() const { return ranks; }
  int64_t numRanks() const { return ranks.numRanks(); }
  /// Axes of a group of the package; none for -1 (a group of one).
  std::vector<std::string> groupAxes(int64_t group) const;
  int64_t groupSize(int64_t group) const { return ranks.groupSize(groupAxes(group)); }
  int64_t positionInGroup(int64_t group, int rank) const { return ranks.positionInGroup(groupAxes(group), rank); }
  std::vector<int> groupMembers(int64_t group, int rank) const { return ranks.groupMembers(groupAxes(group), rank); }

  /// "compute", "reduce", or "reduce tp" for that of another axis than the one whose streams come first.
  std::string streamName(int stream) const;
  /// Value of a key of Package.model; empty if there is none.
  std::string modelOption(const std::string &key) const;

private:
  Artifact() = default;
  Status parse(const uint8_t *bytes, size_t size);

  std::string name;
  std::vector<uint8_t> owned;
  const artifact::Package *root = nullptr;
  Mesh ranks;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_READER_H
