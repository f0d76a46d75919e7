//===- InputFile.cpp - files that are read at any place ---------------------===//

#include "runtime/base/InputFile.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <mutex>
#include <sys/stat.h>
#include <unistd.h>

namespace tessera {

static constexpr size_t maxDescriptors = 128;

static std::atomic<uint64_t> readCalls{0}, readBytes{0};

namespace {
struct Descriptor {
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() { ::close(number); }
  const int number;
};
} // namespace

struct InputFile::State {
  std::string path;
  uint64_t size = 0;
  timespec changed = {};
  std::shared_ptr<Descriptor> descriptor; ///< None while others have theirs. Guarded by `mutex`.

  static inline std::mutex mutex;
  static inline std::deque<std::weak_ptr<State>> withDescriptor; ///< The first opened first. Guarded by `mutex`.

  /// Opens the file and says what it is; others lose their descriptor if there are too many.
  static Status openDescriptor(const std::shared_ptr<State> &state, struct stat &info);
  static Result<std::shared_ptr<Descriptor>> acquire(const std::shared_ptr<State> &state);
  Status checkSize(const struct stat &info) const;
  Status check(const struct stat &info) const;
};

Status InputFile::State::openDescriptor(const std::shared_ptr<State> &state, struct stat &info) {
  int number = ::open(state->path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); // of a pipe nobody may ever write to
  if (number < 0)
    return systemError("open", state->path, errno);
  auto opened = std::make_shared<Descriptor>(number);
  if (::fstat(number, &info) != 0)
    return systemError("read", state->path, errno);
  if (!S_ISREG(info.st_mode))
    return TESSERA_ERROR(InvalidArgument, "cannot read '" + state->path + "': not a regular file");
  std::erase_if(withDescriptor, [](const std::weak_ptr<State> &each) { return each.expired(); });
  while (withDescriptor.size() >= maxDescriptors) {
    if (std::shared_ptr<State> oldest = withDescriptor.front().lock())
      oldest->descriptor.reset(); // who reads with it now, keeps it until then
    withDescriptor.pop_front();
  }
  state->descriptor = std::move(opened);
  withDescriptor.push_back(state);
  return Status::ok();
}

Result<std::shared_ptr<Descriptor>> InputFile::State::acquire(const std::shared_ptr<State> &state) {
  std::lock_guard lock(mutex);
  if (!state->descriptor) {
    struct stat info;
    TESSERA_RETURN_IF_ERROR(openDescriptor(state, info));
    TESSERA_RETURN_IF_ERROR(state->check(info));
  }
  return state->descriptor;
}

Status InputFile::State::checkSize(const struct stat &info) const {
  auto now = static_cast<uint64_t>(info.st_size);
  if (now == size)
    return Status::ok();
  std::string sizes = ": it had " + std::to_string(size) + " bytes and has " + std::to_string(now);
  return TESSERA_ERROR(DataLoss, "'" + path + "' has " +
                                     (now < size ? "become shorter while it was read" : "changed since it was opened") +
                                     sizes);
}

Status InputFile::State::check(const struct stat &info) const {
  TESSERA_RETURN_IF_ERROR(checkSize(info));
  if (info.st_mtim.tv_sec != changed.tv_sec || info.st_mtim.tv_nsec != changed.tv_nsec)
    return TESSERA_ERROR(DataLoss, "'" + path + "' has changed since it was opened");
  return Status::ok();
}

Result<InputFile> InputFile::open(const std::string &path) {
  InputFile file;
  file.state = std::make_shared<State>();
  file.state->path = path;
  struct stat info;
  std::lock_guard lock(State::mutex);
  TESSERA_RETURN_IF_ERROR(State::openDescriptor(file.state, info));
  file.state->size = static_cast<uint64_t>(info.st_size);
  file.state->changed = info.st_mtim;
  return file;
}

const std::string &InputFile::path() const { return state->path; }
uint64_t InputFile::size() const { return state->size; }

ReadCount InputFile::readsOfProcess() { return {readCalls, readBytes}; }

Status InputFile::read(uint64_t offset, void *target, size_t count) const {
  if (offset > size() || count > size() - offset)
    return TESSERA_ERROR(Internal, "bytes beyond the end of '" + path() + "' were asked for");
  if (count == 0)
    return Status::ok();
  readCalls.fetch_add(1, std::memory_order_relaxed);
  readBytes.fetch_add(count, std::memory_order_relaxed);
  TESSERA_ASSIGN_OR_RETURN(std::shared_ptr<Descriptor> descriptor, State::acquire(state));
  auto *bytes = static_cast<uint8_t *>(target);
  while (count > 0) {
    ssize_t done = ::pread(descriptor->number, bytes, count, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return systemError("read", path(), errno);
    if (done == 0)
      break;
    bytes += done;
    offset += static_cast<uint64_t>(done);
    count -= static_cast<size_t>(done);
  }
  struct stat info;
  if (::fstat(descriptor->number, &info) != 0)
    return systemError("read", path(), errno);
  TESSERA_RETURN_IF_ERROR(state->checkSize(info));
  if (count > 0)
    return TESSERA_ERROR(DataLoss, "'" + path() + "' has become shorter while it was read: it ended at byte " +
                                       std::to_string(offset));
  return Status::ok();
}

Status InputFile::checkUnchanged() const {
  struct stat info;
  if (::stat(path().c_str(), &info) != 0)
    return systemError("read", path(), errno);
  return state->check(info);
}

Status ByteRange::read(uint64_t begin, void *target, size_t count) const {
  if (begin > length || count > length - begin)
    return TESSERA_ERROR(Internal, "bytes beyond the end of a range were asked for");
  if (isInFile)
    return file.read(offset + begin, target, count);
  if (count > 0)
    std::memcpy(target, memory.data() + begin, count);
  return Status::ok();
}

ByteRange ByteRange::part(uint64_t begin, uint64_t count) const {
  return isInFile ? ByteRange(file, offset + begin, count) : ByteRange(memory.subspan(begin, count));
}

Status PieceReader::read(uint64_t begin, void *target, size_t count) {
  constexpr size_t windowBytes = size_t{1} << 20;
  if (isOne || count >= windowBytes / 4)
    return range.read(begin, target, count);
  if (begin < windowBegin || begin + count > windowBegin + window.size()) {
    window.resize(
        std::max<uint64_t>(count, std::min<uint64_t>(windowBytes, range.size() - std::min(begin, range.size()))));
    windowBegin = begin;
    if (Status status = range.read(begin, window.data(), window.size()); !status.isOk()) {
      window.clear();
      return status;
    }
  }
  std::memcpy(target, window.data() + (begin - windowBegin), count);
  return Status::ok();
}

Result<std::vector<uint8_t>> ByteRange::readAll() const {
  std::vector<uint8_t> bytes(length);
  TESSERA_RETURN_IF_ERROR(read(0, bytes.data(), bytes.size()));
  return bytes;
}

Result<std::vector<uint8_t>> readWholeFile(const std::string &path) {
  TESSERA_ASSIGN_OR_RETURN(InputFile file, InputFile::open(path));
  return ByteRange(file, 0, file.size()).readAll();
}

} // namespace tessera
