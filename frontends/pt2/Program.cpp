//===- Program.cpp - names and kinds of what a program holds --------------===//

#include "frontends/pt2/Program.h"

namespace tessera::pt2 {

namespace {
struct ScalarTypeRow {
  ScalarType type;
  const char *name;
  int64_t bytes;
};
constexpr ScalarTypeRow kScalarTypes[] = {
    {ScalarType::Byte, "uint8", 1},
    {ScalarType::Char, "int8", 1},
    {ScalarType::Short, "int16", 2},
    {ScalarType::Int, "int32", 4},
    {ScalarType::Long, "int64", 8},
    {ScalarType::Half, "float16", 2},
    {ScalarType::Float, "float32", 4},
    {ScalarType::Double, "float64", 8},
    {ScalarType::ComplexHalf, "complex32", 4},
    {ScalarType::ComplexFloat, "complex64", 8},
    {ScalarType::ComplexDouble, "complex128", 16},
    {ScalarType::Bool, "bool", 1},
    {ScalarType::BFloat16, "bfloat16", 2},
    {ScalarType::UInt16, "uint16", 2},
    {ScalarType::Float8E4M3FN, "float8_e4m3fn", 1},
    {ScalarType::Float8E5M2, "float8_e5m2", 1},
    {ScalarType::Float8E4M3FNUZ, "float8_e4m3fnuz", 1},
    {ScalarType::Float8E5M2FNUZ, "float8_e5m2fnuz", 1},
    {ScalarType::Float8E8M0FNU, "float8_e8m0fnu", 1},
    {ScalarType::UInt32, "uint32", 4},
    {ScalarType::UInt64, "uint64", 8},
};

const ScalarTypeRow *row(ScalarType type) {
  for (const ScalarTypeRow &row : kScalarTypes)
    if (row.type == type)
      return &row;
  return nullptr;
}
} // namespace

const char *scalarTypeName(ScalarType type) {
  const ScalarTypeRow *found = row(type);
  return found ? found->name : "unknown";
}

int64_t scalarTypeBytes(ScalarType type) {
  const ScalarTypeRow *found = row(type);
  return found ? found->bytes : 0;
}

const char *argumentKind(const Argument &argument) {
  // In the order of the alternatives of Argument::value.
  static constexpr const char *kNames[] = {"none",
                                           "tensor",
                                           "list of tensor",
                                           "optional tensor",
                                           "list of optional tensor",
                                           "list of lists of tensor",
                                           "int",
                                           "list of int",
                                           "list of lists of int",
                                           "float",
                                           "list of float",
                                           "list of lists of float",
                                           "bool",
                                           "list of bool",
                                           "string",
                                           "list of string",
                                           "symbolic int",
                                           "list of symbolic int",
                                           "symbolic float",
                                           "list of symbolic float",
                                           "symbolic bool",
                                           "list of symbolic bool",
                                           "scalar type",
                                           "memory format",
                                           "layout",
                                           "device",
                                           "operator",
                                           "graph",
                                           "custom object",
                                           "complex",
                                           "dictionary"};
  static_assert(std::size(kNames) == std::variant_size_v<decltype(Argument::value)>);
  return kNames[argument.value.index()];
}

std::vector<std::string> namesOf(const Argument &argument) {
  std::vector<std::string> found;
  if (const auto *tensor = argument.as<TensorArg>())
    found.push_back(tensor->name);
  else if (const auto *optional = argument.as<OptionalTensorArg>())
    found.push_back(*optional ? (*optional)->name : "");
  else if (const auto *list = argument.as<std::vector<TensorArg>>())
    for (const TensorArg &entry : *list)
      found.push_back(entry.name);
  else if (const auto *list = argument.as<std::vector<OptionalTensorArg>>())
    for (const OptionalTensorArg &entry : *list)
      found.push_back(entry ? entry->name : "");
  else if (const auto *sizes = argument.as<std::vector<SymIntArg>>())
    for (const SymIntArg &entry : *sizes)
      found.push_back(entry.name);
  else if (const auto *size = argument.as<SymIntArg>())
    found.push_back(size->name);
  else if (const auto *value = argument.as<SymFloatArg>())
    found.push_back(value->name);
  else if (const auto *value = argument.as<SymBoolArg>())
    found.push_back(value->name);
  return found;
}

void keepNodes(std::vector<Node> &nodes, const std::vector<bool> &stays) {
  std::vector<Node> left;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (stays[i])
      left.push_back(std::move(nodes[i]));
  nodes = std::move(left);
}

std::string freshName(const Graph &graph, const std::string &stem, size_t &count) {
  std::string name;
  do
    name = stem + std::to_string(++count);
  while (graph.tensors.count(name) || graph.symInts.count(name) || graph.symFloats.count(name) ||
         graph.symBools.count(name));
  return name;
}

} // namespace tessera::pt2
