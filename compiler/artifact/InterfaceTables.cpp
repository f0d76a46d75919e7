//===- InterfaceTables.cpp - state, batch and results of an artifact ------===//
//
// See Tables.h.
//
//===----------------------------------------------------------------------===//

#include "compiler/artifact/Tables.h"
#include "compiler/dialect/dist/AxisAlgebra.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Products.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"

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
  const std::optional<train::ArgRole> role = train::getArgRole(op);
  StringRef name = stringAttr(op, train::kName);
  if (!role || name.empty())
    return op.emitError("argument needs train.role and train.name");
  if (train::isParameter(role) || role == train::ArgRole::State || role == train::ArgRole::Buffer)
    return fillState(op, *role);
  if (role == train::ArgRole::Derived)
    return fillDerived(op);
  if (train::isBatch(role))
    return fillBatch(op, *role);
  auto hyper = std::make_unique<HyperScalarT>();
  hyper->name = name.str();
  auto beta = op->getAttrOfType<FloatAttr>(train::kBeta);
  std::optional<HyperKind> kind = beta ? HyperKind::BiasCorrection
                                       : llvm::StringSwitch<std::optional<HyperKind>>(name)
                                             .Case("lr", HyperKind::LearningRate)
                                             .Case("update_always", HyperKind::UpdateAlways)
                                             .Case("seed", HyperKind::Seed)
                                             .Default(std::nullopt);
  if (!kind)
    return op.emitError() << "nothing says how the host computes the scalar '" << name
                          << "': expected lr, update_always or seed, or " << train::kBeta;
  hyper->kind = *kind;
  hyper->beta = beta ? beta.getValueAsDouble() : 0;
  hyper->buffer = buffer(op.getBuffer());
  into->hyper.push_back(std::move(hyper));
  return success();
}

LogicalResult Tables::fillState(exec::ArgumentOp op, train::ArgRole role) {
  auto state = std::make_unique<StateTensorT>();
  MemRefType type = cast<MemRefType>(op.getBuffer().getType());
  FailureOr<DataType> dtype = dataType(op, type.getElementType());
  if (failed(dtype))
    return failure();
  StringRef name = stringAttr(op, train::kName), of = stringAttr(op, train::kOf);
  if (role == train::ArgRole::State) {
    StringRef what = stringAttr(op, train::kState);
    if (what.empty() || of.empty())
      return op.emitError() << "state '" << name << "' needs " << train::kOf << " and " << train::kState;
    state->role = what == train::kAverage ? StateRole::Average : StateRole::Optimizer;
    if (state->role == StateRole::Optimizer)
      state->state = what.str();
    state->name = of.str();
  } else {
    state->role = role == train::ArgRole::Param    ? StateRole::Parameter
                  : role == train::ArgRole::Buffer ? StateRole::Buffer
                                                   : StateRole::Frozen;
    state->name = name.str();
  }
  state->dtype = *dtype;
  state->model_dtype = *dtype;
  if (auto model = op->getAttrOfType<TypeAttr>(train::kModelType)) {
    FailureOr<DataType> wide = dataType(op, model.getValue());
    if (failed(wide))
      return failure();
    state->model_dtype = *wide;
  }
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
  if (!isTraining())
    return findState(op, *state);
  if (op->hasAttr(train::kSegments)) {
    for (train::SegmentAttr segment : train::getSegments(op))
      fillSegment(segment, *state);
  } else if (role != train::ArgRole::State) {
    fillSegment(train::SegmentAttr::get(op.getContext(), StringAttr::get(op.getContext(), name), 0, shape,
                                        op->getAttrOfType<StringAttr>(train::kInit), {}),
                *state);
  }
  table.state.push_back(std::move(state));
  return success();
}

LogicalResult Tables::findState(exec::ArgumentOp op, const StateTensorT &state) {
  for (const auto &known : table.state) {
    if (known->name != state.name || known->role != state.role)
      continue;
    const BufferT &mine = *table.buffers[state.buffer], &theirs = *table.buffers[known->buffer];
    if (mine.arena == theirs.arena && mine.offset == theirs.offset && mine.shape == theirs.shape &&
        known->elements == state.elements && known->shard_group == state.shard_group && known->dtype == state.dtype)
      return success();
    return op.emitError() << "'" << state.name << "' is not what and where it is in the training";
  }
  return op.emitError() << "the training has no state '" << state.name << "'";
}

LogicalResult Tables::fillDerived(exec::ArgumentOp op) {
  StringRef of = stringAttr(op, train::kOf);
  for (auto [index, state] : llvm::enumerate(table.state)) {
    if (state->name != of || (state->role != StateRole::Parameter && state->role != StateRole::Frozen))
      continue;
    auto derived = std::make_unique<DerivedTensorT>();
    derived->state = index;
    derived->buffer = buffer(op.getBuffer());
    if (!isTraining())
      return op.emitError("only the training renews what is derived from the state");
    table.derived.push_back(std::move(derived));
    return success();
  }
  return op.emitError() << "there is no parameter '" << of << "' before it";
}

/// Nothing for what weights must bring.
static std::unique_ptr<InitT> initOf(train::SegmentAttr segment) {
  using Kind = train::Initializer::Kind;
  const std::optional<train::Initializer> parsed =
      segment.getInit() ? train::parseInitializer(segment.getInit().getValue()) : std::nullopt;
  if (!parsed || parsed->kind == Kind::Given)
    return nullptr;
  auto init = std::make_unique<InitT>();
  init->kind = parsed->kind == Kind::Normal    ? InitKind::Normal
               : parsed->kind == Kind::Uniform ? InitKind::Uniform
                                               : InitKind::Constant;
  init->a = parsed->a;
  init->b = parsed->b;
  init->asked = parsed->isAsked;
  if (parsed->kind == Kind::Normal) // in the artifact: mean and deviation
    std::swap(init->a, init->b);
  return init;
}

void Tables::fillSegment(train::SegmentAttr segment, StateTensorT &state) {
  const int64_t row = state.elements / segment.getParts();
  for (int64_t part = 0; part < segment.getParts(); ++part) {
    auto entry = std::make_unique<SegmentT>();
    entry->name = segment.getName().str();
    entry->shape.assign(segment.getShape().begin(), segment.getShape().end());
    entry->offset = part * row + segment.getOffset();
    if (train::PlacementAttr placement = segment.getPlacement()) {
      entry->split_dim = placement.getDim();
      entry->parts = placement.getParts();
      entry->part = part;
    }
    entry->init = initOf(segment);
    state.segments.push_back(std::move(entry));
  }
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

LogicalResult Tables::fillBatch(exec::ArgumentOp op, train::ArgRole role) {
  auto batch = std::make_unique<BatchTensorT>();
  FailureOr<DataType> dtype = dataType(op, cast<MemRefType>(op.getBuffer().getType()).getElementType());
  if (failed(dtype))
    return failure();
  batch->name = stringAttr(op, train::kName).str();
  batch->role = role == train::ArgRole::Input ? BatchRole::Input : BatchRole::Target;
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
        auto mesh = op->getParentOfType<ModuleOp>()->getAttrOfType<dist::MeshAttr>(dist::kMesh);
        const dist::Split levels = dist::getSplit(sharding, dim, mesh);
        if (levels.hasBlocks() || !llvm::all_of(levels, [&](const dist::SplitLevel &level) {
              return level.isZigzag == levels.front().isZigzag && level.dealt == 0;
            }))
          return op.emitError() << "'" << batch->name << "' is split by " << sharding
                                << "; data are split in one way along a dimension";
        split->dim = dim;
        split->group = ranks;
        split->order = levels.front().isZigzag ? SplitOrder::Zigzag : SplitOrder::Contiguous;
        batch->splits.push_back(std::move(split));
      }
  batch->buffer = buffer(op.getBuffer());
  if (auto bound = op->getAttrOfType<IntegerAttr>(train::kIndexBound))
    batch->index_bound = bound.getInt();
  if (auto ignored = op->getAttrOfType<IntegerAttr>(train::kIgnoreIndex))
    batch->ignore_index = ignored.getInt();
  batch->has_runs = op->hasAttr(train::kHasRuns);
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
  into->batch.push_back(std::move(batch));
  return success();
}

/// What the runtime is told of a result; none if it is none that leaves the step.
static std::optional<ResultRole> roleInTable(std::optional<train::ResultRole> role) {
  if (!role)
    return std::nullopt;
  switch (*role) {
  case train::ResultRole::Loss:
    return ResultRole::Loss;
  case train::ResultRole::Metric:
    return ResultRole::Metric;
  case train::ResultRole::Updated:
    return ResultRole::Updated;
  case train::ResultRole::Output:
    return ResultRole::Output;
  case train::ResultRole::IndexCheck:
    return ResultRole::IndexCheck;
  case train::ResultRole::LossSum:
    return ResultRole::LossSum;
  case train::ResultRole::LossCount:
    return ResultRole::LossCount;
  case train::ResultRole::MetricSum:
    return ResultRole::MetricSum;
  case train::ResultRole::MetricCount:
    return ResultRole::MetricCount;
  case train::ResultRole::Grad:
  case train::ResultRole::Evaluated:
    return std::nullopt;
  }
  llvm_unreachable("unknown role");
}

LogicalResult Tables::fillResult(exec::ResultOp op) {
  auto result = std::make_unique<ResultTensorT>();
  StringRef role = stringAttr(op, train::kRole), name = stringAttr(op, train::kName);
  std::optional<ResultRole> kind = roleInTable(train::getResultRole(op));
  if (!kind)
    return op.emitError() << "result needs train.role = \"loss\", \"metric\", \"updated\", \"output\", "
                             "\"index_check\", \"loss_sum\", \"loss_count\", \"metric_sum\" or \"metric_count\", got '"
                          << role << "'";
  result->role = *kind;
  result->name = (name.empty() ? role : name).str();
  result->buffer = buffer(op.getBuffer());
  if (*kind == ResultRole::LossCount || *kind == ResultRole::MetricCount) {
    result->of = stringAttr(op, train::kOf).str();
    if (auto atLeast = op->getAttrOfType<FloatAttr>(train::kAtLeast))
      result->at_least = atLeast.getValueAsDouble();
    if (auto plus = op->getAttrOfType<FloatAttr>(train::kPlus))
      result->plus = plus.getValueAsDouble();
  }
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
  into->results.push_back(std::move(result));
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
    into->probes.push_back(std::move(probe));
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
  case train::TensorRole::Buffer:
    return TensorRole::Buffer;
  }
  llvm_unreachable("all roles are listed");
}

void Tables::fillAdapters() {
  auto adapters = module->getAttrOfType<ArrayAttr>(train::kAdapters);
  if (!adapters)
    return;
  for (auto info : adapters.getAsRange<train::AdapterAttr>()) {
    auto adapter = std::make_unique<AdapterT>();
    adapter->parameter = info.getParameter().str();
    adapter->a = info.getA().str();
    adapter->b = info.getB().str();
    adapter->rank = info.getRank();
    adapter->input_dim = info.getInputDim();
    adapter->scale = info.getScale().getValueAsDouble();
    table.adapters.push_back(std::move(adapter));
  }
}

static std::vector<std::string> stringsOf(ArrayAttr array) {
  std::vector<std::string> strings;
  for (auto text : array.getAsRange<StringAttr>())
    strings.push_back(text.str());
  return strings;
}

void Tables::fillWeightMap() {
  auto map = module->getAttrOfType<train::WeightMapAttr>(train::kWeightMap);
  if (!map)
    return;
  auto made = std::make_unique<WeightMapT>();
  made->root = map.getRoot().str();
  made->prefix = map.getPrefix().str();
  made->unread = stringsOf(map.getUnread());
  made->refused = map.getRefused().str();
  for (auto stored : map.getParameters().getAsRange<train::StoredParameterAttr>()) {
    auto parameter = std::make_unique<StoredParameterT>();
    parameter->name = stored.getName().str();
    parameter->others = stringsOf(stored.getOthers());
    for (auto piece : stored.getPieces().getAsRange<train::WeightPieceAttr>()) {
      auto entry = std::make_unique<WeightPieceT>();
      entry->tensor = piece.getTensor().str();
      entry->shape = piece.getShape().asArrayRef().vec();
      entry->sizes = piece.getSizes().vec();
      entry->offset = piece.getOffset();
      entry->strides = piece.getStrides().vec();
      entry->tensor_offset = piece.getTensorOffset();
      entry->tensor_strides = piece.getTensorStrides().vec();
      parameter->pieces.push_back(std::move(entry));
    }
    made->parameters.push_back(std::move(parameter));
  }
  table.weight_map = std::move(made);
}

void Tables::fillProducts() {
  auto products = module->getAttrOfType<ArrayAttr>(train::kProducts);
  if (!products)
    return;
  for (auto info : products.getAsRange<train::ProductAttr>()) {
    auto product = std::make_unique<ProductT>();
    product->name = info.getName().str();
    product->weight = info.getWeight().str();
    product->inputs = info.getInputs();
    product->outputs = info.getOutputs();
    product->output = info.getOutput().str();
    product->input_grad = info.getInputGrad().str();
    product->weight_grad = info.getWeightGrad().str();
    product->reason = info.getReason().str();
    table.products.push_back(std::move(product));
  }
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
