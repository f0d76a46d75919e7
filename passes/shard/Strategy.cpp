//===- Strategy.cpp - how data-parallel training divides memory -----------===//

#include "passes/shard/Strategy.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace tessera::shard {

// clang-format off
static constexpr Strategy kStrategies[] = {
    {"ddp",   "everything is whole, gradients are all-reduced once per step",
     false, Gather::Never,        Reduce::ToWhole},
    {"zero1", "state is split, units are gathered once per step, gradients reduce-scattered once per step",
     true,  Gather::OncePerStep,  Reduce::ToPartsOnce},
    {"zero2", "as zero1, gradients are reduce-scattered in every micro-batch",
     true,  Gather::OncePerStep,  Reduce::ToPartsEachMicro},
    {"zero3", "as zero2, units are gathered for forward and again for backward",
     true,  Gather::ForEachPhase, Reduce::ToPartsEachMicro},
    {"hsdp",  "zero3 that insists on replicas",
     true,  Gather::ForEachPhase, Reduce::ToPartsEachMicro, /*needsReplicas=*/true},
};
// clang-format on

bool Strategy::differsFrom(const Strategy &other, int64_t microBatches) const {
  if (splitsState != other.splitsState || gather != other.gather)
    return true;
  // One micro-batch is the whole step: there is no accumulator to split.
  const bool accumulates = microBatches > 1;
  return accumulates ? reduce != other.reduce : (reduce == Reduce::ToWhole) != (other.reduce == Reduce::ToWhole);
}

llvm::ArrayRef<Strategy> strategies() { return kStrategies; }

const Strategy *findStrategy(llvm::StringRef name) {
  const Strategy *found = llvm::find_if(kStrategies, [&](const Strategy &strategy) { return strategy.name == name; });
  return found == std::end(kStrategies) ? nullptr : found;
}

std::string strategyNames(llvm::function_ref<bool(const Strategy &)> isMeant) {
  llvm::SmallVector<llvm::StringRef> names;
  for (const Strategy &strategy : kStrategies)
    if (isMeant(strategy))
      names.push_back(strategy.name);
  std::string text;
  for (auto [index, name] : llvm::enumerate(names))
    text += (index == 0 ? "" : index + 1 == names.size() ? " or " : ", ") + name.str();
  return text;
}

} // namespace tessera::shard
