//===- DataTypes.h - element types in files and their conversion -------------===//
//
// Names and widths of the artifact's element types as safetensors files spell them, and conversion of stored numbers to
// the type that a program wants.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_DATATYPES_H
#define TESSERA_RUNTIME_STATE_DATATYPES_H

#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

using artifact::DataType;

/// Bytes of one element.
size_t elementBytes(DataType dtype);
/// The name in safetensors: "F32", "BF16", "F8_E4M3", ….
std::string_view safetensorsName(DataType dtype);
std::optional<DataType> dataTypeFromSafetensors(std::string_view name);

/// "[2,3]".
std::string shapeToString(std::span<const int64_t> shape);
/// Product of the sizes, or nothing if one is negative or the product times `elementSize` leaves 63 bits.
std::optional<int64_t> checkedElements(std::span<const int64_t> shape, size_t elementSize = 1);

/// Booleans count as integers.
bool isInteger(DataType dtype);
bool isFloat(DataType dtype);
/// Of "bf16", "f16", "f32", as flags have them; nothing for another text.
std::optional<DataType> dataTypeOfFlag(std::string_view text);
/// Whether `convertElements` knows the pair: equal types, any number to f64, f32, f16 or bf16, and among integers.
bool canConvert(DataType from, DataType to);
/// Converts `count` elements (neither side need be aligned). Integers that do not fit the narrower type, and finite
/// numbers that would become infinite, are an error, which counts elements from `first`.
Status convertElements(DataType from, const void *source, DataType to, void *target, int64_t count, int64_t first = 0);
/// Rounds f32 numbers to a narrower floating-point type (to nearest, ties to even), or converts them. Finite numbers
/// that would become infinite are an error, which counts elements from `first`.
Status roundElements(const float *source, DataType to, void *target, int64_t count, int64_t first = 0);

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_DATATYPES_H
