//===- File.h - files written all or nothing --------------------------------===//
//
// What is written goes to a temporary file beside the target and is renamed after fsync, so that a crash or a full disk
// never leaves a half-written file under the final name. What is read: InputFile.h.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_FILE_H
#define TESSERA_RUNTIME_BASE_FILE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace tessera {

using ByteSpan = std::span<const uint8_t>;

/// The error for a failed system call on `path`: "cannot <verb> '<path>': <reason>"; Exhausted if the disk is full.
Status systemError(std::string_view verb, const std::string &path, int errorNumber);

/// A name beside `path` that no process has used before, were it one of the same number: `<path>.tmp-<random>-<n>`.
std::string temporaryName(const std::string &path);
/// Whether it is such a name: of something unfinished, or left behind by a process that was killed.
bool isTemporaryName(std::string_view name);

/// Writes `path` by way of a temporary file beside it. Without `commit` nothing remains. What is no regular file (a
/// device, a pipe) is written directly.
class AtomicFile {
public:
  static Result<AtomicFile> create(const std::string &path);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&) = delete;
  ~AtomicFile();

  Status write(ByteSpan bytes);
  Status write(std::string_view text) { return write({reinterpret_cast<const uint8_t *>(text.data()), text.size()}); }
  /// Makes the content durable and gives it its name.
  Status commit();

private:
  AtomicFile(std::string target, std::string temporary, int descriptor)
      : target(std::move(target)), temporary(std::move(temporary)), descriptor(descriptor) {}

  std::string target, temporary;
  int descriptor = -1;
};

/// A path from the root without what leads back and without a slash at its end; links are not followed.
std::filesystem::path absolutePath(const std::string &path);

/// Writes a whole small file atomically.
Status writeFileAtomically(const std::string &path, std::string_view text);
/// Makes renames and removals inside a folder durable.
Status syncDirectory(const std::string &path);
/// Gives a complete folder its name; one that has come up there meanwhile stays, and is an error.
Status publishFolder(const std::string &temporary, const std::string &folder);

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_FILE_H
