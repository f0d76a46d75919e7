//===- Dist.h - the dist dialect --------------------------------*- C++ -*-===//

#ifndef TESSERA_COMPILER_DIALECT_DIST_DIST_H
#define TESSERA_COMPILER_DIALECT_DIST_DIST_H

#include "compiler/dialect/dist/AxisRole.h"
#include "compiler/dialect/dist/CollectiveKind.h"
#include "compiler/dialect/dist/ReductionKind.h"
#include "compiler/dialect/train/Train.h"

#include "compiler/dialect/dist/DistDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/dist/DistAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "compiler/dialect/dist/Collective.h.inc"
#include "compiler/dialect/dist/DistTypes.h.inc"
#define GET_OP_CLASSES
#include "compiler/dialect/dist/DistOps.h.inc"

namespace tessera::dist {

/// Module attribute: the mesh.
inline constexpr llvm::StringLiteral kMesh = "dist.mesh";
/// Argument or result attribute: sharding of the value.
inline constexpr llvm::StringLiteral kSharding = "dist.sharding";
/// Op attribute: array with one sharding per result.
inline constexpr llvm::StringLiteral kShardings = "dist.shardings";
/// Op attribute: why a start or a done stands where it does, in words.
inline constexpr llvm::StringLiteral kReason = "schedule.reason";
/// Argument or result attribute after localisation: the global type.
inline constexpr llvm::StringLiteral kGlobal = "dist.global";

/// Argument attribute: in which memory the argument lies, "host"; without it, in the device's.
inline constexpr llvm::StringLiteral kMemory = "dist.memory";
inline constexpr llvm::StringLiteral kHostMemory = "host";
inline constexpr llvm::StringLiteral kDeviceMemory = "device";

} // namespace tessera::dist

#endif // TESSERA_COMPILER_DIALECT_DIST_DIST_H
