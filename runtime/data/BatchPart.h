//===- BatchPart.h - what a process reads of a batch ------------------------===//
//
// Ranks in processes of their own read what they compute with: some rows of a batch, and of a sample whose dimensions
// are split (positions, over sequence axes) some ranges of its elements. Threads of one process share what all of them
// need.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_BATCHPART_H
#define TESSERA_RUNTIME_DATA_BATCHPART_H

#include "runtime/data/Batch.h"

#include <span>

namespace tessera {

/// The union of ranges that may be in any order.
ElementRanges unionOf(ElementRanges ranges);

/// The elements of a sample, in row-major order, that copyRankPart reads.
ElementRanges rankElements(const BatchSpec &spec, const std::vector<DimPart> &parts);

/// Marks the rows that copyRankPart reads; none of a shared tensor.
void markRankRows(const BatchSpec &spec, const std::vector<DimPart> &parts, std::vector<bool> &rows);

/// What is read of the batches of a program.
struct BatchPart {
  std::vector<bool> rows;              ///< Of a batch; empty: all. Others stay zero.
  std::vector<ElementRanges> elements; ///< Of a sample, for each batch tensor; empty: all. Others stay zero.
};

/// What some ranks need together.
BatchPart partOfRanks(const Artifact &artifact, const std::vector<BatchSpec> &specs, std::span<const int> ranks,
                      size_t program = trainingProgram);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_BATCHPART_H
