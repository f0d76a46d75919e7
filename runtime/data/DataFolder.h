//===- DataFolder.h - the data files of a folder ----------------------------===//
//
// Links to files and folders are followed. What is inside the folder itself is read under its own path; what is only
// reached through links is read once, under the first path. A link that leads back is named in the log.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_DATAFOLDER_H
#define TESSERA_RUNTIME_DATA_DATAFOLDER_H

#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace tessera {

struct DataFolder {
  std::vector<std::string> texts, tokens; ///< Paths in order: .txt, .json, .jsonl; .bin.
  size_t others = 0;                      ///< Files of other endings.

  /// Looks through a folder, recursively. Errors: a folder that cannot be read, a link that leads nowhere.
  static Result<DataFolder> find(const std::string &path);
};

/// .txt, .json or .jsonl.
bool isTextEnding(const std::string &ending);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_DATAFOLDER_H
