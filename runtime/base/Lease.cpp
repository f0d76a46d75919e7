//===- Lease.cpp - one process per folder ----------------------------------===//

#include "runtime/base/Lease.h"

#include "runtime/base/File.h"
#include "runtime/base/Guard.h"
#include "runtime/base/Log.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tessera {
namespace {

using Clock = std::chrono::steady_clock;
using Fields = std::map<std::string, std::string>;

/// How long a taker waits before it looks whether another one was later: longer than it takes from the last look at the
/// old file to its replacement.
constexpr std::chrono::milliseconds settleTime{500};
constexpr std::chrono::milliseconds lookInterval{200};
/// How often one finds a file that is gone when one looks at it.
constexpr int maxTries = 20;

std::string firstWord(const std::string &path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

std::string get(const Fields &fields, const char *name) {
  auto found = fields.find(name);
  return found == fields.end() ? "" : found->second;
}

/// In ticks since the machine was started; empty: there is no such process.
std::string startOfProcess(long process) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/stat");
  std::string text((std::istreambuf_iterator<char>(stream)), {});
  size_t end = text.rfind(')'); // the name before it may hold anything
  if (end == std::string::npos)
    return "";
  std::istringstream rest(text.substr(end + 1));
  std::string word, state;
  for (int field = 3; field <= 22 && rest >> word; ++field)
    if (field == 3)
      state = word;
  return state == "Z" || state == "X" ? "" : word; // one that has ended and was not waited for
}

/// Where the number of a process means the same process; empty if /proc, which is of another space, does not tell.
std::string processSpace() {
  std::error_code error;
  if (std::filesystem::read_symlink("/proc/self", error).string() != std::to_string(::getpid()))
    return "";
  return firstWord("/proc/sys/kernel/random/boot_id") + "/" +
         std::filesystem::read_symlink("/proc/self/ns/pid", error).string();
}

std::string hostName() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name;
}

std::string newIdentity() {
  std::random_device random;
  char text[40];
  std::snprintf(text, sizeof(text), "%08x%08x%08x%08x", random(), random(), random(), random());
  return text;
}

std::string beatLine(uint64_t count) {
  char text[40];
  std::snprintf(text, sizeof(text), "beat %012llu\n", static_cast<unsigned long long>(count));
  return text;
}

/// Lines "<name> <value>"; the first is the counter, so that it has a fixed place.
std::string describeSelf(const std::string &id) {
  char since[40];
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::strftime(since, sizeof(since), "%Y-%m-%dT%H:%M:%SZ", ::gmtime_r(&now, &parts));
  const char *job = std::getenv("SLURM_JOB_ID");
  return beatLine(0) + "id " + id + "\nhost " + hostName() + "\npid " + std::to_string(::getpid()) + "\nspace " +
         processSpace() + "\nstarted " + startOfProcess(::getpid()) + "\nsince " + since + "\n" +
         (job ? "job " + std::string(job) + "\n" : "");
}

/// What the file says; nothing if there is none. Opened anew each time: that is when NFS asks the server.
Result<std::optional<Fields>> readLease(const std::string &path) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOENT)
    return std::optional<Fields>();
  if (descriptor < 0)
    return systemError("read", path, errno);
  char text[4096];
  ssize_t count = ::read(descriptor, text, sizeof(text));
  int error = errno;
  ::close(descriptor);
  if (count < 0)
    return systemError("read", path, error);
  Fields fields;
  std::istringstream lines(std::string(text, static_cast<size_t>(count)));
  for (std::string line; std::getline(lines, line);)
    if (size_t space = line.find(' '); space != std::string::npos)
      fields[line.substr(0, space)] = line.substr(space + 1);
  return std::optional<Fields>(std::move(fields));
}

std::string describeHolder(const Fields &holder) {
  if (get(holder, "pid").empty())
    return "a process that has not said who it is";
  std::string text = "process " + get(holder, "pid") + " on host '" + get(holder, "host") + "'";
  if (std::string job = get(holder, "job"); !job.empty())
    text += " (Slurm job " + job + ")";
  return text + " since " + get(holder, "since");
}

/// Whether the holder's process can be looked for here, and runs; nothing: it cannot be told.
std::optional<bool> isAlive(const Fields &holder) {
  std::string space = processSpace();
  if (space.empty() || get(holder, "space") != space)
    return std::nullopt;
  long process = std::strtol(get(holder, "pid").c_str(), nullptr, 10);
  std::string started = get(holder, "started"), now = process > 0 ? startOfProcess(process) : "";
  // /proc may hide the processes of other users (hidepid), but not that there is one of this number.
  if (now.empty() && process > 0 && ::kill(static_cast<pid_t>(process), 0) != 0 && errno == EPERM)
    return std::nullopt;
  return !started.empty() && now == started;
}

class Acquisition {
public:
  Acquisition(const std::string &path, const LeaseOptions &options)
      : path(path), folder(std::filesystem::path(path).parent_path().string()), temporary(temporaryName(path)),
        id(newIdentity()), options(options) {}
  ~Acquisition() {
    ::unlink(temporary.c_str());
    if (descriptor >= 0)
      ::close(descriptor);
  }

  /// The descriptor of the file that this process has made at `path`.
  Result<int> run() {
    TESSERA_RETURN_IF_ERROR(writeOwn());
    for (int tries = 0;; ++tries) {
      TESSERA_ASSIGN_OR_RETURN(bool made, tryLink());
      if (made)
        return std::exchange(descriptor, -1);
      TESSERA_ASSIGN_OR_RETURN(std::optional<Fields> holder, readLease(path));
      if (!holder && tries == maxTries) // a link that leads nowhere, say
        return TESSERA_ERROR(IoError, "cannot write '" + path + "': something there can be neither read nor replaced");
      if (!holder) { // released just now
        std::this_thread::sleep_for(lookInterval / maxTries);
        continue;
      }
      TESSERA_ASSIGN_OR_RETURN(bool isGone, waitForEnd(*holder));
      if (!isGone)
        continue;
      TESSERA_RETURN_IF_ERROR(replace(*holder));
      return std::exchange(descriptor, -1);
    }
  }
  const std::string &identity() const { return id; }

private:
  Status inUse(const Fields &holder, const std::string &advice) const {
    return TESSERA_ERROR(InvalidArgument,
                         "run folder '" + folder + "' is in use by " + describeHolder(holder) + advice);
  }

  Status writeOwn() {
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return descriptor < 0 ? systemError("write", path, errno) : writeTo(descriptor);
  }

  Status writeTo(int file) const {
    std::string text = describeSelf(id);
    ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0 && written < static_cast<ssize_t>(text.size()))
      return systemError("write", path, ENOSPC);
    return written < 0 || ::fsync(file) != 0 ? systemError("write", path, errno) : Status::ok();
  }

  /// By the number of names rather than by what link(2) says: over NFS an answer may be lost.
  Result<bool> tryLink() {
    int failed = ::link(temporary.c_str(), path.c_str()) != 0 ? errno : 0;
    struct stat info;
    if (::fstat(descriptor, &info) == 0 && info.st_nlink == 2)
      return true;
    if (failed == EEXIST)
      return false;
    if (failed == ENOENT) { // who has the folder now took the file for what a killed process left
      ::close(std::exchange(descriptor, -1));
      TESSERA_RETURN_IF_ERROR(writeOwn());
      return false;
    }
    if (failed == EPERM || failed == EOPNOTSUPP || failed == ENOSYS || failed == EMLINK) { // no hard links here
      if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
        return true;
      failed = errno;
      if (failed == EINVAL || failed == ENOSYS || failed == EOPNOTSUPP) // nor such renames, as in user space
        return tryCreate();
      if (failed == EEXIST)
        return false;
    }
    return systemError("write", path, failed ? failed : EIO);
  }

  /// Others may read the file before it is whole: it then names nobody, which is a holder, too.
  Result<bool> tryCreate() {
    int made = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (made < 0 && errno == EEXIST)
      return false;
    if (made < 0)
      return systemError("write", path, errno);
    ::close(std::exchange(descriptor, made));
    if (Status status = writeTo(descriptor); !status.isOk()) {
      ::unlink(path.c_str());
      return status;
    }
    return true;
  }

  /// True once the holder is taken to have ended, false if its file has changed hands meanwhile.
  Result<bool> waitForEnd(const Fields &holder) const {
    std::optional<bool> alive = isAlive(holder);
    if (alive.value_or(false))
      return inUse(holder, "");
    if (alive)
      return true;
    char seconds[32];
    std::snprintf(seconds, sizeof(seconds), "%g", options.staleSeconds);
    if (!options.takesOver)
      return inUse(holder, "; if that run has ended, --take-over takes the folder after " + std::string(seconds) +
                               " s without a sign of life");
    log::info("run folder '{}' is held by {}: waits {} s for a sign of life before taking it over", folder,
              describeHolder(holder), seconds);
    for (Clock::time_point begin = Clock::now();
         std::chrono::duration<double>(Clock::now() - begin).count() < options.staleSeconds;) {
      if (options.stopSignal && options.stopSignal->load() != 0)
        return TESSERA_ERROR(Aborted, "asked to end by signal " + std::to_string(options.stopSignal->load()));
      std::this_thread::sleep_for(lookInterval);
      TESSERA_ASSIGN_OR_RETURN(std::optional<Fields> now, readLease(path));
      if (!now || get(*now, "id") != get(holder, "id"))
        return false;
      if (*now != holder)
        return inUse(*now, ", which shows signs of life");
    }
    return true;
  }

  /// Puts this process's file in the place of one whose holder has ended. Of several that do so at once the last wins.
  Status replace(const Fields &holder) {
    TESSERA_ASSIGN_OR_RETURN(std::optional<Fields> now, readLease(path));
    if (now && *now != holder)
      return inUse(*now, ", which was faster");
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      return systemError("write", path, errno);
    std::this_thread::sleep_for(settleTime);
    TESSERA_ASSIGN_OR_RETURN(now, readLease(path));
    if (!now || get(*now, "id") != id)
      return inUse(now.value_or(Fields()), ", which was faster");
    return Status::ok();
  }

  const std::string &path;
  const std::string folder, temporary, id;
  const LeaseOptions &options;
  int descriptor = -1;
};

} // namespace

Result<std::unique_ptr<Lease>> Lease::acquire(const std::string &path, const LeaseOptions &options) {
  Acquisition acquisition(path, options);
  TESSERA_ASSIGN_OR_RETURN(int descriptor, acquisition.run());
  std::unique_ptr<Lease> lease(new Lease(path, acquisition.identity(), descriptor, options));
  TESSERA_RETURN_IF_ERROR(lease->begin());
  return lease;
}

Lease::Lease(std::string path, std::string id, int descriptor, const LeaseOptions &options)
    : path(std::move(path)), id(std::move(id)), options(options), descriptor(descriptor) {}

Status Lease::begin() {
  return guarded([this] {
    thread = std::thread([this] {
      Status status = guarded([this] {
        beat();
        return Status::ok();
      });
      if (!status.isOk())
        log::warn("cannot renew '{}', so that others may take this run for dead: {}", path, status.message());
    });
    return Status::ok();
  });
}

Lease::~Lease() {
  release();
  {
    std::lock_guard<std::mutex> lock(mutex);
    changed.notify_all();
  }
  if (thread.joinable())
    thread.join();
  ::close(descriptor);
}

void Lease::beat() {
  std::unique_lock<std::mutex> lock(mutex);
  for (uint64_t count = 1;
       !changed.wait_for(lock, std::chrono::duration<double>(options.beatSeconds), [this] { return isReleased; });
       ++count) {
    lock.unlock();
    // Into the file that was made, by its descriptor: one that has since taken its name is not touched.
    std::string text = beatLine(count);
    if (::pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
        ::fsync(descriptor) != 0)
      log::warn("cannot write '{}', so that others may take this run for dead", path);
    if (Status status = check(); lost) {
      log::warn("{}", status.message());
      return;
    }
    lock.lock();
  }
}

Status Lease::check() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (lost)
      return TESSERA_ERROR(Aborted, lossReason);
    if (isReleased)
      return TESSERA_ERROR(Aborted, "the run folder of '" + path + "' was given back");
  }
  Result<std::optional<Fields>> now = readLease(path);
  if (!now.isOk()) // not to be read at the moment is not taken over
    return Status::ok();
  if (*now && get(**now, "id") == id)
    return Status::ok();
  std::lock_guard<std::mutex> lock(mutex);
  lossReason = *now ? "'" + path + "': the run folder was taken over by " + describeHolder(**now)
                    : "'" + path + "' was removed: the run folder may be in use by another process";
  lost = true;
  return TESSERA_ERROR(Aborted, lossReason);
}

void Lease::release() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (std::exchange(isReleased, true))
      return;
    changed.notify_all();
  }
  Result<std::optional<Fields>> now = readLease(path);
  if (now.isOk() && *now && get(**now, "id") == id)
    ::unlink(path.c_str());
}

} // namespace tessera
