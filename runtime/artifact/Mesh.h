//===- Mesh.h - ranks and their groups -------------------------------------===//
//
// A rank is a row-major position in the mesh. The ranks that differ only on the axes of a group talk to each other, in
// the row-major order of their positions on those axes, of which the first that the group names is the major one.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_MESH_H
#define TESSERA_RUNTIME_ARTIFACT_MESH_H

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// "replica", "data", …
std::string_view toString(artifact::AxisRole role);

struct Mesh {
  struct Axis {
    std::string name;
    int64_t size;
    artifact::AxisRole role = artifact::AxisRole::Data;
  };
  std::vector<Axis> axes;

  int64_t numRanks() const;
  /// "nodes=2 (replica), gpus=8 (data)".
  std::string toString() const;
  /// Product of the sizes of the axes named.
  int64_t groupSize(const std::vector<std::string> &groupAxes) const;
  /// The ranks of `rank`'s group, by their positions on its axes: the first that it names is the major one.
  std::vector<int> groupMembers(const std::vector<std::string> &groupAxes, int rank) const;
  /// Where `rank` stands in its group.
  int64_t positionInGroup(const std::vector<std::string> &groupAxes, int rank) const;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_MESH_H
