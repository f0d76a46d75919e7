//===- Call.cpp - what an op handler sees of one node ---------------------===//

#include "frontends/pt2/Call.h"

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

const Given *Call::find(StringRef name) const {
  auto found = given.find(name);
  return found == given.end() ? nullptr : &found->second;
}

bool Call::has(StringRef name) const {
  const Given *argument = find(name);
  if (!argument || (argument->plain && argument->plain->isNone()))
    return false;
  return argument->isList || argument->plain ||
         (!argument->tensors.empty() && (argument->tensors[0].isTensor() || argument->tensors[0].number));
}

bool Call::isTensor(StringRef name) const {
  const Given *argument = find(name);
  return argument && !argument->isList && argument->tensors.size() == 1 && argument->tensors[0].isTensor();
}

RankedTensorType Call::typeOf(const Entry &entry) const {
  return entry.value ? train::tensorType(entry.value) : entry.constant->type;
}

RankedTensorType Call::type(StringRef name) const { return typeOf(find(name)->tensors[0]); }

Value Call::value(Entry &entry) {
  if (!entry.value && entry.constant)
    entry.value = b.constant(entry.constant->toAttr());
  return entry.value;
}

Value Call::value(StringRef name) { return value(given.find(name)->second.tensors[0]); }

const HostTensor *Call::constant(StringRef name) const {
  return isTensor(name) ? find(name)->tensors[0].constant.get() : nullptr;
}

std::vector<Entry> *Call::list(StringRef name) {
  auto found = given.find(name);
  return found != given.end() && found->second.isList ? &found->second.tensors : nullptr;
}

std::optional<double> Call::number(StringRef name) const {
  const Given *argument = find(name);
  if (!argument || argument->isList)
    return std::nullopt;
  if (argument->tensors.size() == 1)
    return argument->tensors[0].number;
  if (!argument->plain)
    return std::nullopt;
  if (const auto *value = argument->plain->as<int64_t>())
    return static_cast<double>(*value);
  if (const auto *value = argument->plain->as<double>())
    return *value;
  if (const auto *value = argument->plain->as<bool>())
    return *value ? 1.0 : 0.0;
  return std::nullopt;
}

std::optional<int64_t> Call::integer(StringRef name) const {
  if (const Given *argument = find(name); argument && argument->plain)
    if (const auto *value = argument->plain->as<int64_t>())
      return *value;
  std::optional<double> value = number(name);
  if (!value || std::abs(*value) > 0x1p53 || *value != static_cast<double>(static_cast<int64_t>(*value)))
    return std::nullopt;
  return static_cast<int64_t>(*value);
}

bool Call::flag(StringRef name, bool fallback) const {
  std::optional<double> value = number(name);
  return value ? *value != 0 : fallback;
}

bool Call::isFloatNumber(StringRef name) const {
  const Given *argument = find(name);
  return argument && argument->plain && argument->plain->as<double>();
}

std::optional<SmallVector<int64_t>> Call::ints(StringRef name) const {
  const Given *argument = find(name);
  if (!argument)
    return std::nullopt;
  if (!argument->isList) {
    if (argument->plain)
      if (const auto *values = argument->plain->as<std::vector<int64_t>>())
        return llvm::to_vector(*values);
    if (std::optional<int64_t> value = integer(name))
      return SmallVector<int64_t>{*value};
    return std::nullopt;
  }
  SmallVector<int64_t> values;
  for (const Entry &entry : argument->tensors) {
    if (!entry.number)
      return std::nullopt;
    values.push_back(static_cast<int64_t>(*entry.number));
  }
  return values;
}

std::string Call::text(StringRef name, StringRef fallback) const {
  const Given *argument = find(name);
  const auto *value = argument && argument->plain ? argument->plain->as<std::string>() : nullptr;
  return value ? *value : fallback.str();
}

Type Call::dtype(StringRef name) const {
  const Given *argument = find(name);
  const auto *value = argument && argument->plain ? argument->plain->as<ScalarType>() : nullptr;
  return value ? elementOf(b.builder.getContext(), *value) : Type();
}

Type Call::resultElement(int i) const {
  if (static_cast<size_t>(i) >= node.outputs.size())
    return {};
  const auto *tensor = node.outputs[i].as<TensorArg>();
  const TensorMeta *found = tensor ? meta(tensor->name) : nullptr;
  return found ? elementOf(b.builder.getContext(), found->dtype) : Type();
}

LogicalResult Call::set(Value value, int i) { return set(Entry{value, {}, std::nullopt}, i); }

LogicalResult Call::set(Entry entry, int i) {
  if (static_cast<size_t>(i) < outputs.size())
    outputs[i] = {std::move(entry)};
  return success();
}

LogicalResult Call::setList(std::vector<Value> values) {
  // A list is one output, or as many outputs as it has parts.
  if (outputs.size() == 1 && node.outputs[0].as<std::vector<TensorArg>>()) {
    outputs[0].clear();
    for (Value value : values)
      outputs[0].push_back({value, {}, std::nullopt});
    return success();
  }
  for (auto [i, value] : llvm::enumerate(values))
    if (failed(set(value, static_cast<int>(i))))
      return failure();
  return success();
}

std::optional<SmallVector<int64_t>> Call::axes(StringRef name, int64_t rank) const {
  std::optional<SmallVector<int64_t>> given = ints(name);
  if (!given)
    return std::nullopt;
  return frontend::axesOf(*given, rank);
}

} // namespace tessera::pt2
