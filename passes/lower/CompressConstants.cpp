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

static void compress(train::ConstantOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  ArrayRef<char> raw = bytesOf(op.getValue());
  size_t width = type.getElementTypeBitWidth() / 8;
  if (raw.empty() || raw.size() != static_cast<size_t>(type.getNumElements()) * width)
    return;
  std::vector<char> bytes(raw.begin(), raw.end());
  SmallVector<int64_t> shape(type.getShape()), kept;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    size_t inner = width;
    for (int64_t i = dim + 1; i < type.getRank(); ++i)
      inner *= shape[i];
    size_t count = shape[dim], outer = bytes.size() / (inner * count);
    bool repeats = true;
    for (size_t o = 0; o < outer && repeats; ++o) {
      const char *first = bytes.data() + o * count * inner;
      for (size_t i = 1; i < count && repeats; ++i)
        repeats = memcmp(first, first + i * inner, inner) == 0;
    }
    if (!repeats) {
      kept.push_back(dim);
      continue;
    }
    std::vector<char> once;
    for (size_t o = 0; o < outer; ++o)
      once.insert(once.end(), bytes.begin() + o * count * inner, bytes.begin() + (o * count + 1) * inner);
    bytes = std::move(once);
    shape[dim] = 1;
  }
  if (static_cast<int64_t>(kept.size()) == type.getRank())
    return;
  SmallVector<int64_t> smallShape;
  for (int64_t dim : kept)
    smallShape.push_back(shape[dim]);
  OpBuilder builder(op);
  train::Build build(builder, op.getLoc());
  auto smallType = RankedTensorType::get(smallShape, type.getElementType());
  Value small = build.constant(DenseElementsAttr::getFromRawBuffer(smallType, bytes));
  op.replaceAllUsesWith(build.broadcast(small, type.getShape(), kept));
  op.erase();
}

void compressConstants(func::FuncOp function) {
  SmallVector<train::ConstantOp> constants;
  function.walk([&](train::ConstantOp op) { constants.push_back(op); });
  for (train::ConstantOp op : constants)
    compress(op);
}

} // namespace tessera
