//===- Optimizer.h - the optimizers, one row each ---------------*- C++ -*-===//
//
// What the driver, the pass and the artifact know of an optimizer besides its op (OptimizerUpdateOpInterface): its
// name, the numbers that it is told, its states, and how its op is built.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_DIALECT_TRAIN_OPTIMIZER_H
#define TESSERA_COMPILER_DIALECT_TRAIN_OPTIMIZER_H

#include "compiler/dialect/train/Train.h"

#include <map>
#include <string>
#include <tuple>

namespace tessera::train {

/// Fraction: in [0, 1). Positive: above 0 and finite. Switch: 0 or 1.
enum class SettingKind { Fraction, Positive, Switch };

/// A number that an optimizer is told.
struct OptimizerSetting {
  const char *name; ///< also that of the pass option
  const char *flag; ///< of tessera-compile, without dashes; settings in a row may share one, which then takes several
  SettingKind kind;
  double fallback;
};
/// By name.
using OptimizerSettings = std::map<std::string, double>;

/// A scalar that the host computes each step as 1 - b^update, with b the setting `base`.
struct BiasCorrection {
  const char *name, *base;
};

/// What one update is built from.
struct UpdateParts {
  mlir::Value param, grad, scale; ///< the scale may be null
  llvm::ArrayRef<mlir::Value> states;
  llvm::ArrayRef<mlir::Value> hyper; ///< lr, then the bias corrections
  const OptimizerSettings &settings;
  double weightDecay;
  int64_t decayElements;
  mlir::FloatAttr clipValue; ///< null: none
  mlir::Value seed;          ///< of the rounding of narrow states; null: none is narrow
  int64_t stream;
};

struct Optimizer {
  const char *name;
  llvm::ArrayRef<OptimizerSetting> settings;
  llvm::ArrayRef<BiasCorrection> biasCorrections;
  bool hasNarrowStates; ///< its states may be bf16
  double weightDecay;   ///< unless another one is asked for
  llvm::SmallVector<llvm::StringRef> (*states)(const OptimizerSettings &settings);
  /// What is wrong with settings that are each in their range; empty: nothing.
  std::string (*problem)(const OptimizerSettings &settings);
  mlir::Operation *(*build)(mlir::OpBuilder &builder, mlir::Location loc, const UpdateParts &parts);
};

/// All optimizers, by name.
llvm::ArrayRef<const Optimizer *> allOptimizers();
/// Null if there is none of that name.
const Optimizer *findOptimizer(llvm::StringRef name);
/// "adamw, lion or sgd".
std::string optimizerNames(llvm::function_ref<bool(const Optimizer &)> which = [](const Optimizer &) { return true; });

/// Fills in what `given` leaves out. Returns an error text that names the setting; empty if all is well.
std::string completeSettings(const Optimizer &optimizer, OptimizerSettings &given);

// The rows, each in the file of its optimizer.
extern const Optimizer kAdamw, kLion, kSgd;
/// The ops of the rows.
using UpdateOps = std::tuple<AdamwUpdateOp, LionUpdateOp, SgdUpdateOp>;

/// Calls `fn.operator()<Op>()` for each op of UpdateOps.
template <typename Fn> void forEachUpdateOp(Fn fn) {
  [&]<typename... Ops>(std::tuple<Ops...> *) { (fn.template operator()<Ops>(), ...); }((UpdateOps *)nullptr);
}

/// What every update's verifier checks: shapes of gradient and states, whose names are given, and the ranges of
/// clip_value and decay_elements.
llvm::LogicalResult verifyUpdate(OptimizerUpdateOpInterface update, llvm::ArrayRef<llvm::StringRef> states);
/// That an attribute lies in [0, 1).
llvm::LogicalResult verifyFraction(mlir::Operation *op, llvm::StringRef name, const llvm::APFloat &value);

} // namespace tessera::train

#endif // TESSERA_COMPILER_DIALECT_TRAIN_OPTIMIZER_H
