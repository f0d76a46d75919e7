//===- Proto.cpp - reading ONNX files -------------------------------------===//

#include "frontends/onnx/Proto.h"

#include "frontends/onnx/Import.h"

#include "onnx/defs/parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

using namespace mlir;
using namespace tessera::frontend;
using llvm::createStringError;
using llvm::Expected;

bool tessera::isOnnx(StringRef start) {
  google::protobuf::io::ArrayInputStream array(start.data(), static_cast<int>(start.size()));
  google::protobuf::io::CodedInputStream stream(&array);
  using Wire = google::protobuf::internal::WireFormatLite;
  const uint32_t tag = stream.ReadTag();
  const auto *field = onnx::ModelProto::descriptor()->FindFieldByNumber(Wire::GetTagFieldNumber(tag));
  return field && Wire::GetTagWireType(tag) == Wire::WireTypeForFieldType(static_cast<Wire::FieldType>(field->type()));
}

namespace tessera::onnx_import {

namespace {
/// Protobuf's own limit; structure-only files are far smaller.
constexpr size_t kMaxFileBytes = (size_t{1} << 31) - 1;
/// Nested braces of the text format, outside strings and comments: the parser recurses on graphs in attributes.
constexpr int kMaxTextDepth = 64;

template <typename... Args> llvm::Error error(const char *format, Args &&...args) {
  return createStringError(std::make_error_code(std::errc::invalid_argument), format, std::forward<Args>(args)...);
}

bool isTooDeep(StringRef text) {
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        at += text[at] == '\\';
    } else if (c == '{') {
      if (++depth > kMaxTextDepth)
        return true;
    } else if (c == '}') {
      depth = std::max(depth - 1, 0);
    }
  }
  return false;
}

/// Keeps protobuf's parse failures off stderr while one file is read: our own message says the same.
class SilenceProtobuf {
public:
  SilenceProtobuf() : previous(google::protobuf::SetLogHandler(nullptr)) {}
  ~SilenceProtobuf() { google::protobuf::SetLogHandler(previous); }

private:
  google::protobuf::LogHandler *previous;
};
} // namespace

Expected<std::unique_ptr<onnx::ModelProto>> parseModel(StringRef bytes, bool text) {
  if (bytes.size() > kMaxFileBytes)
    return error("file has %zu bytes, expected at most %zu", bytes.size(), kMaxFileBytes);
  if (bytes.empty())
    return error("file is empty");
  auto model = std::make_unique<onnx::ModelProto>();
  try {
    if (text) {
      if (isTooDeep(bytes))
        return error("braces are nested deeper than %d", kMaxTextDepth);
      std::string copy = bytes.str();
      onnx::OnnxParser parser(copy.c_str());
      auto status = parser.Parse(*model);
      if (!status.IsOK())
        return error("not ONNX text: %s", status.ErrorMessage().c_str());
    } else {
      SilenceProtobuf silence;
      google::protobuf::io::ArrayInputStream array(bytes.data(), static_cast<int>(bytes.size()));
      google::protobuf::io::CodedInputStream stream(&array);
      if (!model->ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
        return error("not an ONNX model, or truncated: protobuf cannot parse its %zu bytes", bytes.size());
    }
  } catch (const std::exception &exception) {
    return error("not an ONNX model: %s", exception.what());
  }
  if (!model->has_graph())
    return error("not an ONNX model: it has no graph");
  return model;
}

Expected<std::unique_ptr<onnx::ModelProto>> readModel(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return createStringError(buffer.getError(), "%s", buffer.getError().message().c_str());
  return parseModel((*buffer)->getBuffer(), StringRef(path).ends_with(".onnxtxt"));
}

Type elementType(MLIRContext *context, int32_t onnxType) {
  switch (onnxType) {
  case onnx::TensorProto::FLOAT:
    return Float32Type::get(context);
  case onnx::TensorProto::DOUBLE:
    return Float64Type::get(context);
  case onnx::TensorProto::FLOAT16:
    return Float16Type::get(context);
  case onnx::TensorProto::BFLOAT16:
    return BFloat16Type::get(context);
  case onnx::TensorProto::INT8:
    return IntegerType::get(context, 8);
  case onnx::TensorProto::INT16:
    return IntegerType::get(context, 16);
  case onnx::TensorProto::INT32:
    return IntegerType::get(context, 32);
  case onnx::TensorProto::INT64:
    return IntegerType::get(context, 64);
  case onnx::TensorProto::UINT8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case onnx::TensorProto::BOOL:
    return IntegerType::get(context, 1);
  default:
    return {};
  }
}

std::string dataTypeName(int32_t onnxType) {
  if (onnx::TensorProto::DataType_IsValid(onnxType))
    return llvm::StringRef(onnx::TensorProto::DataType_Name(onnx::TensorProto::DataType(onnxType))).lower();
  return "type " + std::to_string(onnxType);
}

Expected<RankedTensorType> protoType(MLIRContext *context, const onnx::TensorProto &tensor) {
  Type element = elementType(context, tensor.data_type());
  if (!element)
    return error("element type %s is not supported", dataTypeName(tensor.data_type()).c_str());
  SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  if (!countElements(shape))
    return error("shape is negative or too large");
  return RankedTensorType::get(shape, element);
}

namespace {
/// The bytes that external data names; the file lies beside the model, below its folder.
Expected<std::string> readExternal(const onnx::TensorProto &tensor, const std::string &folder, uint64_t expected) {
  std::string location;
  uint64_t offset = 0, length = expected;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" && !llvm::to_integer(entry.value(), offset, 10))
      return error("external data has offset '%s', expected a number", entry.value().c_str());
    else if (entry.key() == "length" && !llvm::to_integer(entry.value(), length, 10))
      return error("external data has length '%s', expected a number", entry.value().c_str());
  }
  if (location.empty() || llvm::sys::path::is_absolute(location) ||
      llvm::any_of(llvm::make_range(llvm::sys::path::begin(location), llvm::sys::path::end(location)),
                   [](StringRef part) { return part == ".."; }))
    return error("external data is at '%s', expected a path below the model's folder", location.c_str());
  if (length != expected)
    return error("external data has %llu bytes, expected %llu", (unsigned long long)length,
                 (unsigned long long)expected);
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, location);
  uint64_t fileSize = 0;
  if (std::error_code code = llvm::sys::fs::file_size(path, fileSize))
    return createStringError(code, "external data file %s: %s", path.c_str(), code.message().c_str());
  if (offset > fileSize || length > fileSize - offset)
    return error("external data file %s has %llu bytes, expected at least %llu", path.c_str(),
                 (unsigned long long)fileSize, (unsigned long long)(offset + length));
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, length, offset);
  if (!buffer)
    return createStringError(buffer.getError(), "external data file %s: %s", path.c_str(),
                             buffer.getError().message().c_str());
  return (*buffer)->getBuffer().str();
}

template <typename T> void appendRaw(StringRef bytes, std::vector<int64_t> &out) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T))
    out.push_back(llvm::support::endian::read<T, llvm::endianness::little>(bytes.data() + at));
}

double floatFromBits(Type type, uint64_t bits) {
  auto floating = cast<FloatType>(type);
  return llvm::APFloat(floating.getFloatSemantics(), llvm::APInt(floating.getWidth(), bits, false, true))
      .convertToDouble();
}

HostTensor fromRaw(RankedTensorType type, StringRef bytes) {
  HostTensor tensor{type, {}, {}};
  Type element = type.getElementType();
  const unsigned width = element.getIntOrFloatBitWidth();
  std::vector<int64_t> bits;
  if (width <= 8 && (element.isInteger(1) || element.isUnsignedInteger()))
    appendRaw<uint8_t>(bytes, bits);
  else if (width <= 8)
    appendRaw<int8_t>(bytes, bits);
  else if (width == 16)
    appendRaw<int16_t>(bytes, bits);
  else if (width == 32)
    appendRaw<int32_t>(bytes, bits);
  else
    appendRaw<int64_t>(bytes, bits);
  if (!tensor.isFloat()) {
    if (element.isInteger(1))
      for (int64_t &value : bits)
        value = value != 0;
    tensor.ints = std::move(bits);
    return tensor;
  }
  for (int64_t value : bits)
    tensor.floats.push_back(floatFromBits(element, static_cast<uint64_t>(value)));
  return tensor;
}
} // namespace

Expected<HostTensor> readTensor(MLIRContext *context, const onnx::TensorProto &tensor, const std::string &folder) {
  auto type = protoType(context, tensor);
  if (!type)
    return type.takeError();
  Type element = type->getElementType();
  const int64_t count = type->getNumElements();
  if (count > kMaxConstantElements)
    return error("constant has %lld elements, expected at most %lld", (long long)count,
                 (long long)kMaxConstantElements);
  const uint64_t bytes = static_cast<uint64_t>(count) * ((element.getIntOrFloatBitWidth() + 7) / 8);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    auto data = readExternal(tensor, folder, bytes);
    if (!data)
      return data.takeError();
    return fromRaw(*type, *data);
  }
  if (tensor.has_raw_data()) {
    if (tensor.raw_data().size() != bytes)
      return error("tensor has %zu bytes of data, expected %llu", tensor.raw_data().size(), (unsigned long long)bytes);
    return fromRaw(*type, tensor.raw_data());
  }
  HostTensor result{*type, {}, {}};
  if (element.isF32())
    result.floats.assign(tensor.float_data().begin(), tensor.float_data().end());
  else if (element.isF64())
    result.floats.assign(tensor.double_data().begin(), tensor.double_data().end());
  else if (result.isFloat())
    for (int32_t bits : tensor.int32_data())
      result.floats.push_back(floatFromBits(element, static_cast<uint64_t>(bits)));
  else if (element.isInteger(64))
    result.ints.assign(tensor.int64_data().begin(), tensor.int64_data().end());
  else
    for (int32_t value : tensor.int32_data())
      result.ints.push_back(element.isInteger(1) ? value != 0 : wrapTo(element, value));
  if (result.size() != count)
    return error("tensor has %lld values, expected %lld", (long long)result.size(), (long long)count);
  return result;
}

} // namespace tessera::onnx_import
