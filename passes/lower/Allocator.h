//===- Allocator.h - offsets for allocations of known lifetimes -*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_ALLOCATOR_H
#define TESSERA_PASSES_LOWER_ALLOCATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>

namespace tessera::lower {

/// An allocation that is live from position `first` to position `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0;
  int64_t last = 0;
};

struct Placement {
  llvm::SmallVector<int64_t> offsets; ///< one per lifetime, multiples of the alignment
  int64_t bytes = 0;                  ///< end of the highest allocation
};

/// Most bytes that are live at one position, sizes rounded up to the alignment: no placement can be smaller.
int64_t peakLiveBytes(llvm::ArrayRef<Lifetime> lifetimes, int64_t alignment);

/// Places the allocations so that no two overlap in time and memory. Best fit in several orders, of which the smallest
/// result is kept and then improved as long as that is cheap. Deterministic.
Placement placeAllocations(llvm::ArrayRef<Lifetime> lifetimes, int64_t alignment);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_ALLOCATOR_H
