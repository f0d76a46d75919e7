//===- CountValid.cpp - count_valid written out ---------------------------===//
//
// See CountValid.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/CountValid.h"

using namespace mlir;

namespace tessera::train {

Value writeOutCount(Build &b, CountValidOp op, bool asFunction) {
  RankedTensorType type = tensorType(op.getResult());
  Value targets = op.getTargets(), counts;
  if (auto ignored = op.getIgnoreIndex())
    counts = b.compare(CompareDirection::Ne, targets,
                       b.splatLike(targets, static_cast<double>(static_cast<int64_t>(*ignored))));
  else if (asFunction)
    counts = b.compare(CompareDirection::Eq, targets, targets);
  else
    return b.splat(type, std::max<double>(1.0, static_cast<double>(tensorType(targets).getNumElements())));
  return b.max(b.sumAll(b.convert(counts, type.getElementType())), b.splat(type, 1.0));
}

} // namespace tessera::train
