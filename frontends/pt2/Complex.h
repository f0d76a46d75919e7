//===- Complex.h - complex operands of a call -------------------*- C++ -*-===//
//
// What handlers of operators on complex numbers share. A complex tensor is pairs of floats (frontends/common/Pairs.h).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_COMPLEX_H
#define TESSERA_FRONTENDS_PT2_COMPLEX_H

#include "frontends/common/Pairs.h"
#include "frontends/pt2/OpTable.h"

namespace tessera::pt2 {

/// A tensor or a number, real or complex, as pairs of parts of the result's type. Fails with the call's reason.
mlir::FailureOr<mlir::Value> pairsOf(Call &c, llvm::StringRef name);
/// Whether it is a tensor or a number without an imaginary part.
bool isReal(Call &c, llvm::StringRef name);
/// A real tensor or number in the result's type, with a last dimension of size 1, which broadcasts to both parts.
mlir::FailureOr<mlir::Value> factorOf(Call &c, llvm::StringRef name);
/// Broadcasts two values to their common shape.
mlir::LogicalResult broadcast(Call &c, mlir::Value &x, mlir::Value &y);

/// Sets what is made of the real and the imaginary part of `self`, which must be complex.
mlir::LogicalResult ofParts(Call &c,
                            llvm::function_ref<mlir::LogicalResult(train::Build &, mlir::Value, mlir::Value)> set);

/// The call's operator on real numbers, with what `replaced` gives instead of each input; null keeps an input as it is.
/// Fails with the call's reason.
mlir::FailureOr<Call> callReal(Call &c, llvm::function_ref<mlir::Value(int)> replaced);

/// Which part each complex input is in a call of real numbers, 0 or 1. An input that is left out is None there.
inline constexpr int64_t kLeftOut = -1;
using Parts = llvm::ArrayRef<int64_t>;
/// The call's operator on these parts of its complex inputs. Of real tensors that `widened` names the imaginary part is
/// 0; other ones are the same for all parts. Fails with the call's reason.
mlir::FailureOr<Call> callOfParts(Call &c, Parts parts, llvm::ArrayRef<llvm::StringRef> widened = {});

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_COMPLEX_H
