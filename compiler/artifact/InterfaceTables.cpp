//===- InterfaceTables.cpp - state, batch and results of an artifact ------===//
//
// See Tables.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Tables.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Loss.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tessera::artifact {

static StringRef stringAttr(mlir::Operation *op, StringRef name) {
  auto attr = op->getAttrOfType<StringAttr>(name);
  return attr ? attr.getValue() : StringRef();
}

/// The type of an argument's global value.
static SmallVector<int64_t> globalShape(exec::ArgumentOp op) {
  if (auto global = op->getAttrOfType<TypeAttr>(dist::kGlobal))
    return SmallVector<int64_t>(cast<RankedTensorType>(global.getValue()).getShape());
  return SmallVector<int64_t>(cast<MemRefType>(op.getBuffer().getType()).getShape());
}

LogicalResult Tables::fillArgument(exec::ArgumentOp op) {
  StringRef role = stringAttr(op, train::kRole), name = stringAttr(op, train::kName);
  if (role.empty() || name.empty())
    return op.emitError("argument needs train.role and train.name");
  if (role == "param" || role == "frozen" || role == "state")
    return fillState(op, role);
  if (role == "derived")
    return fillDerived(op);
  if (role == "input" || role == "target")
    return fillBatch(op, role);
  if (role != "hyper")
    return op.emitError() << "unknown train.role '" << role << "'";
  auto hyper = std::make_unique<HyperScalarT>();
  hyper->name = name.str();
  hyper->buffer = buffer(op.getBuffer());
  table.hyper.push_back(std::move(hyper));
  return success();
}

LogicalResult Tables::fillState(exec::ArgumentOp op, StringRef role) {
  auto state = std::make_unique<StateTensorT>();
  MemRefType type = cast<MemRefType>(op.getBuffer().getType());
  FailureOr<DataType> dtype = dataType(op, type.getElementType());
  if (failed(dtype))
    return failure();
  StringRef name = stringAttr(op, train::kName), of = stringAttr(op, train::kOf);
  if (role == "state") {
    std::optional<StateRole> stateRole = llvm::StringSwitch<std::optional<StateRole>>(stringAttr(op, train::kState))
                                             .Case("m", StateRole::Moment1)
                                             .Case("v", StateRole::Moment2)
                                             .Case("momentum", StateRole::Momentum)
                                             .Default(std::nullopt);
    if (!stateRole || of.empty())
      return op.emitError() << "state '" << name << "' needs train.of and train.state = \"m\", \"v\" or \"momentum\"";
    state->role = *stateRole;
    state->name = of.str();
  } else {
    state->role = role == "param" ? StateRole::Parameter : StateRole::Frozen;
    state->name = name.str();
  }
  state->dtype = *dtype;
  SmallVector<int64_t> shape = globalShape(op);
  state->elements = llvm::product_of(shape);
  state->buffer = buffer(op.getBuffer());
  if (auto sharding = op->getAttrOfType<dist::ShardingAttr>(dist::kSharding))
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim) {
      if (dim > 0 && !sharding.getAxes(dim).empty())
        return op.emitError() << "'" << name << "' is sharded along dimension " << dim
                              << "; state is split along its first";
      if (dim == 0)
        state->shard_group = group(sharding.getAxes(dim));
    }
  if (auto segments = op->getAttrOfType<ArrayAttr>(train::kSegments)) {
    for (auto segment : segments.getAsRange<DictionaryAttr>()) {
      auto segmentName = segment.getAs<StringAttr>("name");
      auto segmentShape = segment.getAs<DenseI64ArrayAttr>("shape");
      auto offset = segment.getAs<IntegerAttr>("offset");
      auto init = segment.getAs<StringAttr>("init");
      if (!segmentName || !segmentShape || !offset)
        return op.emitError("a segment needs name, shape and offset");
      if (failed(fillSegment(op, segmentName, segmentShape, offset.getInt(), init ? init.getValue() : "", *state)))
        return failure();
    }
  } else if (role != "state") {
    if (failed(fillSegment(op, name, shape, 0, stringAttr(op, train::kInit), *state)))
      return failure();
  }
  table.state.push_back(std::move(state));
  return success();
}

LogicalResult Tables::fillDerived(exec::ArgumentOp op) {
  StringRef of = stringAttr(op, train::kOf);
  for (auto [index, state] : llvm::enumerate(table.state)) {
    if (state->name != of || (state->role != StateRole::Parameter && state->role != StateRole::Frozen))
      continue;
    auto derived = std::make_unique<DerivedTensorT>();
    derived->state = index;
    derived->buffer = buffer(op.getBuffer());
    table.derived.push_back(std::move(derived));
    return success();
  }
  return op.emitError() << "there is no parameter '" << of << "' before it";
}

LogicalResult Tables::fillSegment(exec::ArgumentOp op, StringRef name, ArrayRef<int64_t> shape, int64_t offset,
                                  StringRef init, StateTensorT &state) {
  auto segment = std::make_unique<SegmentT>();
  segment->name = name.str();
  segment->shape.assign(shape.begin(), shape.end());
  segment->offset = offset;
  if (!init.empty()) {
    using Kind = train::Initializer::Kind;
    std::optional<train::Initializer> parsed = train::parseInitializer(init);
    if (!parsed)
      return op.emitError() << "parameter '" << name << "': bad initialiser '" << init << "', expected "
                            << train::kInitializerForms;
    if (parsed->kind == Kind::Given) { // weights must bring it
      state.segments.push_back(std::move(segment));
      return success();
    }
    segment->init = std::make_unique<InitT>();
    segment->init->kind = parsed->kind == Kind::Normal    ? InitKind::Normal
                          : parsed->kind == Kind::Uniform ? InitKind::Uniform
                                                          : InitKind::Constant;
    segment->init->a = parsed->a;
    segment->init->b = parsed->b;
    if (parsed->kind == Kind::Normal) // in the artifact: mean and deviation
      std::swap(segment->init->a, segment->init->b);
  }
  state.segments.push_back(std::move(segment));
  return success();
}

static DimRole dimRole(train::DimRole role) {
  switch (role) {
  case train::DimRole::None:
    return DimRole::None;
  case train::DimRole::Sample:
    return DimRole::Sample;
  case train::DimRole::Position:
    return DimRole::Position;
  case train::DimRole::MicroBatch:
    return DimRole::MicroBatch;
  }
  llvm_unreachable("unknown role");
}

LogicalResult Tables::fillBatch(exec::ArgumentOp op, StringRef role) {
  auto batch = std::make_unique<BatchTensorT>();
  FailureOr<DataType> dtype = dataType(op, cast<MemRefType>(op.getBuffer().getType()).getElementType());
  if (failed(dtype))
    return failure();
  batch->name = stringAttr(op, train::kName).str();
  batch->role = role == "input" ? BatchRole::Input : BatchRole::Target;
  batch->dtype = *dtype;
  SmallVector<int64_t> shape = globalShape(op);
  batch->global_shape.assign(shape.begin(), shape.end());
  auto dims = op->getAttrOfType<train::DimsAttr>(train::kDims);
  if (!dims)
    return op.emitError() << "'" << batch->name << "' needs " << train::kDims;
  for (train::DimRole dim : dims.getRoles())
    batch->dims.push_back(dimRole(dim));
  if (auto sharding = op->getAttrOfType<dist::ShardingAttr>(dist::kSharding))
    for (int64_t dim = 0; dim < sharding.getRank(); ++dim)
      if (const int32_t ranks = group(sharding.getAxes(dim)); ranks >= 0) {
        auto split = std::make_unique<DimSplitT>();
        split->dim = dim;
        split->group = ranks;
        batch->splits.push_back(std::move(split));
      }
  batch->buffer = buffer(op.getBuffer());
  if (auto bound = op->getAttrOfType<IntegerAttr>(train::kIndexBound))
    batch->index_bound = bound.getInt();
  if (auto ignored = op->getAttrOfType<IntegerAttr>(train::kIgnoreIndex))
    batch->ignore_index = ignored.getInt();
  if (auto parts = op->getAttrOfType<ArrayAttr>(train::kIndexParts))
    for (auto entry : parts.getAsRange<DictionaryAttr>()) {
      auto bound = entry.getAs<IntegerAttr>("bound"), ignored = entry.getAs<IntegerAttr>("ignore_index");
      auto starts = entry.getAs<DenseI64ArrayAttr>("starts"), limits = entry.getAs<DenseI64ArrayAttr>("limits"),
           strides = entry.getAs<DenseI64ArrayAttr>("strides");
      if (!bound || !starts || !limits || !strides)
        return op.emitError() << "'" << batch->name << "': an entry of " << train::kIndexParts
                              << " needs bound, starts, limits and strides";
      auto part = std::make_unique<IndexPartT>();
      part->bound = bound.getInt();
      if (ignored)
        part->ignore_index = ignored.getInt();
      part->starts.assign(starts.asArrayRef().begin(), starts.asArrayRef().end());
      part->limits.assign(limits.asArrayRef().begin(), limits.asArrayRef().end());
      part->strides.assign(strides.asArrayRef().begin(), strides.asArrayRef().end());
      batch->index_parts.push_back(std::move(part));
    }
  table.batch.push_back(std::move(batch));
  return success();
}

LogicalResult Tables::fillResult(exec::ResultOp op) {
  auto result = std::make_unique<ResultTensorT>();
  StringRef role = stringAttr(op, train::kRole), name = stringAttr(op, train::kName);
  std::optional<ResultRole> kind = llvm::StringSwitch<std::optional<ResultRole>>(role)
                                       .Case("loss", ResultRole::Loss)
                                       .Case("metric", ResultRole::Metric)
                                       .Case("updated", ResultRole::Updated)
                                       .Case("output", ResultRole::Output)
                                       .Case(train::kIndexCheck, ResultRole::IndexCheck)
                                       .Default(std::nullopt);
  if (!kind)
    return op.emitError() << "result needs train.role = \"loss\", \"metric\", \"updated\", \"output\" or "
                             "\"index_check\", got '"
                          << role << "'";
  result->role = *kind;
  result->name = (name.empty() ? role : name).str();
  result->buffer = buffer(op.getBuffer());
  if (*kind == ResultRole::IndexCheck) {
    auto low = op->getAttrOfType<IntegerAttr>(train::kIndexLow),
         bound = op->getAttrOfType<IntegerAttr>(train::kIndexBound);
    if (!low || !bound)
      return op.emitError() << "an index check needs " << train::kIndexLow << " and " << train::kIndexBound;
    StringRef of = stringAttr(op, train::kOf);
    result->of = of.empty() ? result->name : of.str();
    result->index_low = low.getInt();
    result->index_bound = bound.getInt();
  }
  table.results.push_back(std::move(result));
  return success();
}

LogicalResult Tables::fillProbe(exec::ProbeOp op) {
  for (auto [i, state] : llvm::enumerate(table.state)) {
    if (state->role != StateRole::Parameter || state->name != op.getUnit())
      continue;
    auto probe = std::make_unique<GradientProbeT>();
    probe->state = i;
    probe->buffer = buffer(op.getBuffer());
    probe->shard_group = state->shard_group;
    probe->instruction = lastCompute;
    if (auto scale = op->getAttrOfType<FloatAttr>(train::kGradientScale))
      probe->scale = static_cast<float>(scale.getValueAsDouble());
    table.probes.push_back(std::move(probe));
    return success();
  }
  return op.emitError() << "there is no parameter '" << op.getUnit() << "'";
}

static TensorRole tensorRole(train::TensorRole role) {
  switch (role) {
  case train::TensorRole::Param:
    return TensorRole::Parameter;
  case train::TensorRole::Frozen:
    return TensorRole::Frozen;
  case train::TensorRole::Constant:
    return TensorRole::Constant;
  case train::TensorRole::Unused:
    return TensorRole::Unused;
  }
  llvm_unreachable("all roles are listed");
}

void Tables::fillTensors() {
  auto tensors = module->getAttrOfType<ArrayAttr>(train::kTensors);
  if (!tensors)
    return;
  for (auto info : tensors.getAsRange<train::TensorInfoAttr>()) {
    auto tensor = std::make_unique<ModelTensorT>();
    tensor->name = info.getName().str();
    llvm::raw_string_ostream(tensor->dtype) << info.getType().getElementType();
    tensor->shape.assign(info.getType().getShape().begin(), info.getType().getShape().end());
    tensor->role = tensorRole(info.getRole());
    tensor->reason = info.getReason().str();
    table.tensors.push_back(std::move(tensor));
  }
}

} // namespace tessera::artifact
