//===- TokenWidth.cpp - whether a token file is of the width it is read with ===//

#include "runtime/data/TokenWidth.h"

#include "runtime/base/EvenBlocks.h"

namespace tessera {

static constexpr uint64_t pairBytes = 4, minPairs = 64;
static constexpr uint64_t blockPairs = 1024, sampledPairs = 64 * blockPairs;

Result<bool> looksLikeWideTokens(const InputFile &file) {
  const uint64_t pairs = file.size() / pairBytes;
  if (file.size() % pairBytes != 0 || pairs < minPairs)
    return false;
  std::vector<uint8_t> block(blockPairs * pairBytes);
  uint64_t read = 0, withLow = 0, withHigh = 0;
  TESSERA_RETURN_IF_ERROR(forEvenBlocks(pairs, blockPairs, sampledPairs, [&](uint64_t begin, uint64_t count) -> Status {
    if (withHigh > 0)
      return Status::ok();
    TESSERA_RETURN_IF_ERROR(file.read(begin * pairBytes, block.data(), count * pairBytes));
    for (const uint8_t *pair = block.data(); pair < block.data() + count * pairBytes; pair += pairBytes) {
      withLow += (pair[0] | pair[1]) != 0;
      withHigh += (pair[2] | pair[3]) != 0;
    }
    read += count;
    return Status::ok();
  }));
  // A row of one token 0 in two is no text; nor is a file of zeros, which has any width.
  return withHigh == 0 && withLow >= read / 2;
}

} // namespace tessera
