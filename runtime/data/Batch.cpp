//===- Batch.cpp - what a step wants to be fed -----------------------------------===//

#include "runtime/data/Batch.h"

#include <cstring>

namespace tessera {

size_t BatchSpec::sampleBytes() const {
  size_t bytes = elementBytes(dtype);
  for (size_t dim = batchDim + 1; dim < globalShape.size(); ++dim)
    bytes *= globalShape[dim];
  return bytes;
}

Result<std::vector<BatchSpec>> batchSpecs(const Artifact &artifact) {
  std::vector<BatchSpec> specs;
  const auto *table = artifact.program().batch();
  if (!table)
    return specs;
  for (const artifact::BatchTensor *entry : *table) {
    BatchSpec spec;
    spec.name = entry->name()->str();
    spec.role = entry->role();
    spec.dtype = entry->dtype();
    if (entry->global_shape())
      spec.globalShape.assign(entry->global_shape()->begin(), entry->global_shape()->end());
    spec.batchDim = entry->batch_dim();
    spec.indexBound = entry->index_bound();
    spec.ignoreIndex = entry->ignore_index();
    bool known = spec.batchDim >= 0 && spec.batchDim <= 1 &&
                 spec.batchDim < static_cast<int64_t>(spec.globalShape.size()) &&
                 checkedElements(spec.globalShape, elementBytes(spec.dtype)).has_value();
    if (!known)
      return TESSERA_ERROR(Unsupported, "batch tensor '" + spec.name + "' of shape " + shapeToString(spec.globalShape) +
                                            " has no batch dimension that data can fill");
    if (!specs.empty() && specs.front().rows() != spec.rows())
      return TESSERA_ERROR(Unsupported, "batch tensors '" + specs.front().name + "' and '" + spec.name +
                                            "' have different numbers of samples");
    int64_t parts = artifact.groupSize(entry->shard_group());
    if (spec.rows() == 0 || spec.batch() % parts != 0)
      return TESSERA_ERROR(DataLoss, "batch tensor '" + spec.name + "' has a batch of " + std::to_string(spec.batch()) +
                                         ", which does not divide by " + std::to_string(parts) + " ranks");
    specs.push_back(std::move(spec));
  }
  return specs;
}

void copyRankPart(const BatchSpec &spec, const uint8_t *global, int64_t groupSize, int64_t position, void *target) {
  size_t microBatch = spec.batch() * spec.sampleBytes(), part = microBatch / groupSize;
  auto *local = static_cast<uint8_t *>(target);
  for (int64_t i = 0; i < spec.accumulate(); ++i)
    std::memcpy(local + i * part, global + i * microBatch + position * part, part);
}

void markRankRows(const BatchSpec &spec, int64_t groupSize, int64_t position, std::vector<bool> &rows) {
  int64_t part = spec.batch() / groupSize;
  rows.resize(spec.rows());
  for (int64_t i = 0; i < spec.accumulate(); ++i)
    for (int64_t row = 0; row < part; ++row)
      rows[i * spec.batch() + position * part + row] = true;
}

template <typename T> static int64_t findBad(const BatchSpec &spec, const uint8_t *sample, int64_t &value) {
  int64_t count = static_cast<int64_t>(spec.sampleBytes() / sizeof(T));
  for (int64_t i = 0; i < count; ++i) {
    T element;
    std::memcpy(&element, sample + i * sizeof(T), sizeof(T));
    value = static_cast<int64_t>(element); // NOLINT(bugprone-signed-char-misuse): a number, not a character
    if ((value < 0 || value >= spec.indexBound) && value != spec.ignoreIndex)
      return i;
  }
  return -1;
}

int64_t findBadIndex(const BatchSpec &spec, const uint8_t *sample, int64_t &value) {
  if (spec.indexBound < 0)
    return -1;
  switch (spec.dtype) {
  case DataType::I64:
    return findBad<int64_t>(spec, sample, value);
  case DataType::I32:
    return findBad<int32_t>(spec, sample, value);
  case DataType::U8:
    return findBad<uint8_t>(spec, sample, value);
  case DataType::I8:
    return findBad<int8_t>(spec, sample, value);
  default:
    return -1;
  }
}

} // namespace tessera
