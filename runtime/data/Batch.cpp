//===- Batch.cpp - what a step wants to be fed -----------------------------------===//

#include "runtime/data/Batch.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace tessera {

int64_t BatchSpec::sampleDim() const {
  for (size_t dim = 0; dim < dims.size(); ++dim)
    if (dims[dim] == artifact::DimRole::Sample)
      return static_cast<int64_t>(dim);
  return -1;
}

std::vector<int64_t> BatchSpec::sampleShape() const {
  std::vector<int64_t> shape;
  for (size_t dim = 0; dim < dims.size(); ++dim)
    if (dims[dim] != artifact::DimRole::Sample && dims[dim] != artifact::DimRole::MicroBatch)
      shape.push_back(globalShape[dim]);
  return shape;
}

size_t BatchSpec::sampleBytes() const {
  size_t bytes = elementBytes(dtype);
  for (int64_t size : sampleShape())
    bytes *= size;
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
    for (uint32_t dim = 0; dim < spec.globalShape.size(); ++dim)
      spec.dims.push_back(entry->dims()->GetEnum<artifact::DimRole>(dim));
    spec.indexBound = entry->index_bound();
    spec.ignoreIndex = entry->ignore_index();
    spec.hasRuns = entry->has_runs();
    if (!checkedElements(spec.globalShape, elementBytes(spec.dtype)))
      return TESSERA_ERROR(Unsupported, "batch tensor '" + spec.name + "' of shape " + shapeToString(spec.globalShape) +
                                            " is too large");
    auto other = std::find_if(specs.begin(), specs.end(), [](const BatchSpec &known) { return !known.isShared(); });
    if (other != specs.end() && !spec.isShared() && other->rows() != spec.rows())
      return TESSERA_ERROR(Unsupported, "batch tensors '" + other->name + "' and '" + spec.name +
                                            "' have different numbers of samples");
    if (entry->index_parts())
      for (const artifact::IndexPart *stored : *entry->index_parts()) {
        TESSERA_ASSIGN_OR_RETURN(IndexPart part, readPart(*stored, spec));
        spec.indexParts.push_back(std::move(part));
      }
    specs.push_back(std::move(spec));
  }
  return specs;
}

int64_t rowsPerStep(const std::vector<BatchSpec> &specs) {
  for (const BatchSpec &spec : specs)
    if (!spec.isShared())
      return spec.rows();
  return 1;
}

std::vector<DimPart> rankParts(const Artifact &artifact, size_t tensor, int rank, size_t program) {
  std::vector<DimPart> parts;
  if (const auto *splits = artifact.program(program).batch()->Get(static_cast<uint32_t>(tensor))->splits())
    for (const artifact::DimSplit *split : *splits)
      parts.push_back({split->dim(), artifact.groupSize(split->group()), artifact.positionInGroup(split->group(), rank),
                       split->order() == artifact::SplitOrder::Zigzag});
  return parts;
}

/// Elements of `rows` between neighbours along each dimension of the tensor.
static std::vector<int64_t> rowStrides(const BatchSpec &spec) {
  const int64_t sampleDim = spec.sampleDim();
  std::vector<int64_t> strides(spec.dims.size());
  int64_t stride = 1;
  for (size_t dim = spec.dims.size(); dim-- > 0;)
    if (static_cast<int64_t>(dim) != sampleDim && spec.dims[dim] != artifact::DimRole::MicroBatch) {
      strides[dim] = stride;
      stride *= spec.globalShape[dim];
    }
  if (sampleDim >= 0)
    strides[sampleDim] = stride;
  if (spec.hasMicroBatches())
    strides[0] = stride * spec.batch();
  return strides;
}

void copyRankPart(const BatchSpec &spec, const uint8_t *rows, const std::vector<DimPart> &parts, void *target) {
  std::vector<int64_t> strides = rowStrides(spec);
  std::vector<int64_t> shape = spec.globalShape;
  int64_t begin = 0;
  // Of a zigzag two ranges, a dimension in front of that of one range.
  for (const DimPart &part : parts) {
    shape[part.dim] /= part.isZigzag ? 2 * part.parts : part.parts;
    begin += part.position * shape[part.dim] * strides[part.dim];
  }
  std::vector<int64_t> dealt = shape;
  for (size_t dim = shape.size(); dim-- > 0;)
    for (const DimPart &part : parts)
      if (part.isZigzag && part.dim == static_cast<int64_t>(dim)) {
        const int64_t apart = (2 * part.parts - 1 - 2 * part.position) * shape[dim] * strides[dim];
        dealt.insert(dealt.begin() + static_cast<std::ptrdiff_t>(dim), 2);
        strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(dim), apart);
      }
  shape = dealt;
  // The innermost dimensions that lie in `rows` as they do in the target are copied at once.
  int64_t run = 1;
  size_t outer = shape.size();
  for (; outer > 0 && (strides[outer - 1] == run || shape[outer - 1] == 1); --outer)
    run *= shape[outer - 1];
  const size_t width = elementBytes(spec.dtype);
  auto *to = static_cast<uint8_t *>(target);
  std::vector<int64_t> index(outer);
  int64_t from = begin;
  while (true) {
    std::memcpy(to, rows + from * width, run * width);
    to += run * width;
    size_t dim = outer;
    for (; dim > 0; --dim) {
      from += strides[dim - 1];
      if (++index[dim - 1] < shape[dim - 1])
        break;
      from -= index[dim - 1] * strides[dim - 1];
      index[dim - 1] = 0;
    }
    if (dim == 0)
      return;
  }
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

template <typename T>
static std::optional<BadIndex> findBad(const BatchSpec &spec, const uint8_t *sample, const ElementRanges &read) {
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
  if (spec.indexBound >= 0)
    for (ElementRange range : read)
      for (int64_t i = range.begin; i < range.end; ++i)
        if (isBad(i, spec.indexBound, spec.ignoreIndex))
          return bad;
  const std::vector<int64_t> shape = spec.sampleShape();
  for (const IndexPart &part : spec.indexParts) {
    size_t range = 0; // a box is visited in the order of elements
    if (anyInBox(part, shape, [&](int64_t i) {
          while (range < read.size() && read[range].end <= i)
            ++range;
          return range < read.size() && read[range].begin <= i && isBad(i, part.bound, part.ignoreIndex);
        }))
      return bad;
  }
  return bad;
}

template <typename T> static std::optional<ApartElement> findApartIn(const BatchSpec &spec, const uint8_t *sample) {
  const auto elements = static_cast<int64_t>(spec.sampleBytes() / sizeof(T));
  const int64_t length = spec.sampleShape().back();
  std::unordered_set<T> ended; // values of runs of this row
  T last{};
  for (int64_t i = 0; i < elements; ++i) {
    T element;
    std::memcpy(&element, sample + i * sizeof(T), sizeof(T));
    if (i % length == 0) {
      ended.clear();
    } else if (element != last) {
      ended.insert(last);
      if (ended.contains(element))
        return ApartElement{i, static_cast<int64_t>(element)}; // NOLINT(bugprone-signed-char-misuse): a number
    }
    last = element;
  }
  return std::nullopt;
}

std::optional<ApartElement> findApart(const BatchSpec &spec, const uint8_t *sample) {
  if (!spec.hasRuns)
    return std::nullopt;
  switch (spec.dtype) {
  case DataType::I64:
    return findApartIn<int64_t>(spec, sample);
  case DataType::I32:
    return findApartIn<int32_t>(spec, sample);
  case DataType::U8:
    return findApartIn<uint8_t>(spec, sample);
  case DataType::I8:
    return findApartIn<int8_t>(spec, sample);
  default:
    return std::nullopt; // the artifact is refused
  }
}

std::optional<BadIndex> findBadIndex(const BatchSpec &spec, const uint8_t *sample, const ElementRanges &read) {
  if (spec.indexBound < 0 && spec.indexParts.empty())
    return std::nullopt;
  switch (spec.dtype) {
  case DataType::I64:
    return findBad<int64_t>(spec, sample, read);
  case DataType::I32:
    return findBad<int32_t>(spec, sample, read);
  case DataType::U8:
    return findBad<uint8_t>(spec, sample, read);
  case DataType::I8:
    return findBad<int8_t>(spec, sample, read);
  default:
    return std::nullopt;
  }
}

} // namespace tessera
