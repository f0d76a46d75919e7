//===- InputFile.h - files that are read at any place -----------------------===//
//
// What users may change while a run reads it. Nothing is mapped: a file that becomes shorter is then an error of the
// read that misses its bytes, where the access to a mapping would be a signal that ends the process.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_BASE_INPUTFILE_H
#define TESSERA_RUNTIME_BASE_INPUTFILE_H

#include "runtime/base/File.h"

#include <memory>
#include <vector>

namespace tessera {

/// What a process has read of its input files.
struct ReadCount {
  uint64_t calls = 0, bytes = 0;
};

/// A regular file, open for reading. Copies are the same open file, and several threads may read it. At most 128 files
/// of a process have a descriptor at a time; others get one when they are read, if they are still as they were.
class InputFile {
public:
  /// Errors: no such file, no permission, not a regular file.
  static Result<InputFile> open(const std::string &path);

  InputFile() = default;
  const std::string &path() const;
  /// In bytes, when it was opened.
  uint64_t size() const;
  /// Reads `count` bytes from `offset` on. A file whose size is no longer what it was, whether or not the bytes are
  /// still there, is an error.
  Status read(uint64_t offset, void *target, size_t count) const;
  /// An error if the size, or the time of the last change, is no longer what it was.
  Status checkUnchanged() const;
  /// All calls of `read` of the process that asked for bytes, and these.
  static ReadCount readsOfProcess();

private:
  struct State;
  std::shared_ptr<State> state;
};

/// Bytes in memory, which must outlive this, or of a file, which stays open.
class ByteRange {
public:
  ByteRange() = default;
  explicit ByteRange(ByteSpan memory) : memory(memory), length(memory.size()) {}
  /// The range must lie inside the file.
  ByteRange(InputFile file, uint64_t offset, uint64_t length)
      : file(std::move(file)), offset(offset), length(length), isInFile(true) {}

  uint64_t size() const { return length; }
  /// Copies `count` bytes from `begin` on, which must lie inside. Errors: as of InputFile::read.
  Status read(uint64_t begin, void *target, size_t count) const;
  /// All of them.
  Result<std::vector<uint8_t>> readAll() const;
  /// `count` bytes from `begin` on, which must lie inside.
  ByteRange part(uint64_t begin, uint64_t count) const;

private:
  InputFile file;
  ByteSpan memory;
  uint64_t offset = 0, length = 0;
  bool isInFile = false;
};

/// Reads many small pieces of a range, one behind the other, with few calls of the system: what a call brings is kept
/// for the pieces that follow. Must not outlive the range.
class PieceReader {
public:
  /// Of a single piece nothing is worth keeping: `isOne` reads it alone.
  explicit PieceReader(const ByteRange &range, bool isOne = false) : range(range), isOne(isOne) {}
  /// As ByteRange::read.
  Status read(uint64_t begin, void *target, size_t count);

private:
  const ByteRange &range;
  bool isOne;
  std::vector<uint8_t> window;
  uint64_t windowBegin = 0;
};

/// The content of a small file.
Result<std::vector<uint8_t>> readWholeFile(const std::string &path);

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_INPUTFILE_H
