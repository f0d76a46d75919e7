//===- AxisRole.cpp - what the axes of a mesh are for ---------------------===//

#include "compiler/dialect/dist/AxisRole.h"

#include "llvm/ADT/STLExtras.h"

#include <array>

namespace tessera::dist {

using Names = llvm::StringLiteral;
static constexpr Names kReplica[] = {"replicate", "replica", "dp", "ddp"};
static constexpr Names kData[] = {"shard", "data", "fsdp"};
static constexpr Names kSequence[] = {"seq", "sequence", "cp", "sp"};
static constexpr Names kModel[] = {"model", "tp"};
static constexpr Names kExpert[] = {"expert", "ep"};
static constexpr Names kStage[] = {"stage", "pp"};

// clang-format off
static constexpr AxisRoleInfo kTable[] = {
    //                                                           samples positions gradients state parameters
    {AxisRole::Replica,  "replica",  "samples; state is whole on each rank", true,  false, true,  false, false, "", kReplica},
    {AxisRole::Data,     "data",     "samples, and state by the strategy",   true,  false, true,  true,  false, "", kData},
    {AxisRole::Sequence, "sequence", "positions, state as over data",        false, true,  true,  true,  false, "", kSequence},
    {AxisRole::Model,    "model",    "dimensions of parameters",             false, false, false, false, true,  "", kModel},
    {AxisRole::Expert,   "expert",   "experts",                              true,  false, true,  false, false,
     "no pass sends samples to experts yet", kExpert},
    {AxisRole::Stage,    "stage",    "programs",                             false, false, false, false, false,
     "a step is one program on all ranks", kStage},
};
// clang-format on

static constexpr bool isInOrder() {
  for (size_t row = 0; row < std::size(kTable); ++row)
    if (static_cast<size_t>(kTable[row].role) != row)
      return false;
  return true;
}
static_assert(isInOrder(), "a role is the number of its row");

llvm::ArrayRef<AxisRoleInfo> axisRoles() { return kTable; }

const AxisRoleInfo &getInfo(AxisRole role) { return kTable[static_cast<size_t>(role)]; }

std::optional<AxisRole> findAxisRole(llvm::StringRef name) {
  for (const AxisRoleInfo &info : kTable)
    if (info.name == name)
      return info.role;
  return std::nullopt;
}

std::optional<AxisRole> findDefaultRole(llvm::StringRef axis) {
  for (const AxisRoleInfo &info : kTable)
    if (llvm::is_contained(info.defaultNames, axis))
      return info.role;
  return std::nullopt;
}

std::string axisText(llvm::StringRef name, AxisRole role) {
  return findDefaultRole(name) == role ? name.str() : name.str() + ":" + getInfo(role).name.str();
}

std::string axisRoleNames() {
  std::string text;
  for (const AxisRoleInfo &info : kTable)
    text += (&info == std::begin(kTable) ? "" : &info == std::end(kTable) - 1 ? " or " : ", ") + info.name.str();
  return text;
}

std::string defaultAxisNames() {
  std::string text;
  for (const AxisRoleInfo &info : kTable) {
    for (llvm::StringRef name : info.defaultNames)
      text += (text.empty() ? "" : ", ") + name.str();
    text += " (" + info.name.str() + ")";
  }
  return text;
}

} // namespace tessera::dist
