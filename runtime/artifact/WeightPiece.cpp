//===- WeightPiece.cpp - elements of a parameter that a file has elsewhere --===//

#include "runtime/artifact/WeightPiece.h"
#include "runtime/artifact/VerifyContext.h"

#include <algorithm>
#include <numeric>

namespace tessera {

static std::vector<int64_t> copyOf(const flatbuffers::Vector<int64_t> *values) {
  return values ? std::vector<int64_t>(values->begin(), values->end()) : std::vector<int64_t>();
}

WeightPiece WeightPiece::whole(std::string tensor, std::vector<int64_t> shape) {
  const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  return {std::move(tensor), std::move(shape), {elements}, 0, {1}, 0, {1}};
}

WeightPiece WeightPiece::of(const artifact::WeightPiece &piece) {
  return {piece.tensor()->str(),   copyOf(piece.shape()), copyOf(piece.sizes()),         piece.offset(),
          copyOf(piece.strides()), piece.tensor_offset(), copyOf(piece.tensor_strides())};
}

int64_t WeightPiece::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

bool WeightPiece::isWhole(const std::vector<int64_t> &parameter) const {
  return shape == parameter && offset == 0 && tensorOffset == 0 && runLength() == elements();
}

int64_t WeightPiece::runLength() const {
  int64_t length = 1;
  for (size_t loop = sizes.size(); loop-- > 0; length *= sizes[loop])
    if (sizes[loop] != 1 && (strides[loop] != length || tensorStrides[loop] != length))
      break;
  return length;
}

/// Whether loops from `offset` on stay inside `elements` elements, and visit none twice.
static std::string checkLoops(const std::vector<int64_t> &sizes, int64_t offset, const std::vector<int64_t> &strides,
                              int64_t elements, const std::string &what) {
  if (strides.size() != sizes.size())
    return "has not one stride for each loop";
  if (offset < 0)
    return "begins before the " + what;
  std::vector<std::pair<int64_t, int64_t>> loops; // stride, size
  for (size_t loop = 0; loop < sizes.size(); ++loop)
    if (sizes[loop] > 1)
      loops.emplace_back(strides[loop], sizes[loop]);
  std::sort(loops.begin(), loops.end());
  WideInt last = 0;
  for (const auto &[stride, size] : loops) {
    if (stride <= last)
      return "has an element of the " + what + " twice";
    last += WideInt{stride} * (size - 1);
    if (last >= elements)
      break;
  }
  return last + offset < elements ? "" : "ends outside the " + what;
}

std::string WeightPiece::check(int64_t parameterElements) const {
  if (sizes.empty() || static_cast<int64_t>(sizes.size()) > maxDimensions)
    return "has no loops, or more than " + std::to_string(maxDimensions);
  WideInt visited = 1, inTensor = 1;
  for (int64_t size : sizes) {
    if (size < 1 || (visited *= size) > maxElements)
      return "has loops of an impossible size";
  }
  for (int64_t size : shape) {
    if (size < 1 || (inTensor *= size) > maxElements)
      return "is of a tensor of an impossible shape";
  }
  if (std::string problem = checkLoops(sizes, offset, strides, parameterElements, "parameter"); !problem.empty())
    return problem;
  return checkLoops(sizes, tensorOffset, tensorStrides, static_cast<int64_t>(inTensor), "tensor");
}

namespace {
/// Visits the loops of a piece, but for those inside a run.
class Visit {
public:
  Visit(const WeightPiece &piece, int64_t first, int64_t last, const WeightPiece::RunFunction &fn)
      : piece(piece), first(first), last(last), length(piece.runLength()), fn(fn) {
    outer = piece.sizes.size();
    for (int64_t inner = 1; inner < length; inner *= piece.sizes[outer])
      --outer;
    extents.assign(outer + 1, length);
    for (size_t loop = outer; loop-- > 0;)
      extents[loop] = extents[loop + 1] + (piece.sizes[loop] - 1) * piece.strides[loop];
  }

  Status run() { return visit(0, piece.offset, piece.tensorOffset); }

private:
  /// The loops from `loop` on, whose first elements these are.
  Status visit(size_t loop, int64_t inParameter, int64_t inTensor) {
    if (inParameter >= last || inParameter + extents[loop] <= first)
      return Status::ok();
    if (loop == outer) {
      const int64_t begin = std::max(inParameter, first), end = std::min(inParameter + length, last);
      return fn({begin, inTensor + (begin - inParameter), end - begin});
    }
    const int64_t stride = piece.strides[loop];
    int64_t from = 0, to = piece.sizes[loop];
    if (stride > 0 && to > 1) { // skips what ends before, and stops at what begins behind
      from = std::clamp<int64_t>((first - inParameter - extents[loop + 1]) / stride, 0, to);
      to = std::min(to, (last - inParameter + stride - 1) / stride);
    }
    for (int64_t turn = from; turn < to; ++turn)
      TESSERA_RETURN_IF_ERROR(
          visit(loop + 1, inParameter + turn * stride, inTensor + turn * piece.tensorStrides[loop]));
    return Status::ok();
  }

  const WeightPiece &piece;
  int64_t first, last, length;
  const WeightPiece::RunFunction &fn;
  size_t outer; ///< Loops that are not inside a run.
  std::vector<int64_t>
      extents; ///< Elements of the parameter from the first that the loops from one on visit to the last.
};
} // namespace

Status WeightPiece::forEachRun(int64_t first, int64_t last, const RunFunction &fn) const {
  return Visit(*this, first, last, fn).run();
}

} // namespace tessera
