//===- Promote.h - the common type of operands ------------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_PROMOTE_H
#define TESSERA_FRONTENDS_PT2_PROMOTE_H

#include "frontends/pt2/Call.h"

namespace tessera::pt2 {

/// The type in which PyTorch compares two operands, tensors or numbers: the higher of booleans, integers and floats, of
/// tensors with dimensions before those without, and of these before numbers (torch.result_type). Null if there is none
/// here, as of two different 16-bit floats.
mlir::Type promoted(const Call &call, llvm::StringRef first, llvm::StringRef second);

/// The type in which PyTorch computes what has a type: f32 for narrower floats, whose results are rounded once.
mlir::Type computedIn(mlir::Type element);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_PROMOTE_H
