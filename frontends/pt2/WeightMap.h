//===- WeightMap.h - where files have parameters ----------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_WEIGHTMAP_H
#define TESSERA_FRONTENDS_PT2_WEIGHTMAP_H

#include "compiler/dialect/train/Train.h"
#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

/// The attribute of the module that says the same.
train::WeightMapAttr attributeOf(const WeightMap &map, mlir::MLIRContext &context);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_WEIGHTMAP_H
