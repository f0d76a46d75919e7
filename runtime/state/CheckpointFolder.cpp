//===- CheckpointFolder.cpp - the checkpoints of a run ---------------------------===//

#include "runtime/state/CheckpointFolder.h"

#include "runtime/base/InputFile.h"
#include "runtime/base/Log.h"
#include "runtime/state/Checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <tuple>
#include <vector>

namespace fs = std::filesystem;

namespace tessera {

static constexpr const char *checkpointPrefix = "ckpt-";
static constexpr const char *latestName = "latest", *bestName = "best";
/// A checkpoint that is being replaced: `.ckpt-<step>.old`.
static constexpr const char *replacedEnding = ".old";

std::string checkpointName(uint64_t step) { return checkpointPrefix + std::to_string(step); }

std::optional<uint64_t> stepOfCheckpoint(const std::string &name) {
  std::string digits = name.starts_with(checkpointPrefix) ? name.substr(std::strlen(checkpointPrefix)) : "";
  if (digits.empty() || digits.size() > 18 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoull(digits);
}

Result<fs::path> makeTemporaryCheckpoint(const std::string &folder, const std::string &name) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return systemError("create", folder, error.value());
  fs::path temporary = temporaryName((fs::path(folder) / ("." + name)).string());
  if (!fs::create_directory(temporary, error))
    return systemError("create", temporary.string(), error ? error.value() : EEXIST);
  return temporary;
}

static fs::path replacedPath(const fs::path &target) {
  return target.parent_path() / ("." + target.filename().string() + replacedEnding);
}

/// `temporary` takes the place of the folder `target` and of its name.
static Status replaceFolder(const fs::path &temporary, const fs::path &target) {
  if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0)
    return Status::ok();
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
    return systemError("write", target.string(), errno);
  // This file system (NFS, Lustre) cannot exchange two names.
  fs::path aside = replacedPath(target);
  if (::rename(target.c_str(), aside.c_str()) != 0)
    return systemError("write", target.string(), errno);
  if (::rename(temporary.c_str(), target.c_str()) != 0) {
    int failure = errno;
    ::rename(aside.c_str(), target.c_str());
    return systemError("write", target.string(), failure);
  }
  std::error_code error;
  fs::remove_all(aside, error);
  return Status::ok();
}

Status publishCheckpoint(const fs::path &temporary, const fs::path &target) {
  std::error_code error;
  if (fs::exists(target, error))
    TESSERA_RETURN_IF_ERROR(replaceFolder(temporary, target));
  else if (::rename(temporary.c_str(), target.c_str()) != 0)
    return systemError("write", target.string(), errno);
  fs::remove_all(temporary, error);
  TESSERA_RETURN_IF_ERROR(syncDirectory(target.parent_path().string()));
  return makeLatest(target);
}

static Status writeName(const fs::path &checkpoint, const char *file) {
  return writeFileAtomically((checkpoint.parent_path() / file).string(), checkpoint.filename().string() + "\n");
}

Status makeLatest(const fs::path &checkpoint) { return writeName(checkpoint, latestName); }

Status makeBest(const fs::path &checkpoint) { return writeName(checkpoint, bestName); }

/// What a file of a folder, such as `latest`, says; empty if there is none or nothing in it.
static std::string readName(const fs::path &file) {
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return "";
  Result<std::vector<uint8_t>> text = readWholeFile(file.string());
  if (!text.isOk())
    return "";
  std::string name(text->begin(), text->end());
  while (!name.empty() && (name.back() == '\n' || name.back() == ' '))
    name.pop_back();
  return name;
}

static std::string readLatest(const fs::path &folder) { return readName(folder / latestName); }

std::optional<uint64_t> bestCheckpoint(const std::string &folder) {
  std::error_code error;
  const std::string name = readName(fs::path(folder) / bestName);
  return fs::exists(fs::path(folder) / name / manifestName, error) ? stepOfCheckpoint(name) : std::nullopt;
}

void forgetBest(const std::string &folder) {
  std::error_code error;
  fs::remove(fs::path(folder) / bestName, error);
}

void removeCheckpoint(const std::string &folder, uint64_t step) {
  const fs::path path = fs::path(folder) / checkpointName(step);
  // Under a hidden name first: a checkpoint is whole or not there.
  const fs::path hidden = temporaryName((fs::path(folder) / ("." + path.filename().string())).string());
  std::error_code error;
  fs::rename(path, hidden, error);
  if (!error)
    fs::remove_all(hidden, error);
  if (error && error != std::errc::no_such_file_or_directory)
    log::warn("cannot remove '{}': {}", path.string(), error.message());
}

void removeOldCheckpoints(const std::string &folder, int keep, uint64_t current) {
  std::vector<std::pair<bool, uint64_t>> checkpoints; // oldest first, once they are sorted
  const std::optional<uint64_t> best = bestCheckpoint(folder);
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (auto step = stepOfCheckpoint(entry.path().filename().string()))
      checkpoints.emplace_back(*step <= current, *step);
  std::sort(checkpoints.begin(), checkpoints.end());
  if (keep <= 0 || checkpoints.size() <= static_cast<size_t>(keep))
    return;
  checkpoints.resize(checkpoints.size() - keep);
  for (const auto &[isEarlier, step] : checkpoints)
    if (step != best)
      removeCheckpoint(folder, step);
}

Status recoverCheckpoints(const std::string &folder) {
  std::error_code error;
  if (!fs::exists(folder, error))
    return Status::ok();
  std::vector<fs::path> entries;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    entries.push_back(entry.path());
  for (const fs::path &path : entries) {
    std::string name = path.filename().string();
    if (name.starts_with(".") && name.ends_with(replacedEnding)) {
      std::string original = name.substr(1, name.size() - 1 - std::strlen(replacedEnding));
      fs::path target = path.parent_path() / original;
      if (!stepOfCheckpoint(original))
        continue;
      if (!fs::exists(target, error)) {
        if (::rename(path.c_str(), target.c_str()) != 0)
          return systemError("write", target.string(), errno);
        log::warn("a run was killed while it replaced '{}': the old one is restored", target.string());
        continue;
      }
    } else if (!isTemporaryName(name)) {
      continue;
    }
    fs::remove_all(path, error);
    if (error)
      return systemError("remove", path.string(), error.value());
  }
  return Status::ok();
}

/// All checkpoints of a folder, newest first: by when they were written, because a run that was resumed at an earlier
/// step writes lower numbers later. The one that `latest` names comes before all others.
/// A folder that does not exist has none; one that cannot be read is an error, as it may have some.
static Result<std::vector<std::string>> checkpointsByAge(const fs::path &folder, const std::string &latest) {
  std::vector<std::tuple<bool, fs::file_time_type, uint64_t, std::string>> found;
  std::error_code error;
  fs::directory_iterator entry(folder, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    auto step = stepOfCheckpoint(name);
    std::error_code none;
    if (!step || fs::is_regular_file(entry->path(), none))
      continue;
    fs::file_time_type time = fs::last_write_time(entry->path() / manifestName, none);
    found.emplace_back(name == latest, none ? fs::file_time_type::min() : time, *step, entry->path().string());
  }
  if (error && error.value() != ENOENT)
    return systemError("read", folder.string(), error.value());
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  paths.reserve(found.size());
  for (const auto &[isLatest, time, step, path] : found)
    paths.push_back(path);
  return paths;
}

Result<std::optional<std::string>> newestWholeCheckpoint(const std::string &folder) {
  TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> paths, checkpointsByAge(folder, readLatest(folder)));
  std::string first;
  for (const std::string &path : paths) {
    Status status = checkCheckpoint(path);
    if (status.isOk())
      return std::optional<std::string>(path);
    log::warn("{}", status.message());
    if (first.empty())
      first = status.message();
  }
  if (paths.empty())
    return std::optional<std::string>();
  return TESSERA_ERROR(DataLoss, "none of the " + std::to_string(paths.size()) + " checkpoints in '" + folder +
                                     "' is complete: " + first);
}

/// The advice of an error: another checkpoint that can be resumed.
static std::string otherCheckpoint(const fs::path &folder) {
  Result<std::vector<std::string>> paths = checkpointsByAge(folder, "");
  if (!paths.isOk())
    return "";
  for (const std::string &path : *paths)
    if (checkCheckpoint(path).isOk())
      return "; the newest whole checkpoint is '" + path + "'";
  return "; there is no other whole checkpoint";
}

Result<std::string> findCheckpoint(const std::string &path) {
  std::error_code error;
  fs::path folder(path);
  // The file `latest` or `best` itself, or the first of them in a folder.
  const bool isFile =
      fs::is_regular_file(folder, error) && (folder.filename() == latestName || folder.filename() == bestName);
  const fs::path file = isFile ? folder : folder / latestName;
  if (isFile)
    folder = folder.parent_path();
  else if (!fs::is_directory(folder, error))
    return TESSERA_ERROR(NotFound, "no checkpoint at '" + path + "': not a folder");
  if (!isFile && fs::exists(folder / manifestName, error))
    return path;
  if (!fs::exists(file, error)) {
    TESSERA_ASSIGN_OR_RETURN(std::vector<std::string> paths, checkpointsByAge(folder, ""));
    std::string others = paths.empty() ? "" : otherCheckpoint(folder);
    return TESSERA_ERROR(NotFound, "no checkpoint at '" + path + "': it has neither " + manifestName + " nor a file '" +
                                       latestName + "'" + others);
  }
  std::string name = readName(file);
  if (!stepOfCheckpoint(name))
    return TESSERA_ERROR(DataLoss, "'" + file.string() + "' does not name a checkpoint" + otherCheckpoint(folder));
  if (!fs::exists(folder / name / manifestName, error))
    return TESSERA_ERROR(NotFound, "'" + file.string() + "' names '" + name + "', which is missing or has no " +
                                       manifestName + otherCheckpoint(folder));
  return (folder / name).string();
}

} // namespace tessera
