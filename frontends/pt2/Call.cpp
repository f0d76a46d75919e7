//===- Call.cpp - what an op handler sees of one node ---------------------===//

#include "frontends/pt2/Call.h"

#include <cmath>

using namespace mlir;

namespace tessera::pt2 {

Type elementOf(MLIRContext *context, ScalarType type) {
  switch (type) {
  case ScalarType::Float:
    return Float32Type::get(context);
  case ScalarType::Double:
    return Float64Type::get(context);
  case ScalarType::Half:
    return Float16Type::get(context);
  case ScalarType::BFloat16:
    return BFloat16Type::get(context);
  case ScalarType::Bool:
    return IntegerType::get(context, 1);
  case ScalarType::Char:
    return IntegerType::get(context, 8);
  case ScalarType::Byte:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case ScalarType::Short:
    return IntegerType::get(context, 16);
  case ScalarType::Int:
    return IntegerType::get(context, 32);
  case ScalarType::Long:
    return IntegerType::get(context, 64);
  default:
    return {};
  }
}

Type partElementOf(MLIRContext *context, ScalarType type) {
  if (type == ScalarType::ComplexFloat)
    return Float32Type::get(context);
  return type == ScalarType::ComplexDouble ? Type(Float64Type::get(context)) : Type();
}

bool isComplexType(ScalarType type) {
  return type == ScalarType::ComplexHalf || type == ScalarType::ComplexFloat || type == ScalarType::ComplexDouble;
}

bool isIntegerType(ScalarType type) {
  switch (type) {
  case ScalarType::Bool:
  case ScalarType::Byte:
  case ScalarType::Char:
  case ScalarType::Short:
  case ScalarType::Int:
  case ScalarType::Long:
  case ScalarType::UInt16:
  case ScalarType::UInt32:
  case ScalarType::UInt64:
    return true;
  default:
    return false;
  }
}

const Given *Call::find(StringRef name) const {
  auto found = given.find(name);
  return found == given.end() ? nullptr : &found->second;
}

bool Call::has(StringRef name) const {
  const Given *argument = find(name);
  if (!argument)
    return false;
  if (argument->kind == Given::Kind::Plain)
    return !argument->plain->isNone();
  return argument->isList || has(static_cast<int>(argument->first));
}

bool Call::names(StringRef name) const {
  const Argument *argument = node.input(name.str());
  const auto *optional = argument ? argument->as<OptionalTensorArg>() : nullptr;
  return argument && !argument->isNone() && (!optional || *optional);
}

bool Call::isTensor(StringRef name) const {
  const Given *argument = find(name);
  return argument && argument->kind == Given::Kind::Tensor && !argument->isList &&
         has(static_cast<int>(argument->first));
}

std::optional<Placement> Call::placement(StringRef name) const {
  const Argument *argument = node.input(name.str());
  const auto *tensor = argument ? argument->as<TensorArg>() : nullptr;
  if (!tensor || !graph || !symbols)
    return std::nullopt;
  auto meta = graph->tensors.find(tensor->name);
  if (meta == graph->tensors.end() || meta->second.layout != Layout::Strided)
    return std::nullopt;
  Placement place;
  for (const SymInt &stride : meta->second.strides) {
    std::optional<int64_t> value = stride.evaluate(*symbols);
    if (!value || *value < 0)
      return std::nullopt;
    place.strides.push_back(*value);
  }
  std::optional<int64_t> offset = meta->second.storageOffset.evaluate(*symbols);
  if (!offset || *offset < 0 || static_cast<int64_t>(place.strides.size()) != rank(name))
    return std::nullopt;
  place.offset = *offset;
  return place;
}

std::optional<SmallVector<int>> Call::list(StringRef name) const {
  const Given *argument = find(name);
  if (!argument || argument->kind != Given::Kind::Tensor || !argument->isList)
    return std::nullopt;
  const auto first = static_cast<int>(argument->first);
  return llvm::to_vector(llvm::seq<int>(first, first + static_cast<int>(argument->count)));
}

/// A size that is an input is a constant without dimensions.
std::optional<double> Call::numberAt(size_t input) const { return scalar(static_cast<int>(input)); }

std::optional<double> Call::number(StringRef name) const {
  const Given *argument = find(name);
  if (!argument || argument->isList || argument->kind == Given::Kind::Tensor)
    return std::nullopt;
  if (argument->kind == Given::Kind::Number)
    return numberAt(argument->first);
  if (const auto *value = argument->plain->as<int64_t>()) {
    const auto near = static_cast<double>(*value);
    return near < 0x1p63 && static_cast<int64_t>(near) == *value ? std::optional(near) : std::nullopt;
  }
  if (const auto *value = argument->plain->as<double>())
    return *value;
  if (const auto *value = argument->plain->as<bool>())
    return *value ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<int64_t> Call::integer(StringRef name) const {
  if (const Given *argument = find(name); argument && argument->kind == Given::Kind::Plain)
    if (const auto *value = argument->plain->as<int64_t>())
      return *value;
  std::optional<double> value = number(name);
  if (!value || !(std::abs(*value) <= 0x1p53) || *value != static_cast<double>(static_cast<int64_t>(*value)))
    return std::nullopt;
  return static_cast<int64_t>(*value);
}

bool Call::flag(StringRef name, bool fallback) const { return valueOr(name, number(name), fallback ? 1.0 : 0.0) != 0; }

LogicalResult Call::run(LogicalResult (*handler)(Call &)) {
  unread.clear();
  if (failed(handler(*this)))
    return failure();
  return unread.empty() ? success() : fail("'" + unread + "' is no number that is known");
}

bool Call::isFloatNumber(StringRef name) const {
  const Given *argument = find(name);
  return argument && argument->kind == Given::Kind::Plain
             ? argument->plain->as<double>() != nullptr
             : argument && has(static_cast<int>(argument->first)) && isFloat(static_cast<int>(argument->first));
}

std::optional<SmallVector<int64_t>> Call::ints(StringRef name) const {
  const Given *argument = find(name);
  if (!argument)
    return std::nullopt;
  if (argument->kind == Given::Kind::Plain)
    if (const auto *values = argument->plain->as<std::vector<int64_t>>())
      return llvm::to_vector(*values);
  if (!argument->isList) {
    std::optional<int64_t> value = integer(name);
    return value ? std::optional(SmallVector<int64_t>{*value}) : std::nullopt;
  }
  SmallVector<int64_t> values;
  for (size_t i = 0; i < argument->count; ++i) {
    std::optional<double> value = argument->kind == Given::Kind::Number ? numberAt(argument->first + i) : std::nullopt;
    if (!value || !(std::abs(*value) <= 0x1p53))
      return std::nullopt;
    values.push_back(static_cast<int64_t>(*value));
  }
  return values;
}

std::optional<SmallVector<double>> Call::floats(StringRef name) const {
  const Given *argument = find(name);
  const auto *values = argument && argument->plain ? argument->plain->as<std::vector<double>>() : nullptr;
  return values ? std::optional(llvm::to_vector(*values)) : std::nullopt;
}

std::string Call::text(StringRef name, StringRef fallback) const {
  const Given *argument = find(name);
  const auto *value = argument && argument->plain ? argument->plain->as<std::string>() : nullptr;
  return value ? *value : fallback.str();
}

std::optional<SmallVector<int64_t>> Call::axes(StringRef name, int64_t rank) const {
  std::optional<SmallVector<int64_t>> given = ints(name);
  return given ? frontend::axesOf(*given, rank) : std::nullopt;
}

std::optional<SmallVector<int64_t, 3>> Call::spatial(StringRef name, size_t rank, int64_t least,
                                                     int64_t fallback) const {
  SmallVector<int64_t> values = has(name) ? ints(name).value_or(SmallVector<int64_t>()) : SmallVector<int64_t>();
  if (values.empty() && !has(name))
    values = {fallback};
  if (values.size() == 1)
    values.resize(rank, values[0]);
  if (values.size() != rank || llvm::any_of(values, [&](int64_t value) { return value < least; }))
    return std::nullopt;
  return SmallVector<int64_t, 3>(values.begin(), values.end());
}

FailureOr<Value> Call::splat(Type element, double value) {
  if (auto integer = dyn_cast<IntegerType>(element)) {
    const bool isUnsigned = integer.isUnsigned() || integer.getWidth() == 1;
    const double end = std::ldexp(1.0, static_cast<int>(integer.getWidth()) - (isUnsigned ? 0 : 1));
    if (!(value == std::floor(value) && value < end && value >= (isUnsigned ? 0 : -end))) {
      std::string text;
      llvm::raw_string_ostream(text) << value << " is no number of type " << element;
      return fail(text);
    }
  }
  return b.splat(RankedTensorType::get({}, element), value);
}

LogicalResult Call::setComplex(Value pairs, int i) {
  if (failed(set(pairs, i)))
    return failure();
  if (i < static_cast<int>(outputs.size()))
    outputs[i].isComplex = true;
  return success();
}

LogicalResult Call::setNumber(double value) {
  if (!std::isfinite(value) || std::abs(value) > 0x1p53)
    return fail("the number is out of range");
  const bool isFloat = node.outputs.size() == 1 && node.outputs[0].as<SymFloatArg>();
  if (!isFloat && value != std::floor(value))
    return fail("the number is not whole");
  Type element = isFloat ? Type(b.builder.getF64Type()) : Type(b.builder.getI64Type());
  return set(HostTensor::splat(RankedTensorType::get({}, element), value));
}

LogicalResult Call::setList(ArrayRef<Value> values) {
  if (values.size() != outputs.size())
    return fail("it has " + Twine(outputs.size()) + " results, not " + Twine(values.size()));
  for (auto [i, value] : llvm::enumerate(values))
    if (failed(set(value, static_cast<int>(i))))
      return failure();
  return success();
}

} // namespace tessera::pt2
