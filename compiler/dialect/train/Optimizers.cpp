//===- Optimizers.cpp - the optimizers, one row each ----------------------===//

#include "compiler/dialect/train/Optimizer.h"

#include "compiler/dialect/train/Verify.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace mlir;

namespace tessera::train {

static const Optimizer *const kOptimizers[] = {&kAdamw, &kLion, &kSgd};

ArrayRef<const Optimizer *> allOptimizers() { return kOptimizers; }

const Optimizer *findOptimizer(StringRef name) {
  for (const Optimizer *optimizer : kOptimizers)
    if (optimizer->name == name)
      return optimizer;
  return nullptr;
}

std::string optimizerNames(llvm::function_ref<bool(const Optimizer &)> which) {
  SmallVector<const Optimizer *> listed;
  llvm::copy_if(kOptimizers, std::back_inserter(listed), [&](const Optimizer *row) { return which(*row); });
  std::string names;
  for (auto [index, optimizer] : llvm::enumerate(listed))
    names += (index == 0 ? "" : index + 1 == listed.size() ? " or " : ", ") + std::string(optimizer->name);
  return names;
}

/// Empty if the value is in the setting's range.
static std::string rangeProblem(const OptimizerSetting &setting, double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  switch (setting.kind) {
  case SettingKind::Fraction:
    if (!(value >= 0 && value < 1))
      os << setting.name << " must lie in [0, 1), got " << value;
    break;
  case SettingKind::Positive:
    if (!(value > 0) || !std::isfinite(value))
      os << setting.name << " must be positive and finite, got " << value;
    break;
  case SettingKind::Switch:
    if (value != 0 && value != 1)
      os << setting.name << " must be 0 or 1, got " << value;
    break;
  }
  return text;
}

std::string completeSettings(const Optimizer &optimizer, OptimizerSettings &given) {
  for (const auto &entry : given)
    if (llvm::none_of(optimizer.settings, [&](const OptimizerSetting &setting) { return setting.name == entry.first; }))
      return std::string(optimizer.name) + " has no " + entry.first;
  for (const OptimizerSetting &setting : optimizer.settings)
    if (std::string problem = rangeProblem(setting, given.try_emplace(setting.name, setting.fallback).first->second);
        !problem.empty())
      return problem;
  return optimizer.problem ? optimizer.problem(given) : "";
}

LogicalResult verifyFraction(Operation *op, StringRef name, const APFloat &value) {
  double number = value.convertToDouble();
  if (!(number >= 0.0 && number < 1.0))
    return op->emitOpError() << name << " is " << number << ", expected at least 0 and less than 1";
  return success();
}

LogicalResult verifyUpdate(OptimizerUpdateOpInterface update, ArrayRef<StringRef> states) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(update.getParam().getType()).getShape();
  for (auto [name, state] : llvm::zip(states, update.getStates()))
    if (failed(verifyShape(update, name, cast<RankedTensorType>(state.getType()), shape)))
      return failure();
  if (failed(verifyShape(update, "grad", cast<RankedTensorType>(update.getGrad().getType()), shape)))
    return failure();
  if (std::optional<double> clip = update.getClip(); clip && !(*clip > 0 && std::isfinite(*clip)))
    return update->emitOpError() << "clip_value is " << *clip << ", expected a positive number";
  if (update.getDecayElements() < 0)
    return update->emitOpError() << "decay_elements is " << update.getDecayElements() << ", expected at least 0";
  return success();
}

} // namespace tessera::train
