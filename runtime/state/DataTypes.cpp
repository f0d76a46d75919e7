//===- DataTypes.cpp - element types in files and their conversion -----------===//

#include "runtime/state/DataTypes.h"

#include "runtime/base/BFloat16.h"
#include "runtime/base/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <type_traits>
#include <vector>

namespace tessera {

static_assert(std::endian::native == std::endian::little, "files are little endian and read without swapping");

size_t elementBytes(DataType dtype) {
  switch (dtype) {
  case DataType::F64:
  case DataType::I64:
    return 8;
  case DataType::F32:
  case DataType::I32:
    return 4;
  case DataType::F16:
  case DataType::BF16:
    return 2;
  default:
    return 1;
  }
}

static constexpr std::pair<DataType, std::string_view> typeNames[] = {{DataType::F32, "F32"},
                                                                      {DataType::F64, "F64"},
                                                                      {DataType::F16, "F16"},
                                                                      {DataType::BF16, "BF16"},
                                                                      {DataType::F8E4M3FN, "F8_E4M3"},
                                                                      {DataType::F8E5M2, "F8_E5M2"},
                                                                      {DataType::Bool, "BOOL"},
                                                                      {DataType::I8, "I8"},
                                                                      {DataType::I32, "I32"},
                                                                      {DataType::I64, "I64"},
                                                                      {DataType::U8, "U8"},
                                                                      {DataType::F8E8M0FNU, "F8_E8M0"}};

std::string_view safetensorsName(DataType dtype) {
  for (auto [type, name] : typeNames)
    if (type == dtype)
      return name;
  return "?";
}

std::optional<DataType> dataTypeFromSafetensors(std::string_view wanted) {
  for (auto [type, name] : typeNames)
    if (name == wanted)
      return type;
  return std::nullopt;
}

std::string shapeToString(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i)
      text += ',';
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

std::optional<int64_t> checkedElements(std::span<const int64_t> shape, size_t elementSize) {
  int64_t count = 1, bytes;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count))
      return std::nullopt;
  if (__builtin_mul_overflow(count, static_cast<int64_t>(elementSize), &bytes))
    return std::nullopt;
  return count;
}

std::optional<DataType> dataTypeOfFlag(std::string_view text) {
  return text == "bf16"  ? std::optional(DataType::BF16)
         : text == "f16" ? std::optional(DataType::F16)
         : text == "f32" ? std::optional(DataType::F32)
                         : std::nullopt;
}

bool isFloat(DataType dtype) {
  return dtype == DataType::F32 || dtype == DataType::F64 || dtype == DataType::F16 || dtype == DataType::BF16;
}
bool isInteger(DataType dtype) {
  return dtype == DataType::Bool || dtype == DataType::I8 || dtype == DataType::I32 || dtype == DataType::I64 ||
         dtype == DataType::U8;
}

bool canConvert(DataType from, DataType to) {
  if (from == to)
    return true;
  if (to == DataType::F32 || to == DataType::F64 || to == DataType::F16 || to == DataType::BF16)
    return isFloat(from) || isInteger(from);
  return isInteger(from) && isInteger(to) && to != DataType::Bool;
}

template <typename T> static T load(const void *source, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const uint8_t *>(source) + index * sizeof(T), sizeof(T));
  return value;
}

/// Calls `action` with a reader of elements of the stored type.
template <typename Action> static Status withReader(DataType from, const void *source, Action action) {
  switch (from) {
  case DataType::F32:
    return action([source](int64_t i) { return load<float>(source, i); });
  case DataType::F64:
    return action([source](int64_t i) { return load<double>(source, i); });
  case DataType::F16:
    return action([source](int64_t i) { return widenHalf(load<uint16_t>(source, i)); });
  case DataType::BF16:
    return action([source](int64_t i) { return widenBFloat16(load<uint16_t>(source, i)); });
  case DataType::Bool:
  case DataType::U8:
    return action([source](int64_t i) { return load<uint8_t>(source, i); });
  case DataType::I8:
    return action([source](int64_t i) { return load<int8_t>(source, i); });
  case DataType::I32:
    return action([source](int64_t i) { return load<int32_t>(source, i); });
  case DataType::I64:
    return action([source](int64_t i) { return load<int64_t>(source, i); });
  default:
    return TESSERA_ERROR(Unsupported, "no conversion from " + std::string(safetensorsName(from)));
  }
}

/// The error of an integer that the type does not hold, or of a finite number that would become infinite.
template <typename Number> static Status doesNotFit(Number value, int64_t element, DataType to) {
  std::ostringstream text;
  text << "the value " << value << " at element " << element << " does not fit " << safetensorsName(to);
  return TESSERA_ERROR(InvalidArgument, text.str());
}

template <typename To>
static Status convertTo(DataType from, const void *source, DataType to, void *target, int64_t count, int64_t first) {
  return withReader(from, source, [&](auto read) -> Status {
    for (int64_t i = 0; i < count; ++i) {
      auto value = read(i);
      if constexpr (std::is_integral_v<To> && std::is_integral_v<decltype(value)>) {
        if (!std::in_range<To>(value))
          return doesNotFit(+value, first + i, to);
      }
      To converted = static_cast<To>(value); // NOLINT(bugprone-signed-char-misuse): a number, not a character
      if constexpr (std::is_floating_point_v<To> && std::is_floating_point_v<decltype(value)>) {
        if (std::isfinite(value) && !std::isfinite(converted))
          return doesNotFit(value, first + i, to);
      }
      std::memcpy(static_cast<uint8_t *>(target) + i * sizeof(To), &converted, sizeof(To));
    }
    return Status::ok();
  });
}

/// As convertElements, to a type of 16 bits: by way of f32, as PyTorch does.
static Status convertToHalf(DataType from, const void *source, DataType to, void *target, int64_t count,
                            int64_t first) {
  constexpr int64_t block = 1 << 14;
  std::vector<float> wide(std::min(count, block));
  for (int64_t done = 0; done < count; done += block) {
    const int64_t here = std::min(count - done, block);
    TESSERA_RETURN_IF_ERROR(convertElements(from, static_cast<const uint8_t *>(source) + done * elementBytes(from),
                                            DataType::F32, wide.data(), here, first + done));
    TESSERA_RETURN_IF_ERROR(
        roundElements(wide.data(), to, static_cast<uint8_t *>(target) + done * elementBytes(to), here, first + done));
  }
  return Status::ok();
}

Status convertElements(DataType from, const void *source, DataType to, void *target, int64_t count, int64_t first) {
  if (from == to) {
    if (count > 0)
      std::memcpy(target, source, count * elementBytes(to));
    return Status::ok();
  }
  if (!canConvert(from, to))
    return TESSERA_ERROR(Unsupported, "no conversion from " + std::string(safetensorsName(from)) + " to " +
                                          std::string(safetensorsName(to)));
  switch (to) {
  case DataType::F32:
    return convertTo<float>(from, source, to, target, count, first);
  case DataType::F64:
    return convertTo<double>(from, source, to, target, count, first);
  case DataType::F16:
  case DataType::BF16:
    return convertToHalf(from, source, to, target, count, first);
  case DataType::U8:
    return convertTo<uint8_t>(from, source, to, target, count, first);
  case DataType::I8:
    return convertTo<int8_t>(from, source, to, target, count, first);
  case DataType::I32:
    return convertTo<int32_t>(from, source, to, target, count, first);
  default:
    return convertTo<int64_t>(from, source, to, target, count, first);
  }
}

Status roundElements(const float *source, DataType to, void *target, int64_t count, int64_t first) {
  if (to != DataType::BF16 && to != DataType::F16)
    return convertElements(DataType::F32, source, to, target, count);
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t rounded = to == DataType::BF16 ? toBFloat16(source[i]) : toHalf(source[i]);
    const float back = to == DataType::BF16 ? widenBFloat16(rounded) : widenHalf(rounded);
    if (std::isfinite(source[i]) && !std::isfinite(back))
      return doesNotFit(source[i], first + i, to);
    std::memcpy(static_cast<uint8_t *>(target) + i * sizeof(rounded), &rounded, sizeof(rounded));
  }
  return Status::ok();
}

} // namespace tessera
