//===- MaskedKeys.cpp - what the masks of an attention come to -------------===//

#include "passes/simplify/MaskedKeys.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>

using namespace mlir;
using namespace tessera::train;

namespace tessera::simplify {

namespace {
/// What both show.
void addRanges(MaskClass &all, const MaskClass &more) {
  if (all.begin.empty()) {
    all.begin = more.begin;
    all.end = more.end;
    return;
  }
  for (auto [begin, end, otherBegin, otherEnd] : llvm::zip_equal(all.begin, all.end, more.begin, more.end)) {
    begin = std::max(begin, otherBegin);
    end = std::min(end, otherEnd);
  }
}

/// From here on every batch is checked.
void promiseToHaveRuns(BlockArgument input, Operation *reader) {
  auto func = cast<func::FuncOp>(input.getOwner()->getParentOp());
  const unsigned index = input.getArgNumber();
  if (func.getArgAttr(index, kHasRuns))
    return;
  func.setArgAttr(index, kHasRuns, UnitAttr::get(func.getContext()));
  auto name = func.getArgAttrOfType<StringAttr>(index, kName);
  reader->emitRemark("equal ids of documents are taken to lie side by side")
      << (name ? " in '" + name.str() + "'" : std::string())
      << "; a batch where they do not is refused (--document-ids any allows it, with a mask of all pairs)";
}

} // namespace

std::pair<Value, int> kindKey(const Mask &part) {
  return {part.value, part.isAdded * 4 + part.attendIsTrue * 2 + std::isinf(part.hidden)};
}

void classifyMasks(ArrayRef<Mask> masks, MaskKinds &kinds, bool promiseRuns, Operation *reader) {
  for (const Mask &part : masks)
    if (auto [entry, isNew] = kinds.try_emplace(kindKey(part)); isNew) {
      entry->second = classifyMask(part, promiseRuns);
      if (!entry->second.remark.empty())
        reader->emitRemark("documents are masked for all pairs of queries and keys: ") << entry->second.remark;
    }
}

MaskedKeys applyMasks(Build &b, ArrayRef<Mask> masks, const MaskKinds &kinds, ArrayRef<int64_t> shape, Type element,
                      bool showOwn, Operation *reader) {
  MaskedKeys seen;
  std::optional<int64_t> window;
  MaskClass ranges;
  Documents documents;
  bool takesPositionsAsSmall = false;
  for (Mask part : masks) {
    const MaskClass &known = kinds.at(kindKey(part));
    MaskKind kind = known.kind;
    const bool isByPosition = (kind != MaskKind::Nothing || !known.documents.empty()) && kind != MaskKind::Other;
    const bool showsNone =
        kind == MaskKind::Ranges && llvm::any_of(llvm::zip_equal(known.begin, known.end),
                                                 [](auto range) { return std::get<0>(range) == std::get<1>(range); });
    // Where a query sees nothing, by this mask or by it and others, what is hidden by a number that is not infinite
    // still counts.
    const bool isAlone = masks.size() == 1;
    const bool mayShowNone = !isAlone || shape[2] > shape[3] || showsNone || !known.documents.empty();
    if (isByPosition && known.hidesFinitely && mayShowNone && !showOwn)
      kind = MaskKind::Other;
    if (kind != MaskKind::Other) {
      documents.append(known.documents);
      for (const DocumentStarts &starts : known.documents)
        if (starts.promised)
          promiseToHaveRuns(starts.promised, reader);
      takesPositionsAsSmall |= known.takesPositionsAsSmall;
    }
    seen.causal |= kind == MaskKind::Causal || kind == MaskKind::Window;
    if (kind == MaskKind::Window)
      window = std::min(window.value_or(known.window), known.window);
    if (kind == MaskKind::Ranges)
      addRanges(ranges, known);
    if (kind != MaskKind::Other)
      continue;
    if (ArrayRef<int64_t> narrow = shapeOf(part.value); narrow.size() == 3)
      part.value = b.reshape(part.value, {narrow[0], 1, narrow[1], narrow[2]});
    Value operand = maskOperand(b, part, shape);
    seen.mask = seen.mask ? combineMasks(b, seen.mask, operand, element) : operand;
  }
  if (!ranges.begin.empty()) {
    double pairs = 0;
    for (auto [first, last] : llvm::zip_equal(ranges.begin, ranges.end))
      pairs += static_cast<double>(std::max<int64_t>(last - first, 0));
    seen.density = b.builder.getF64FloatAttr(pairs / (static_cast<double>(shape[2]) * static_cast<double>(shape[3])));
    auto boundType = RankedTensorType::get({1, shape[2]}, b.builder.getI64Type());
    seen.keys.begin = b.constant(DenseElementsAttr::get(boundType, ArrayRef<int64_t>(ranges.begin)));
    seen.keys.end = b.constant(DenseElementsAttr::get(boundType, ArrayRef<int64_t>(ranges.end)));
  }
  if (takesPositionsAsSmall)
    reader->emitRemark("positions that the mask of documents compares are taken not to be beyond 2^30");
  if (!documents.empty())
    seen.keys = rangesOfDocuments(b, documents, shape[2], seen.keys, seen.causal);
  if (window)
    seen.window = b.builder.getI64IntegerAttr(*window);
  return seen;
}

} // namespace tessera::simplify
