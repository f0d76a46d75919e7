//===- Safetensors.h - reads and writes .safetensors files -------------------===//
//
// The format of checkpoints, weights and dumps: an 8-byte header length, a JSON header, then the tensors' bytes without
// holes. Files are untrusted: everything is checked when one is opened, so that later accesses need no check.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_STATE_SAFETENSORS_H
#define TESSERA_RUNTIME_STATE_SAFETENSORS_H

#include "runtime/base/InputFile.h"
#include "runtime/state/DataTypes.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// A tensor of an open file, which is read when its bytes are.
struct SafetensorsEntry {
  std::string name;
  std::string typeName;          ///< As in the file.
  std::optional<DataType> dtype; ///< None for types that programs do not have (I16, U64, …).
  std::vector<int64_t> shape;
  int64_t elements = 0;
  ByteRange bytes;
};

class SafetensorsFile {
public:
  static Result<SafetensorsFile> open(const std::string &path);
  static Result<SafetensorsFile> open(InputFile file);

  const std::string &path() const { return file.path(); }
  /// Sorted by name.
  const std::map<std::string, SafetensorsEntry> &tensors() const { return entries; }
  const SafetensorsEntry *find(const std::string &name) const;
  const std::map<std::string, std::string> &metadata() const { return meta; }

private:
  Status parse();

  InputFile file;
  std::map<std::string, SafetensorsEntry> entries;
  std::map<std::string, std::string> meta;
};

/// A tensor to write: its bytes in row-major order, in as many pieces as they happen to lie in.
struct SafetensorsTensor {
  std::string name;
  DataType dtype = DataType::F32;
  std::vector<int64_t> shape;
  std::vector<ByteSpan> pieces;
};

struct WrittenFile {
  uint64_t bytes = 0;
  uint64_t hash = 0; ///< XXH3 (64 bits) of the whole file.
};

/// Writes a file atomically: on any failure, a full disk included, nothing is left under `path`.
Result<WrittenFile> writeSafetensors(const std::string &path, const std::vector<SafetensorsTensor> &tensors,
                                     const std::map<std::string, std::string> &metadata = {});

} // namespace tessera

#endif // TESSERA_RUNTIME_STATE_SAFETENSORS_H
