//===- Einsum.h - sums of products by subscripts ----------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_EINSUM_H
#define TESSERA_FRONTENDS_COMMON_EINSUM_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

/// Sets the result of a call whose inputs are the operands of an equation such as "bij,bjk->bik".
mlir::LogicalResult einsum(Call &n, std::string equation);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_EINSUM_H
