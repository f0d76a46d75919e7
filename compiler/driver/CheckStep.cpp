//===- CheckStep.cpp - attributes of a step that was not imported ---------===//
//
// Passes and the writer read the attributes of the step function's arguments and results without looking twice. The
// importer makes them right; those of an .mlir file are checked here.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/CheckStep.h"

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/train/Aliases.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tessera {

namespace {
/// One attribute of one argument or result, for its diagnostics.
struct Checked {
  func::FuncOp func;
  const char *what; ///< "argument" or "result"
  unsigned index;
  NamedAttribute attr;

  InFlightDiagnostic error() const {
    return func->emitError() << what << " " << index << ": " << attr.getName().getValue() << " ";
  }

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

  LogicalResult isCount() const {
    FailureOr<int64_t> number = getI64();
    if (failed(number))
      return failure();
    return *number >= 0 ? success() : LogicalResult(error() << "must not be negative, got " << *number);
  }

  LogicalResult isSegments(Type type) const;
};

LogicalResult Checked::isSegments(Type type) const {
  auto list = dyn_cast<ArrayAttr>(attr.getValue());
  if (!list)
    return error() << "expected an array, got " << attr.getValue();
  auto unit = cast<RankedTensorType>(type);
  if (unit.getRank() != 1)
    return error() << "needs a flat unit, got " << type;
  int64_t end = 0;
  for (Attribute element : list) {
    auto segment = dyn_cast<DictionaryAttr>(element);
    auto name = segment ? segment.getAs<StringAttr>("name") : nullptr;
    auto offset = segment ? segment.getAs<IntegerAttr>("offset") : nullptr;
    auto shape = segment ? segment.getAs<DenseI64ArrayAttr>("shape") : nullptr;
    if (!name || name.empty() || !offset || !offset.getType().isSignlessInteger(64) || !shape)
      return error() << "expected a segment {name = \"…\", offset = … : i64, shape = array<i64: …>}, got " << element;
    if (segment.contains("init") && !segment.getAs<StringAttr>("init"))
      return error() << "segment '" << name.getValue() << "' has an init that is not a string";
    if (offset.getInt() < end)
      return error() << "segment '" << name.getValue() << "' is at " << offset.getInt() << ", expected at least "
                     << end;
    int64_t elements = 1;
    for (int64_t size : shape.asArrayRef())
      if (size < 0 || llvm::MulOverflow(elements, size, elements))
        return error() << "segment '" << name.getValue() << "' has a shape that is no shape";
    if (llvm::AddOverflow(offset.getInt(), elements, end) || end > unit.getNumElements())
      return error() << "segment '" << name.getValue() << "' ends beyond " << type;
  }
  return success();
}

/// A sharding must fit its tensor; what later phases make cannot be given.
LogicalResult checkDist(const Checked &checked, Type type) {
  if (checked.attr.getName() != dist::kSharding)
    return checked.error() << "cannot be given: the shard phase makes it";
  auto sharding = dyn_cast<dist::ShardingAttr>(checked.attr.getValue());
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!sharding || !tensor || sharding.getRank() != tensor.getRank())
    return checked.error() << "expected a #dist.sharding of the rank of " << type << ", got "
                           << checked.attr.getValue();
  return success();
}

LogicalResult checkArgument(const Checked &checked, Type type) {
  const StringRef name = checked.attr.getName().getValue();
  if (name == train::kRole)
    return checked.isOneOf({"param", "frozen", "state", "input", "target", "hyper"});
  if (name == train::kState)
    return checked.isOneOf({"m", "v", "momentum"});
  if (name == train::kName || name == train::kOf || name == train::kInit)
    return checked.isString();
  if (name == train::kSegments)
    return checked.isSegments(type);
  if (name == train::kDecayElements || name == "train.index_bound")
    return checked.isCount();
  if (name == "train.ignore_index")
    return checked.getI64();
  return name.starts_with("dist.") ? checkDist(checked, type) : success();
}

LogicalResult checkResult(const Checked &checked, Type type) {
  const StringRef name = checked.attr.getName().getValue();
  if (name == train::kRole)
    return checked.isOneOf({"loss", "metric", "output", "grad"});
  if (name == train::kName || name == train::kOf)
    return checked.isString();
  return name.starts_with("dist.") ? checkDist(checked, type) : success();
}
} // namespace

LogicalResult checkStep(func::FuncOp func) {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("step function needs a body of one block");
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return func.emitError() << "argument " << index << " needs a tensor of static shape, got " << type;
    if (DictionaryAttr attrs = func.getArgAttrDict(index))
      for (NamedAttribute attr : attrs)
        if (failed(checkArgument({func, "argument", static_cast<unsigned>(index), attr}, type)))
          return failure();
  }
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return func.emitError() << "result " << index << " needs a tensor of static shape, got " << type;
    DictionaryAttr attrs = func.getResultAttrDict(index);
    if (!attrs)
      continue;
    for (NamedAttribute attr : attrs)
      if (failed(checkResult({func, "result", static_cast<unsigned>(index), attr}, type)))
        return failure();
    if (attrs.get(train::kRole) == StringAttr::get(func.getContext(), "grad") && !attrs.get(train::kOf))
      return func.emitError() << "result " << index << ": a gradient needs train.of";
  }
  return train::verifyAliases(func);
}

} // namespace tessera
