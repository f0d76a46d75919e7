//===- Fingerprint.cpp - a number that tells contents apart -----------------===//

#include "runtime/base/Fingerprint.h"

#include "runtime/base/EvenBlocks.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {

void Fingerprint::add(const void *bytes, size_t count) { hash = XXH3_64bits_withSeed(bytes, count, hash); }

Status Fingerprint::addContent(std::span<const ByteRange> parts, uint64_t limit) {
  std::vector<uint64_t> begins; // of the parts, in the row of all their bytes
  uint64_t total = 0;
  for (const ByteRange &part : parts) {
    begins.push_back(total);
    add(part.size());
    total += part.size();
  }
  std::vector<uint8_t> block(fingerprintBlock);
  return forEvenBlocks(total, fingerprintBlock, total <= limit ? total : fingerprintBytes,
                       [&](uint64_t begin, uint64_t count) -> Status {
                         size_t index = std::upper_bound(begins.begin(), begins.end(), begin) - begins.begin() - 1;
                         for (uint64_t done = 0; done < count; ++index) {
                           uint64_t first = begin + done - begins[index];
                           size_t here = std::min(count - done, parts[index].size() - first);
                           TESSERA_RETURN_IF_ERROR(parts[index].read(first, block.data() + done, here));
                           done += here;
                         }
                         add(block.data(), count);
                         return Status::ok();
                       });
}

std::string Fingerprint::text() const {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

} // namespace tessera
