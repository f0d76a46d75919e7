//===- Mesh.cpp - ranks and their groups -----------------------------------===//

#include "runtime/artifact/Mesh.h"

#include <algorithm>

namespace tessera {

static bool contains(const std::vector<std::string> &names, const std::string &name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t Mesh::numRanks() const {
  int64_t count = 1;
  for (const Axis &axis : axes)
    count *= axis.size;
  return count;
}

std::string_view toString(artifact::AxisRole role) {
  static constexpr std::string_view names[] = {"replica", "data", "sequence", "model", "expert", "stage"};
  return names[static_cast<size_t>(role)];
}

std::string Mesh::toString() const {
  std::string text;
  for (const Axis &axis : axes)
    text.append(text.empty() ? "" : ", ")
        .append(axis.name + "=" + std::to_string(axis.size) + " (")
        .append(tessera::toString(axis.role))
        .append(")");
  return text;
}

int64_t Mesh::groupSize(const std::vector<std::string> &groupAxes) const {
  int64_t count = 1;
  for (const Axis &axis : axes)
    if (contains(groupAxes, axis.name))
      count *= axis.size;
  return count;
}

int64_t Mesh::positionInGroup(const std::vector<std::string> &groupAxes, int rank) const {
  int64_t position = 0, scale = 1, rest = rank;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (contains(groupAxes, axis->name)) {
      position += rest % axis->size * scale;
      scale *= axis->size;
    }
    rest /= axis->size;
  }
  return position;
}

std::vector<int> Mesh::groupMembers(const std::vector<std::string> &groupAxes, int rank) const {
  // `base` is the member at position 0; adding the strides of the group's axes reaches the others.
  struct Dim {
    int64_t size, stride;
  };
  std::vector<Dim> dims; // minor first
  int64_t stride = 1, base = rank, rest = rank;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    if (contains(groupAxes, axis->name)) {
      base -= rest % axis->size * stride;
      dims.push_back({axis->size, stride});
    }
    rest /= axis->size;
    stride *= axis->size;
  }
  std::vector<int> members(groupSize(groupAxes));
  for (size_t position = 0; position < members.size(); ++position) {
    int64_t member = base, left = position;
    for (const Dim &dim : dims) {
      member += left % dim.size * dim.stride;
      left /= dim.size;
    }
    members[position] = member;
  }
  return members;
}

} // namespace tessera
