//===- OnnxWeights.cpp - initialisers of an ONNX model ---------------------------===//
//
// Reads values only: the graph is the compiler's business. The model is untrusted, and its external data may lie only
// below its own folder.
//
//===----------------------------------------------------------------------===//

#include "runtime/state/Weights.h"

#include <algorithm>
#include <climits>
#include <filesystem>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <onnx/onnx_pb.h>

namespace fs = std::filesystem;

namespace tessera {

namespace {

/// A file as protobuf reads one; why it ended early is in `status`.
class FileStream : public google::protobuf::io::CopyingInputStream {
public:
  explicit FileStream(const InputFile &file) : file(file) {}
  const Status &status() const { return problem; }

  int Read(void *buffer, int size) override {
    auto count = static_cast<int>(std::min<uint64_t>(size, file.size() - position));
    problem = file.read(position, buffer, count);
    position += count;
    return problem.isOk() ? count : -1;
  }

private:
  const InputFile &file;
  uint64_t position = 0;
  Status problem;
};

class OnnxReader {
public:
  OnnxReader(const std::string &path, std::map<std::string, WeightEntry> &weights,
             std::vector<std::shared_ptr<const void>> &storage)
      : path(path), weights(weights), storage(storage) {}

  Status read();

private:
  Status addTensor(const onnx::TensorProto &tensor);
  /// The external bytes; `expected` of them if the model does not say how many.
  Result<ByteRange> externalBytes(const onnx::TensorProto &tensor, uint64_t expected);
  Result<InputFile> openExternal(const std::string &location);
  /// Values of 16-bit floats come one per int32.
  ByteSpan packHalves(const onnx::TensorProto &tensor);

  Status invalid(const onnx::TensorProto &tensor, const std::string &reason) const {
    return TESSERA_ERROR(DataLoss, "'" + path + "': initialiser '" + tensor.name() + "' " + reason);
  }

  const std::string &path;
  std::map<std::string, WeightEntry> &weights;
  std::vector<std::shared_ptr<const void>> &storage;
  std::map<std::string, InputFile> externalFiles;
};

} // namespace

static std::optional<DataType> floatType(int32_t onnxType) {
  switch (onnxType) {
  case onnx::TensorProto::FLOAT:
    return DataType::F32;
  case onnx::TensorProto::DOUBLE:
    return DataType::F64;
  case onnx::TensorProto::FLOAT16:
    return DataType::F16;
  case onnx::TensorProto::BFLOAT16:
    return DataType::BF16;
  default:
    return std::nullopt;
  }
}

Status OnnxReader::read() {
  TESSERA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  if (file.size() > INT_MAX)
    return TESSERA_ERROR(Unsupported, "'" + path + "' is larger than 2 GiB; store its weights as external data");
  auto model = std::make_shared<onnx::ModelProto>();
  FileStream bytes(file);
  google::protobuf::io::CopyingInputStreamAdaptor buffered(&bytes, 1 << 20);
  google::protobuf::io::CodedInputStream stream(&buffered);
  bool isParsed = model->ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
  TESSERA_RETURN_IF_ERROR(bytes.status());
  if (!isParsed || !model->has_graph())
    return TESSERA_ERROR(DataLoss, "'" + path + "' is not an ONNX model (or it is truncated)");
  for (const onnx::TensorProto &tensor : model->graph().initializer())
    TESSERA_RETURN_IF_ERROR(addTensor(tensor));
  storage.push_back(model);
  return Status::ok();
}

Status OnnxReader::addTensor(const onnx::TensorProto &tensor) {
  std::optional<DataType> dtype = floatType(tensor.data_type());
  if (!dtype)
    return Status::ok();
  WeightEntry entry{.dtype = *dtype, .shape = {tensor.dims().begin(), tensor.dims().end()}};
  std::optional<int64_t> elements = checkedElements(entry.shape, elementBytes(*dtype));
  if (!elements)
    return invalid(tensor, "has an invalid shape, " + shapeToString(entry.shape));
  size_t expected = *elements * elementBytes(*dtype);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    Result<ByteRange> external = externalBytes(tensor, expected);
    if (!external.isOk() && external.status().code() != StatusCode::NotFound)
      return external.status();
    if (external.isOk()) {
      entry.bytes = *external;
    } else {
      entry.problem = WeightProblem::Unreadable;
      entry.reason = "cannot be read: " + external.status().message();
    }
  } else if (tensor.has_raw_data()) {
    entry.bytes =
        ByteRange(ByteSpan(reinterpret_cast<const uint8_t *>(tensor.raw_data().data()), tensor.raw_data().size()));
  } else if (*dtype == DataType::F32) {
    entry.bytes = ByteRange(ByteSpan(reinterpret_cast<const uint8_t *>(tensor.float_data().data()),
                                     static_cast<size_t>(tensor.float_data_size()) * 4));
  } else if (*dtype == DataType::F64) {
    entry.bytes = ByteRange(ByteSpan(reinterpret_cast<const uint8_t *>(tensor.double_data().data()),
                                     static_cast<size_t>(tensor.double_data_size()) * 8));
  } else {
    entry.bytes = ByteRange(packHalves(tensor));
  }
  if (entry.hasValues() && entry.bytes.size() != expected)
    return invalid(tensor, "has " + std::to_string(entry.bytes.size()) + " bytes, expected " +
                               std::to_string(expected) + " for shape " + shapeToString(entry.shape));
  if (!weights.emplace(tensor.name(), std::move(entry)).second)
    return invalid(tensor, "appears twice");
  return Status::ok();
}

ByteSpan OnnxReader::packHalves(const onnx::TensorProto &tensor) {
  auto values = std::make_shared<std::vector<uint16_t>>(tensor.int32_data().begin(), tensor.int32_data().end());
  storage.push_back(values);
  return {reinterpret_cast<const uint8_t *>(values->data()), values->size() * 2};
}

static bool parseNumber(const std::string &text, uint64_t &value) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  value = std::stoull(text);
  return true;
}

Result<ByteRange> OnnxReader::externalBytes(const onnx::TensorProto &tensor, uint64_t expected) {
  std::string location;
  uint64_t offset = 0, length = expected;
  for (const onnx::StringStringEntryProto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" && !parseNumber(entry.value(), offset))
      return invalid(tensor, "has the external offset '" + entry.value() + "', expected a number");
    else if (entry.key() == "length" && !parseNumber(entry.value(), length))
      return invalid(tensor, "has the external length '" + entry.value() + "', expected a number");
  }
  fs::path relative = fs::path(location).lexically_normal();
  if (location.empty() || relative.is_absolute() || *relative.begin() == "..")
    return invalid(tensor, "has external data at '" + location + "', which is not inside the model's folder");
  TESSERA_ASSIGN_OR_RETURN(InputFile whole, openExternal(relative.string()));
  if (offset > whole.size() || length > whole.size() - offset)
    return invalid(tensor, "needs bytes up to " + std::to_string(offset + length) + " of '" + location +
                               "', which has only " + std::to_string(whole.size()));
  return ByteRange(std::move(whole), offset, length);
}

Result<InputFile> OnnxReader::openExternal(const std::string &location) {
  auto known = externalFiles.find(location);
  if (known != externalFiles.end())
    return known->second;
  Result<InputFile> opened = InputFile::open((fs::path(path).parent_path() / location).string());
  if (!opened.isOk())
    return opened.status().withContext("external data of '" + path + "'");
  externalFiles.emplace(location, *opened);
  return opened;
}

Status readOnnxInitializers(const std::string &path, std::map<std::string, WeightEntry> &weights,
                            std::vector<std::shared_ptr<const void>> &storage) {
  return OnnxReader(path, weights, storage).read();
}

} // namespace tessera
