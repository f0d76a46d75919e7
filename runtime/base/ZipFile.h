//===- ZipFile.h - members of a zip archive at their place in it ---------------===//
//
// For archives whose large members are stored, not compressed, such as PyTorch's: a member is then a range of the file,
// and each rank reads what it needs of it. Small ones may be deflated. Archives are untrusted: nothing outside the file
// is read. Checksums are not compared, as in PyTorch, which may leave them out.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_ZIPFILE_H
#define TESSERA_RUNTIME_BASE_ZIPFILE_H

#include "runtime/base/InputFile.h"

#include <map>

namespace tessera {

class ZipFile {
public:
  struct Member {
    uint64_t header = 0;                 ///< Where its local header begins, as the directory says.
    uint64_t bytes = 0, packedBytes = 0; ///< of the content, and of what is stored of it
    uint16_t method = 0;                 ///< 0 is stored, 8 deflated.
    bool isEncrypted = false;
    uint32_t checksum = 0; ///< Of the content, as the directory says.
  };

  /// Whether the file begins as a zip archive does. False for what cannot be read.
  static bool isZip(const std::string &path);
  /// Reads the directory of the archive.
  static Result<ZipFile> open(const std::string &path);

  const InputFile &archive() const { return file; }
  /// By name, without folders.
  const std::map<std::string, Member> &members() const { return entries; }
  /// The bytes of a member that is in `members`. Errors: compressed, encrypted, not inside the file.
  Result<ByteRange> locate(const std::string &name) const;
  /// The content of a member that is in `members`, stored or deflated. Errors: more than `limit` bytes, compressed in
  /// another way, encrypted, not inside the file, damaged.
  Result<std::vector<uint8_t>> read(const std::string &name, uint64_t limit) const;

private:
  Status readDirectory();
  /// What the archive holds of a member, compressed or not.
  Result<ByteRange> packed(const std::string &name, const Member &member) const;
  Status corrupt(const std::string &reason) const;

  InputFile file;
  std::map<std::string, Member> entries;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_ZIPFILE_H
