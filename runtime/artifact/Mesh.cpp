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
  int64_t position = 0;
  for (const std::string &name : groupAxes) {
    int64_t stride = 1;
    for (auto axis = axes.rbegin(); axis != axes.rend(); stride *= axis->size, ++axis)
      if (axis->name == name)
        position = position * axis->size + rank / stride % axis->size;
  }
  return position;
}

std::vector<int> Mesh::groupMembers(const std::vector<std::string> &groupAxes, int rank) const {
  // `base` is the member at position 0; adding the strides of the group's axes reaches the others.
  struct Dim {
    int64_t size, stride;
  };
  std::vector<Dim> dims; // minor first
  int64_t base = rank;
  for (auto name = groupAxes.rbegin(); name != groupAxes.rend(); ++name) {
    int64_t stride = 1;
    for (auto axis = axes.rbegin(); axis != axes.rend(); stride *= axis->size, ++axis)
      if (axis->name == *name) {
        base -= rank / stride % axis->size * stride;
        dims.push_back({axis->size, stride});
      }
  }
  std::vector<int> members(groupSize(groupAxes));
  for (size_t position = 0; position < members.size(); ++position) {
    auto left = static_cast<int64_t>(position);
    int64_t member = base;
    for (const Dim &dim : dims) {
      member += left % dim.size * dim.stride;
      left /= dim.size;
    }
    members[position] = static_cast<int>(member);
  }
  return members;
}

} // namespace tessera
