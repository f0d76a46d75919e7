//===- File.cpp - files written all or nothing ------------------------------===//

#include "runtime/base/File.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera {

Status systemError(std::string_view verb, const std::string &path, int errorNumber) {
  std::string message = "cannot " + std::string(verb) + " '" + path + "': ";
  switch (errorNumber) {
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return TESSERA_ERROR(Exhausted,
                         message + (errorNumber == EFBIG ? "file size limit reached" : "no space left on device"));
  case ENOENT:
    return TESSERA_ERROR(NotFound, message + "no such file or directory");
  case EACCES:
  case EPERM:
    return TESSERA_ERROR(IoError, message + "permission denied");
  default:
    return TESSERA_ERROR(IoError, message + std::strerror(errorNumber));
  }
}

std::filesystem::path absolutePath(const std::string &path) {
  std::error_code error;
  return (std::filesystem::absolute(path, error) / ".").lexically_normal().parent_path();
}

static constexpr std::string_view temporaryMark = ".tmp-";

std::string temporaryName(const std::string &path) {
  static const std::string process = [] {
    std::random_device random;
    char text[20];
    std::snprintf(text, sizeof(text), "%08x%08x", random(), random());
    return std::string(text);
  }();
  static std::atomic<unsigned> counter{0};
  return path + std::string(temporaryMark) + process + "-" + std::to_string(counter++);
}

bool isTemporaryName(std::string_view name) {
  size_t mark = name.rfind(temporaryMark);
  if (mark == std::string_view::npos || mark == 0)
    return false;
  std::string_view number = name.substr(mark + temporaryMark.size());
  return !number.empty() && number.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  // A device or pipe must not be replaced by a file: it is written as it is.
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0)
      return systemError("write", path, errno);
    return AtomicFile(path, "", descriptor);
  }
  std::string temporary = temporaryName(path);
  int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0)
    return systemError("write", path, errno);
  return AtomicFile(path, temporary, descriptor);
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : target(std::move(other.target)), temporary(std::move(other.temporary)), descriptor(other.descriptor) {
  other.descriptor = -1;
}

AtomicFile::~AtomicFile() {
  if (descriptor < 0)
    return;
  ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Status AtomicFile::write(ByteSpan bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR)
        continue;
      return systemError("write", target, errno);
    }
    bytes = bytes.subspan(count);
  }
  return Status::ok();
}

Status AtomicFile::commit() {
  if (temporary.empty()) {
    int closed = ::close(std::exchange(descriptor, -1));
    return closed != 0 ? systemError("write", target, errno) : Status::ok();
  }
  if (::fsync(descriptor) != 0)
    return systemError("write", target, errno);
  int closed = ::close(descriptor);
  descriptor = -1;
  if (closed != 0 || ::rename(temporary.c_str(), target.c_str()) != 0) {
    int error = errno;
    ::unlink(temporary.c_str());
    return systemError("write", target, error);
  }
  std::string folder = std::filesystem::path(target).parent_path().string();
  return syncDirectory(folder.empty() ? "." : folder);
}

Status writeFileAtomically(const std::string &path, std::string_view text) {
  TESSERA_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::create(path));
  TESSERA_RETURN_IF_ERROR(file.write(text));
  return file.commit();
}

Status syncDirectory(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    return systemError("open", path, errno);
  // Some file systems cannot sync folders and say EINVAL; there is nothing more to do then.
  int error = ::fsync(descriptor) != 0 && errno != EINVAL ? errno : 0;
  ::close(descriptor);
  return error ? systemError("write", path, error) : Status::ok();
}

Status publishFolder(const std::string &temporary, const std::string &folder) {
  TESSERA_RETURN_IF_ERROR(syncDirectory(temporary));
  int failure = ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, folder.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  // Some file systems (NFS, Lustre) cannot; there, rename replaces an empty folder at most.
  if (failure == EINVAL || failure == ENOSYS || failure == EOPNOTSUPP)
    failure = ::rename(temporary.c_str(), folder.c_str()) == 0 ? 0 : errno;
  if (failure != 0)
    return systemError("make", folder, failure);
  return syncDirectory(absolutePath(folder).parent_path().string());
}

} // namespace tessera
