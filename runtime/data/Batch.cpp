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

static Result<IndexPart> readPart(const artifact::IndexPart &entry, const BatchSpec &spec) {
  IndexPart part{entry.bound(), entry.ignore_index(), {}, {}, {}};
  auto read = [](const flatbuffers::Vector<int64_t> *from, std::vector<int64_t> &to) {
    if (from)
      to.assign(from->begin(), from->end());
  };
  read(entry.starts(), part.starts);
  read(entry.limits(), part.limits);
  read(entry.strides(), part.strides);
  const std::vector<int64_t> shape = spec.sampleShape();
  bool isBox =
      part.starts.size() == shape.size() && part.limits.size() == shape.size() && part.strides.size() == shape.size();
  for (size_t dim = 0; isBox && dim < shape.size(); ++dim)
    isBox = part.starts[dim] >= 0 && part.starts[dim] <= part.limits[dim] && part.limits[dim] <= shape[dim] &&
            part.strides[dim] >= 1;
  if (!isBox)
    return TESSERA_ERROR(DataLoss, "batch tensor '" + spec.name + "' has bounds for elements that a sample of shape " +
                                       shapeToString(shape) + " does not have");
  return part;
}

Result<std::vector<BatchSpec>> batchSpecs(const Artifact &artifact, size_t program) {
  std::vector<BatchSpec> specs;
  const auto *table = artifact.program(program).batch();
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
    if (entry->index_parts())
      for (const artifact::IndexPart *stored : *entry->index_parts()) {
        TESSERA_ASSIGN_OR_RETURN(IndexPart part, readPart(*stored, spec));
        spec.indexParts.push_back(std::move(part));
      }
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

/// Visits the elements of a box in row-major order until `visit` says true.
template <typename Visit> static bool anyInBox(const IndexPart &part, const std::vector<int64_t> &shape, Visit visit) {
  std::vector<int64_t> index = part.starts;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (part.starts[dim] == part.limits[dim])
      return false;
  while (true) {
    int64_t element = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      element = element * shape[dim] + index[dim];
    if (visit(element))
      return true;
    size_t dim = shape.size();
    for (; dim > 0; --dim) {
      // Before the sum: a stride may be as large as a number can be.
      if (part.limits[dim - 1] - index[dim - 1] > part.strides[dim - 1]) {
        index[dim - 1] += part.strides[dim - 1];
        break;
      }
      index[dim - 1] = part.starts[dim - 1];
    }
    if (dim == 0)
      return false;
  }
}

template <typename T> static std::optional<BadIndex> findBad(const BatchSpec &spec, const uint8_t *sample) {
  std::optional<BadIndex> bad;
  auto isBad = [&](int64_t i, int64_t bound, int64_t ignoreIndex) {
    T element;
    std::memcpy(&element, sample + i * sizeof(T), sizeof(T));
    auto value = static_cast<int64_t>(element); // NOLINT(bugprone-signed-char-misuse): a number, not a character
    if ((value >= 0 && value < bound) || value == ignoreIndex)
      return false;
    bad = {i, value, bound};
    return true;
  };
  const auto count = static_cast<int64_t>(spec.sampleBytes() / sizeof(T));
  for (int64_t i = 0; spec.indexBound >= 0 && i < count; ++i)
    if (isBad(i, spec.indexBound, spec.ignoreIndex))
      return bad;
  const std::vector<int64_t> shape = spec.sampleShape();
  for (const IndexPart &part : spec.indexParts)
    if (anyInBox(part, shape, [&](int64_t i) { return isBad(i, part.bound, part.ignoreIndex); }))
      return bad;
  return bad;
}

std::optional<BadIndex> findBadIndex(const BatchSpec &spec, const uint8_t *sample) {
  if (spec.indexBound < 0 && spec.indexParts.empty())
    return std::nullopt;
  switch (spec.dtype) {
  case DataType::I64:
    return findBad<int64_t>(spec, sample);
  case DataType::I32:
    return findBad<int32_t>(spec, sample);
  case DataType::U8:
    return findBad<uint8_t>(spec, sample);
  case DataType::I8:
    return findBad<int8_t>(spec, sample);
  default:
    return std::nullopt;
  }
}

} // namespace tessera
