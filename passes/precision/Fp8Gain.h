//===- Fp8Gain.h - which products are faster in 8 bits ----------*- C++ -*-===//

#ifndef TESSERA_PASSES_PRECISION_FP8GAIN_H
#define TESSERA_PASSES_PRECISION_FP8GAIN_H

#include "compiler/cost/Latency.h"
#include "compiler/dialect/train/Fp8Policy.h"

#include <optional>

namespace tessera::precision {

/// The product y = x Wᵀ of a layer, as one rank computes it, and those of its gradients.
struct LayerShape {
  int64_t tokens, inputs, outputs;
};

/// Judges layers by the thresholds of a recipe's authors, by a cost model, or not at all.
class Fp8Gain {
public:
  /// `select`: all, rules or auto; for `auto` a target's name or file.
  static mlir::FailureOr<Fp8Gain> create(llvm::StringRef select, llvm::StringRef target, mlir::Location loc);

  /// Why 8 bits would not gain; empty: they would.
  std::string against(train::Fp8Recipe recipe, const LayerShape &layer) const;

private:
  bool hasRules = false;
  std::optional<cost::LatencyModel> model;
};

} // namespace tessera::precision

#endif // TESSERA_PASSES_PRECISION_FP8GAIN_H
