//===- WeightPiece.h - elements of a parameter that a file has elsewhere ----===//
//
// Files of Hugging Face's models hold some parameters under other names, in
// parts, stacked or transposed. A piece says which elements of a parameter are
// which elements of a tensor of the files: those that nested loops visit in
// both at once.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_RUNTIME_ARTIFACT_WEIGHTPIECE_H
#define TESSERA_RUNTIME_ARTIFACT_WEIGHTPIECE_H

#include "runtime/artifact/artifact_generated.h"
#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

/// `count` elements one behind the other, from `inParameter` and from `inTensor` on, both in row-major order.
struct PieceRun {
  int64_t inParameter, inTensor, count;
};

struct WeightPiece {
  std::string tensor;
  std::vector<int64_t> shape; ///< Of the tensor.
  std::vector<int64_t> sizes; ///< Of the loops, outermost first.
  int64_t offset = 0;         ///< Of the first element in the parameter …
  std::vector<int64_t> strides;
  int64_t tensorOffset = 0; ///< … and in the tensor; all in elements.
  std::vector<int64_t> tensorStrides;

  /// The whole tensor.
  static WeightPiece whole(std::string tensor, std::vector<int64_t> shape);
  static WeightPiece of(const artifact::WeightPiece &piece);

  int64_t elements() const;
  /// Whether it is the whole of a parameter of this shape, in its order.
  bool isWhole(const std::vector<int64_t> &parameter) const;
  /// Why it does not fit a parameter of `parameterElements` elements: "ends outside the parameter". Empty: it fits. The
  /// other functions need a piece that fits.
  std::string check(int64_t parameterElements) const;

  using RunFunction = std::function<Status(const PieceRun &)>;
  /// Calls `fn` for the runs of what the piece has of the parameter's elements [first, last), in the order of the
  /// loops.
  Status forEachRun(int64_t first, int64_t last, const RunFunction &fn) const;
  /// Elements of a run that is whole.
  int64_t runLength() const;
};

} // namespace tessera

#endif // TESSERA_RUNTIME_ARTIFACT_WEIGHTPIECE_H
