//===- HostTensor.h - tensors whose value is known at import ----*- C++ -*-===//
//
// The importer evaluates everything that does not depend on data or parameters
// (shape arithmetic, masks, position tables). These are the values it computes
// with: floats are kept in double, rounded to their element type after each
// operation; integers and booleans in int64.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_HOSTTENSOR_H
#define TESSERA_FRONTENDS_COMMON_HOSTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <memory>
#include <optional>
#include <vector>

namespace tessera::frontend {

/// Constants beyond this many elements are not evaluated at import; they become ops.
inline constexpr int64_t kMaxConstantElements = int64_t{4} << 20;
/// No tensor of a model may have more elements than this, so that bits are still counted in 64 bits. It is a bound of
/// arithmetic, not of memory: the scores of a long sequence on many ranks are never stored. What a rank stores is
/// bounded where its memory is planned.
inline constexpr int64_t kMaxElements = int64_t{1} << 56;

/// The number of elements, or nullopt if a size is negative or the product exceeds kMaxElements.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

struct HostTensor {
  mlir::RankedTensorType type;
  std::vector<double> floats; ///< if the element type is a float
  std::vector<int64_t> ints;  ///< else

  static HostTensor ofInts(mlir::RankedTensorType type, std::vector<int64_t> values) {
    return {type, {}, std::move(values)};
  }
  static HostTensor ofFloats(mlir::RankedTensorType type, std::vector<double> values) {
    return {type, std::move(values), {}};
  }
  /// A vector of i64.
  static HostTensor ofShape(mlir::MLIRContext *context, llvm::ArrayRef<int64_t> values);
  static HostTensor splat(mlir::RankedTensorType type, double value);
  static std::optional<HostTensor> fromAttr(mlir::ElementsAttr attr);

  bool isFloat() const { return llvm::isa<mlir::FloatType>(type.getElementType()); }
  int64_t size() const { return isFloat() ? floats.size() : ints.size(); }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  double number(int64_t i) const { return isFloat() ? floats[i] : static_cast<double>(ints[i]); }
  /// The element that all elements equal bit for bit, if there is one.
  std::optional<double> uniform() const;
  mlir::DenseElementsAttr toAttr() const;
  /// Element i everywhere in a tensor of another shape.
  mlir::DenseElementsAttr elementAttr(int64_t i, llvm::ArrayRef<int64_t> shape) const;
  /// The element that all elements equal, as a tensor of another shape; null if there is none.
  mlir::DenseElementsAttr splatAttr(llvm::ArrayRef<int64_t> shape) const;
  HostTensor reshaped(llvm::ArrayRef<int64_t> shape) const;
  /// Running sums along a dimension: positions, as exporters compute them, of sequences of any length.
  HostTensor runningSums(int64_t dim, bool exclusive = false, bool reverse = false) const;
};

using Constant = std::shared_ptr<const HostTensor>;

/// `value` rounded to a float type.
double roundTo(mlir::Type floatType, double value);
/// `value` wrapped to an integer type (sign-extended unless unsigned or boolean).
int64_t wrapTo(mlir::Type intType, int64_t value);

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_HOSTTENSOR_H
