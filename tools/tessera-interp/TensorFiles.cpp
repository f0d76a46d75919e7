//===- TensorFiles.cpp - interpreter tensors in safetensors files ---------===//

#include "tools/tessera-interp/TensorFiles.h"

#include "runtime/base/BFloat16.h"
#include "runtime/base/Half.h"
#include "runtime/state/Safetensors.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <deque>

using namespace mlir;

namespace tessera {

using interp::Tensor;

static LogicalResult report(const std::string &message) {
  llvm::errs() << "error: " << message << "\n";
  return failure();
}

template <typename T> static T valueAt(ByteSpan bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// The MLIR type of a file's element type and how an element of it is stored in a tensor; null if it has none here.
static Type elementTypeOf(const SafetensorsEntry &entry, Builder builder) {
  return llvm::StringSwitch<Type>(entry.typeName)
      .Case("F64", builder.getF64Type())
      .Case("F32", builder.getF32Type())
      .Case("F16", builder.getF16Type())
      .Case("BF16", builder.getBF16Type())
      .Case("I64", builder.getI64Type())
      .Case("I32", builder.getI32Type())
      .Case("I8", builder.getI8Type())
      .Case("U8", builder.getIntegerType(8, /*isSigned=*/false))
      .Case("BOOL", builder.getI1Type())
      .Default(Type());
}

static void readElement(ByteSpan bytes, Tensor &tensor, int64_t i) {
  Type type = tensor.getElementType();
  if (type.isF64())
    tensor.set(i, valueAt<double>(bytes, i));
  else if (type.isF32())
    tensor.set(i, valueAt<float>(bytes, i));
  else if (type.isF16())
    tensor.set(i, widenHalf(valueAt<uint16_t>(bytes, i)));
  else if (type.isBF16())
    tensor.set(i, widenBFloat16(valueAt<uint16_t>(bytes, i)));
  else if (type.isInteger(64))
    tensor.setInt(i, valueAt<int64_t>(bytes, i));
  else if (type.isInteger(32))
    tensor.setInt(i, valueAt<int32_t>(bytes, i));
  else if (type.isUnsignedInteger(8) || type.isInteger(1))
    tensor.setInt(i, valueAt<uint8_t>(bytes, i));
  else
    tensor.setInt(i, valueAt<int8_t>(bytes, i));
}

LogicalResult readTensors(const std::string &path, MLIRContext *context, interp::NamedTensors &tensors) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file.isOk())
    return report(file.status().toString());
  for (const auto &[name, entry] : file->tensors()) {
    Type element = elementTypeOf(entry, Builder(context));
    if (!element)
      return report("'" + path + "': tensor '" + name + "' has type " + entry.typeName + ", which is not supported");
    Tensor tensor(RankedTensorType::get(entry.shape, element));
    Result<std::vector<uint8_t>> bytes = entry.bytes.readAll();
    if (!bytes.isOk())
      return report(bytes.status().toString());
    for (int64_t i = 0; i < entry.elements; ++i)
      readElement(*bytes, tensor, i);
    tensors[name] = std::move(tensor);
  }
  return success();
}

template <typename T> static void appendBytes(std::vector<uint8_t> &bytes, T value) {
  const auto *first = reinterpret_cast<const uint8_t *>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(T));
}

LogicalResult writeTensors(const std::string &path, const std::vector<interp::NamedResult> &results) {
  std::vector<SafetensorsTensor> tensors;
  std::deque<std::vector<uint8_t>> storage; // grows without moving what the tensors point to
  for (const interp::NamedResult &result : results) {
    const Tensor &value = result.value;
    Type element = value.getElementType();
    SafetensorsTensor tensor;
    tensor.name = result.name;
    tensor.shape.assign(value.getShape().begin(), value.getShape().end());
    std::vector<uint8_t> &bytes = storage.emplace_back();
    // Narrower floats are written as f32 and narrower integers as i64: exactly, if not in their own type.
    bool isDouble = element.isF64();
    tensor.dtype = value.isFloat() ? (isDouble ? DataType::F64 : DataType::F32) : DataType::I64;
    for (int64_t i = 0; i < value.size(); ++i) {
      if (!value.isFloat())
        appendBytes(bytes, value.intAt(i));
      else if (isDouble)
        appendBytes(bytes, value.at(i));
      else
        appendBytes(bytes, static_cast<float>(value.at(i)));
    }
    tensor.pieces = {ByteSpan(bytes)};
    tensors.push_back(std::move(tensor));
  }
  Result<WrittenFile> written = writeSafetensors(path, tensors);
  return written.isOk() ? success() : report(written.status().toString());
}

} // namespace tessera
