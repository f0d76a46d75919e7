//===- Batch.h - what a step wants to be fed -----------------------------------===//
//
// The batch of a step over all ranks: its tensors, how samples lie in them, and which rows belong to a rank. Sample p
// of a run is row p modulo the batch of some step, on however many ranks it runs.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_DATA_BATCH_H
#define TESSERA_RUNTIME_DATA_BATCH_H

#include "runtime/artifact/Reader.h"
#include "runtime/state/DataTypes.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

/// What must hold of elements of a sample that are read as indices.
struct IndexPart {
  int64_t bound = 0;                                         ///< values are in [0, bound)
  int64_t ignoreIndex = std::numeric_limits<int64_t>::min(); ///< but for this one
  std::vector<int64_t> starts, limits, strides;              ///< a box of the sample, in its dimensions
};

/// One entry of the program's batch table.
struct BatchSpec {
  std::string name;
  artifact::BatchRole role = artifact::BatchRole::Input;
  DataType dtype = DataType::I32;
  std::vector<int64_t> globalShape; ///< [accumulate,] batch, sample…
  int64_t batchDim = 0;
  int64_t indexBound = -1; ///< Values are in [0, indexBound); -1: any.
  int64_t ignoreIndex = std::numeric_limits<int64_t>::min();
  std::vector<IndexPart> indexParts; ///< What must hold of some elements besides.

  int64_t accumulate() const { return batchDim == 1 ? globalShape[0] : 1; }
  int64_t batch() const { return globalShape[batchDim]; }
  /// Samples of one step.
  int64_t rows() const { return accumulate() * batch(); }
  std::vector<int64_t> sampleShape() const { return {globalShape.begin() + batchDim + 1, globalShape.end()}; }
  size_t sampleBytes() const;
  size_t globalBytes() const { return rows() * sampleBytes(); }
};

/// The batch table of a program, by its number, checked: equal numbers of samples, known dimensions.
Result<std::vector<BatchSpec>> batchSpecs(const Artifact &artifact, size_t program = trainingProgram);

/// Copies the rows of a rank out of a whole batch tensor: of each micro-batch the `position`-th of `groupSize` equal
/// parts. `target` is contiguous.
void copyRankPart(const BatchSpec &spec, const uint8_t *global, int64_t groupSize, int64_t position, void *target);

/// Marks the rows that copyRankPart copies.
void markRankRows(const BatchSpec &spec, int64_t groupSize, int64_t position, std::vector<bool> &rows);

/// An element of a sample that has a value it must not have.
struct BadIndex {
  int64_t element, value, bound;
};
/// The first one that `spec` forbids.
std::optional<BadIndex> findBadIndex(const BatchSpec &spec, const uint8_t *sample);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_BATCH_H
