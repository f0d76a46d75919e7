//===- Collectives.h - what schedule passes share ---------------*- C++ -*-===//

#ifndef TESSERA_PASSES_SCHEDULE_COLLECTIVES_H
#define TESSERA_PASSES_SCHEDULE_COLLECTIVES_H

#include "compiler/dialect/dist/Collective.h"
#include "compiler/dialect/train/PhaseAnalysis.h"

namespace tessera::schedule {

inline void setReason(mlir::Operation *op, const llvm::Twine &reason) {
  op->setAttr(dist::kReason, mlir::StringAttr::get(op->getContext(), reason));
}

} // namespace tessera::schedule

#endif // TESSERA_PASSES_SCHEDULE_COLLECTIVES_H
