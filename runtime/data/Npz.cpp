//===- Npz.cpp - NumPy's .npz and .npy -------------------------------------------------===//
//
// A .npz is a zip archive of .npy files: a magic number, a header that is a Python dictionary literal, and the
// elements. Archives are untrusted: sizes are checked against what the archive can hold before memory is taken.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Samples.h"

#include <cstring>
#include <zip.h>

namespace tessera {

/// The text after `'key':` in a dictionary literal, without leading spaces; empty if the key is missing.
static std::string_view valueOf(std::string_view dictionary, std::string_view key) {
  size_t at = dictionary.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos)
    return {};
  size_t colon = dictionary.find(':', at);
  size_t begin = colon == std::string_view::npos ? colon : dictionary.find_first_not_of(' ', colon + 1);
  return begin == std::string_view::npos ? std::string_view() : dictionary.substr(begin);
}

/// "(3, 4)" or "(3,)" or "()".
static bool parseShape(std::string_view text, std::vector<int64_t> &shape) {
  if (text.empty() || text[0] != '(')
    return false;
  bool digits = false;
  int64_t value = 0;
  for (char c : text.substr(1)) {
    if (c >= '0' && c <= '9') {
      if (value > (INT64_MAX - 9) / 10)
        return false;
      value = value * 10 + (c - '0');
      digits = true;
    } else if (c == ',' || c == ')') {
      if (digits)
        shape.push_back(value);
      else if (c == ',')
        return false;
      digits = false;
      value = 0;
      if (c == ')')
        return true;
    } else if (c != ' ' || digits) {
      return false;
    }
  }
  return false;
}

template <typename T>
static void widen(ByteSpan bytes, ArrayEntry &entry, int64_t elements,
                  std::vector<std::shared_ptr<const void>> &storage) {
  auto wide = std::make_shared<std::vector<int64_t>>(elements);
  for (int64_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    (*wide)[i] = static_cast<int64_t>(value);
  }
  entry.dtype = DataType::I64;
  entry.bytes = ByteRange(ByteSpan(reinterpret_cast<const uint8_t *>(wide->data()), wide->size() * 8));
  storage.push_back(wide);
}

/// Bytes of an element, or 0 for types that are not read.
static size_t typeBytes(std::string_view descriptor, std::optional<DataType> &dtype) {
  static const std::pair<std::string_view, DataType> known[] = {
      {"<f4", DataType::F32}, {"<f8", DataType::F64}, {"<f2", DataType::F16}, {"<i4", DataType::I32},
      {"<i8", DataType::I64}, {"|i1", DataType::I8},  {"|u1", DataType::U8},  {"|b1", DataType::Bool}};
  for (auto [name, type] : known)
    if (name == descriptor) {
      dtype = type;
      return elementBytes(type);
    }
  if (descriptor == "<i2" || descriptor == "<u2")
    return 2;
  return descriptor == "<u4" ? 4 : 0;
}

Status parseNpy(const std::string &name, ByteSpan bytes, ArrayEntry &entry,
                std::vector<std::shared_ptr<const void>> &storage) {
  auto invalid = [&](const std::string &reason) { return TESSERA_ERROR(DataLoss, "array '" + name + "' " + reason); };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    return invalid("is not in NumPy's format");
  int version = bytes[6];
  size_t prefix = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || bytes.size() < prefix)
    return invalid("has an unknown version of NumPy's format");
  size_t headerBytes = bytes[8] | bytes[9] << 8;
  if (version > 1)
    headerBytes |= static_cast<size_t>(bytes[10]) << 16 | static_cast<size_t>(bytes[11]) << 24;
  if (headerBytes > bytes.size() - prefix)
    return invalid("is truncated");
  std::string_view header(reinterpret_cast<const char *>(bytes.data()) + prefix, headerBytes);
  std::string_view descriptor = valueOf(header, "descr"), order = valueOf(header, "fortran_order");
  if (!parseShape(valueOf(header, "shape"), entry.shape) || order.empty() || descriptor.size() < 2)
    return invalid("has a header that cannot be read");
  if (!order.starts_with("False"))
    return invalid("is in Fortran order; store it with numpy.ascontiguousarray");
  if (descriptor[0] != '\'' || descriptor.find('\'', 1) == std::string_view::npos)
    return invalid("has a structured type, which is not supported");
  descriptor = descriptor.substr(1, descriptor.find('\'', 1) - 1);
  std::optional<DataType> dtype;
  size_t width = typeBytes(descriptor, dtype);
  if (width == 0)
    return invalid("has the type '" + std::string(descriptor) + "', which is not supported");
  std::optional<int64_t> elements = checkedElements(entry.shape, width);
  ByteSpan data = bytes.subspan(prefix + headerBytes);
  entry.bytes = ByteRange(data);
  if (!elements || *elements * width != data.size())
    return invalid("has " + std::to_string(data.size()) + " bytes of data, which does not fit its shape " +
                   shapeToString(entry.shape));
  if (dtype)
    entry.dtype = *dtype;
  else if (descriptor == "<i2")
    widen<int16_t>(data, entry, *elements, storage);
  else if (descriptor == "<u2")
    widen<uint16_t>(data, entry, *elements, storage);
  else
    widen<uint32_t>(data, entry, *elements, storage);
  return Status::ok();
}

namespace {
struct ZipCloser {
  void operator()(zip_t *archive) const { zip_discard(archive); }
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};
} // namespace

static Status readMember(zip_t *archive, zip_int64_t index, const std::string &path, uint64_t archiveBytes,
                         ArrayMap &arrays, std::vector<std::shared_ptr<const void>> &storage) {
  zip_stat_t info;
  if (zip_stat_index(archive, index, 0, &info) != 0 || !(info.valid & ZIP_STAT_NAME) || !(info.valid & ZIP_STAT_SIZE))
    return TESSERA_ERROR(DataLoss, "'" + path + "' is corrupted: " + zip_strerror(archive));
  std::string name = info.name;
  if (!name.ends_with(".npy"))
    return Status::ok();
  name.resize(name.size() - 4);
  // Deflate makes at most 1032 bytes out of one.
  if (info.size / 1032 > archiveBytes)
    return TESSERA_ERROR(DataLoss, "'" + path + "' is corrupted: array '" + name + "' cannot have " +
                                       std::to_string(info.size) + " bytes");
  std::unique_ptr<zip_file_t, ZipCloser> member(zip_fopen_index(archive, index, 0));
  if (!member)
    return TESSERA_ERROR(DataLoss, "cannot read array '" + name + "' of '" + path + "': " + zip_strerror(archive));
  auto truncated = [&] {
    return TESSERA_ERROR(DataLoss, "array '" + name + "' of '" + path + "' is corrupted or truncated");
  };
  auto content = std::make_shared<std::vector<uint8_t>>(info.size);
  for (uint64_t done = 0; done < info.size;) {
    zip_int64_t count = zip_fread(member.get(), content->data() + done, info.size - done);
    if (count <= 0)
      return truncated();
    done += count;
  }
  // Reading to the end makes libzip compare the checksum.
  uint8_t extra;
  if (zip_fread(member.get(), &extra, 1) != 0)
    return TESSERA_ERROR(DataLoss, "array '" + name + "' of '" + path + "' does not match its checksum");
  ArrayEntry entry;
  Status status = parseNpy(name, {content->data(), content->size()}, entry, storage);
  if (!status.isOk())
    return status.withContext("'" + path + "'");
  storage.push_back(content);
  arrays[name] = std::move(entry);
  return Status::ok();
}

Status readNpz(const std::string &path, ArrayMap &arrays, std::vector<std::shared_ptr<const void>> &storage) {
  TESSERA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path)); // for clear errors, and the size
  int code = 0;
  std::unique_ptr<zip_t, ZipCloser> archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive)
    return TESSERA_ERROR(DataLoss, "'" + path + "' is not a .npz archive (or it is truncated)");
  zip_int64_t members = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < members; ++i)
    TESSERA_RETURN_IF_ERROR(readMember(archive.get(), i, path, file.size(), arrays, storage));
  return Status::ok();
}

} // namespace tessera
