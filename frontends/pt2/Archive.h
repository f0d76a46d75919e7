//===- Archive.h - the zip archive of an exported program -------*- C++ -*-===//
//
// Entries of a .pt2 file by name, with limits against archives that claim more than they hold. Nothing is written to
// disk, and names are only compared.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_ARCHIVE_H
#define TESSERA_FRONTENDS_PT2_ARCHIVE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

struct zip;

namespace tessera::pt2 {

/// Open for reading. Not for use by several threads at once.
class Archive {
public:
  /// Opens a file and checks that it is a PT2 archive of a version that this reader knows.
  static llvm::Expected<Archive> open(const std::string &path);
  /// The same of bytes, which must outlive the archive. `name` stands for the file in messages.
  static llvm::Expected<Archive> openBytes(llvm::StringRef bytes, std::string name);

  /// The file's name as it was given.
  const std::string &file() const { return name; }
  /// Names of programs ("models/<name>.json"), sorted.
  std::vector<std::string> models() const;

  /// Names are without the archive's root folder: "data/weights/weight_0".
  bool has(llvm::StringRef entry) const { return entries.count(entry.str()); }
  /// Whether some entry starts so.
  bool hasPrefix(llvm::StringRef prefix) const;
  /// Bytes of an entry, if there is one.
  std::optional<uint64_t> size(llvm::StringRef entry) const;

  llvm::Expected<std::vector<char>> read(llvm::StringRef entry) const;
  /// An entry that is text, of bounded size.
  llvm::Expected<std::string> readText(llvm::StringRef entry) const;

private:
  struct Entry {
    uint64_t index, bytes;
  };
  struct Close {
    void operator()(zip *archive) const;
  };

  std::string name;
  std::unique_ptr<zip, Close> handle;
  std::map<std::string, Entry> entries;

  llvm::Error list(uint64_t fileBytes);
  llvm::Error checkFormat() const;
  template <typename Bytes> llvm::Error readInto(llvm::StringRef entry, Bytes &bytes) const;
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_ARCHIVE_H
