//===- ZipFile.cpp - members of a zip archive at their place in it -------------===//

#include "runtime/base/ZipFile.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <zlib.h>

namespace tessera {

static constexpr uint64_t endBytes = 22, endBytes64 = 56, locatorBytes = 20, entryBytes = 46, localBytes = 30;
static constexpr uint64_t maxDirectoryBytes = uint64_t{256} << 20;
static constexpr uint16_t isStored = 0, isDeflated = 8;

/// The number of type T at `at`; the format is little-endian, as all machines that this runs on.
template <typename T> static T number(const uint8_t *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

static bool hasSignature(const uint8_t *at, uint8_t third, uint8_t fourth) {
  return at[0] == 'P' && at[1] == 'K' && at[2] == third && at[3] == fourth;
}

namespace {
struct Directory {
  uint64_t begin = 0, bytes = 0, count = 0;
};
} // namespace

bool ZipFile::isZip(const std::string &path) {
  Result<InputFile> file = InputFile::open(path);
  uint8_t start[4];
  return file.isOk() && file->size() >= sizeof(start) && file->read(0, start, sizeof(start)).isOk() &&
         hasSignature(start, 3, 4);
}

Status ZipFile::corrupt(const std::string &reason) const {
  return TESSERA_ERROR(DataLoss, "zip archive '" + file.path() + "' is damaged or truncated: " + reason);
}

Result<ZipFile> ZipFile::open(const std::string &path) {
  ZipFile result;
  TESSERA_ASSIGN_OR_RETURN(result.file, InputFile::open(path));
  TESSERA_RETURN_IF_ERROR(result.readDirectory());
  return result;
}

/// Where the record that ends the archive begins in its last bytes: the last place where the comment behind it fits.
static std::optional<size_t> findEnd(const std::vector<uint8_t> &tail) {
  for (size_t at = tail.size() < endBytes ? 0 : tail.size() - endBytes + 1; at-- > 0;)
    if (hasSignature(&tail[at], 5, 6) && number<uint16_t>(&tail[at + 20]) == tail.size() - at - endBytes)
      return at;
  return std::nullopt;
}

static Result<Directory> findDirectory(const InputFile &file) {
  constexpr uint64_t maxComment = 65535;
  auto missing = [&] {
    return TESSERA_ERROR(DataLoss, "'" + file.path() + "' is not a zip archive, or a truncated one");
  };
  std::vector<uint8_t> tail(std::min(file.size(), endBytes + maxComment));
  const uint64_t tailBegin = file.size() - tail.size();
  TESSERA_RETURN_IF_ERROR(file.read(tailBegin, tail.data(), tail.size()));
  std::optional<size_t> at = findEnd(tail);
  if (!at)
    return missing();
  const uint8_t *end = &tail[*at];
  const uint64_t endBegin = tailBegin + *at;
  Directory directory{number<uint32_t>(end + 16), number<uint32_t>(end + 12), number<uint16_t>(end + 10)};
  uint8_t locator[locatorBytes], end64[endBytes64];
  if (endBegin < locatorBytes + endBytes64)
    return directory;
  TESSERA_RETURN_IF_ERROR(file.read(endBegin - locatorBytes, locator, locatorBytes));
  if (!hasSignature(locator, 6, 7))
    return directory;
  const auto place = number<uint64_t>(locator + 8);
  if (place > endBegin - locatorBytes - endBytes64)
    return missing();
  TESSERA_RETURN_IF_ERROR(file.read(place, end64, endBytes64));
  if (!hasSignature(end64, 6, 6))
    return missing();
  return Directory{number<uint64_t>(end64 + 48), number<uint64_t>(end64 + 40), number<uint64_t>(end64 + 32)};
}

/// Replaces what does not fit 32 bits by its number in the extra field; false if that is missing.
static bool readWide(ByteSpan extra, uint64_t &bytes, uint64_t &packed, uint64_t &header) {
  std::vector<uint64_t *> wide;
  for (uint64_t *value : {&bytes, &packed, &header})
    if (*value == UINT32_MAX)
      wide.push_back(value);
  while (!wide.empty() && extra.size() >= 4) {
    const size_t length = number<uint16_t>(extra.data() + 2);
    if (length > extra.size() - 4)
      return false;
    if (number<uint16_t>(extra.data()) == 1) {
      if (length < wide.size() * 8)
        return false;
      for (size_t i = 0; i < wide.size(); ++i)
        *wide[i] = number<uint64_t>(extra.data() + 4 + i * 8);
      return true;
    }
    extra = extra.subspan(4 + length);
  }
  return wide.empty();
}

Status ZipFile::readDirectory() {
  TESSERA_ASSIGN_OR_RETURN(Directory directory, findDirectory(file));
  if (directory.begin > file.size() || directory.bytes > file.size() - directory.begin)
    return corrupt("its directory is not inside the file");
  if (directory.bytes > maxDirectoryBytes)
    return corrupt("its directory has " + std::to_string(directory.bytes) + " bytes");
  TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, ByteRange(file, directory.begin, directory.bytes).readAll());
  ByteSpan rest(bytes);
  for (uint64_t i = 0; i < directory.count; ++i) {
    const std::string where = "entry " + std::to_string(i) + " of its directory";
    if (rest.size() < entryBytes || !hasSignature(rest.data(), 1, 2))
      return corrupt(where + " cannot be read");
    const size_t nameBytes = number<uint16_t>(&rest[28]), extraBytes = number<uint16_t>(&rest[30]);
    const size_t allBytes = entryBytes + nameBytes + extraBytes + number<uint16_t>(&rest[32]);
    if (allBytes > rest.size())
      return corrupt(where + " cannot be read");
    Member member{number<uint32_t>(&rest[42]), number<uint32_t>(&rest[24]), number<uint32_t>(&rest[20]),
                  number<uint16_t>(&rest[10]), (rest[8] & 1) != 0,          number<uint32_t>(&rest[16])};
    if (!readWide(rest.subspan(entryBytes + nameBytes, extraBytes), member.bytes, member.packedBytes, member.header))
      return corrupt(where + " lacks its size or place");
    if (member.method == isStored && member.packedBytes != member.bytes)
      return corrupt(where + " is stored, but of another size");
    std::string name(reinterpret_cast<const char *>(&rest[0]) + entryBytes, nameBytes);
    rest = rest.subspan(allBytes);
    if (name.ends_with('/'))
      continue;
    if (!entries.emplace(name, member).second)
      return corrupt("'" + name + "' is in it twice");
  }
  return Status::ok();
}

Result<ByteRange> ZipFile::locate(const std::string &name) const {
  auto found = entries.find(name);
  if (found == entries.end())
    return TESSERA_ERROR(NotFound, "'" + file.path() + "' has no entry '" + name + "'");
  const Member &member = found->second;
  if (member.isEncrypted || member.method != isStored)
    return TESSERA_ERROR(Unsupported, "entry '" + name + "' of '" + file.path() + "' is " +
                                          (member.isEncrypted ? "encrypted" : "compressed") +
                                          ", expected it stored as it is");
  return packed(name, member);
}

Result<ByteRange> ZipFile::packed(const std::string &name, const Member &member) const {
  uint8_t local[localBytes];
  if (file.size() < localBytes || member.header > file.size() - localBytes)
    return corrupt("entry '" + name + "' is not inside the file");
  TESSERA_RETURN_IF_ERROR(file.read(member.header, local, localBytes));
  if (!hasSignature(local, 3, 4))
    return corrupt("entry '" + name + "' is not where the directory says");
  const uint64_t begin = member.header + localBytes + number<uint16_t>(local + 26) + number<uint16_t>(local + 28);
  if (begin > file.size() || member.packedBytes > file.size() - begin)
    return corrupt("entry '" + name + "' has " + std::to_string(member.packedBytes) +
                   " bytes, which are not in the file");
  return ByteRange(file, begin, member.packedBytes);
}

/// Inflates `packed` to exactly as many bytes as `content` has; false if it is damaged.
static bool inflateTo(const std::vector<uint8_t> &packed, std::vector<uint8_t> &content) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) // without a header of zlib's own
    return false;
  stream.next_in = const_cast<uint8_t *>(packed.data());
  stream.avail_in = static_cast<uInt>(packed.size());
  uint8_t none = 0; // what zlib wants for no content
  stream.next_out = content.empty() ? &none : content.data();
  stream.avail_out = static_cast<uInt>(content.size());
  const int end = ::inflate(&stream, Z_FINISH);
  inflateEnd(&stream);
  return end == Z_STREAM_END && stream.avail_out == 0;
}

Result<std::vector<uint8_t>> ZipFile::read(const std::string &name, uint64_t limit) const {
  const auto found = entries.find(name);
  if (found == entries.end() || found->second.isEncrypted || found->second.method != isDeflated) {
    TESSERA_ASSIGN_OR_RETURN(ByteRange range, locate(name));
    if (range.size() <= limit)
      return range.readAll();
  } else if (const Member &member = found->second; std::max(member.bytes, member.packedBytes) <= limit) {
    TESSERA_ASSIGN_OR_RETURN(ByteRange range, packed(name, member));
    TESSERA_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes, range.readAll());
    std::vector<uint8_t> content(member.bytes);
    return inflateTo(bytes, content) ? Result<std::vector<uint8_t>>(std::move(content))
                                     : corrupt("entry '" + name + "' cannot be inflated");
  }
  return corrupt("entry '" + name + "' has more than " + std::to_string(limit) + " bytes");
}

} // namespace tessera
