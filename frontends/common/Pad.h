//===- Pad.h - padding ----------------------------------------*- C++ -*-===//

#ifndef TESSERA_FRONTENDS_COMMON_PAD_H
#define TESSERA_FRONTENDS_COMMON_PAD_H

#include "frontends/common/Call.h"

namespace tessera::frontend {

/// Elements before and after each dimension; negative: that many are taken away.
struct Pads {
  explicit Pads(int64_t rank = 0) : before(rank, 0), after(rank, 0) {}

  llvm::SmallVector<int64_t> before, after;
};

/// Elements that a tensor is padded with: the outermost one, those around it, those from the other end.
enum class PadMode { Edge, Reflect, Wrap };

/// Whether a tensor of this shape can be padded so; if not, the call has failed.
bool checkPads(Call &n, llvm::ArrayRef<int64_t> shape, const Pads &p);
/// `x` with pads that are checked.
mlir::Value padConstant(train::Build &b, mlir::Value x, const Pads &p, double value);
/// Pads with elements of the input, one dimension after the other. `name` is the mode's, for messages.
mlir::FailureOr<mlir::Value> padFromInput(Call &n, mlir::Value x, const Pads &p, PadMode mode, llvm::StringRef name);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_PAD_H
