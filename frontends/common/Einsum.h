//===- Einsum.h - sums of products by subscripts --------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_EINSUM_H
#define TESSERA_FRONTENDS_COMMON_EINSUM_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

/// Of all inputs of a call, one for each term of the equation. Fails with the call's reason.
mlir::FailureOr<mlir::Value> einsum(Call &n, llvm::StringRef equation);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_EINSUM_H
