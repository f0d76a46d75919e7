//===- DimRoles.cpp - what the dimensions of values count -----------------===//

#include "passes/differentiate/DimRoles.h"

#include "compiler/dialect/train/Builders.h"
#include "compiler/interfaces/Interfaces.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace tessera {

using train::DimRole;

DimRoles::DimRoles(func::FuncOp func) {
  for (BlockArgument arg : func.getArguments()) {
    if (!train::isBatchArgument(func, arg.getArgNumber()))
      continue;
    SmallVector<Parts> &dims = values[arg];
    for (auto [size, role] : llvm::zip_equal(train::shapeOf(arg), train::getDims(func, arg.getArgNumber()).getRoles()))
      dims.push_back({{size, role}});
  }
  visit(func.getBody().front());
}

void DimRoles::visit(Block &block) {
  for (Operation &op : block.without_terminator())
    visit(op);
}

/// Of the factors that a dimension is made of, what each consists of: empty where parts and factors do not match.
template <typename Parts>
static SmallVector<Parts> divide(ArrayRef<int64_t> factors, const ShardingRule &rule, const Parts &parts) {
  if (factors.size() == 1)
    return {parts};
  SmallVector<Parts> result;
  const auto *part = parts.begin();
  for (int64_t factor : factors) {
    Parts &own = result.emplace_back();
    for (int64_t size = 1; size < rule.factors[factor].size; ++part) {
      if (part == parts.end() || rule.factors[factor].size % (size * part->size) != 0)
        return {};
      size *= part->size;
      own.push_back(*part);
    }
  }
  return result;
}

void DimRoles::visit(Operation &op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface || !llvm::any_of(op.getOperands(), [&](Value operand) { return values.contains(operand); }))
    return;
  const ShardingRule rule = interface.getShardingRule();
  llvm::DenseMap<int64_t, Parts> known; // by factor
  for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
    auto found = values.find(operand);
    if (found == values.end())
      continue;
    for (auto [factors, parts] : llvm::zip_equal(rule.operands[index], found->second)) {
      SmallVector<Parts> divided = divide(factors, rule, parts);
      for (auto [factor, own] : llvm::zip(factors, divided)) {
        if (llvm::all_of(own, [](const Part &part) { return part.role == DimRole::None; }))
          continue;
        auto [entry, isNew] = known.try_emplace(factor, own);
        auto same = [](const Part &a, const Part &b) { return a.size == b.size && a.role == b.role; };
        if (!isNew && !llvm::equal(entry->second, own, same))
          entry->second = {{rule.factors[factor].size, DimRole::None}};
      }
    }
  }
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    SmallVector<Parts> dims;
    for (auto [factors, size] : llvm::zip_equal(rule.results[index], train::shapeOf(result))) {
      Parts &parts = dims.emplace_back();
      for (int64_t factor : factors) {
        if (auto found = known.find(factor); found != known.end())
          parts.append(found->second);
        else
          parts.push_back({rule.factors[factor].size, DimRole::None});
      }
      if (parts.empty())
        parts.push_back({size, DimRole::None});
    }
    values[result] = std::move(dims);
  }
}

SmallVector<DimRole> DimRoles::of(Value value) const {
  SmallVector<DimRole> roles(train::tensorType(value).getRank(), DimRole::None);
  if (auto found = values.find(value); found != values.end())
    for (auto [role, parts] : llvm::zip_equal(roles, found->second))
      if (llvm::hasSingleElement(parts))
        role = parts.front().role;
  return roles;
}

} // namespace tessera
