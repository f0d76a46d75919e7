//===- Tensor.h - a value of the reference interpreter ----------*- C++ -*-===//
//
// A dense tensor that the interpreter computes with: floating point elements are
// held as doubles that are representable in the element type, integers and
// booleans as int64s. Slow and obvious on purpose.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_INTERP_TENSOR_H
#define TESSERA_COMPILER_INTERP_TENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <cstdint>
#include <vector>

namespace tessera::interp {

/// The value of a number of any narrower format.
double toDouble(llvm::APFloat value);
/// `value` rounded to the nearest value of a floating point type, ties to even.
double roundTo(mlir::Type floatType, double value);
/// `value` wrapped around to the width of an integer type.
int64_t wrapTo(mlir::Type integerType, int64_t value);

class Tensor {
public:
  Tensor() = default;
  /// All elements zero.
  explicit Tensor(mlir::RankedTensorType type);

  static Tensor scalar(mlir::RankedTensorType type, double value);
  /// True if the elements of a constant are in the IR: dense, or a resource that is there and has the right size.
  static bool canRead(mlir::Attribute attr);
  /// The value of a constant that can be read.
  static Tensor fromAttr(mlir::ElementsAttr attr);
  /// A splat attribute if all elements are equal bit by bit.
  mlir::DenseElementsAttr toAttr() const;

  mlir::RankedTensorType getType() const { return type; }
  mlir::Type getElementType() const { return type.getElementType(); }
  llvm::ArrayRef<int64_t> getShape() const { return type.getShape(); }
  int64_t getRank() const { return type.getRank(); }
  int64_t size() const { return type.getNumElements(); }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(getElementType()); }

  /// An element as a double, whatever the element type.
  double at(int64_t index) const { return isFloating ? floats[index] : static_cast<double>(ints[index]); }
  int64_t intAt(int64_t index) const { return ints[index]; }
  /// Stores after rounding or wrapping to the element type (a double truncates toward zero to an integer).
  void set(int64_t index, double value);
  void setInt(int64_t index, int64_t value);
  /// Copies an element of a tensor that has the same element type.
  void copyFrom(int64_t index, const Tensor &source, int64_t sourceIndex);

  bool bitwiseEquals(const Tensor &other) const;
  /// The same elements with another type of equal element type and size.
  Tensor reshaped(mlir::RankedTensorType newType) const;

private:
  mlir::RankedTensorType type;
  bool isFloating = false;
  std::vector<double> floats; ///< used if the element type is floating point
  std::vector<int64_t> ints;  ///< used otherwise
};

/// Row-major strides of a shape, in elements.
llvm::SmallVector<int64_t> stridesOf(llvm::ArrayRef<int64_t> shape);
/// Calls `fn(index, linear)` for each index of a shape in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape, llvm::function_ref<void(llvm::ArrayRef<int64_t>, int64_t)> fn);
/// Position of an index in row-major order.
int64_t linearIndex(llvm::ArrayRef<int64_t> index, llvm::ArrayRef<int64_t> strides);
/// `[1, 2]`, for messages.
std::string printIndex(llvm::ArrayRef<int64_t> index);
/// The index of row-major position `linear`.
llvm::SmallVector<int64_t> delinearize(int64_t linear, llvm::ArrayRef<int64_t> shape);

} // namespace tessera::interp

#endif // TESSERA_COMPILER_INTERP_TENSOR_H
