//===- Copy.cpp - strided copies and fills ---------------------------------===//

#include "runtime/device/cpu/Copy.h"

#include "runtime/base/BFloat16.h"

#include <algorithm>
#include <cstring>

namespace tessera::cpu {

CopyPlan::CopyPlan(const TensorView &source, const TensorView &target)
    : width(byteWidth(target.dtype)), totalBytes(target.bytes()) {
  std::vector<Dim> dims;
  int64_t bytesPer = static_cast<int64_t>(width);
  for (size_t dim = 0; dim < target.shape.size(); ++dim)
    if (target.shape[dim] != 1)
      dims.push_back({target.shape[dim], source.strides[dim] * bytesPer, target.strides[dim] * bytesPer});
  // The target is written in its own order; equal strides keep the order of the shape.
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim &a, const Dim &b) { return a.targetStride > b.targetStride; });
  std::vector<Dim> merged;
  for (const Dim &dim : dims) {
    if (!merged.empty() && merged.back().sourceStride == dim.sourceStride * dim.size &&
        merged.back().targetStride == dim.targetStride * dim.size)
      merged.back() = {merged.back().size * dim.size, dim.sourceStride, dim.targetStride};
    else
      merged.push_back(dim);
  }
  columns = merged.empty() ? Dim{1, bytesPer, bytesPer} : merged.back();
  if (!merged.empty())
    merged.pop_back();
  // The loop beside the innermost one: where the source is contiguous, so that a transpose can go in square blocks.
  rows = {1, 0, 0};
  if (!merged.empty()) {
    auto best = std::prev(merged.end());
    if (columns.sourceStride != bytesPer)
      for (auto dim = merged.begin(); dim != merged.end(); ++dim)
        if (dim->sourceStride == bytesPer)
          best = dim;
    rows = *best;
    merged.erase(best);
  }
  outer = std::move(merged);
}

template <typename T> void CopyPlan::copyInner(const std::byte *source, std::byte *target) const {
  constexpr int64_t block = 32;
  bool contiguous = columns.sourceStride == sizeof(T) && columns.targetStride == sizeof(T);
  if (contiguous) {
    for (int64_t row = 0; row < rows.size; ++row)
      std::memcpy(target + row * rows.targetStride, source + row * rows.sourceStride, columns.size * sizeof(T));
    return;
  }
  for (int64_t firstRow = 0; firstRow < rows.size; firstRow += block)
    for (int64_t firstColumn = 0; firstColumn < columns.size; firstColumn += block) {
      int64_t endRow = std::min(firstRow + block, rows.size), endColumn = std::min(firstColumn + block, columns.size);
      for (int64_t row = firstRow; row < endRow; ++row)
        for (int64_t column = firstColumn; column < endColumn; ++column)
          std::memcpy(target + row * rows.targetStride + column * columns.targetStride,
                      source + row * rows.sourceStride + column * columns.sourceStride, sizeof(T));
    }
}

void CopyPlan::copyRange(const std::byte *source, std::byte *target, int64_t begin, int64_t end) const {
  for (int64_t index = begin; index < end; ++index) {
    int64_t rest = index, sourceOffset = 0, targetOffset = 0;
    for (auto dim = outer.rbegin(); dim != outer.rend(); ++dim) {
      sourceOffset += rest % dim->size * dim->sourceStride;
      targetOffset += rest % dim->size * dim->targetStride;
      rest /= dim->size;
    }
    const std::byte *from = source + sourceOffset;
    std::byte *to = target + targetOffset;
    switch (width) {
    case 1:
      copyInner<uint8_t>(from, to);
      break;
    case 2:
      copyInner<uint16_t>(from, to);
      break;
    case 4:
      copyInner<uint32_t>(from, to);
      break;
    default:
      copyInner<uint64_t>(from, to);
    }
  }
}

void CopyPlan::run(const void *source, void *target, const Team &team) const {
  const auto *from = static_cast<const std::byte *>(source);
  auto *to = static_cast<std::byte *>(target);
  constexpr size_t worthThreads = size_t{1} << 16;
  int64_t count = 1;
  for (const Dim &dim : outer)
    count *= dim.size;
  if (totalBytes < worthThreads || team.threads() == 1) {
    copyRange(from, to, 0, count);
    return;
  }
  if (count >= team.threads()) {
    team.run(count, 1, [&](int64_t begin, int64_t end) { copyRange(from, to, begin, end); });
    return;
  }
  // Few outer iterations: split the larger of the two inner loops instead.
  bool splitRows = rows.size > 1;
  const Dim &split = splitRows ? rows : columns;
  team.run(split.size, splitRows ? 1 : 1024, [&](int64_t begin, int64_t end) {
    CopyPlan part = *this;
    (splitRows ? part.rows : part.columns).size = end - begin;
    part.copyRange(from + begin * split.sourceStride, to + begin * split.targetStride, 0, count);
  });
}

namespace {
template <typename T> void fillAs(const TensorView &target, T value, const Team &team) {
  std::vector<int64_t> zeros(target.strides.size(), 0);
  TensorView source{&value, target.dtype, target.shape, zeros};
  if (!target.isContiguous()) {
    CopyPlan(source, target).run(&value, target.data, team);
    return;
  }
  team.run(target.numElements(), 4096,
           [&](int64_t begin, int64_t end) { std::fill(target.as<T>() + begin, target.as<T>() + end, value); });
}
} // namespace

void fill(const TensorView &target, double value, const Team &team) {
  switch (target.dtype) {
  case artifact::DataType::F32:
    return fillAs(target, static_cast<float>(value), team);
  case artifact::DataType::F64:
    return fillAs(target, value, team);
  case artifact::DataType::I32:
    return fillAs(target, static_cast<int32_t>(value), team);
  case artifact::DataType::I64:
    return fillAs(target, static_cast<int64_t>(value), team);
  case artifact::DataType::BF16:
    return fillAs(target, toBFloat16(static_cast<float>(value)), team);
  case artifact::DataType::Bool:
    return fillAs(target, static_cast<uint8_t>(value != 0), team);
  case artifact::DataType::I8:
    return fillAs(target, static_cast<int8_t>(value), team);
  case artifact::DataType::U8:
    return fillAs(target, static_cast<uint8_t>(value), team);
  default:
    // Half and 8-bit floats: the verifier admits only the fill with zero, whose bits are zeros in all of them.
    return byteWidth(target.dtype) == 2 ? fillAs(target, uint16_t{0}, team) : fillAs(target, uint8_t{0}, team);
  }
}

} // namespace tessera::cpu
