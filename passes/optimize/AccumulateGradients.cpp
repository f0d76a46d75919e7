//===- AccumulateGradients.cpp - a step of several micro-batches ----------===//
//
// Wraps forward and backward into `train.accumulate`. What counts the whole
// batch stays outside of it, and means are means over the micro-batches, so that
// the loss is the one of the whole batch however many parts it is split into.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/LossTerms.h"
#include "passes/optimize/Passes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ACCUMULATEGRADIENTS
#include "passes/optimize/Passes.h.inc"

namespace {

struct AccumulateGradients : impl::AccumulateGradientsBase<AccumulateGradients> {
  using AccumulateGradientsBase::AccumulateGradientsBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isTrainingStep(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult checkResults(func::FuncOp func);
  LogicalResult run(func::FuncOp func);
};

LogicalResult AccumulateGradients::checkResults(func::FuncOp func) {
  if (failed(train::getLossResult(func)))
    return failure();
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    const std::optional<train::ResultRole> role = train::getResultRole(func, index);
    if (role != train::ResultRole::Loss && role != train::ResultRole::Grad && role != train::ResultRole::IndexCheck &&
        !train::isNextOfBuffer(func, index))
      return func.emitError() << "cannot accumulate result " << index << " of role \""
                              << (role ? train::stringifyResultRole(*role) : "")
                              << "\": expected the loss, gradients and next values of buffers only";
  }
  return success();
}

/// An argument that has samples: each micro-batch has some of them. What has none is the same for all micro-batches.
bool hasSamples(func::FuncOp func, BlockArgument arg) {
  return train::isBatchArgument(func, arg.getArgNumber()) &&
         train::getDims(func, arg.getArgNumber()).getSampleDim() >= 0;
}

/// Whether a micro-batch is one sample.
bool hasOneSample(func::FuncOp func) {
  return train::getBatchSize(func) == 1 &&
         llvm::any_of(func.getArguments(), [&](BlockArgument arg) { return hasSamples(func, arg); });
}

/// What loss and gradients of a micro-batch are multiplied by before they are added up: 1 where they are terms of a sum
/// over the batch, 1/count where they are means. add-loss says which; a loss that did not come from there, or of which
/// it found no answer, is looked at here.
FailureOr<double> findScale(func::FuncOp func, int64_t count) {
  const double mean = 1.0 / static_cast<double>(count);
  if (const auto known = train::getOfBatch(func, train::kLossOfBatch); known && !func->hasAttr(train::kSamplesMeet)) {
    const bool isAverage =
        !func.getOps<train::CountValidOp>().empty() ||
        llvm::any_of(func.getOps<train::BarrierOp>(), [](train::BarrierOp op) { return op->hasAttr(train::kOfBatch); });
    if (known != train::OfBatch::Mean && hasOneSample(func) && !isAverage && !func->hasAttr(train::kBatchGroups))
      func.emitWarning()
          << "the loss adds up over its batch, and micro-batches have one sample: a sum that the model "
             "divides by the size of the batch looks the same; if it does, compile with --batch 2 or more";
    return known == train::OfBatch::Mean ? mean : 1.0;
  }
  Value loss = func.getBody().front().getTerminator()->getOperand(*train::getLossResult(func));
  LossTerms terms(func);
  const Dependence::Kind kind = terms.of(loss).kind;
  if (kind == Dependence::Kind::Other)
    return terms.reject(loss);
  if (auto mixed = terms.meansAmongSums(loss); !mixed.empty())
    return emitError(mixed.front()->getOwner()->getLoc())
           << "the loss adds sums over the batch and means; run add-loss first, which tells them apart";
  return kind == Dependence::Kind::Sum ? 1.0 : mean;
}

/// Puts the number of micro-batches, and the numbers of the whole batch, where they are meant.
LogicalResult replaceMicroBatches(func::FuncOp func, int64_t count) {
  func->removeAttr(train::kBatchGroups);
  if (auto known = dyn_cast_or_null<IntegerAttr>(func->removeAttr(train::kBatchParts));
      known && count > 1 && known.getInt() != count)
    return func.emitError() << "numbers that follow from the size of the batch are known for " << known.getInt()
                            << " micro-batches, not for " << count << ": import the program again";
  bool isMeant = false;
  func.walk([&](train::BarrierOp op) {
    OpBuilder builder(op);
    train::Build build(builder, op.getLoc());
    Value known;
    if (auto number = op->getAttrOfType<FloatAttr>(train::kOfBatchNumber))
      known = build.splatLike(op, number.getValueAsDouble());
    else if (op->hasAttr(train::kMicroBatches))
      known = build.splatLike(op, static_cast<double>(count));
    else if (op->hasAttr(train::kByPlace)) // a constant
      known = op.getOperand();
    else
      return;
    isMeant |= op->hasAttr(train::kMicroBatches);
    op.replaceAllUsesWith(known);
    op.erase();
  });
  const auto made = train::getOfBatch(func, train::kLossOfBatch);
  func->removeAttr(train::kLossOfBatch);
  func->removeAttr(train::kSamplesMeet);
  if (count > 1 && made == train::OfBatch::Terms && !isMeant)
    return func.emitError("terms of the loss are to be divided by the number of micro-batches, but nothing says which");
  return success();
}

/// Whether nothing that stands for a sum or mean of the whole batch was lost since add-loss. Recomputation may have
/// repeated some.
LogicalResult checkWholeBatch(func::FuncOp func, int64_t count) {
  auto made = dyn_cast_or_null<IntegerAttr>(func->removeAttr(train::kNumOfBatch));
  int64_t found = 0;
  func.walk([&](train::BarrierOp op) { found += op->hasAttr(train::kOfBatch); });
  if (count > 1 && made && found < made.getInt())
    return func.emitError() << "expected " << made.getInt() << " sums or means over the whole batch, found " << found;
  return success();
}

/// Moves `count_valid` ops to the front of the function, on the batch arguments themselves.
FailureOr<SmallVector<Operation *>> hoistCounts(func::FuncOp func) {
  SmallVector<Operation *> hoisted;
  Block &block = func.getBody().front();
  for (auto count : llvm::make_early_inc_range(block.getOps<train::CountValidOp>())) {
    BlockArgument batch = findBatchArgument(count.getTargets(), func);
    if (!batch)
      return count.emitError("cannot count the whole batch: expected the count of an input or target argument");
    count.getTargetsMutable().assign(batch);
    count->moveBefore(&block, block.begin());
    hoisted.push_back(count);
  }
  return hoisted;
}

/// Removes what stands for a sum or mean of the whole batch, where the batch is not split.
void removeWholeBatch(func::FuncOp func) {
  func.walk([](train::BarrierOp op) {
    if (!op->hasAttr(train::kOfBatch) && !op->hasAttr(train::kOfBatchNumber))
      return;
    op.replaceAllUsesWith(op.getOperand());
    op.erase();
  });
}

/// Computes a sum or mean over the whole batch of what follows from data alone, by a loop of its own behind `hoisted`.
void sumOfBatch(func::FuncOp func, train::BarrierOp barrier, int64_t count, SmallVectorImpl<Operation *> &hoisted) {
  const bool isSum = train::getOfBatch(barrier, train::kOfBatch) == train::OfBatch::Sum;
  Block &block = func.getBody().front();
  if (std::optional<double> number = train::splatOf(barrier.getOperand())) {
    OpBuilder builder(barrier);
    const double whole = isSum ? *number * static_cast<double>(count) : *number;
    barrier.replaceAllUsesWith(train::Build(builder, barrier.getLoc()).splatLike(barrier, whole));
    barrier.erase();
    return;
  }
  const llvm::SetVector<Operation *> ops =
      opsOf(barrier.getOperand(), [&](Operation *op) { return llvm::is_contained(hoisted, op); });
  llvm::SetVector<Value> batch;
  for (Operation *op : ops)
    for (Value operand : op->getOperands())
      if (auto arg = dyn_cast<BlockArgument>(operand); arg && hasSamples(func, arg))
        batch.insert(arg);
  OpBuilder builder(func.getContext());
  if (hoisted.empty())
    builder.setInsertionPointToStart(&block);
  else
    builder.setInsertionPointAfter(hoisted.back());
  auto loop =
      train::AccumulateOp::create(builder, barrier.getLoc(), barrier->getResultTypes(), batch.getArrayRef(), count);
  Block *body = &loop.getBody().emplaceBlock();
  body->addArgument(RankedTensorType::get({}, builder.getI64Type()), loop.getLoc());
  IRMapping mapping;
  for (Value arg : batch)
    mapping.map(arg, body->addArgument(arg.getType(), arg.getLoc()));
  OpBuilder inside = OpBuilder::atBlockEnd(body);
  for (Operation *op : ops)
    inside.clone(*op, mapping);
  train::YieldOp::create(inside, loop.getLoc(), mapping.lookup(barrier.getOperand()));
  hoisted.push_back(loop);
  Value whole = loop.getResult(0);
  if (!isSum) {
    train::Build build(builder, loop.getLoc());
    Value part = build.splatLike(whole, 1.0 / static_cast<double>(count));
    hoisted.push_back(part.getDefiningOp());
    whole = build.mul(whole, part);
    hoisted.push_back(whole.getDefiningOp());
  }
  barrier.replaceAllUsesWith(whole);
  barrier.erase();
}

/// Gives each micro-batch its own random numbers: seed + iteration · (2^bits / golden ratio).
void mixSeeds(Block &body, Value iteration) {
  llvm::DenseMap<Value, Value> mixed;
  SmallVector<train::RngUniformOp> ops;
  body.walk([&](train::RngUniformOp op) { ops.push_back(op); });
  for (train::RngUniformOp op : ops) {
    Value &seed = mixed[op.getSeed()];
    if (!seed) {
      OpBuilder builder(op.getContext());
      if (Operation *def = op.getSeed().getDefiningOp(); def && def->getBlock() == &body)
        builder.setInsertionPointAfter(def);
      else
        builder.setInsertionPointToStart(&body);
      train::Build build(builder, op.getLoc());
      RankedTensorType type = train::tensorType(op.getSeed());
      APInt golden = APInt(64, 0x9E3779B97F4A7C15).trunc(64);
      if (unsigned width = type.getElementTypeBitWidth(); width < 64)
        golden = golden.lshr(64 - width).trunc(width);
      Value step = build.constant(DenseElementsAttr::get(type, golden));
      seed = build.add(op.getSeed(), build.mul(build.convert(iteration, type.getElementType()), step));
    }
    op.getSeedMutable().assign(seed);
  }
}

/// The value in one row for each micro-batch, zeros in the others: a sum over micro-batches then keeps all of them.
Value inRowOf(train::Build build, Value value, Value iteration, int64_t count) {
  SmallVector<int64_t> shape = {count};
  llvm::append_range(shape, train::shapeOf(value));
  Value wide =
      build.broadcast(value, shape, llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(shape.size()))));
  auto type = RankedTensorType::get(shape, train::tensorType(iteration).getElementType());
  Value isOwn = build.compare(train::CompareDirection::Eq, build.iota(type, 0), build.broadcast(iteration, shape, {}));
  return build.select(isOwn, wide, build.zeros(train::tensorType(wide)));
}

LogicalResult AccumulateGradients::run(func::FuncOp func) {
  if (count < 1)
    return func.emitError() << "count must be at least 1, got " << count.getValue();
  if (failed(checkWholeBatch(func, count)))
    return failure();
  if (count == 1) {
    removeWholeBatch(func);
    return replaceMicroBatches(func, count);
  }
  if (failed(checkResults(func)))
    return failure();
  FailureOr<double> scale = findScale(func, count);
  if (failed(scale))
    return failure();
  if (failed(replaceMicroBatches(func, count)))
    return failure();
  // What is assumed is written down before loops over the batch change what it would be assumed from.
  SmallVector<std::pair<unsigned, train::DimsAttr>> assumed;
  for (BlockArgument arg : func.getArguments())
    if (hasSamples(func, arg))
      assumed.emplace_back(arg.getArgNumber(), train::getDims(func, arg.getArgNumber()));
  for (auto [index, dims] : assumed)
    func.setArgAttr(index, train::kDims, dims);
  FailureOr<SmallVector<Operation *>> hoisted = hoistCounts(func);
  if (failed(hoisted))
    return failure();
  for (auto barrier : llvm::make_early_inc_range(func.getBody().front().getOps<train::BarrierOp>()))
    if (barrier->hasAttr(train::kOfBatch))
      sumOfBatch(func, barrier, count, *hoisted);

  constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max() / 16; // bytes are counted in 64 bits, too
  for (BlockArgument arg : func.getArguments()) {
    int64_t elements = 0;
    if (hasSamples(func, arg) &&
        (llvm::MulOverflow<int64_t>(count, train::tensorType(arg).getNumElements(), elements) ||
         elements > kMostElements))
      return func.emitError() << count.getValue() << " micro-batches of " << arg.getType() << " are too large";
  }

  Block &block = func.getBody().front();
  Operation *terminator = block.getTerminator();
  SmallVector<train::StepResult> results = train::getResults(func);
  // What micro-batches hand on comes last: the loop takes it so.
  SmallVector<Value> buffers;
  for (unsigned index = 0; index < results.size(); ++index)
    if (train::isNextOfBuffer(func, index))
      buffers.push_back(func.getArgument(*train::getAliasedArg(func, index)));
  std::stable_partition(results.begin(), results.end(),
                        [](const train::StepResult &result) { return !result.attrs.contains(train::kAlias); });
  train::setResults(func, results);
  SmallVector<Value> yielded;
  SmallVector<Type> yieldedTypes;
  for (const train::StepResult &result : results) {
    yielded.push_back(result.value);
    yieldedTypes.push_back(result.value.getType());
  }
  SmallVector<BlockArgument> batch;
  SmallVector<train::DimsAttr> dims; // of all before the first changes: what is assumed depends on the others
  for (BlockArgument arg : func.getArguments())
    if (hasSamples(func, arg)) {
      batch.push_back(arg);
      dims.push_back(train::getDims(func, arg.getArgNumber()).withMicroBatches());
    }

  OpBuilder builder(terminator);
  Location loc = NameLoc::get(builder.getStringAttr("accumulate"));
  SmallVector<Value> operands(batch.begin(), batch.end());
  llvm::append_range(operands, buffers);
  auto accumulate = train::AccumulateOp::create(builder, loc, yieldedTypes, operands, count, buffers.size());
  Block *body = &accumulate.getBody().emplaceBlock();
  Value iteration = body->addArgument(RankedTensorType::get({}, builder.getI64Type()), loc);
  auto isInside = [&](OpOperand &use) { return accumulate->isProperAncestor(use.getOwner()); };
  Block::iterator first = block.begin();
  std::advance(first, hoisted->size());
  body->getOperations().splice(body->end(), block.getOperations(), first, Block::iterator(accumulate));
  for (auto [arg, argDims] : llvm::zip_equal(batch, dims)) {
    func.setArgAttr(arg.getArgNumber(), train::kDims, argDims);
    arg.replaceUsesWithIf(body->addArgument(arg.getType(), arg.getLoc()), isInside);
    auto type = cast<RankedTensorType>(arg.getType());
    SmallVector<int64_t> shape = {count};
    llvm::append_range(shape, type.getShape());
    arg.setType(type.clone(shape));
  }
  for (Value buffer : buffers) {
    Value carried = body->addArgument(buffer.getType(), buffer.getLoc());
    buffer.replaceUsesWithIf(carried, isInside);
    llvm::replace(yielded, buffer, carried); // a next value that is a buffer itself
  }
  builder.setInsertionPointToEnd(body);
  for (auto [index, value] : llvm::enumerate(yielded))
    if (train::getResultRole(func, index) == train::ResultRole::IndexCheck) {
      value = inRowOf(train::Build(builder, loc), value, iteration, count);
      accumulate.getResult(index).setType(cast<RankedTensorType>(value.getType()));
    }
  train::YieldOp::create(builder, loc, yielded);
  mixSeeds(*body, iteration);

  builder.setInsertionPoint(terminator);
  train::Build build(builder, loc);
  for (auto [index, result, sum] : llvm::enumerate(results, accumulate.getResults())) {
    result.value = sum;
    if (*scale == 1.0 || isa<IntegerType>(train::tensorType(sum).getElementType()) ||
        result.attrs.contains(train::kAlias))
      continue;
    result.value = build.scale(sum, *scale);
    if (train::getResultRole(func, index) == train::ResultRole::Grad)
      result.value.getDefiningOp()->setAttr(train::kGradientScale, builder.getUnitAttr());
  }
  func.setFunctionType(FunctionType::get(func.getContext(), block.getArgumentTypes(), func.getResultTypes()));
  train::setResults(func, results);
  return success();
}

} // namespace
} // namespace tessera
