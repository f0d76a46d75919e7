//===- EvenBlocks.h - blocks of a long row that stand for all of it ---------===//

#ifndef TESSERA_RUNTIME_BASE_EVENBLOCKS_H
#define TESSERA_RUNTIME_BASE_EVENBLOCKS_H

#include "runtime/base/Status.h"

#include <algorithm>
#include <cstdint>

namespace tessera {

/// Calls `visit(begin, count)` for parts of a row of `total` elements, in order, each at most `block` long: for all of
/// it, or, if it is longer than `limit`, for about `limit` elements at even distances, the first and the last among
/// them. Ends with the first error of `visit`.
template <typename Visit> Status forEvenBlocks(uint64_t total, uint64_t block, uint64_t limit, Visit visit) {
  block = std::min(block, std::max<uint64_t>(limit, 1));
  const bool isWhole = total <= limit;
  const uint64_t blocks = isWhole ? (total + block - 1) / block : std::max<uint64_t>(limit / block, 1);
  const uint64_t distance = isWhole ? block : (total - block) / std::max<uint64_t>(blocks - 1, 1);
  for (uint64_t index = 0; index < blocks; ++index) {
    uint64_t begin = !isWhole && index > 0 && index + 1 == blocks ? total - block : index * distance;
    TESSERA_RETURN_IF_ERROR(visit(begin, std::min(block, total - begin)));
  }
  return Status::ok();
}

} // namespace tessera

#endif // TESSERA_RUNTIME_BASE_EVENBLOCKS_H
