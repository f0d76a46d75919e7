//===- DataFolder.cpp - the data files of a folder --------------------------===//

#include "runtime/data/DataFolder.h"

#include "runtime/base/File.h"
#include "runtime/base/Log.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <sys/stat.h>

namespace fs = std::filesystem;

namespace tessera {

bool isTextEnding(const std::string &ending) { return ending == ".txt" || ending == ".json" || ending == ".jsonl"; }

namespace {

/// One look through a folder.
class Search {
public:
  explicit Search(DataFolder &found) : found(found) {}
  Status run(const std::string &root);

private:
  using Identity = std::pair<dev_t, ino_t>;

  /// Adds the files below a folder; links wait until everything else is known.
  Status addFolder(const std::string &path, const struct stat &info);
  Status followLink(const std::string &path);
  void addFile(const std::string &path, const struct stat &info);
  /// Whether it is to be read under this path. Several names of one file that are no links are several files.
  bool isNew(const std::string &path, const struct stat &info);

  DataFolder &found;
  std::map<Identity, std::string> known; ///< Files and folders, by the path under which they are read.
  std::set<std::string> links;           ///< To follow, in order.
  bool isFollowing = false;              ///< What comes now was reached through a link.
};

} // namespace

static Status linkNowhere(const std::string &path, int errorNumber) {
  std::error_code ignored;
  std::string target = fs::read_symlink(path, ignored).string();
  if (errorNumber == ENOENT)
    return TESSERA_ERROR(NotFound, "'" + path + "' is a link to '" + target + "', which does not exist");
  return systemError("follow the link", path, errorNumber);
}

Status Search::run(const std::string &root) {
  struct stat info;
  if (::stat(root.c_str(), &info) != 0)
    return systemError("read folder", root, errno);
  TESSERA_RETURN_IF_ERROR(addFolder(root, info));
  while (!links.empty()) {
    isFollowing = true;
    std::string path = *links.begin();
    links.erase(links.begin());
    TESSERA_RETURN_IF_ERROR(followLink(path));
  }
  std::sort(found.texts.begin(), found.texts.end());
  std::sort(found.tokens.begin(), found.tokens.end());
  return Status::ok();
}

Status Search::addFolder(const std::string &path, const struct stat &info) {
  if (!isNew(path, info))
    return Status::ok();
  std::error_code error;
  fs::directory_iterator iterator(path, error), end;
  for (; !error && iterator != end; iterator.increment(error)) {
    std::string entry = iterator->path().string();
    struct stat inner;
    if (::lstat(entry.c_str(), &inner) != 0)
      return systemError("read", entry, errno);
    if (S_ISLNK(inner.st_mode))
      links.insert(entry);
    else if (S_ISDIR(inner.st_mode))
      TESSERA_RETURN_IF_ERROR(addFolder(entry, inner));
    else if (S_ISREG(inner.st_mode))
      addFile(entry, inner);
  }
  if (error)
    return TESSERA_ERROR(IoError, "cannot read folder '" + path + "': " + error.message());
  return Status::ok();
}

Status Search::followLink(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return linkNowhere(path, errno);
  if (S_ISDIR(info.st_mode))
    return addFolder(path, info);
  if (S_ISREG(info.st_mode))
    addFile(path, info);
  return Status::ok();
}

void Search::addFile(const std::string &path, const struct stat &info) {
  std::string ending = fs::path(path).extension().string();
  bool isText = isTextEnding(ending);
  if (!isText && ending != ".bin") {
    ++found.others;
    return;
  }
  if (isNew(path, info))
    (isText ? found.texts : found.tokens).push_back(path);
}

bool Search::isNew(const std::string &path, const struct stat &info) {
  auto [entry, isFirst] = known.emplace(Identity{info.st_dev, info.st_ino}, path);
  if (isFirst || !isFollowing)
    return true;
  log::info("data '{}' is a link to what is read as '{}', or lies behind one, and is not read again", path,
            entry->second);
  return false;
}

Result<DataFolder> DataFolder::find(const std::string &path) {
  DataFolder found;
  TESSERA_RETURN_IF_ERROR(Search(found).run(path));
  return found;
}

} // namespace tessera
