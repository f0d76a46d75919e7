//===- RulesElementwise.cpp - leaf and elementwise ops --------------------===//

#include "compiler/dialect/train/Builders.h"
#include "passes/shard/rules/Rules.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::shard {
namespace {

/// Which partial sums pass through an elementwise op; through the identity also maxima.
enum class Linearity { None, First, Identity, Each, Joint };

template <typename Op, Linearity linearity> struct PointwiseRule : RuleModel<PointwiseRule<Op, linearity>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder = pointwise(op);
    SmallVector<bool> operands(op->getNumOperands(), true);
    switch (linearity) {
    case Linearity::None:
      break;
    case Linearity::First:
      if (isa<IntegerType>(getElementTypeOrSelf(op->getResult(0))) && isa<DivOp>(op))
        break; // truncates
      operands.assign(operands.size(), false);
      operands.front() = true;
      builder.linear(operands);
      break;
    case Linearity::Identity:
      builder.linear({true}).monotone({true});
      break;
    case Linearity::Each:
      builder.linear(operands);
      break;
    case Linearity::Joint:
      builder.jointlyLinear(operands);
      break;
    }
    return builder.take();
  }
};

struct ConvertRule : RuleModel<ConvertRule, ConvertOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder = pointwise(op);
    auto from = dyn_cast<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
    auto to = dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0)));
    // Partial sums are widened before they are added up, never narrowed: what is added up must hold every value.
    if (from && to && APFloat::isRepresentableBy(from.getFloatSemantics(), to.getFloatSemantics()))
      builder.linear({true}).monotone({true});
    return builder.take();
  }
};

struct SelectRule : RuleModel<SelectRule, SelectOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return pointwise(op).jointlyLinear({false, true, true}).monotone({false, true, true}).take();
  }
};

/// The maximum of partial maxima is one. It is no minimum of minima: max(min a, min b) is not min(max(a, b)).
struct MaxRule : RuleModel<MaxRule, MaxOp> {
  ShardingRule getShardingRule(Operation *op) const { return pointwise(op).passesMaxima({true, true}).take(); }
};

/// Only a splat is the same in every part; another constant is whole on every rank and sliced where needed.
struct ConstantRule : RuleModel<ConstantRule, ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto value = dyn_cast<DenseElementsAttr>(cast<ConstantOp>(op).getValue());
    return value && value.isSplat() ? pointwise(op).take() : RuleBuilder(op).take();
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange, TypeRange resultTypes,
                                           LocalizeContext &) const {
    auto type = cast<RankedTensorType>(resultTypes.front());
    ElementsAttr value = cast<ConstantOp>(op).getValue();
    if (auto dense = dyn_cast<DenseElementsAttr>(value); dense && dense.isSplat())
      value = dense.resizeSplat(type);
    return SmallVector<Value>{ConstantOp::create(builder, op->getLoc(), type, value)};
  }
};

Value addOffsets(OpBuilder &builder, Location loc, Value base, Value offset) {
  if (!base)
    return offset;
  if (base.getType() != offset.getType())
    base = ConvertOp::create(builder, loc, offset.getType(), base);
  return AddOp::create(builder, loc, offset.getType(), base, offset);
}

struct IotaRule : RuleModel<IotaRule, IotaOp> {
  ShardingRule getShardingRule(Operation *op) const { return pointwise(op).take(); }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange resultTypes, LocalizeContext &context) const {
    auto iota = cast<IotaOp>(op);
    Value offset = operands.empty() ? Value() : operands.front();
    const auto dim = static_cast<int64_t>(iota.getDim());
    const auto pieces = context.pieces(builder, 0, dim);
    if (pieces && pieces->size() == 1 && pieces->front().starts.size() == 1) {
      if (Value first = pieces->front().starts.front())
        offset = addOffsets(builder, op->getLoc(), offset, first);
      return SmallVector<Value>{IotaOp::create(builder, op->getLoc(), resultTypes.front(), offset, iota.getDim())};
    }
    Build build(builder, op->getLoc());
    auto type = cast<RankedTensorType>(resultTypes.front());
    Value index = context.globalIndices(builder, 0, dim);
    if (offset)
      index = build.add(index, build.broadcastTo(build.convert(offset, builder.getI64Type()), shapeOf(index)));
    return SmallVector<Value>{build.convert(build.broadcast(index, type.getShape(), {dim}), type.getElementType())};
  }
};

struct RngUniformRule : RuleModel<RngUniformRule, RngUniformOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (auto [dim, size] : llvm::enumerate(shapeOf(op->getResult(0))))
      builder.result(0, dim, builder.factor(size));
    return builder.take();
  }
  FailureOr<SmallVector<Value>> buildLocal(Operation *op, OpBuilder &builder, ValueRange operands,
                                           TypeRange resultTypes, LocalizeContext &context) const {
    auto rng = cast<RngUniformOp>(op);
    if (resultTypes.front() == rng.getType())
      return cloneWithLocalTypes(op, builder, operands, resultTypes);
    // A number depends on its row-major place, which is the same where each piece is a dimension of its own.
    auto type = cast<RankedTensorType>(resultTypes.front());
    SmallVector<dist::DimPiece> pieces;
    for (int64_t dim = 0, rank = type.getRank(); dim < rank; ++dim) {
      const auto own = context.pieces(builder, 0, dim);
      if (!own)
        return op->emitError() << "random numbers along dimension " << dim << " are split inside of what is dealt";
      llvm::append_range(pieces, *own);
    }
    Build build(builder, op->getLoc());
    return SmallVector<Value>{build.reshape(numbersAt(build, rng, operands.front(), pieces, 0), type.getShape())};
  }

private:
  /// A dimension for each piece; one behind the other where a piece consists of several runs.
  static Value numbersAt(Build &build, RngUniformOp rng, Value seed, SmallVector<dist::DimPiece> &pieces,
                         size_t piece) {
    if (piece == pieces.size()) {
      SmallVector<Value> offsets;
      SmallVector<int64_t> global, local;
      auto scalar = RankedTensorType::get({}, build.builder.getI64Type());
      for (const dist::DimPiece &part : pieces) {
        offsets.push_back(part.starts.front() ? part.starts.front() : build.zeros(scalar));
        global.push_back(part.global);
        local.push_back(part.local);
      }
      auto part = RngUniformOp::create(build.builder, build.loc, rng.getType().clone(local), seed, offsets,
                                       rng.getStreamAttr(), build.builder.getDenseI64ArrayAttr(global));
      part->setDiscardableAttrs(rng->getDiscardableAttrDictionary());
      return part;
    }
    const dist::DimPiece whole = pieces[piece];
    SmallVector<Value> runs;
    for (Value start : whole.starts) {
      pieces[piece] = {whole.global, whole.local / static_cast<int64_t>(whole.starts.size()), {start}};
      runs.push_back(numbersAt(build, rng, seed, pieces, piece + 1));
    }
    pieces[piece] = whole;
    return runs.size() == 1 ? runs.front() : build.concat(runs, static_cast<int64_t>(piece));
  }
};

template <Linearity linearity, typename... Ops> void attach(MLIRContext *context) {
  (Ops::template attachInterface<PointwiseRule<Ops, linearity>>(*context), ...);
}

} // namespace

void registerElementwiseRules(MLIRContext *context) {
  attach<Linearity::None, AbsOp, ExpOp, LogOp, SqrtOp, RsqrtOp, TanhOp, ErfOp, Expm1Op, Log1pOp, SigmoidOp, SoftplusOp,
         GeluOp, SinOp, CosOp, AtanOp, AsinOp, AcosOp, RoundOp, FloorOp, PowOp, CompareOp, QuantizeScaleOp>(context);
  attach<Linearity::First, NegOp, DivOp, GeluGradOp>(context);
  attach<Linearity::Identity, BarrierOp, StopGradientOp>(context);
  MaxOp::attachInterface<MaxRule>(*context);
  attach<Linearity::Each, MulOp>(context);
  attach<Linearity::Joint, AddOp, SubOp>(context);
  ConvertOp::attachInterface<ConvertRule>(*context);
  SelectOp::attachInterface<SelectRule>(*context);
  ConstantOp::attachInterface<ConstantRule>(*context);
  IotaOp::attachInterface<IotaRule>(*context);
  RngUniformOp::attachInterface<RngUniformRule>(*context);
}

} // namespace tessera::shard
