//===- FlattenParameters.cpp - parameters become slices of flat units -----===//
//
// A unit is what sharding gathers and scatters as one piece. A parameter turns
// into a slice of its unit, once for the forward and once for the backward pass,
// so that the two may read different copies; its gradient into a part of the
// unit's gradient.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/Float8.h"
#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/optimize/Passes.h"
#include "passes/optimize/Units.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <numeric>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_FLATTENPARAMETERS
#include "passes/optimize/Passes.h.inc"

namespace {

using train::isMarkedBackward;

/// Ops that only rearrange one operand: cheaper to repeat in the backward pass than to keep.
bool isView(Operation *op) { return isa<train::ConvertOp>(op) || asStaticView(op); }

/// The first op of the block that is or contains one of `ops`.
Operation *findFirst(ArrayRef<Operation *> ops, Block &block) {
  Operation *first = nullptr;
  for (Operation *op : ops) {
    Operation *ancestor = getAncestorInBlock(op, block);
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
  }
  return first;
}

struct FlattenParameters : impl::FlattenParametersBase<FlattenParameters> {
  using FlattenParametersBase::FlattenParametersBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
  LogicalResult checkParameters(func::FuncOp func);
  BlockArgument insertUnit(func::FuncOp func, unsigned index, const ParameterUnit &unit);
  void replaceUses(Value value, Location loc, Block &block, llvm::function_ref<Value(train::Build &)> read);
  void replaceJoined(const ParameterUnit &unit, Value unitArg, Block &block);
  Value flattenGradients(const ParameterUnit &unit, Value unitArg, const llvm::StringMap<Value> &gradients,
                         Block &block);
};

LogicalResult FlattenParameters::checkParameters(func::FuncOp func) {
  llvm::StringSet<> differentiated;
  for (unsigned index = 0; index < func.getNumResults(); ++index) {
    if (func.getResultAttr(index, train::kAlias) && !train::isNextOfBuffer(func, index))
      return func.emitError() << "result " << index << " is the next value of an argument; run insert-optimizer later";
    if (train::getResultRole(func, index) == train::ResultRole::Grad)
      differentiated.insert(func.getResultAttrOfType<StringAttr>(index, train::kOf).getValue());
  }
  for (train::ArgRole role : {train::ArgRole::Param, train::ArgRole::Frozen})
    for (unsigned index : train::getArgsWithRole(func, role))
      if (func.getArgAttr(index, train::kSegments))
        return func.emitError() << "parameter '" << train::getArgName(func, index) << "' is already flat";
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (func.getArgAttr(index, train::kPlacement) && !train::isFlattened(func, index))
      return func.emitError() << "argument " << index << " has a placement, but is no parameter of a unit";
  for (unsigned index : train::getArgsWithRole(func, train::ArgRole::Param)) {
    StringRef name = train::getArgName(func, index);
    if (!differentiated.empty() && !differentiated.contains(name))
      return func.emitError() << "parameter '" << name << "' has no gradient, but others have one";
  }
  return success();
}

/// Gives the backward pass its own copies of values that are mere views of a parameter.
void repeatViewsForBackward(Value value, SmallVectorImpl<Operation *> &chain, Block &block) {
  for (Operation *user : llvm::to_vector(value.getUsers())) {
    if (isMarkedBackward(user) || user->getBlock() != &block || !isView(user))
      continue;
    chain.push_back(user);
    repeatViewsForBackward(user->getResult(0), chain, block);
    SmallVector<Operation *> readers;
    for (Operation *reader : user->getResult(0).getUsers())
      if (isMarkedBackward(reader))
        readers.push_back(reader);
    if (!readers.empty()) {
      train::MarkBackward listener;
      OpBuilder builder(findFirst(readers, block), &listener);
      IRMapping mapping;
      for (Operation *link : chain) {
        Operation *copy = builder.clone(*link, mapping);
        copy->setLoc(NameLoc::get(builder.getStringAttr("grad"), link->getLoc()));
      }
      user->getResult(0).replaceUsesWithIf(mapping.lookup(user->getResult(0)),
                                           [](OpOperand &use) { return isMarkedBackward(use.getOwner()); });
    }
    chain.pop_back();
  }
}

BlockArgument FlattenParameters::insertUnit(func::FuncOp func, unsigned index, const ParameterUnit &unit) {
  Builder builder(func.getContext());
  SmallVector<Attribute> segments;
  for (const Parameter &parameter : unit.parameters)
    segments.push_back(train::SegmentAttr::get(builder.getContext(), builder.getStringAttr(parameter.name),
                                               parameter.offset, parameter.type.getShape(), parameter.init,
                                               parameter.placement));
  // Shards of what becomes 8 bits are whole chunks, which have scales.
  const bool isFloat8 = unit.getComputeType() && train::isFloat8(unit.getComputeType().getValue());
  const int64_t multiple =
      isFloat8 ? padMultiple * train::kFloat8Chunk / std::gcd<int64_t>(padMultiple, train::kLeastFloat8Chunk)
               : padMultiple;
  const int64_t padded = unit.parts() * static_cast<int64_t>(llvm::alignTo(unit.elements, multiple));
  SmallVector<NamedAttribute> attrs = {
      train::getRoleAttr(builder.getContext(), unit.role),
      builder.getNamedAttr(train::kName, builder.getStringAttr(unit.name)),
      builder.getNamedAttr(train::kSegments, builder.getArrayAttr(segments)),
  };
  if (unit.module != unit.name)
    attrs.push_back(builder.getNamedAttr(train::kModule, builder.getStringAttr(unit.module)));
  if (unit.role == train::ArgRole::Param)
    attrs.push_back(builder.getNamedAttr(
        train::kDecayElements,
        builder.getI64IntegerAttr(unit.decayElements > 0 && unit.parts() > 1 ? padded : unit.decayElements)));
  if (unit.getModelType())
    attrs.push_back(builder.getNamedAttr(train::kModelType, unit.getModelType()));
  if (unit.getComputeType())
    attrs.push_back(builder.getNamedAttr(train::kComputeType, unit.getComputeType()));
  LogicalResult inserted =
      func.insertArgument(index, RankedTensorType::get({padded}, unit.getElementType()),
                          builder.getDictionaryAttr(attrs), NameLoc::get(builder.getStringAttr(unit.name)));
  assert(succeeded(inserted) && "a function of static tensors takes any argument");
  (void)inserted;
  return func.getArgument(index);
}

/// Dimensions of a parameter with that of its parts before the one that they split: [a, parts, b / parts, c].
static SmallVector<int64_t> shapeWithParts(const Parameter &parameter) {
  SmallVector<int64_t> shape(parameter.type.getShape());
  const int64_t dim = parameter.placement.getDim();
  shape[dim] /= parameter.parts();
  shape.insert(shape.begin() + dim, parameter.parts());
  return shape;
}

/// A parameter of a unit: a slice, or, where model axes split it, a column of the unit's rows, with the parts moved to
/// the dimension that they split.
static Value readParameter(train::Build &build, Value unit, const Parameter &parameter) {
  ArrayRef<int64_t> shape = parameter.type.getShape();
  const int64_t begin = parameter.offset, end = begin + parameter.elements(), parts = parameter.parts();
  if (parts == 1)
    return build.reshape(build.slice(unit, {begin}, {end}), shape);
  Value rows = build.reshape(unit, {parts, train::shapeOf(unit)[0] / parts});
  SmallVector<int64_t> split = shapeWithParts(parameter);
  const int64_t dim = parameter.placement.getDim();
  SmallVector<int64_t> inFront(split);
  inFront.erase(inFront.begin() + dim);
  inFront.insert(inFront.begin(), parts);
  Value part = build.reshape(build.slice(rows, {0, begin}, {parts, end}), inFront);
  return build.reshape(build.moveDim(part, 0, dim), shape);
}

/// The gradient of a parameter that model axes split, as what belongs into the unit's rows.
static Value gradientRows(train::Build &build, Value gradient, const Parameter &parameter) {
  Value parted = build.reshape(gradient, shapeWithParts(parameter));
  return build.reshape(build.moveDim(parted, parameter.placement.getDim(), 0),
                       {parameter.parts(), parameter.elements()});
}

/// Reads a parameter, or several that lie side by side, just before its first forward and its first backward use.
void FlattenParameters::replaceUses(Value value, Location loc, Block &block,
                                    llvm::function_ref<Value(train::Build &)> read) {
  SmallVector<Operation *> chain;
  repeatViewsForBackward(value, chain, block);
  SmallVector<Operation *> readers[2];
  for (Operation *user : value.getUsers())
    readers[isMarkedBackward(user)].push_back(user);
  for (bool backward : {false, true}) {
    if (readers[backward].empty())
      continue;
    train::MarkBackward listener;
    OpBuilder builder(findFirst(readers[backward], block), backward ? &listener : nullptr);
    train::Build build(builder, backward ? NameLoc::get(builder.getStringAttr("grad"), loc) : loc);
    Value shaped = read(build);
    value.replaceUsesWithIf(shaped, [&](OpOperand &use) { return isMarkedBackward(use.getOwner()) == backward; });
  }
}

/// Concatenations of parameters that lie side by side in the unit are a part of it.
void FlattenParameters::replaceJoined(const ParameterUnit &unit, Value unitArg, Block &block) {
  if (unit.parts() > 1)
    return;
  llvm::DenseMap<Value, const Parameter *> parameterOf;
  for (const Parameter &parameter : unit.parameters)
    parameterOf[parameter.arg] = &parameter;
  for (train::ConcatOp concat : llvm::to_vector(block.getOps<train::ConcatOp>())) {
    const Parameter *first = parameterOf.lookup(concat.getOperands().front());
    int64_t end = first ? first->offset : 0;
    const bool isPart = first && concat.getDim() == 0 && llvm::all_of(concat.getOperands(), [&](Value operand) {
                          const Parameter *parameter = parameterOf.lookup(operand);
                          const bool follows = parameter && parameter->offset == end;
                          end += train::tensorType(operand).getNumElements();
                          return follows;
                        });
    if (!isPart)
      continue;
    replaceUses(concat, concat.getLoc(), block, [&](train::Build &build) {
      return build.reshape(build.slice(unitArg, {first->offset}, {end}), train::shapeOf(concat));
    });
    concat->erase();
  }
}

/// Gradients that are neighbouring rows of one value become one part.
static void appendRows(SmallVectorImpl<Value> &rows, Value gradient) {
  auto plain = [](train::SliceOp slice) {
    ArrayRef<int64_t> shape = slice ? train::shapeOf(slice.getOperand()) : ArrayRef<int64_t>();
    return slice && llvm::all_of(slice.getStrides(), [](int64_t stride) { return stride == 1; }) &&
           llvm::all_of(slice.getStarts().drop_front(), [](int64_t start) { return start == 0; }) &&
           slice.getLimits().drop_front() == shape.drop_front();
  };
  auto next = gradient.getDefiningOp<train::SliceOp>();
  auto last = rows.empty() ? train::SliceOp() : rows.back().getDefiningOp<train::SliceOp>();
  if (!plain(next) || !plain(last) || next.getOperand() != last.getOperand() ||
      last.getLimits().front() != next.getStarts().front()) {
    rows.push_back(gradient);
    return;
  }
  train::MarkBackward listener;
  OpBuilder builder(next->getContext(), &listener);
  builder.setInsertionPointAfter(last->isBeforeInBlock(next) ? next : last);
  rows.back() = train::Build(builder, last.getLoc()).slice(next.getOperand(), last.getStarts(), next.getLimits());
}

/// Appends the elements of a gradient in their order. Of a parameter of which only some rows are read, these rows and
/// zeros: each is written where it belongs, and no kernel makes the whole.
static void appendElements(SmallVectorImpl<Value> &parts, Value gradient, train::Build &build) {
  auto isZero = [](int64_t count) { return count == 0; };
  auto elementsOf = [](Value value) { return train::tensorType(value).getNumElements(); };
  auto pad = gradient.getDefiningOp<train::PadOp>();
  if (!pad || elementsOf(gradient) == 0 || !pad.getValue().isZero() || !llvm::all_of(pad.getInterior(), isZero) ||
      pad.getLow().empty() || !llvm::all_of(pad.getLow().drop_front(), isZero) ||
      !llvm::all_of(pad.getHigh().drop_front(), isZero)) {
    parts.push_back(build.reshape(gradient, {elementsOf(gradient)}));
    return;
  }
  const int64_t row = elementsOf(gradient) / train::shapeOf(gradient).front();
  auto appendZeros = [&](int64_t rows) {
    if (rows > 0)
      parts.push_back(build.zeros(train::tensorType(gradient).clone(ArrayRef<int64_t>{rows * row})));
  };
  appendZeros(pad.getLow().front());
  parts.push_back(build.reshape(pad.getOperand(), {elementsOf(pad.getOperand())}));
  appendZeros(pad.getHigh().front());
}

/// The gradient of a unit that model axes split.
static Value joinRows(const ParameterUnit &unit, Value unitArg, const llvm::StringMap<Value> &gradients,
                      train::Build &build) {
  const int64_t length = train::shapeOf(unitArg)[0], padding = length / unit.parts() - unit.elements;
  SmallVector<Value> columns;
  for (const Parameter &parameter : unit.parameters)
    columns.push_back(gradientRows(build, gradients.lookup(parameter.name), parameter));
  if (padding > 0)
    columns.push_back(build.zeros(RankedTensorType::get({unit.parts(), padding}, unit.getElementType())));
  return build.reshape(columns.size() == 1 ? columns.front() : build.concat(columns, 1), {length});
}

/// Joins the gradients of the unit's parameters right after the last of them is computed.
Value FlattenParameters::flattenGradients(const ParameterUnit &unit, Value unitArg,
                                          const llvm::StringMap<Value> &gradients, Block &block) {
  Operation *last = nullptr;
  for (const Parameter &parameter : unit.parameters)
    if (Operation *op = gradients.lookup(parameter.name).getDefiningOp(); op && (!last || last->isBeforeInBlock(op)))
      last = op;
  train::MarkBackward listener;
  OpBuilder builder(unitArg.getContext(), &listener);
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(&block);
  train::Build build(builder, NameLoc::get(builder.getStringAttr("grad"), unitArg.getLoc()));
  if (unit.parts() > 1)
    return joinRows(unit, unitArg, gradients, build);
  SmallVector<Value> rows, parts;
  for (const Parameter &parameter : unit.parameters)
    appendRows(rows, gradients.lookup(parameter.name));
  for (Value each : rows)
    appendElements(parts, each, build);
  int64_t padding = train::shapeOf(unitArg)[0] - unit.elements;
  if (padding > 0)
    parts.push_back(build.zeros(RankedTensorType::get({padding}, unit.getElementType())));
  return parts.size() == 1 ? parts.front() : build.concat(parts, 0);
}

LogicalResult FlattenParameters::run(func::FuncOp func) {
  std::optional<WrapPolicy> policy = WrapPolicy::parse(wrap);
  if (!policy)
    return func.emitError() << "unknown wrap policy '" << wrap << "', expected module, size:<bytes> or none";
  if (padMultiple < 1)
    return func.emitError() << "pad-multiple must be at least 1, got " << padMultiple.getValue();
  std::optional<train::NamePattern> pattern;
  if (failed(train::NamePattern::read(func.getLoc(), "--no-decay", noDecay, pattern)) || failed(checkParameters(func)))
    return failure();

  Block &block = func.getBody().front();
  train::completeBackwardMarks(func);
  SmallVector<Parameter> parameters = collectParameters(func, train::ArgRole::Param, pattern);
  SmallVector<Parameter> frozen = collectParameters(func, train::ArgRole::Frozen, std::nullopt);
  if (pattern && failed(pattern->expectMatch(
                     func.getLoc(), "trained parameter",
                     llvm::map_to_vector(parameters, [](const Parameter &each) -> StringRef { return each.name; }))))
    return failure();
  constexpr int64_t kMostElements = int64_t{1} << 56; // bits are counted in 64 bits, too
  int64_t elements = 0;
  for (const Parameter &parameter : llvm::concat<Parameter>(parameters, frozen)) {
    if (parameter.type.getNumElements() > kMostElements - elements)
      return emitError(parameter.arg.getLoc())
             << "parameters up to '" << parameter.name << "' have more than 2^56 elements together";
    elements += parameter.type.getNumElements();
  }
  llvm::DenseMap<unsigned, BlockArgument> bufferOf; // by result
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (const std::optional<unsigned> buffer = train::getAliasedArg(func, index))
      bufferOf[index] = func.getArgument(*buffer);
  llvm::StringSet<> names;
  SmallVector<ParameterUnit> units = makeUnits(parameters, train::ArgRole::Param, *policy, names);
  const size_t trained = units.size();
  llvm::append_range(units, makeUnits(frozen, train::ArgRole::Frozen, *policy, names));
  Builder builder(func.getContext());
  BitVector erased(func.getNumArguments() + units.size());
  for (auto [index, unit] : llvm::enumerate(units)) {
    BlockArgument arg = insertUnit(func, index, unit);
    replaceJoined(unit, arg, block);
    for (const Parameter &parameter : unit.parameters)
      replaceUses(parameter.arg, NameLoc::get(builder.getStringAttr(parameter.name)), block,
                  [&](train::Build &build) { return readParameter(build, arg, parameter); });
  }
  for (const ParameterUnit &unit : units)
    for (const Parameter &parameter : unit.parameters)
      erased.set(parameter.arg.getArgNumber());
  auto numberAfter = [&](BlockArgument arg) {
    const unsigned number = arg.getArgNumber();
    return number - llvm::count_if(erased.set_bits(), [&](unsigned index) { return index < number; });
  };
  // Read only now: a result may be a parameter itself.
  llvm::StringMap<Value> gradients;
  SmallVector<train::StepResult> results;
  for (auto [index, result] : llvm::enumerate(train::getResults(func))) {
    if (auto buffer = bufferOf.find(index); buffer != bufferOf.end()) {
      NamedAttrList attrs(result.attrs);
      attrs.set(train::kAlias, builder.getI64IntegerAttr(numberAfter(buffer->second)));
      result.attrs = attrs.getDictionary(func.getContext());
    }
    if (train::getResultRole(func, index) == train::ResultRole::Grad)
      gradients[cast<StringAttr>(result.attrs.get(train::kOf)).getValue()] = result.value;
    else
      results.push_back(result);
  }
  if (!gradients.empty())
    for (auto [index, unit] : llvm::enumerate(ArrayRef(units).take_front(trained)))
      results.push_back({flattenGradients(unit, func.getArgument(index), gradients, block),
                         builder.getDictionaryAttr({
                             train::getRoleAttr(builder.getContext(), train::ResultRole::Grad),
                             builder.getNamedAttr(train::kOf, builder.getStringAttr(unit.name)),
                         })});
  train::setResults(func, results);
  return func.eraseArguments(erased);
}

} // namespace
} // namespace tessera
