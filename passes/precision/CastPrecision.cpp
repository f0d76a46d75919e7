//===- CastPrecision.cpp - compute in bf16 from f32 masters ---------------===//
//
// Decides for each f32 value whether it is rounded to bf16; see Passes.td. Ops are rewritten in place, in their order.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/precision/Finite.h"
#include "passes/precision/Kept.h"
#include "passes/precision/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace tessera {
#define GEN_PASS_DEF_CASTPRECISION
#include "passes/precision/Passes.h.inc"
} // namespace tessera

using namespace mlir;
using namespace tessera;
using namespace tessera::precision;
using namespace tessera::train;

namespace {

/// What a floating point value is. Larger kinds win where values meet in an elementwise op.
enum class Kind {
  Neutral,   ///< depends on no parameter and no input: constants, counters, random numbers
  Statistic, ///< reduced, or a gradient of a parameter, or computed from such alone
  Data,      ///< activations and their gradients
  Loss,      ///< computed elementwise from targets
};

class Caster {
public:
  explicit Caster(func::FuncOp func)
      : func(func), exact(func), activations(func, F32Values::Products::OfData), large(func),
        wideType(Float32Type::get(func.getContext())), narrowType(BFloat16Type::get(func.getContext())) {}

  int64_t units = 0, products = 0, rounded = 0;

  void run() {
    Block &body = func.getBody().front();
    for (BlockArgument arg : body.getArguments()) {
      const std::optional<ArgRole> role = getArgRole(func, arg.getArgNumber());
      const bool isKept = isComputedInF32(func, arg.getArgNumber());
      const bool isCastLater = isComputedInFloat8(func, arg.getArgNumber());
      kinds[arg] = role == ArgRole::Target                                    ? Kind::Loss
                   : !isKept && (role == ArgRole::Input || isParameter(role)) ? Kind::Data
                                                                              : Kind::Statistic;
      const bool isUnit =
          role == ArgRole::Param || (role == ArgRole::Frozen && func.getArgAttr(arg.getArgNumber(), kSegments));
      castLater |= isCastLater;
      if (!isKept && !isCastLater && isUnit && isWide(arg))
        parameters.push_back(arg);
      if (func.getArgAttr(arg.getArgNumber(), kModelType) && isBf16(arg))
        findWidened(arg);
    }
    if (parameters.empty() && !castLater) {
      func.emitRemark() << "not computed in bf16: "
                        << (exact.empty() ? "the step has no f32 parameters"
                                          : "all f32 parameters are computed in f32");
      return;
    }
    func.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (auto type = dyn_cast<RankedTensorType>(result.getType()); type && type.getElementType() == narrowType)
          given.insert(result);
    });
    findParameterGradients();
    for (Value parameter : llvm::concat<Value>(parameters, widened))
      castUnit(parameter);
    visit(body);
  }

private:
  bool isWide(Value value) const { return tensorType(value).getElementType() == wideType; }
  bool isBf16(Value value) const { return tensorType(value).getElementType() == narrowType; }
  /// Narrow because of this pass: what the model itself computes in bf16 is not touched.
  bool isNarrow(Value value) const { return isBf16(value) && !given.contains(value) && !isa<BlockArgument>(value); }
  /// Of a type that this pass may change.
  bool isOurs(Value value) const { return isWide(value) || isNarrow(value); }
  Kind kindOf(Value value) const { return kinds.lookup(value); }

  // --- Gradients of parameters ----------------------------------------------------

  /// Marks what only moves or adds up gradients of parameters, back to the ops that compute them.
  void findParameterGradients() {
    SmallVector<Value> pending;
    func.walk([&](Operation *op) {
      if (auto update = dyn_cast<OptimizerUpdateOpInterface>(op))
        pending.push_back(update.getGrad());
    });
    Operation *end = func.getBody().front().getTerminator();
    for (auto [index, value] : llvm::enumerate(end->getOperands()))
      if (getResultRole(func, index) == ResultRole::Grad)
        pending.push_back(value);
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      Operation *op = value.getDefiningOp();
      if (!op || !parameterGradients.insert(value).second)
        continue;
      if (auto accumulate = dyn_cast<AccumulateOp>(op))
        pending.push_back(
            accumulate.getBody().front().getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()));
      else if (isa<ReshapeOp, TransposeOp, ConcatOp>(op) || isElementwise(op))
        llvm::copy_if(op->getOperands(), std::back_inserter(pending),
                      [&](Value operand) { return isWide(operand) && operand.hasOneUse(); });
    }
  }

  // --- Conversions ---------------------------------------------------------------

  /// Where a parameter that is held in bf16, or a part of it, is widened.
  void findWidened(Value held) {
    for (Operation *user : held.getUsers())
      if (isa<IndexMappingOpInterface>(user))
        findWidened(user->getResult(0));
      else if (isa<ConvertOp>(user) && isWide(user->getResult(0)))
        widened.push_back(user->getResult(0));
  }

  /// The unit in bf16, for all that reads it but its update. What is held in bf16 was widened, and folds.
  void castUnit(Value unit) {
    SmallVector<OpOperand *> uses;
    Operation *first = nullptr;
    for (OpOperand &use : unit.getUses()) {
      Operation *owner = use.getOwner();
      if (isa<OptimizerUpdateOpInterface, func::ReturnOp>(owner) ||
          (isa<ConvertOp>(owner) && isBf16(owner->getResult(0))))
        continue;
      uses.push_back(&use);
      Operation *user = unit.getParentBlock()->findAncestorOpInBlock(*use.getOwner());
      if (!first || user->isBeforeInBlock(first))
        first = user;
    }
    if (uses.empty())
      return;
    OpBuilder builder(first);
    Value cast = Build(builder, unit.getLoc()).convert(unit, narrowType);
    if (unit.getDefiningOp() && isMarkedBackward(unit.getDefiningOp()))
      markBackward(cast.getDefiningOp());
    kinds[cast] = Kind::Data;
    for (OpOperand *use : uses)
      use->set(cast);
    ++units;
  }

  /// In another type; what is finite stays so. `user` says in which phase.
  Value convertBefore(Operation *before, Operation *user, Value value, Type type) {
    MarkBackward listener;
    OpBuilder builder(before, isMarkedBackward(user) ? &listener : nullptr);
    Value converted = type == narrowType && large.contains(value) ? roundLarge(builder, user->getLoc(), value)
                                                                  : Build(builder, user->getLoc()).convert(value, type);
    kinds[converted] = kindOf(value);
    return converted;
  }

  /// Each reader widens for itself, so that nothing wide is kept.
  void widen(OpOperand &use) {
    if (isNarrow(use.get()))
      use.set(convertBefore(use.getOwner(), use.getOwner(), use.get(), wideType));
  }

  /// What is rounded is shared by all that read it narrow.
  void narrow(OpOperand &use) {
    Value value = use.get();
    if (!isWide(value))
      return;
    Value &converted = narrowed[value];
    if (!converted)
      converted = convertBefore(value.getParentBlock()->findAncestorOpInBlock(*use.getOwner()), use.getOwner(), value,
                                narrowType);
    use.set(converted);
  }

  void widenAll(Operation *op) {
    for (OpOperand &use : op->getOpOperands())
      widen(use);
  }
  void narrowAll(Operation *op) {
    for (OpOperand &use : op->getOpOperands())
      narrow(use);
  }
  void setResult(Value result, Type element, Kind kind) {
    if (isOurs(result))
      result.setType(tensorType(result).clone(element));
    kinds[result] = kind;
  }

  // --- Ops ------------------------------------------------------------------------

  void visit(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      Value result = op.getNumResults() > 0 ? op.getResult(0) : Value();
      if (!result || isa<DotGeneralOp>(op))
        visit(&op);
      else if (exact.isNeutral(result))
        visitWide(&op, Kind::Neutral);
      else if (exact.contains(result) || activations.contains(result))
        visitWide(&op, Kind::Statistic);
      else
        visit(&op);
    }
  }

  void visit(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<DotGeneralOp>([&](auto dot) { visitProduct(dot); })
        .Case<AttentionOp>([&](auto attention) { visitAttention(attention, attention.getMask()); })
        .Case<AttentionGradOp>([&](auto attention) { visitAttention(attention, attention.getMask()); })
        .Case<LayerNormOp>([&](LayerNormOp norm) { visitNorm(norm); })
        .Case<SoftmaxOp>([&](SoftmaxOp softmax) {
          if (kindOf(softmax.getOperand()) == Kind::Data)
            narrowAll(softmax);
          copyType(softmax, softmax->getOpOperand(0));
        })
        .Case<CrossEntropyOp>([&](CrossEntropyOp loss) {
          kinds[loss.getLoss()] = kinds[loss.getLse()] = Kind::Statistic; // its logits may be either
        })
        .Case<LinearCrossEntropyOp, LinearCrossEntropyGradOp>([&](auto loss) { visitLinearLoss(loss); })
        .Case<ConvertOp>([&](ConvertOp convert) {
          kinds[convert.getResult()] = isa<FloatType>(tensorType(convert.getOperand()).getElementType())
                                           ? kindOf(convert.getOperand())
                                           : Kind::Neutral;
        })
        .Case<ConcatOp, DynamicUpdateSliceOp>([&](Operation *join) { visitJoin(join); })
        .Case<PadOp, GatherRowsOp, ReshapeOp, TransposeOp, SliceOp, BroadcastOp, DynamicSliceOp, BarrierOp,
              StopGradientOp>([&](Operation *view) { copyType(view, view->getOpOperand(0)); })
        .Case([&](AccumulateOp accumulate) { visitAccumulate(accumulate); })
        .Case<ConstantOp, IotaOp, RngUniformOp>([&](Operation *leaf) { kinds[leaf->getResult(0)] = Kind::Neutral; })
        .Case<Conv2dOp, Conv2dInputGradOp, Conv2dFilterGradOp>([&](Operation *conv) {
          conv->emitRemark("stays f32: convolutions are not computed in bf16");
          visitWide(conv, isa<Conv2dFilterGradOp>(conv) ? Kind::Statistic : Kind::Data);
        })
        .Case<ArgmaxOp, SortIndicesOp>([](auto) {})
        .Default([&](Operation *other) {
          if (isElementwise(other))
            visitElementwise(other);
          else
            visitWide(other, Kind::Statistic);
        });
  }

  void visitWide(Operation *op, Kind kind) {
    widenAll(op);
    for (Value result : op->getResults())
      kinds[result] = kind;
    if (kind == Kind::Data)
      roundIfKept(op);
  }

  void visitProduct(DotGeneralOp dot) {
    // A weight that becomes 8 bits does so from f32.
    auto isWeight = [&](OpOperand &operand) {
      ScalingAttr scaling = dot.getScalingAttr();
      return scaling &&
             (operand.getOperandNumber() == 0 ? scaling.getLhs() : scaling.getRhs()) == ProductOperand::Weight;
    };
    if (!isOurs(dot.getLhs()) || !isOurs(dot.getRhs()) || !isOurs(dot.getResult())) {
      kinds[dot.getResult()] = Kind::Data;
      return;
    }
    if (isComputedInF32(dot)) {
      // f32, and what it makes goes on so. A gradient's product that reads the parameter makes the gradient of data.
      const bool isGradient = isMarkedBackward(dot) && !dot->hasAttr(kRecompute);
      const bool readsParameter = exact.contains(dot.getLhs()) || exact.contains(dot.getRhs());
      return visitWide(dot, isGradient && readsParameter ? Kind::Data : Kind::Statistic);
    }
    if (kindOf(dot.getLhs()) == Kind::Neutral && kindOf(dot.getRhs()) == Kind::Neutral) {
      dot.emitRemark("stays f32: it depends on no parameter and no floating point input");
      kinds[dot.getResult()] = Kind::Neutral;
      return;
    }
    for (OpOperand &operand : dot->getOpOperands())
      if (!isWeight(operand))
        narrow(operand);
    const bool isOfParameter = parameterGradients.contains(dot.getResult());
    setResult(dot.getResult(), isOfParameter ? Type(wideType) : Type(narrowType),
              isOfParameter ? Kind::Statistic : Kind::Data);
    ++products;
  }

  /// A product whose results, the logits, stay wide.
  template <typename Op> void visitLinearLoss(Op loss) {
    kinds[loss.getLoss()] = kinds[loss.getLse()] = Kind::Statistic;
    for (OpOperand *operand : {&loss.getHiddenMutable(), &loss.getWeightMutable()})
      narrow(*operand);
    if constexpr (std::is_same_v<Op, LinearCrossEntropyGradOp>) {
      widen(loss.getLossGradMutable());
      setResult(loss.getHiddenGrad(), narrowType, Kind::Data);
      setResult(loss.getWeightGrad(), wideType, Kind::Statistic);
    }
    ++products;
  }

  void visitNorm(LayerNormOp norm) {
    const bool staysWide = llvm::any_of(norm->getOperands().drop_front(), [&](Value v) { return exact.contains(v); });
    if (staysWide) {
      visitWide(norm, kindOf(norm.getOperand()));
    } else {
      narrowAll(norm);
      setResult(norm.getResult(), narrowType, Kind::Data);
    }
    kinds[norm.getMean()] = kinds[norm.getRstd()] = Kind::Statistic;
  }

  template <typename Op> void visitAttention(Op op, Value mask) {
    for (OpOperand &use : op->getOpOperands()) {
      bool staysWide = use.get() == mask;
      if constexpr (std::is_same_v<Op, AttentionGradOp>)
        staysWide |= use.get() == op.getLse();
      staysWide ? widen(use) : narrow(use);
    }
    for (Value result : op->getResults())
      setResult(result, narrowType, Kind::Data);
    if constexpr (std::is_same_v<Op, AttentionOp>)
      setResult(op.getLse(), wideType, Kind::Statistic);
    ++products;
  }

  /// The result has the type of an operand.
  void copyType(Operation *op, OpOperand &like) {
    Kind kind = kindOf(like.get());
    if (isa<BroadcastOp>(op) && kind == Kind::Statistic && tensorType(like.get()).getRank() != 0)
      kind = Kind::Data;
    setResult(op->getResult(0), tensorType(like.get()).getElementType(), kind);
    if (auto pad = dyn_cast<PadOp>(op); pad && isNarrow(pad.getResult()))
      pad.setValue(APFloat(heldByBf16(pad.getValue().convertToDouble())));
  }

  /// Integers and masks have no say.
  Kind largestKind(Operation *op) const {
    Kind kind = Kind::Neutral;
    for (Value operand : op->getOperands())
      if (isa<FloatType>(tensorType(operand).getElementType()))
        kind = std::max(kind, kindOf(operand));
    return kind;
  }

  void visitJoin(Operation *op) {
    Value result = op->getResult(0);
    Kind kind = largestKind(op);
    if (!isOurs(result)) {
      kinds[result] = kind;
      return;
    }
    if (parameterGradients.contains(result))
      kind = Kind::Statistic;
    if (kind == Kind::Data)
      narrowAll(op);
    else
      widenAll(op);
    setResult(result, kind == Kind::Data ? Type(narrowType) : Type(wideType), kind);
  }

  void visitElementwise(Operation *op) {
    widenAll(op);
    Kind kind = largestKind(op);
    Value result = op->getResult(0);
    kinds[result] = parameterGradients.contains(result) ? Kind::Statistic : kind;
    if (kindOf(result) == Kind::Data)
      roundIfKept(op);
  }

  /// Types of what the region takes and gives stay as they are.
  void visitAccumulate(AccumulateOp op) {
    Block &body = op.getBody().front();
    for (auto [operand, argument] : llvm::zip_equal(op->getOperands(), body.getArguments().drop_front()))
      kinds[argument] = kindOf(operand);
    visit(body);
    for (Value result : op->getResults())
      kinds[result] = Kind::Statistic;
  }

  // --- Rounding -------------------------------------------------------------------

  /// Whether a value is only read in many places: a scale of each channel, of a norm's statistics and its parameters.
  /// Rounded it would save nothing, and its error would be the same for all that it is multiplied with, in the forward
  /// pass and in gradients that are sums of large terms.
  static bool isRepeated(Value value) {
    constexpr int64_t often = 8;
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return isa<BroadcastOp>(user) &&
             tensorType(user->getResult(0)).getNumElements() >= often * tensorType(value).getNumElements();
    });
  }

  void roundIfKept(Operation *op) {
    Value value = op->getResult(0);
    if (!isWide(value) || tensorType(value).getRank() == 0 || !isKept(value, isMarkedBackward(op)) || isRepeated(value))
      return;
    const SmallVector<OpOperand *> uses = llvm::map_to_vector(value.getUses(), [](OpOperand &use) { return &use; });
    Value converted = convertBefore(op->getNextNode(), op, value, narrowType);
    kinds[converted] = Kind::Data;
    for (OpOperand *use : uses)
      use->set(converted);
    ++rounded;
  }

  func::FuncOp func;
  F32Values exact;       ///< parameters that are computed in f32, and what follows from them alone
  F32Values activations; ///< what follows from products that read them
  LargeValues large;
  Type wideType, narrowType;
  SmallVector<Value> parameters;
  bool castLater = false;     ///< there are parameters that become 8 bits
  SmallVector<Value> widened; ///< of parameters that are held in bf16
  llvm::DenseMap<Value, Kind> kinds;
  llvm::DenseMap<Value, Value> narrowed;
  llvm::DenseSet<Value> parameterGradients;
  llvm::DenseSet<Value> given; ///< results that were bf16 before
};

struct CastPrecisionPass : tessera::impl::CastPrecisionBase<CastPrecisionPass> {
  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    completeBackwardMarks(getOperation());
    Caster caster(getOperation());
    caster.run();
    numUnits += caster.units;
    numProducts += caster.products;
    numRounded += caster.rounded;
  }
};

} // namespace
