//===- CompressConstants.cpp - tables without repetition ------------------===//

#include "passes/lower/CompressConstants.h"

#include "compiler/dialect/train/Builders.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace tessera {

/// The elements' bytes, one element after the other; nothing for booleans, which are packed, and splats.
static ArrayRef<char> bytesOf(ElementsAttr value) {
  Type element = value.getElementType();
  if (value.isSplat() || element.isInteger(1) || element.getIntOrFloatBitWidth() % 8 != 0)
    return {};
  if (auto dense = dyn_cast<DenseElementsAttr>(value))
    return dense.getRawData();
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(value))
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      return blob->getData();
  return {};
}

/// Bytes from which on a dimension is looked through for repetitions of a part of it: the two halves of a table of
/// rotary positions.
static constexpr size_t kLargeTable = 64 << 10;

/// The number of rows of `inner` bytes, of every `count`, after which they repeat: 1 or `count`, or what divides it.
static int64_t periodOf(ArrayRef<char> bytes, size_t inner, int64_t count, bool anyPeriod) {
  size_t outer = bytes.size() / (inner * count);
  for (int64_t period = 1; period < count && (period == 1 || anyPeriod); ++period) {
    if (count % period != 0)
      continue;
    bool repeats = true;
    for (size_t o = 0; o < outer && repeats; ++o) {
      const char *first = bytes.data() + o * count * inner;
      repeats = memcmp(first, first + period * inner, (count - period) * inner) == 0;
    }
    if (repeats)
      return period;
  }
  return count;
}

static void compress(train::ConstantOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  ArrayRef<char> raw = bytesOf(op.getValue());
  size_t width = type.getElementTypeBitWidth() / 8;
  if (raw.empty() || raw.size() != static_cast<size_t>(type.getNumElements()) * width)
    return;
  std::vector<char> bytes(raw.begin(), raw.end());
  const bool isLarge = bytes.size() >= kLargeTable;
  // Each dimension as (copies, period): of what is stored, and of the whole.
  SmallVector<int64_t> shape(type.getShape()), smallShape, parts, kept;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    size_t inner = width;
    for (int64_t i = dim + 1; i < type.getRank(); ++i)
      inner *= shape[i];
    int64_t count = shape[dim], period = periodOf(bytes, inner, count, isLarge);
    if (period < count)
      parts.push_back(count / period);
    if (period > 1 || count == 1) {
      if (period > 1) {
        kept.push_back(parts.size());
        smallShape.push_back(period);
      }
      parts.push_back(period);
    }
    if (period == count)
      continue;
    std::vector<char> once;
    for (size_t o = 0, outer = bytes.size() / (inner * count); o < outer; ++o)
      once.insert(once.end(), bytes.begin() + o * count * inner, bytes.begin() + (o * count + period) * inner);
    bytes = std::move(once);
    shape[dim] = period;
  }
  if (bytes.size() == raw.size() && static_cast<int64_t>(smallShape.size()) == type.getRank())
    return;
  OpBuilder builder(op);
  train::Build build(builder, op.getLoc());
  auto smallType = RankedTensorType::get(smallShape, type.getElementType());
  Value small = build.constant(DenseElementsAttr::getFromRawBuffer(smallType, bytes));
  op.replaceAllUsesWith(build.reshape(build.broadcast(small, parts, kept), type.getShape()));
  op.erase();
}

void compressConstants(func::FuncOp function) {
  SmallVector<train::ConstantOp> constants;
  function.walk([&](train::ConstantOp op) { constants.push_back(op); });
  for (train::ConstantOp op : constants)
    compress(op);
}

} // namespace tessera
