//===- RecognizeAttention.cpp - softmax(QKᵀ)V to train.attention ----------===//

#include "passes/simplify/MaskedKeys.h"
#include "passes/simplify/Match.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_RECOGNIZEATTENTION
#include "passes/simplify/Passes.h.inc"

namespace {
using simplify::Mask;

/// What lies between the product of query and key and the softmax.
struct Scores {
  DotGeneralOp dot;
  double scale = 1.0;
  SmallVector<Mask> masks; ///< in the order in which they are applied
};

bool isBatchedProduct(DotGeneralOp dot) {
  const int64_t rank = tensorType(dot.getResult()).getRank();
  auto batch = llvm::to_vector(llvm::seq<int64_t>(0, rank - 2));
  return (rank == 3 || rank == 4) && dot.getLhsBatch() == ArrayRef<int64_t>(batch) &&
         dot.getRhsBatch() == ArrayRef<int64_t>(batch) && dot.getLhsContract().size() == 1;
}

/// Follows the scores back to the product; `why` says where that ends.
std::optional<Scores> scoresOf(Value value, std::string &why, int depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 8) {
    why = "the softmax is not taken of a product of query and key";
    return std::nullopt;
  }
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    if (isBatchedProduct(dot) && dot.getLhsContract()[0] + 1 == tensorType(dot.getLhs()).getRank())
      return Scores{dot, 1.0, {}};
    why = "the scores are not a product over the last dimension of the query with leading batch dimensions";
    return std::nullopt;
  }
  if (auto scaled = simplify::scaledBy(value)) {
    auto scores = scoresOf(scaled->first, why, depth + 1);
    if (!scores)
      return std::nullopt;
    if (!scores->masks.empty()) {
      why = "the scores are scaled after they are masked";
      return std::nullopt;
    }
    scores->scale *= scaled->second;
    return scores;
  }
  if (auto add = dyn_cast<AddOp>(op)) {
    for (auto [inner, mask] : {std::pair(add.getLhs(), add.getRhs()), std::pair(add.getRhs(), add.getLhs())})
      if (auto scores = scoresOf(inner, why, depth + 1)) {
        scores->masks.push_back({mask, /*isAdded=*/true, true, 0});
        return scores;
      }
    return std::nullopt;
  }
  if (auto select = dyn_cast<SelectOp>(op)) {
    const auto onTrue = simplify::uniformConstant(select.getOnTrue());
    const auto onFalse = simplify::uniformConstant(select.getOnFalse());
    const auto hidden = onTrue ? onTrue : onFalse;
    if (!hidden || *hidden > -1e4) {
      why = "the scores are selected against something that is not a large negative constant";
      return std::nullopt;
    }
    auto scores = scoresOf(onTrue ? select.getOnFalse() : select.getOnTrue(), why, depth + 1);
    if (scores)
      scores->masks.push_back({select.getPredicate(), /*isAdded=*/false, /*attendIsTrue=*/!onTrue, *hidden});
    return scores;
  }
  why = ("the scores pass through " + op->getName().getStringRef()).str();
  return std::nullopt;
}

/// Moves constant factors of an operand into the scale.
Value withoutScale(Value value, double &scale) {
  while (auto scaled = simplify::scaledBy(value)) {
    scale *= scaled->second;
    value = scaled->first;
  }
  return value;
}

/// The value with its last two dimensions swapped; composed with a transposition that it comes from.
Value swapped(Build &b, Value value) {
  const int64_t rank = tensorType(value).getRank();
  SmallVector<int64_t> permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  if (auto transpose = value.getDefiningOp<TransposeOp>()) {
    permutation = llvm::to_vector(transpose.getPermutation());
    value = transpose.getOperand();
  }
  std::swap(permutation[rank - 1], permutation[rank - 2]);
  if (llvm::is_sorted(permutation))
    return value;
  return b.transpose(value, permutation);
}

/// [B, G, T, D] if `value` [B, H, T, D] repeats each of G heads H/G times in a row, else null.
Value groupedSource(Build &b, Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  auto broadcast = reshape ? reshape.getOperand().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!broadcast || tensorType(value).getRank() != 4)
    return {};
  ArrayRef<int64_t> full = shapeOf(value), wide = shapeOf(broadcast), source = shapeOf(broadcast.getOperand());
  if (wide.size() != 5 || wide[0] != full[0] || wide[1] * wide[2] != full[1] || wide[3] != full[2] ||
      wide[4] != full[3])
    return {};
  ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
  const SmallVector<int64_t> grouped = {wide[0], wide[1], wide[3], wide[4]};
  const bool kept =
      dims == ArrayRef<int64_t>{0, 1, 2, 3, 4} && source == ArrayRef<int64_t>{wide[0], wide[1], 1, wide[3], wide[4]};
  if (!kept && !(dims == ArrayRef<int64_t>{0, 1, 3, 4} && source == ArrayRef<int64_t>(grouped)))
    return {};
  return b.reshape(broadcast.getOperand(), grouped);
}

/// The probabilities that the product with the values takes. Exporters guard against rows that attend to nothing,
/// whose softmax is no number: `select(p != p, 0, p)` is what train.attention gives for them anyway.
Value probabilitiesOf(SoftmaxOp softmax) {
  Value p = softmax.getResult();
  SelectOp guard;
  for (Operation *user : p.getUsers()) {
    if (auto select = dyn_cast<SelectOp>(user); select && !guard)
      guard = select;
    else if (!isa<CompareOp>(user))
      return p;
  }
  auto compare = guard ? guard.getPredicate().getDefiningOp<CompareOp>() : CompareOp();
  const bool guards = compare && compare->hasOneUse() && compare.getDirection() == CompareDirection::Ne &&
                      compare.getLhs() == p && compare.getRhs() == p && guard.getOnFalse() == p &&
                      simplify::uniformConstant(guard.getOnTrue()) == 0.0 && p.hasNUses(3);
  return guards ? guard.getResult() : p;
}

/// Makes of a whole attention's mask what it is. False if it is a mask after all.
bool narrowMask(AttentionOp op, simplify::MaskKinds &kinds, bool promiseRuns) {
  if (!op.getMask() || op.getBegin() || op.getWindow())
    return false;
  ArrayRef<int64_t> query = shapeOf(op.getQuery());
  const SmallVector<int64_t> shape = {query[0], query[1], query[2], shapeOf(op.getKey())[2]};
  if (shapeOf(op.getMask()).take_back(2) != ArrayRef<int64_t>(shape).take_back(2))
    return false; // one row stands for all
  const bool isAdded = !tensorType(op.getMask()).getElementType().isInteger(1);
  const Mask part{op.getMask(), isAdded, /*attendIsTrue=*/true, -std::numeric_limits<double>::infinity()};
  simplify::classifyMasks(part, kinds, promiseRuns, op);
  if (kinds.at(simplify::kindKey(part)).kind == simplify::MaskKind::Other)
    return false;
  OpBuilder builder(op);
  Build b(builder, op.getLoc());
  const simplify::MaskedKeys seen =
      simplify::applyMasks(b, part, kinds, shape, tensorType(op.getQuery()).getElementType(),
                           kinds.at(simplify::kindKey(part)).showsOwn, op);
  if (seen.mask)
    return false;
  op.getMaskMutable().clear();
  if (seen.keys.begin) {
    op.getBeginMutable().assign(seen.keys.begin);
    op.getEndMutable().assign(seen.keys.end);
  }
  op.setCausal(op.getCausal() || seen.causal);
  op.setWindowAttr(seen.window);
  op.setDensityAttr(seen.density);
  return true;
}

/// Rewrites one attention whose softmax gives `probabilities`; false with a reason if it is not one.
bool convert(SoftmaxOp softmax, Value probabilities, DotGeneralOp product, simplify::MaskKinds &kinds, bool promiseRuns,
             std::string &why) {
  const int64_t rank = tensorType(probabilities).getRank();
  if (tensorType(probabilities).getElementType().isF64()) {
    why = "no library computes attention in f64";
    return false;
  }
  if (static_cast<int64_t>(softmax.getDim()) != rank - 1) {
    why = "the softmax is not over the last dimension";
    return false;
  }
  if (!probabilities.hasOneUse()) {
    why = "the probabilities have other uses";
    return false;
  }
  if (!isBatchedProduct(product) || product.getLhs() != probabilities || product.getLhsContract()[0] != rank - 1) {
    why = "the probabilities are not the left operand of a product over the keys with leading batch dimensions";
    return false;
  }
  auto scores = scoresOf(softmax.getOperand(), why);
  if (!scores)
    return false;

  simplify::classifyMasks(scores->masks, kinds, promiseRuns, softmax);
  // Then no query sees nothing.
  const bool showOwn =
      llvm::all_of(scores->masks, [&](const Mask &part) { return kinds.at(simplify::kindKey(part)).showsOwn; });

  // Scores that are hidden by one finite number are equal where a query sees nothing. Beside another mask they are not.
  const bool uniformRows = !showOwn && llvm::any_of(scores->masks, simplify::hasUniformRows);
  if (uniformRows && llvm::any_of(scores->masks, [&](const Mask &part) {
        return !simplify::hasUniformRows(part) || part.hidden != scores->masks.front().hidden;
      })) {
    why = "a mask by a finite number stands beside another mask, and a query may see no key";
    return false;
  }

  OpBuilder builder(product);
  Build b(builder, product.getLoc());
  double scale = scores->scale;
  Value query = withoutScale(scores->dot.getLhs(), scale), key = withoutScale(scores->dot.getRhs(), scale);
  Value value = product.getRhs();
  if (scores->dot.getRhsContract()[0] == rank - 2)
    key = swapped(b, key);
  if (product.getRhsContract()[0] == rank - 1)
    value = swapped(b, value);
  // A factor may stand before the transposition too.
  key = withoutScale(key, scale);
  if (rank == 3)
    for (Value *operand : {&query, &key, &value}) {
      ArrayRef<int64_t> shape = shapeOf(*operand);
      *operand = b.reshape(*operand, {shape[0], 1, shape[1], shape[2]});
    }
  Value groupedKey = groupedSource(b, key), groupedValue = groupedSource(b, value);
  if (groupedKey && groupedValue && shapeOf(groupedKey)[1] == shapeOf(groupedValue)[1]) {
    key = groupedKey;
    value = groupedValue;
  }

  const SmallVector<int64_t> shape = {shapeOf(query)[0], shapeOf(query)[1], shapeOf(query)[2], shapeOf(key)[2]};
  RankedTensorType type = tensorType(query);
  const simplify::MaskedKeys seen =
      simplify::applyMasks(b, scores->masks, kinds, shape, type.getElementType(), showOwn, softmax);
  Value mask = seen.mask;
  auto attention = AttentionOp::create(
      builder, product.getLoc(), type.clone({shape[0], shape[1], shape[2], shapeOf(value)[3]}),
      RankedTensorType::get(ArrayRef<int64_t>(shape).take_front(3), accumulationType(type.getElementType())), query,
      key, value, mask, seen.keys.begin, seen.keys.end, APFloat(scale), seen.causal, seen.window, seen.density,
      AttentionSplitAttr());
  Value result = attention.getResult();
  if (uniformRows && mask)
    result = simplify::withUniformRows(b, result, mask, value);
  product.replaceAllUsesWith(b.reshape(result, shapeOf(product)));
  return true;
}

struct RecognizeAttention : impl::RecognizeAttentionBase<RecognizeAttention> {
  using RecognizeAttentionBase::RecognizeAttentionBase;

  LogicalResult initialize(MLIRContext *context) override {
    if (documentIds == "contiguous" || documentIds == "any")
      return success();
    return emitError(UnknownLoc::get(context))
           << "unknown document-ids '" << documentIds << "', expected contiguous or any";
  }

  void runOnOperation() override {
    SmallVector<SoftmaxOp> softmaxes;
    simplify::MaskKinds kinds;
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](Operation *op) {
      if (auto softmax = dyn_cast<SoftmaxOp>(op))
        softmaxes.push_back(softmax);
      else if (auto attention = dyn_cast<AttentionOp>(op))
        attentions.push_back(attention);
    });
    for (AttentionOp attention : attentions)
      if (attention.getMask() && !narrowMask(attention, kinds, documentIds == "contiguous"))
        attention.emitRemark("the mask stays a mask: it is no range of keys that is known for each query");
    for (SoftmaxOp softmax : softmaxes) {
      Value probabilities = probabilitiesOf(softmax);
      DotGeneralOp product;
      for (Operation *user : probabilities.getUsers())
        if (auto dot = dyn_cast<DotGeneralOp>(user); dot && !product)
          product = dot;
      std::string why;
      if (!product) {
        // Any softmax of scores is worth a word; others are not attention.
        if (auto scores = scoresOf(softmax.getOperand(), why); scores && !probabilities.use_empty())
          softmax.emitRemark("attention not recognised: ")
              << "the probabilities pass through " << (*probabilities.user_begin())->getName().getStringRef();
        continue;
      }
      if (convert(softmax, probabilities, product, kinds, documentIds == "contiguous", why)) {
        product.erase();
        if (Operation *guard = probabilities.getDefiningOp(); guard != softmax) {
          Operation *compare = cast<SelectOp>(guard).getPredicate().getDefiningOp();
          guard->erase();
          compare->erase();
        }
        softmax.erase();
      } else {
        softmax.emitRemark("attention not recognised: ") << why;
      }
    }
  }
};
} // namespace
} // namespace tessera
