//===- Program.cpp - names of what a program holds ------------------------===//

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

} // namespace tessera::pt2
