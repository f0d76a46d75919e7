//===- Fingerprint.h - a number that tells contents apart -------------------===//

#ifndef TESSERA_RUNTIME_BASE_FINGERPRINT_H
#define TESSERA_RUNTIME_BASE_FINGERPRINT_H

#include "runtime/base/InputFile.h"

#include <span>

namespace tessera {

/// 64 bits of XXH3 over all that was added, in order. Equal on every machine (of little-endian order).
class Fingerprint {
public:
  void add(const void *bytes, size_t count);
  void add(uint64_t number) { add(&number, sizeof(number)); }
  void add(std::string_view text) {
    add(text.size());
    add(text.data(), text.size());
  }
  /// Adds the sizes of `parts` and their bytes: all of them, or, if they are more than `limit` together, about 4 MiB in
  /// blocks at even distances. Errors: of reading.
  Status addContent(std::span<const ByteRange> parts, uint64_t limit);

  /// 16 hexadecimal digits.
  std::string text() const;

private:
  uint64_t hash = 0;
};

/// How much of a long content a fingerprint reads, in bytes, and in blocks of what size.
inline constexpr uint64_t fingerprintBytes = uint64_t{4} << 20;
inline constexpr uint64_t fingerprintBlock = uint64_t{64} << 10;

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_FINGERPRINT_H
