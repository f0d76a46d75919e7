//===- AxisRole.h - what the axes of a mesh are for -------------*- C++ -*-===//
//
// Names of mesh axes are free; what an axis is for is one of a closed list of
// roles. The table of them, and of the names that need not say their role, is
// here and nowhere else.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_AXISROLE_H
#define TESSERA_COMPILER_DIALECT_DIST_AXISROLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace tessera::dist {

enum class AxisRole {
  Replica,  ///< samples are split, state is the same on all ranks
  Data,     ///< samples are split, and state if the strategy says so
  Sequence, ///< positions are split, state as over data axes
  Model,    ///< dimensions of parameters that a placement names
  Expert,   ///< experts; samples travel between ranks
  Stage,    ///< programs
};

/// One row of the table.
struct AxisRoleInfo {
  AxisRole role;
  llvm::StringLiteral name; ///< as in `nodes:replica=2`
  llvm::StringLiteral description;
  bool splitsSamples;
  bool splitsPositions;
  bool sumsGradients;    ///< ranks on it have terms of one gradient
  bool splitsState;      ///< a strategy may split parameters at rest, gradients and optimizer state over it
  bool splitsParameters; ///< parameters that are placed on it have a part on each rank, at all times
  /// Why an axis of this role cannot be larger than 1 yet; empty if it can.
  llvm::StringLiteral missing;
  /// Names of axes that have this role unless they say another. The first is the one the compiler uses itself.
  llvm::ArrayRef<llvm::StringLiteral> defaultNames;
};

/// The table, in the order of the enumeration.
llvm::ArrayRef<AxisRoleInfo> axisRoles();
const AxisRoleInfo &getInfo(AxisRole role);

/// The role of this name ("replica"); nothing if there is none.
std::optional<AxisRole> findAxisRole(llvm::StringRef name);
/// The role of an axis that says none; nothing if it has to.
std::optional<AxisRole> findDefaultRole(llvm::StringRef axis);
/// "dp", or "nodes:replica" where the name alone would not say the role.
std::string axisText(llvm::StringRef name, AxisRole role);
/// "replica, data, sequence, model, expert or stage".
std::string axisRoleNames();
/// "replicate, dp, ddp (replica), shard, fsdp (data), …": names that need no role.
std::string defaultAxisNames();

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_AXISROLE_H
