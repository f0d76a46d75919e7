//===- ScaleLayout.cpp - how a library takes scales -----------------------===//
//
// See ScaleLayout.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/exec/ScaleLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera::exec {

namespace {
struct Row {
  ScaleMode mode;
  ScaleBlocks blocks;
};
} // namespace

static constexpr Row kModes[] = {
    {ScaleMode::Tensor, {0, 0}},           {ScaleMode::Row, {0, 1}},      {ScaleMode::Block128, {128, 1}},
    {ScaleMode::Block128x128, {128, 128}}, {ScaleMode::Block32, {32, 1}},
};

/// Rows and blocks of a tile of block32.
static constexpr int64_t kTileRows = 128, kTileBlocks = 4, kTileLanes = 32;
/// Scales of block128x128 along what is contracted come in such groups.
static constexpr int64_t kGroup = 4;

static int64_t ceilDiv(int64_t x, int64_t y) { return llvm::divideCeil(x, y); }

static const Row &rowOf(ScaleMode mode) {
  return *llvm::find_if(kModes, [&](const Row &row) { return row.mode == mode; });
}

ScaleBlocks blocksOf(ScaleMode mode) { return rowOf(mode).blocks; }

bool isModePair(ScaleMode lhs, ScaleMode rhs) {
  auto has = [&](ScaleMode mode) { return lhs == mode || rhs == mode; };
  return lhs == rhs ? lhs != ScaleMode::None && lhs != ScaleMode::Block128x128
                    : has(ScaleMode::Block128) && has(ScaleMode::Block128x128);
}

RankedTensorType scaleType(MLIRContext *context, ScaleMode mode, int64_t kept, int64_t contracted) {
  auto f32 = [&](ArrayRef<int64_t> shape) { return RankedTensorType::get(shape, Float32Type::get(context)); };
  switch (mode) {
  case ScaleMode::Row:
    return f32({kept});
  case ScaleMode::Block128:
    return f32({ceilDiv(contracted, 128), kept});
  case ScaleMode::Block128x128:
    return f32({ceilDiv(kept, 128), static_cast<int64_t>(llvm::alignTo(ceilDiv(contracted, 128), kGroup))});
  case ScaleMode::Block32:
    return RankedTensorType::get({ceilDiv(kept, kTileRows), ceilDiv(contracted, 32 * kTileBlocks), kTileLanes,
                                  kTileRows / kTileLanes, kTileBlocks},
                                 Float8E8M0FNUType::get(context));
  case ScaleMode::None:
  case ScaleMode::Tensor:
    return f32({});
  }
  llvm_unreachable("unknown mode");
}

int64_t scalePosition(ScaleMode mode, int64_t kept, int64_t contracted, int64_t row, int64_t column) {
  switch (mode) {
  case ScaleMode::Row:
    return row;
  case ScaleMode::Block128:
    return column / 128 * kept + row;
  case ScaleMode::Block128x128:
    return row / 128 * static_cast<int64_t>(llvm::alignTo(ceilDiv(contracted, 128), kGroup)) + column / 128;
  case ScaleMode::Block32: {
    const int64_t block = column / 32, tiles = ceilDiv(contracted, 32 * kTileBlocks);
    const int64_t tile = row / kTileRows * tiles + block / kTileBlocks, inTile = row % kTileRows;
    return tile * kTileRows * kTileBlocks + inTile % kTileLanes * (kTileRows / kTileLanes) * kTileBlocks +
           inTile / kTileLanes * kTileBlocks + block % kTileBlocks;
  }
  case ScaleMode::None:
  case ScaleMode::Tensor:
    return 0;
  }
  llvm_unreachable("unknown mode");
}

static LogicalResult verifyScales(Operation *op, StringRef name, const ScaledOperand &operand) {
  if (operand.mode == ScaleMode::None)
    return op->emitOpError() << name << " of 8-bit floats needs a mode of its scales";
  const int64_t kept = operand.type.getDimSize(0), contracted = operand.type.getDimSize(1);
  const ScaleBlocks blocks = blocksOf(operand.mode);
  if ((blocks.contracted > 1 && contracted % blocks.contracted != 0) ||
      (operand.mode == ScaleMode::Block128 && kept % 4 != 0))
    return op->emitOpError() << name << " of " << kept << " x " << contracted << " has no scales of mode "
                             << stringifyScaleMode(operand.mode);
  const RankedTensorType expected = scaleType(op->getContext(), operand.mode, kept, contracted);
  if (operand.scales.getShape() != expected.getShape() || operand.scales.getElementType() != expected.getElementType())
    return op->emitOpError() << "scales of " << name << " of mode " << stringifyScaleMode(operand.mode) << " are "
                             << expected << ", got " << operand.scales;
  return success();
}

LogicalResult verifyScaledOperands(Operation *op, const ScaledOperand &lhs, const ScaledOperand &rhs,
                                   ShapedType result) {
  const Type l = lhs.type.getElementType(), r = rhs.type.getElementType(), sum = result.getElementType();
  if (!isa<Float8E4M3FNType, Float8E5M2Type>(l) || !isa<Float8E4M3FNType, Float8E5M2Type>(r) ||
      (isa<Float8E5M2Type>(l) && isa<Float8E5M2Type>(r)))
    return op->emitOpError() << "multiplies f8E4M3FN by itself or by f8E5M2, got " << l << " and " << r;
  if (!isa<Float32Type, BFloat16Type, Float16Type>(sum))
    return op->emitOpError() << "has results of f32, bf16 or f16, got " << sum;
  for (auto [size, name] : {std::pair(lhs.type.getDimSize(0), "m"), std::pair(rhs.type.getDimSize(0), "n"),
                            std::pair(lhs.type.getDimSize(1), "k")})
    if (size % kScaledMultiple != 0)
      return op->emitOpError() << name << " must be a multiple of " << kScaledMultiple << ", got " << size;
  if (failed(verifyScales(op, "lhs", lhs)) || failed(verifyScales(op, "rhs", rhs)))
    return failure();
  if (!isModePair(lhs.mode, rhs.mode))
    return op->emitOpError() << "has no product of modes " << stringifyScaleMode(lhs.mode) << " and "
                             << stringifyScaleMode(rhs.mode);
  return success();
}

} // namespace tessera::exec
