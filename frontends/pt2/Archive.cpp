//===- Archive.cpp - the zip archive of an exported program ---------------===//

#include "frontends/pt2/Archive.h"

#include "frontends/pt2/Errors.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

#include <zip.h>

using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace tessera::pt2 {

namespace {
constexpr int64_t kMaxEntries = int64_t{1} << 20;
/// Programs of the largest models have some tens of megabytes.
constexpr uint64_t kMaxTextBytes = uint64_t{128} << 20;
/// No deflated entry grows by more.
constexpr uint64_t kMaxRatio = 1032;
/// All entries together, beside this many times the file: PyTorch compresses nothing.
constexpr uint64_t kMaxTotalRatio = 100;
constexpr uint64_t kMaxTotalSlack = uint64_t{1} << 30;

/// Why libzip could not open it. `magic` is the start of the file.
Error openError(const std::string &name, int code, StringRef magic) {
  if (code == ZIP_ER_NOZIP || code == ZIP_ER_INCONS) {
    if (magic.starts_with(StringRef("PK\3\4", 4)))
      return error("'" + name + "' is truncated or damaged: a zip archive without its directory, which is at the end");
    return error("'" + name + "' is not a zip archive; torch.export.save writes one");
  }
  zip_error_t why;
  zip_error_init_with_code(&why, code);
  std::string text = zip_error_strerror(&why);
  zip_error_fini(&why);
  return error("cannot open '" + name + "': " + text);
}

std::string startOf(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFileSlice(path, 4, 0);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}
} // namespace

void Archive::Close::operator()(zip *archive) const { zip_discard(archive); }

Expected<Archive> Archive::open(const std::string &path) {
  uint64_t fileBytes = 0;
  if (std::error_code code = llvm::sys::fs::file_size(path, fileBytes))
    return error("cannot open '" + path + "': " + code.message());
  if (!llvm::sys::fs::is_regular_file(path))
    return error("'" + path + "' is not a file");
  Archive archive;
  archive.name = path;
  int code = 0;
  archive.handle.reset(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (!archive.handle)
    return openError(path, code, startOf(path));
  if (Error failed = archive.list(fileBytes))
    return failed;
  if (Error failed = archive.checkFormat())
    return failed;
  return archive;
}

Expected<Archive> Archive::openBytes(StringRef bytes, std::string name) {
  Archive archive;
  archive.name = std::move(name);
  zip_error_t why;
  zip_error_init(&why);
  llvm::scope_exit release([&] { zip_error_fini(&why); });
  zip_source_t *source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &why);
  if (source)
    archive.handle.reset(zip_open_from_source(source, ZIP_RDONLY, &why));
  if (!archive.handle) {
    int code = zip_error_code_zip(&why);
    zip_source_free(source);
    return openError(archive.name, code, bytes.take_front(4));
  }
  if (Error failed = archive.list(bytes.size()))
    return failed;
  if (Error failed = archive.checkFormat())
    return failed;
  return archive;
}

/// Fills `entries`, checking what the archive's directory claims.
Error Archive::list(uint64_t fileBytes) {
  const int64_t count = zip_get_num_entries(handle.get(), 0);
  if (count > kMaxEntries)
    return error("'" + name + "' has " + Twine(count) + " entries, expected at most " + Twine(kMaxEntries));
  if (fileBytes == 0) // an archive without entries to libzip
    return error("'" + name + "' is empty");
  uint64_t total = 0;
  for (int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    const char *raw = zip_get_name(handle.get(), i, ZIP_FL_ENC_RAW);
    constexpr zip_uint64_t kNeeded =
        ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (!raw || zip_stat_index(handle.get(), i, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
      return error("'" + name + "' is damaged: entry " + Twine(i) + " of its directory cannot be read");
    StringRef full(raw);
    if (full.ends_with("/")) // a folder, which other tools add
      continue;
    const std::string where = ("'" + name + "', entry '" + full + "'").str();
    // A program that was written without torch.export.save's root folder has nothing to strip.
    if (full.contains('/'))
      full = full.split('/').second;
    if (stat.encryption_method != ZIP_EM_NONE)
      return error(where + " is encrypted");
    if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
      return error(where + " is compressed by method " + Twine(stat.comp_method) + ", expected stored or deflated");
    if (stat.comp_size > fileBytes)
      return error(where + " claims " + Twine(stat.comp_size) + " bytes of a file of " + Twine(fileBytes));
    if (stat.comp_method == ZIP_CM_STORE ? stat.size != stat.comp_size : stat.size / kMaxRatio > stat.comp_size)
      return error(where + " claims to be " + Twine(stat.size) + " bytes from " + Twine(stat.comp_size));
    if (__builtin_add_overflow(total, stat.size, &total) || total > kMaxTotalSlack + fileBytes * kMaxTotalRatio)
      return error("'" + name + "' claims to hold more than " + Twine(kMaxTotalRatio) + " times its size");
    if (!entries.emplace(full.str(), Entry{static_cast<uint64_t>(i), stat.size}).second)
      return error(where + " occurs twice");
  }
  return Error::success();
}

Error Archive::checkFormat() const {
  if (!has("archive_format")) {
    // Up to PyTorch 2.7, the archive had no root folder and these two entries.
    if (has("serialized_exported_program.json") || has("serialized_state_dict.pt"))
      return error("'" + name +
                   "' has the format of PyTorch before 2.8, whose weights are pickled: save it again with a "
                   "newer torch.export.save");
    return error("'" + name +
                 "' is a zip archive but not a PT2 archive (it has no archive_format); was it written by "
                 "torch.save or torch.jit.save instead of torch.export.save?");
  }
  Expected<std::string> format = readText("archive_format");
  if (!format)
    return format.takeError();
  if (*format != "pt2")
    return error("'" + name + "' has the format '" + StringRef(*format).take_front(40) + "', expected 'pt2'");
  if (has("archive_version")) {
    Expected<std::string> version = readText("archive_version");
    if (!version)
      return version.takeError();
    if (*version != "0")
      return error("'" + name + "' has the archive version '" + StringRef(*version).take_front(40) +
                   "', this reader knows 0");
  }
  if (has("byteorder")) {
    Expected<std::string> order = readText("byteorder");
    if (!order)
      return order.takeError();
    if (*order != "little")
      return error("'" + name + "' has the byte order '" + StringRef(*order).take_front(40) + "', expected 'little'");
  }
  return Error::success();
}

std::vector<std::string> Archive::models() const {
  std::vector<std::string> names;
  for (const auto &[entry, unused] : entries) {
    StringRef model(entry);
    if (model.consume_front("models/") && model.consume_back(".json") && !model.empty())
      names.push_back(model.str());
  }
  return names;
}

bool Archive::hasPrefix(StringRef prefix) const {
  auto at = entries.lower_bound(prefix.str());
  return at != entries.end() && StringRef(at->first).starts_with(prefix);
}

std::optional<uint64_t> Archive::size(StringRef entry) const {
  auto at = entries.find(entry.str());
  return at == entries.end() ? std::nullopt : std::optional(at->second.bytes);
}

template <typename Bytes> Error Archive::readInto(StringRef entry, Bytes &bytes) const {
  auto at = entries.find(entry.str());
  if (at == entries.end())
    return error("'" + name + "' has no entry '" + entry + "'");
  const std::string where = ("'" + name + "', entry '" + entry + "'").str();
  try {
    bytes.resize(at->second.bytes);
  } catch (const std::exception &) {
    return error(where + ": no memory for its " + Twine(at->second.bytes) + " bytes");
  }
  zip_file_t *file = zip_fopen_index(handle.get(), at->second.index, 0);
  if (!file)
    return error(where + " cannot be read: " + zip_strerror(handle.get()));
  llvm::scope_exit close([&] { zip_fclose(file); });
  uint64_t done = 0;
  while (done < bytes.size()) {
    const int64_t got = zip_fread(file, bytes.data() + done, std::min<uint64_t>(bytes.size() - done, 1u << 30));
    if (got < 0)
      return error(where + " cannot be read: " + zip_file_strerror(file));
    if (got == 0)
      return error(where + " is truncated: " + Twine(done) + " of " + Twine(bytes.size()) + " bytes");
    done += got;
  }
  // The end is where libzip compares the checksum.
  char rest;
  const int64_t got = zip_fread(file, &rest, 1);
  if (got < 0)
    return error(where + " is damaged: " + zip_file_strerror(file));
  if (got > 0)
    return error(where + " is longer than the " + Twine(bytes.size()) + " bytes that it claims");
  return Error::success();
}

Expected<std::vector<char>> Archive::read(StringRef entry) const {
  std::vector<char> bytes;
  if (Error failed = readInto(entry, bytes))
    return failed;
  return bytes;
}

Expected<std::string> Archive::readText(StringRef entry) const {
  if (std::optional<uint64_t> bytes = size(entry); bytes && *bytes > kMaxTextBytes)
    return error("'" + name + "', entry '" + entry + "' has " + Twine(*bytes) + " bytes of text, expected at most " +
                 Twine(kMaxTextBytes));
  std::string text;
  if (Error failed = readInto(entry, text))
    return failed;
  return text;
}

} // namespace tessera::pt2
