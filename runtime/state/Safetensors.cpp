//===- Safetensors.cpp - reads and writes .safetensors files -----------------===//

#include "runtime/state/Safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

using HeaderJson = nlohmann::json;

static constexpr uint64_t maxHeaderBytes = 100'000'000;
static constexpr size_t dataAlignment = 64;

/// Bytes per element of every type that the format knows; 0 for an unknown name.
static size_t storedBytes(const std::string &typeName) {
  if (auto dtype = dataTypeFromSafetensors(typeName))
    return elementBytes(*dtype);
  if (typeName == "I16" || typeName == "U16")
    return 2;
  if (typeName == "U32")
    return 4;
  return typeName == "U64" ? 8 : 0;
}

static Status corrupt(const std::string &path, const std::string &reason) {
  return TESSERA_ERROR(DataLoss, "'" + path + "' is not a valid safetensors file: " + reason);
}

/// Parses without exceptions; a key given twice in the top object makes the result invalid, too.
static HeaderJson parseHeader(const char *begin, const char *end, std::string &duplicate) {
  std::set<std::string> seen;
  HeaderJson::parser_callback_t callback = [&](int depth, HeaderJson::parse_event_t event, HeaderJson &value) {
    if (event == HeaderJson::parse_event_t::key && depth == 1 &&
        !seen.insert(value.get_ref<const std::string &>()).second)
      duplicate = value.get_ref<const std::string &>();
    return true;
  };
  return HeaderJson::parse(begin, end, callback, /*allow_exceptions=*/false);
}

namespace {
/// Where a tensor lies among the bytes of data.
struct Extent {
  uint64_t begin, end;
  std::string name;
};
} // namespace

/// Fills `entry`, but for its bytes, and `extent` from its JSON description; returns what is wrong with it, or nothing.
static std::string readEntry(const HeaderJson &description, uint64_t dataBytes, SafetensorsEntry &entry,
                             Extent &extent) {
  if (!description.is_object())
    return "its description is not an object";
  auto type = description.find("dtype"), shape = description.find("shape"), offsets = description.find("data_offsets");
  if (type == description.end() || !type->is_string())
    return "it has no dtype";
  if (shape == description.end() || !shape->is_array())
    return "it has no shape";
  if (offsets == description.end() || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned())
    return "it has no data_offsets";
  entry.typeName = type->get<std::string>();
  entry.dtype = dataTypeFromSafetensors(entry.typeName);
  size_t width = storedBytes(entry.typeName);
  if (width == 0)
    return "its dtype '" + entry.typeName + "' is unknown";
  for (const HeaderJson &size : *shape) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return "its shape is not a list of sizes";
    entry.shape.push_back(size.get<int64_t>());
  }
  auto elements = checkedElements(entry.shape, width);
  if (!elements)
    return "its shape " + shapeToString(entry.shape) + " is too large";
  entry.elements = *elements;
  uint64_t begin = (*offsets)[0].get<uint64_t>(), end = (*offsets)[1].get<uint64_t>();
  if (begin > end || end > dataBytes)
    return "its bytes [" + std::to_string(begin) + ", " + std::to_string(end) + ") are not inside the file's " +
           std::to_string(dataBytes) + " bytes of data (truncated?)";
  if (end - begin != static_cast<uint64_t>(entry.elements) * width)
    return "it has " + std::to_string(end - begin) + " bytes, expected " +
           std::to_string(static_cast<uint64_t>(entry.elements) * width) + " for " + entry.typeName +
           shapeToString(entry.shape);
  extent = {begin, end, entry.name};
  return "";
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  TESSERA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  return open(std::move(file));
}

Result<SafetensorsFile> SafetensorsFile::open(InputFile file) {
  SafetensorsFile result;
  result.file = std::move(file);
  TESSERA_RETURN_IF_ERROR(result.parse());
  return result;
}

/// Tensors neither overlap nor leave bytes between them; returns what is wrong, or nothing.
static std::string checkLayout(std::vector<Extent> &extents, uint64_t dataBytes) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t expected = 0;
  const Extent *last = nullptr;
  for (const Extent &extent : extents) {
    if (extent.begin < expected)
      return "tensors '" + (last ? last->name : "") + "' and '" + extent.name + "' overlap";
    if (extent.begin > expected)
      return "there is a hole before tensor '" + extent.name + "'";
    expected = extent.end;
    last = &extent;
  }
  return expected != dataBytes ? std::to_string(dataBytes - expected) + " bytes belong to no tensor" : "";
}

Status SafetensorsFile::parse() {
  if (file.size() < 8)
    return corrupt(path(), "it has only " + std::to_string(file.size()) + " bytes");
  uint64_t headerBytes;
  TESSERA_RETURN_IF_ERROR(file.read(0, &headerBytes, 8));
  if (headerBytes > maxHeaderBytes || headerBytes > file.size() - 8)
    return corrupt(path(), "the header is " + std::to_string(headerBytes) + " bytes long, but only " +
                               std::to_string(file.size() - 8) + " follow");
  std::string text(headerBytes, '\0');
  TESSERA_RETURN_IF_ERROR(file.read(8, text.data(), text.size()));
  const uint64_t dataBegin = 8 + headerBytes, dataBytes = file.size() - dataBegin;
  std::vector<Extent> extents;
  std::string duplicate;
  HeaderJson header = parseHeader(text.data(), text.data() + text.size(), duplicate);
  if (!header.is_object())
    return corrupt(path(), "the header is not a JSON object");
  if (!duplicate.empty())
    return corrupt(path(), "tensor '" + duplicate + "' appears twice");

  for (const auto &[name, description] : header.items()) {
    if (name == "__metadata__") {
      if (!description.is_object())
        return corrupt(path(), "__metadata__ is not an object");
      for (const auto &[key, value] : description.items()) {
        if (!value.is_string())
          return corrupt(path(), "__metadata__ '" + key + "' is not a string");
        meta[key] = value.get<std::string>();
      }
      continue;
    }
    SafetensorsEntry entry;
    entry.name = name;
    Extent &extent = extents.emplace_back();
    if (std::string problem = readEntry(description, dataBytes, entry, extent); !problem.empty())
      return corrupt(path(), ("tensor '" + name + "': ").append(problem));
    entry.bytes = ByteRange(file, dataBegin + extent.begin, extent.end - extent.begin);
    entries.emplace(name, std::move(entry));
  }
  std::string problem = checkLayout(extents, dataBytes);
  return problem.empty() ? Status::ok() : corrupt(path(), problem);
}

const SafetensorsEntry *SafetensorsFile::find(const std::string &name) const {
  auto entry = entries.find(name);
  return entry == entries.end() ? nullptr : &entry->second;
}

static Result<std::string> makeHeader(const std::string &path, const std::vector<SafetensorsTensor> &tensors,
                                      const std::map<std::string, std::string> &metadata) {
  HeaderJson header = HeaderJson::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const SafetensorsTensor &tensor : tensors) {
    uint64_t bytes = 0;
    for (ByteSpan piece : tensor.pieces)
      bytes += piece.size();
    auto elements = checkedElements(tensor.shape, elementBytes(tensor.dtype));
    if (!elements || *elements * elementBytes(tensor.dtype) != bytes)
      return TESSERA_ERROR(Internal, "tensor '" + tensor.name + "' for '" + path + "' has " + std::to_string(bytes) +
                                         " bytes, which does not fit its shape " + shapeToString(tensor.shape));
    if (header.contains(tensor.name))
      return TESSERA_ERROR(Internal, "tensor '" + tensor.name + "' is written twice to '" + path + "'");
    header[tensor.name] = {
        {"dtype", safetensorsName(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump(-1, ' ', false, HeaderJson::error_handler_t::replace);
  text.resize((text.size() + 8 + dataAlignment - 1) / dataAlignment * dataAlignment - 8, ' ');
  return text;
}

Result<WrittenFile> writeSafetensors(const std::string &path, const std::vector<SafetensorsTensor> &tensors,
                                     const std::map<std::string, std::string> &metadata) {
  TESSERA_ASSIGN_OR_RETURN(std::string header, makeHeader(path, tensors, metadata));
  TESSERA_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  XXH3_state_t hash;
  XXH3_64bits_reset(&hash);
  WrittenFile written;
  auto write = [&](ByteSpan bytes) {
    XXH3_64bits_update(&hash, bytes.data(), bytes.size());
    written.bytes += bytes.size();
    return file.write(bytes);
  };
  uint64_t headerBytes = header.size();
  TESSERA_RETURN_IF_ERROR(write({reinterpret_cast<const uint8_t *>(&headerBytes), 8}));
  TESSERA_RETURN_IF_ERROR(write({reinterpret_cast<const uint8_t *>(header.data()), header.size()}));
  // Small pieces (rows of parts) are written many at once.
  constexpr size_t manyBytes = size_t{1} << 20;
  std::vector<uint8_t> waiting;
  auto flush = [&]() -> Status {
    TESSERA_RETURN_IF_ERROR(write(waiting));
    waiting.clear();
    return Status::ok();
  };
  for (const SafetensorsTensor &tensor : tensors)
    for (ByteSpan piece : tensor.pieces) {
      if (piece.size() < manyBytes / 16) {
        waiting.insert(waiting.end(), piece.begin(), piece.end());
        if (waiting.size() >= manyBytes)
          TESSERA_RETURN_IF_ERROR(flush());
        continue;
      }
      TESSERA_RETURN_IF_ERROR(flush());
      TESSERA_RETURN_IF_ERROR(write(piece));
    }
  TESSERA_RETURN_IF_ERROR(flush());
  written.hash = XXH3_64bits_digest(&hash);
  TESSERA_RETURN_IF_ERROR(file.commit());
  return written;
}

} // namespace tessera
