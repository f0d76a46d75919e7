//===- BatchNumbers.h - numbers that may be a size of the batch -*- C++ -*-===//
//
// A program says `x.sum() / x.shape[0]`, and what is left of the shape in the
// graph is a number. Whether a number beside samples or their statistics is such
// a size can be told only by its value: these are the rules for that.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_BATCHNUMBERS_H
#define TESSERA_PASSES_DIFFERENTIATE_BATCHNUMBERS_H

#include "mlir/IR/Operation.h"

#include <cmath>
#include <optional>

namespace tessera {

/// Whether `factor` is what turns `sum` into the mean that it belongs to.
bool makesMean(mlir::Value sum, double factor);

/// A product or quotient of a sum over the batch, operand `sum`, and a number that cannot be told from the size of the
/// batch.
bool hasUnclearFactor(mlir::Operation &op, unsigned sum);

/// What a number beside samples or a statistic of them would change if it were their count.
enum class Undoes { Sum, Mean, Either };

/// A number as an op multiplies by it or divides by it.
struct Scale {
  double number;
  bool divides;
  double factor() const { return divides ? 1.0 / number : number; }
  bool is(double other) const { return std::abs(factor() - other) <= 1e-6 * other; }
  /// At most two decimals are what people write.
  bool isWritten() const { return std::abs(number * 100 - std::round(number * 100)) < 1e-6; }
  bool isWeight() const { return !divides && isWritten(); }
  /// A divisor below 1: a temperature, the beta of a smooth loss.
  bool isTemperature() const { return divides && number < 1.0 && isWritten(); }
};

/// The number that `op` multiplies operand `index` by, or divides it by.
std::optional<Scale> scaleOf(mlir::Operation &op, unsigned index);

/// A number may be one of `counts` by accident. Weights (0.25) are taken for what they look like, and so are doubles
/// and halves unless they undo what is asked for.
bool mayBeCount(const Scale &scale, llvm::ArrayRef<int64_t> counts, Undoes undoes);

/// Whether a number makes another statistic of a mean over so many elements: a variance of n - 1 degrees of freedom, a
/// standard error.
bool mayCorrectMean(const Scale &scale, llvm::ArrayRef<int64_t> counts);

/// The sizes that a program may take for the number of elements of `shape`: the batch times some of the dimensions.
/// `samplesDim`: the dimension that counts samples, or -1.
llvm::SmallVector<int64_t> countsOf(llvm::ArrayRef<int64_t> shape, int64_t samplesDim, int64_t batchSize);

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_BATCHNUMBERS_H
