//===- Manifest.h - what a checkpoint consists of -------------------------------===//
//
// `manifest.json` is written last and makes a checkpoint valid: it names every file with size and hash, says which
// range of which unit each tensor holds, and how parameters lie in units, so that any other layout can be filled from
// it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_MANIFEST_H
#define TESSERA_RUNTIME_STATE_MANIFEST_H

#include "runtime/state/StateView.h"

#include <map>

namespace tessera {

/// Where training stands.
struct CheckpointInfo {
  uint64_t step = 0;         ///< Steps done.
  uint64_t dataPosition = 0; ///< Global index of the next sample.
  uint64_t seed = 0;
  uint64_t skippedSteps = 0, skippedInARow = 0; ///< Steps that changed nothing, in all and at the end; 0 in old files.
  Mesh mesh;
  std::map<std::string, std::string> extra; ///< Free: versions, the model's source, the data's path.
};

/// The tensor `key` of a file holds elements [begin, end) of a unit.
struct ManifestPiece {
  std::string key, unit;
  StateKind kind;
  int64_t begin = 0, end = 0;
};
struct ManifestFile {
  std::string name;
  uint64_t bytes = 0, hash = 0; ///< Hash: XXH3, 64 bits.
  std::vector<ManifestPiece> pieces;
};
struct ManifestUnit {
  std::string unit;
  StateKind kind;
  DataType dtype = DataType::F32;
  int64_t elements = 0;
  std::vector<ParameterSegment> segments;
};
struct Manifest {
  CheckpointInfo info;
  std::vector<ManifestUnit> units;
  std::vector<ManifestFile> files;
};

inline constexpr const char *manifestName = "manifest.json";

std::string manifestToJson(const Manifest &manifest);
/// Reads and checks a manifest: types, ranges, names of files without folders. `path` is named in messages.
Result<Manifest> manifestFromJson(ByteSpan text, const std::string &path);
Result<Manifest> readManifest(const std::string &path);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_MANIFEST_H
