//===- VerifySignature.cpp - verifiers of a step function's attributes ----===//
//
// Passes read the attributes of arguments and results without looking twice:
// what they rely on is checked here. Each constraint has a label, which its
// negative test in tests/dialect/train repeats.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/ComputeType.h"
#include "compiler/dialect/train/Dims.h"
#include "compiler/dialect/train/IndexParts.h"
#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Loss.h"
#include "compiler/dialect/train/Program.h"
#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/dialect/train/Train.h"
#include "compiler/dialect/train/Verify.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tessera::train;

namespace {

/// One attribute, and where its diagnostics start.
struct Checked {
  llvm::function_ref<InFlightDiagnostic()> emitError;
  NamedAttribute attr;

  InFlightDiagnostic error() const { return emitError() << attr.getName().getValue() << " "; }

  LogicalResult isString() const {
    auto text = dyn_cast<StringAttr>(attr.getValue());
    if (!text || text.empty())
      return error() << "expected a string that is not empty, got " << attr.getValue();
    return success();
  }

  LogicalResult isOneOf(ArrayRef<StringRef> allowed) const {
    if (auto text = dyn_cast<StringAttr>(attr.getValue()); text && llvm::is_contained(allowed, text.getValue()))
      return success();
    InFlightDiagnostic diagnostic = error() << "expected one of ";
    llvm::interleaveComma(allowed, diagnostic, [&](StringRef name) { diagnostic << '"' << name << '"'; });
    return diagnostic << ", got " << attr.getValue();
  }

  FailureOr<int64_t> getI64() const {
    auto number = dyn_cast<IntegerAttr>(attr.getValue());
    if (!number || !number.getType().isSignlessInteger(64))
      return error() << "expected an i64, got " << attr.getValue();
    return number.getInt();
  }

  /// A dimension of the only result of `op`, which is one of those that arrange elements.
  LogicalResult isGrownDimension(Operation *op) const {
    FailureOr<int64_t> dim = getI64();
    if (failed(dim))
      return failure();
    if (!isa<ReshapeOp, SliceOp, ConcatOp>(op) || *dim < 0 ||
        *dim >= cast<RankedTensorType>(op->getResult(0).getType()).getRank())
      return error() << "expected a dimension of the result of a reshape, slice or concat, got " << *dim;
    return success();
  }

  LogicalResult isCount(int64_t most = std::numeric_limits<int64_t>::max()) const {
    FailureOr<int64_t> number = getI64();
    if (failed(number))
      return failure();
    if (*number < 0 || *number > most)
      return error() << (*number < 0 ? "must not be negative, got " : "is beyond the unit: ") << *number;
    return success();
  }

  /// States are told apart by it in checkpoints, beside the roles there.
  LogicalResult isStateName() const {
    auto text = dyn_cast<StringAttr>(attr.getValue());
    auto isPlain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
    if (!text || text.empty() || !llvm::all_of(text.getValue(), isPlain) || text == "parameter" || text == "frozen" ||
        text == "buffer")
      return error() << "expected the name of a state, of a-z, 0-9 and _, got " << attr.getValue();
    return success();
  }

  LogicalResult isFraction() const {
    auto number = dyn_cast<FloatAttr>(attr.getValue());
    if (!number || !number.getType().isF64() || !(number.getValueAsDouble() >= 0 && number.getValueAsDouble() < 1))
      return error() << "expected an f64 in [0, 1), got " << attr.getValue();
    return success();
  }

  LogicalResult isInitializer(Attribute value) const {
    auto text = dyn_cast<StringAttr>(value);
    if (!text || !parseInitializer(text.getValue()))
      return error() << "expected " << kInitializerForms << ", got " << value;
    return success();
  }

  LogicalResult isSegments(ShapedType unit) const;
  LogicalResult isPlacement(ShapedType type) const;
  LogicalResult isDecay(ShapedType unit, ArrayAttr segments) const;
};

LogicalResult Checked::isSegments(ShapedType unit) const {
  auto list = dyn_cast<ArrayAttr>(attr.getValue());
  // train.arg_c7
  if (!list || unit.getRank() != 1)
    return error() << "expected an array on a flat unit, got " << attr.getValue() << " on " << unit;
  int64_t end = 0;
  std::optional<ArrayAttr> axes; // null: of a unit that is not placed
  for (Attribute element : list) {
    auto segment = dyn_cast<SegmentAttr>(element);
    // train.arg_c8
    if (!segment)
      return error() << "expected a #train.segment, got " << element;
    // train.arg_c9
    const ArrayAttr own = segment.getPlacement() ? segment.getPlacement().getAxes() : ArrayAttr();
    axes = axes.value_or(own);
    if (own != *axes)
      return error() << "segment " << segment.getName() << " is placed on other axes than those before it";
    const int64_t parts = segment.getParts();
    if (unit.getNumElements() % parts != 0)
      return error() << "segment " << segment.getName() << " has " << parts << " parts, which do not divide " << unit;
    // train.arg_c10
    if (segment.getOffset() < end)
      return error() << "segment " << segment.getName() << " is at " << segment.getOffset() << ", expected at least "
                     << end;
    // train.arg_c11
    if (llvm::AddOverflow(segment.getOffset(), segment.getNumElements(), end) || end > unit.getNumElements() / parts)
      return error() << "segment " << segment.getName() << " ends beyond " << unit;
  }
  return success();
}

/// Of a unit of several rows all decays or nothing: the elements that do are the first ones of the whole.
LogicalResult Checked::isDecay(ShapedType unit, ArrayAttr segments) const {
  if (failed(isCount(unit.getNumElements())))
    return failure();
  auto first = segments && !segments.empty() ? dyn_cast<SegmentAttr>(segments[0]) : SegmentAttr();
  const int64_t decays = cast<IntegerAttr>(attr.getValue()).getInt();
  // train.arg_c15
  if (first && first.getParts() > 1 && decays != 0 && decays != unit.getNumElements())
    return error() << "is " << decays << ", expected 0 or all " << unit.getNumElements()
                   << " elements of a unit in parts";
  return success();
}

/// A parameter that model axes split.
LogicalResult Checked::isPlacement(ShapedType type) const {
  auto placement = dyn_cast<PlacementAttr>(attr.getValue());
  // train.arg_c12
  if (!placement || !placement.fits(type.getShape()))
    return error() << "expected a #train.placement whose parts divide the dimension, got " << attr.getValue() << " on "
                   << type;
  return success();
}

SmallVector<StringRef> namesOf(uint32_t last, llvm::function_ref<StringRef(uint32_t)> name) {
  return llvm::map_to_vector(llvm::seq(last + 1), name);
}

/// An attribute of an argument whose global type is `type`.
LogicalResult verifyArgument(const Checked &checked, ShapedType type, ArrayAttr segments) {
  const StringRef name = checked.attr.getName().getValue();
  // train.arg_c1
  if (name == kRole)
    return checked.isOneOf(
        namesOf(getMaxEnumValForArgRole(), [](uint32_t role) { return stringifyArgRole(static_cast<ArgRole>(role)); }));
  // train.arg_c2
  if (name == kState)
    return checked.isStateName();
  // train.arg_c3
  if (name == kName || name == kOf)
    return checked.isString();
  // train.arg_c4
  if (name == kInit)
    return checked.isInitializer(checked.attr.getValue());
  // train.arg_c5
  if (name == kDecayElements)
    return checked.isDecay(type, segments);
  if (name == kIndexBound)
    return checked.isCount();
  // train.arg_c6
  if (name == kIgnoreIndex)
    return checked.getI64();
  // train.arg_c13
  if (name == kBeta)
    return checked.isFraction();
  // train.arg_c14
  auto dims = dyn_cast<DimsAttr>(checked.attr.getValue());
  if (name == kDims && (!dims || static_cast<int64_t>(dims.getRoles().size()) != type.getRank()))
    return checked.error() << "expected a #train.dims with a role for each of " << type.getRank() << " dimensions, got "
                           << checked.attr.getValue();
  if (name == kPlacement)
    return checked.isPlacement(type);
  // train.arg_c16
  auto compute = dyn_cast<TypeAttr>(checked.attr.getValue());
  const bool isComputeType = compute && isa<Float32Type, Float8E4M3FNType>(compute.getValue());
  if (name == kComputeType && !(isComputeType && type.getElementType().isF32()))
    return checked.error() << "expected f32 or f8E4M3FN on a parameter of f32, got " << checked.attr.getValue()
                           << " on " << type;
  return name == kSegments ? checked.isSegments(type) : success();
}

LogicalResult verifyResult(const Checked &checked) {
  const StringRef name = checked.attr.getName().getValue();
  // train.result_c1
  if (name == kRole)
    return checked.isOneOf(namesOf(getMaxEnumValForResultRole(),
                                   [](uint32_t role) { return stringifyResultRole(static_cast<ResultRole>(role)); }));
  // train.result_c3
  auto number = dyn_cast<FloatAttr>(checked.attr.getValue());
  if ((name == kAtLeast || name == kPlus) &&
      !(number && number.getType().isF64() && std::isfinite(number.getValueAsDouble())))
    return checked.error() << "expected a finite f64, got " << checked.attr.getValue();
  // train.result_c2
  return name == kName || name == kOf ? checked.isString() : success();
}

/// The result of this number is the argument's next value.
LogicalResult verifyAlias(FunctionOpInterface func, unsigned index, const Checked &checked) {
  FailureOr<int64_t> alias = checked.getI64();
  // train.alias_c1
  if (failed(alias))
    return failure();
  // train.alias_c2
  if (*alias < 0 || *alias >= static_cast<int64_t>(func.getNumArguments()))
    return checked.error() << "is " << *alias << ", the function has " << func.getNumArguments() << " arguments";
  // train.alias_c3
  Type argument = func.getArgumentTypes()[*alias], result = func.getResultTypes()[index];
  if (argument != result)
    return checked.error() << "is argument " << *alias << " of type " << argument << ", the result has " << result;
  // train.alias_c4
  for (unsigned earlier = 0; earlier < index; ++earlier)
    if (func.getResultAttr(earlier, kAlias) == checked.attr.getValue())
      return checked.error() << "is argument " << *alias << ", whose next value is result " << earlier << " already";
  return success();
}

} // namespace

// --- Hooks of the dialect ----------------------------------------------------------

LogicalResult TrainDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitError() << attr.getName().getValue() << " is only for arguments of functions";
  auto emitError = [&] { return op->emitError() << "argument " << index << ": "; };
  Type type = func.getArgumentTypes()[index];
  // train.step_c2
  if (!isStaticTensor(type))
    return emitError() << attr.getName().getValue() << " needs a tensor of static shape, got " << type;
  const Checked checked{emitError, attr};
  const auto text = func.getArgAttrOfType<StringAttr>(index, kRole);
  const std::optional<ArgRole> role = text ? symbolizeArgRole(text.getValue()) : std::nullopt;
  // train.arg_c20
  if (attr.getName() == kHasRuns) {
    auto tensor = cast<RankedTensorType>(type);
    Type element = tensor.getElementType();
    if (!isa<UnitAttr>(attr.getValue()) || !isBatch(role) || !element.isInteger() || element.isInteger(1))
      return checked.error() << "expected a unit on an input or target of integers, got " << attr.getValue() << " on "
                             << type;
    auto dims = func.getArgAttrOfType<DimsAttr>(index, kDims);
    if (!dims || tensor.getRank() == 0 || dims.getPositionDim() != tensor.getRank() - 1)
      return checked.error() << "expected positions along the last dimension";
  }
  // train.arg_c17
  if (attr.getName() == kComputeType && !isParameter(role))
    return checked.error() << "is only for parameters";
  // train.arg_c19
  if (attr.getName() == kModule && !(isParameter(role) && isa<StringAttr>(attr.getValue())))
    return checked.error() << "expected a string on a parameter, got " << attr.getValue();
  // train.arg_c18
  if (attr.getName() == kModelType) {
    auto wide = dyn_cast<TypeAttr>(attr.getValue());
    auto model = dyn_cast_or_null<FloatType>(wide ? wide.getValue() : Type());
    Type held = cast<RankedTensorType>(type).getElementType();
    if (role != ArgRole::Frozen || !model || !model.isF32() || !(held.isBF16() || held.isF16()))
      return checked.error() << "expected f32 on a frozen parameter of bf16 or f16, got " << attr.getValue() << " on "
                             << type;
  }
  if (failed(verifyArgument(checked, globalType(func.getArgAttrDict(index), type),
                            func.getArgAttrOfType<ArrayAttr>(index, kSegments))))
    return failure();
  if (attr.getName() != kRole)
    return success();
  // Once for the function: at its first role.
  for (unsigned earlier = 0; earlier < index; ++earlier)
    if (func.getArgAttr(earlier, kRole))
      return success();
  return verifyStep(func);
}

LogicalResult TrainDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index, NamedAttribute attr) {
  auto func = dyn_cast<FunctionOpInterface>(op);
  if (!func)
    return op->emitError() << attr.getName().getValue() << " is only for results of functions";
  auto emitError = [&] { return op->emitError() << "result " << index << ": "; };
  const Checked checked{emitError, attr};
  // train.result_c4
  auto role = func.getResultAttrOfType<StringAttr>(index, kRole);
  const bool isCount = role && llvm::is_contained({stringifyResultRole(ResultRole::LossCount),
                                                   stringifyResultRole(ResultRole::MetricCount)},
                                                  role.getValue());
  if ((attr.getName() == kAtLeast || attr.getName() == kPlus) && !isCount)
    return checked.error() << "is only for a loss_count or metric_count";
  return attr.getName() == kAlias ? verifyAlias(func, index, checked) : verifyResult(checked);
}

LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attr) {
  auto emitError = [&] { return op->emitError(); };
  const Checked checked{emitError, attr};
  const StringRef name = attr.getName().getValue();
  // train.op_c1
  if (name == kUnit || name == kModelFile || name == kEvaluationDiffers || name == kComputation)
    return checked.isString();
  if (name == kMode)
    return checked.isOneOf({kTrainingMode, kEvaluationMode});
  // train.op_c6
  if ((name == kBackward || name == kRecompute || name == kSamplesMeet || name == kFollowsBatchSize ||
       name == kByPlace || name == kOwnRows) &&
      !isa<UnitAttr>(attr.getValue()))
    return checked.error() << "expected a unit attribute, got " << attr.getValue();
  if (name == kProgram)
    return programKind(op);
  // train.op_c2
  auto units = dyn_cast<ArrayAttr>(attr.getValue());
  if (name == kUnits && (!units || !llvm::all_of(units, llvm::IsaPred<StringAttr>)))
    return checked.error() << "expected an array of strings, got " << attr.getValue();
  // train.op_c4
  auto tensors = dyn_cast<ArrayAttr>(attr.getValue());
  if (name == kTensors && (!tensors || !llvm::all_of(tensors, llvm::IsaPred<TensorInfoAttr>)))
    return checked.error() << "expected an array of #train.tensor, got " << attr.getValue();
  // train.op_c5
  if (name == kTensors)
    for (auto info : tensors.getAsRange<TensorInfoAttr>())
      if (!info.getType().hasStaticShape())
        return checked.error() << "expected tensors of static shape, got " << info;
  // train.op_c8
  if (name == kLossOfBatch)
    return checked.isOneOf(
        namesOf(getMaxEnumValForOfBatch(), [](uint32_t kind) { return stringifyOfBatch(static_cast<OfBatch>(kind)); }));
  // train.op_c9
  if ((name == kOfBatch || name == kMicroBatches || name == kOfBatchNumber) && !isa<BarrierOp>(op))
    return checked.error() << "is only for barriers";
  if (name == kOfBatch)
    return checked.isOneOf({stringifyOfBatch(OfBatch::Sum), stringifyOfBatch(OfBatch::Mean)});
  // train.op_c10
  if (name == kNumOfBatch)
    return checked.isCount();
  // train.op_c11
  if (name == kBatchGroups || name == kBatchParts) {
    FailureOr<int64_t> number = checked.getI64();
    return failed(number) || *number > 0 ? LogicalResult(number) : checked.error() << "must be at least 1";
  }
  // train.op_c12
  if (name == kGrows)
    return checked.isGrownDimension(op);
  // train.op_c13
  if (name == kOfBatchNumber && !isa<FloatAttr>(attr.getValue()))
    return checked.error() << "expected a number, got " << attr.getValue();
  // train.op_c14
  if (name == kOwnRows && !isa<GatherRowsOp>(op))
    return checked.error() << "is only for gather_rows";
  // train.op_c15
  if (name == kRunning) {
    auto sum = dyn_cast<ReduceOp>(op);
    return sum && sum.getKind() == ReduceKind::Sum && sum->hasAttr(kStatistics)
               ? checked.isString()
               : LogicalResult(checked.error() << "is only for sums with " << kStatistics);
  }
  // train.op_c16
  if (name == kByPlace && !isa<ConstantOp, BarrierOp>(op))
    return checked.error() << "is only for constants and their barriers";
  // train.op_c7
  if (auto adapters = dyn_cast<ArrayAttr>(attr.getValue());
      name == kAdapters && (!adapters || !llvm::all_of(adapters, llvm::IsaPred<AdapterAttr>)))
    return checked.error() << "expected an array of #train.adapter, got " << attr.getValue();
  // train.op_c17
  if (name == kWeightMap && !isa<WeightMapAttr>(attr.getValue()))
    return checked.error() << "expected a #train.weight_map, got " << attr.getValue();
  if (name != kGradOperands)
    return success();
  // train.op_c3
  auto operands = dyn_cast<DenseI64ArrayAttr>(attr.getValue());
  if (!operands || llvm::any_of(operands.asArrayRef(), [&](int64_t operand) {
        return operand < 0 || operand >= static_cast<int64_t>(op->getNumOperands());
      }))
    return checked.error() << "expected numbers of operands, got " << attr.getValue();
  return success();
}

namespace tessera::train {

LogicalResult verifyArgumentAttrs(Operation *op, ShapedType type) {
  auto emitError = [&] { return op->emitOpError(); };
  const ShapedType global = globalType(op->getDiscardableAttrDictionary(), type);
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (failed(verifyArgument({emitError, attr}, global, op->getAttrOfType<ArrayAttr>(kSegments))))
      return failure();
  return success();
}

LogicalResult verifyResultAttrs(Operation *op) {
  auto emitError = [&] { return op->emitOpError(); };
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (failed(verifyResult({emitError, attr})))
      return failure();
  return success();
}

} // namespace tessera::train
