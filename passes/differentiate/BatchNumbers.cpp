//===- BatchNumbers.cpp - numbers that may be a size of the batch ---------===//
//
// See BatchNumbers.h.
//
//===----------------------------------------------------------------------===//

#include "passes/differentiate/BatchNumbers.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/dialect/train/Constants.h"
#include "compiler/dialect/train/Loss.h"

using namespace mlir;

namespace tessera {

bool makesMean(Value sum, double factor) {
  auto reduce = sum.getDefiningOp<train::ReduceOp>();
  if (!reduce || !reduce->hasAttr(train::kMean))
    return false;
  double count = 1;
  for (int64_t dim : reduce.getDimensions())
    count *= static_cast<double>(train::shapeOf(reduce.getOperand())[dim]);
  return factor == 1.0 / count || factor == static_cast<double>(static_cast<float>(1.0 / count));
}

bool hasUnclearFactor(Operation &op, unsigned sum) {
  if (!isa<train::MulOp, train::DivOp>(op))
    return false;
  std::optional<double> number = train::splatOf(op.getOperand(1 - sum));
  if (!number || std::abs(*number) == 1.0)
    return false;
  return !makesMean(op.getOperand(sum), isa<train::DivOp>(op) ? 1.0 / *number : *number);
}

std::optional<Scale> scaleOf(Operation &op, unsigned index) {
  if (!isa<train::MulOp, train::DivOp>(op))
    return std::nullopt;
  std::optional<double> number = train::splatOf(op.getOperand(1 - index));
  if (!number)
    return std::nullopt;
  return Scale{std::abs(*number), isa<train::DivOp>(op) && index == 0};
}

bool mayBeCount(const Scale &scale, ArrayRef<int64_t> counts, Undoes undoes) {
  if (scale.number == 0.0)
    return false;
  return llvm::any_of(counts, [&](int64_t count) {
    const auto n = static_cast<double>(count);
    return count > 1 && ((scale.is(n) && !scale.isTemperature() && (count > 2 || undoes != Undoes::Sum)) ||
                         (scale.is(1.0 / n) && !scale.isWeight() && (count > 2 || undoes != Undoes::Mean)));
  });
}

bool mayCorrectMean(const Scale &scale, ArrayRef<int64_t> counts) {
  if (scale.number == 0.0)
    return scale.divides; // by one element less than one
  const bool isOrdinary = scale.isWeight() || (scale.divides && scale.number == 2.0);
  return llvm::any_of(counts, [&](int64_t count) {
    if (count < 3)
      return false;
    const auto n = static_cast<double>(count);
    const double bessel = n / (n - 1.0), root = std::sqrt(n);
    if (scale.is(bessel) || scale.is(std::sqrt(bessel)))
      return true;
    return !isOrdinary &&
           (scale.is(1.0 / (n - 1.0)) || scale.is(1.0 / bessel) || scale.is(1.0 / std::sqrt(bessel)) ||
            scale.is(1.0 / std::sqrt(n - 1.0)) || scale.is(1.0 / root) || (scale.is(root) && root != std::round(root)));
  });
}

SmallVector<int64_t> countsOf(ArrayRef<int64_t> shape, int64_t samplesDim, int64_t batchSize) {
  llvm::SetVector<int64_t> counts;
  counts.insert(batchSize);
  for (auto [dim, size] : llvm::enumerate(shape)) {
    const int64_t more = static_cast<int64_t>(dim) == samplesDim ? size / batchSize : size;
    if (more > 1 && counts.size() < 256)
      for (int64_t count : llvm::to_vector(counts))
        counts.insert(count * more);
  }
  return counts.takeVector();
}

} // namespace tessera
