//===- Format.h - the bytes around the FlatBuffer --------------------------===//
//
// An artifact file is a 64-byte header and then the FlatBuffer `Package` of artifact.fbs (identifier "TSRA"). All
// numbers are little endian. The payload starts at byte 64, so that a file read to an aligned address is
// aligned for every type inside it.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_FORMAT_H
#define TESSERA_RUNTIME_ARTIFACT_FORMAT_H

#include <cstddef>
#include <cstdint>

namespace tessera::artifact {

inline constexpr char formatMagic[8] = {'T', 'E', 'S', 'S', 'E', 'R', 'A', '\n'};
inline constexpr uint32_t formatVersion = 16;

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved; ///< 0
  uint64_t payloadBytes;
  uint64_t payloadHash; ///< XXH64 of the payload, seed 0
  uint8_t padding[32];  ///< 0
};
static_assert(sizeof(FileHeader) == 64 && alignof(FileHeader) == 8);

/// Repeats inside each other, and iteration strides of a buffer.
inline constexpr size_t maxRepeatDepth = 4;

/// Streams of a package at most.
inline constexpr uint32_t maxStreams = 16;

/// Arena offsets of slots are multiples of this many bytes; arenas themselves are page aligned.
inline constexpr size_t slotAlignment = 64;

} // namespace tessera::artifact

#endif // TESSERA_RUNTIME_ARTIFACT_FORMAT_H
