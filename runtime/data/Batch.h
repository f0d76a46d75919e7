//===- Batch.h - what a step wants to be fed -----------------------------------===//
//
// The batch of a step over all ranks: its tensors, how samples lie in them, and which part belongs to a rank. Sample p
// of a run is row p modulo the batch of some step, on however many ranks it runs. In the memory of the host a batch is
// row after row, whichever dimension of the tensor counts samples; only a rank's part has the order of its dimensions.
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

/// Some elements of a sample, by their number in row-major order.
struct ElementRange {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
  bool operator==(const ElementRange &) const = default;
};
/// In order, none empty, and none touches the next.
using ElementRanges = std::vector<ElementRange>;

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
  std::vector<int64_t> globalShape;
  std::vector<artifact::DimRole> dims; ///< what each dimension counts
  int64_t indexBound = -1;             ///< Values are in [0, indexBound); -1: any.
  int64_t ignoreIndex = std::numeric_limits<int64_t>::min();
  std::vector<IndexPart> indexParts; ///< What must hold of some elements besides.
  bool hasRuns = false;              ///< Along the last dimension of a sample, equal elements must lie side by side.

  /// The dimension that counts samples, or -1.
  int64_t sampleDim() const;
  /// No dimension counts samples: the tensor is the same in all steps.
  bool isShared() const { return sampleDim() < 0; }
  bool hasMicroBatches() const { return !dims.empty() && dims[0] == artifact::DimRole::MicroBatch; }
  int64_t accumulate() const { return hasMicroBatches() ? globalShape[0] : 1; }
  int64_t batch() const { return isShared() ? 1 : globalShape[sampleDim()]; }
  /// Samples of one step; 1 of a shared tensor.
  int64_t rows() const { return accumulate() * batch(); }
  /// The other dimensions, in their order.
  std::vector<int64_t> sampleShape() const;
  size_t sampleBytes() const;
  size_t globalBytes() const { return rows() * sampleBytes(); }
};

/// The batch table of a program, by its number, checked: equal numbers of samples, known dimensions.
Result<std::vector<BatchSpec>> batchSpecs(const Artifact &artifact, size_t program = trainingProgram);

/// Samples that one step reads.
int64_t rowsPerStep(const std::vector<BatchSpec> &specs);

/// A rank has the `position`-th of `parts` equal ranges of a dimension; in a zigzag, of twice as many ranges, that one
/// and the one as far from the end.
struct DimPart {
  int64_t dim, parts, position;
  bool isZigzag = false;
};
/// What a rank has of tensor number `tensor` of the batch table of a program.
std::vector<DimPart> rankParts(const Artifact &artifact, size_t tensor, int rank, size_t program = trainingProgram);

/// Copies a rank's part out of `rows`, all rows of a batch tensor. `target` is contiguous, dimensions in their order.
void copyRankPart(const BatchSpec &spec, const uint8_t *rows, const std::vector<DimPart> &parts, void *target);

/// An element of a sample that has a value it must not have.
struct BadIndex {
  int64_t element, value, bound;
};
/// The first one that `spec` forbids, of the elements in `read`; others are not looked at.
std::optional<BadIndex> findBadIndex(const BatchSpec &spec, const uint8_t *sample, const ElementRanges &read);

/// An element of a sample that has come before, but not right before.
struct ApartElement {
  int64_t element, value;
};
/// The first one, where equal elements of `spec` must lie side by side. `sample` is whole.
std::optional<ApartElement> findApart(const BatchSpec &spec, const uint8_t *sample);

} // namespace tessera

#endif // TESSERA_RUNTIME_DATA_BATCH_H
