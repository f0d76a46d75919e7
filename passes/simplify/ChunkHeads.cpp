//===- ChunkHeads.cpp - attention of some heads at a time -----------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/PartRegion.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_CHUNKHEADS
#include "passes/simplify/Passes.h.inc"

namespace {

constexpr int64_t kHeads = 1; ///< the dimension of queries, keys, values, results and masks

/// How so many query heads at a time are taken out of all.
struct Chunks {
  int64_t groups = 0, perGroup = 0; ///< key and value heads of a chunk, and query heads of each
  int64_t count = 0;
  bool sharesKeys = false; ///< every chunk has all keys and values

  /// Of `heads` query heads that share `groups` key heads `size` at a time; nothing if they cannot be taken so.
  static std::optional<Chunks> get(int64_t heads, int64_t groups, int64_t size) {
    if (heads <= 0 || groups <= 0)
      return std::nullopt;
    const int64_t perGroup = heads / groups;
    if (size > 0 && size % groups == 0 && perGroup % (size / groups) == 0)
      return Chunks{groups, size / groups, heads / size, true};
    if (size > 0 && size % perGroup == 0 && groups % (size / perGroup) == 0)
      return Chunks{size / perGroup, perGroup, heads / size, false};
    return std::nullopt;
  }
};

/// Writes out one attention, one chunk after the other.
LogicalResult writeChunks(AttentionOp attention, const Chunks &chunks) {
  // Of all heads a chunk takes a range: of the query heads of each key head, or of the key heads.
  const int64_t taken = chunks.sharesKeys ? chunks.perGroup : chunks.groups;
  const PartOf ofKeys{kHeads, 1, 1},
      ofQueries = chunks.sharesKeys ? PartOf{kHeads, chunks.groups, 1} : PartOf{kHeads, 1, chunks.perGroup};
  PartRegion region(taken * chunks.count);
  const int64_t queries = shapeOf(attention.getQuery())[kHeads];
  const unsigned key = attention.getKeyMutable().getOperandNumber(),
                 value = attention.getValueMutable().getOperandNumber();
  for (OpOperand &operand : attention->getOpOperands()) {
    ArrayRef<int64_t> shape = shapeOf(operand.get());
    if (operand.getOperandNumber() == key || operand.getOperandNumber() == value) {
      if (!chunks.sharesKeys)
        region.addReader(operand, ofKeys);
    } else if (shape.size() > kHeads + 1 && shape[kHeads] == queries) {
      region.addReader(operand, ofQueries); // ranges of keys have no heads, and a mask may have one for all
    }
  }
  region.close();
  region.forEachWhole([&](Value whole, StringRef why) {
    attention.emitRemark() << "not computed for some heads at a time: '" << whole.getDefiningOp()->getName() << "' "
                           << why;
  });

  OpBuilder builder(attention);
  SmallVector<SmallVector<Value>> results(attention->getNumResults());
  for (int64_t number = 0; number < chunks.count; ++number) {
    PartBuilder parts(region, builder, number * taken, taken);
    SmallVector<Value> operands;
    for (OpOperand &operand : attention->getOpOperands()) {
      const std::optional<PartOf> place = region.placeOf(operand);
      FailureOr<Value> part = place ? parts.get(operand.get(), *place) : operand.get();
      if (failed(part))
        return failure();
      operands.push_back(*part);
    }
    Operation *one = builder.clone(*attention);
    one->setOperands(operands);
    for (auto [whole, part, all] : llvm::zip_equal(attention->getResults(), one->getResults(), results)) {
      part.setType(parts.typeOf(whole, ofQueries));
      all.push_back(part);
    }
  }
  for (auto [whole, all] : llvm::zip_equal(attention->getResults(), results))
    if (!whole.use_empty())
      whole.replaceAllUsesWith(joinParts(builder, all, ofQueries, shapeOf(whole)));
  attention->erase();
  for (Operation *op : llvm::reverse(region.getOps()))
    op->erase();
  return success();
}

struct ChunkHeads : impl::ChunkHeadsBase<ChunkHeads> {
  using ChunkHeadsBase::ChunkHeadsBase;
  void runOnOperation() override {
    if (heads == 0)
      return;
    SmallVector<AttentionOp> all;
    getOperation().walk([&](AttentionOp op) { all.push_back(op); });
    for (AttentionOp op : all) {
      const int64_t queries = shapeOf(op.getQuery())[kHeads], keys = shapeOf(op.getKey())[kHeads];
      const std::optional<Chunks> chunks = Chunks::get(queries, keys, heads);
      if (!chunks) {
        op.emitError() << "attention has " << queries << " query heads and " << keys << " key heads, of which "
                       << heads.getValue() << " query heads cannot be taken at a time: expected a multiple of " << keys
                       << " that divides " << queries << ", or the query heads of a number of key heads that divides "
                       << keys;
        return signalPassFailure();
      }
      if (chunks->count > 1 && failed(writeChunks(op, *chunks)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace tessera
