//===- Operands.h - operands of one type and shape --------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_PT2_OPERANDS_H
#define TESSERA_FRONTENDS_PT2_OPERANDS_H

#include "frontends/pt2/Call.h"

namespace tessera::pt2 {

/// Tensors and numbers in an element type, and in their common shape (with `shape`, if any). Fails with the call's
/// reason; an argument that is None fails, too.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
operands(Call &c, mlir::Type element, llvm::ArrayRef<llvm::StringRef> names, llvm::ArrayRef<int64_t> shape = {});

/// `function` of self and other in a type, converted to that of the result.
mlir::LogicalResult binaryIn(Call &c, mlir::Type computed,
                             llvm::function_ref<mlir::Value(train::Build &, mlir::Value, mlir::Value)> make);

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_OPERANDS_H
