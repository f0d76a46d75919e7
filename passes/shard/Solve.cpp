#include "passes/shard/Solve.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;
using tessera::dist::Partial;
using tessera::dist::ReductionKind;
using tessera::dist::Split;
using tessera::dist::SplitLevel;

namespace tessera::shard {

OperandState getOperandState(Value value, const Layout &layout) {
  OperandState state{&layout};
  DenseElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)) && constant.isSplat()) {
    state.isSplat = true;
    state.isZero = isa<FloatType>(constant.getElementType()) ? constant.getSplatValue<APFloat>().isPosZero()
                                                             : constant.getSplatValue<APInt>().isZero();
  }
  return state;
}

namespace {

/// Assigns axes to factors. Invariant: an axis is in the list of at most one factor, and the product of a factor's
/// blocks and axes divides the factor.
class Solver {
public:
  Solver(const ShardingRule &rule, MeshAttr mesh) : rule(rule), mesh(mesh), axesOf(rule.factors.size()) {}

  void addEvidence(const TensorFactors &tensor, const Layout &layout) {
    for (auto [dim, split] : llvm::zip_equal(tensor, layout.dims))
      addEvidence(dim, split);
  }

  Layout layoutOf(const TensorFactors &tensor) const {
    Layout layout;
    for (const auto &dim : tensor) {
      Split &split = layout.dims.emplace_back();
      int64_t blocks = 1; // since the last level
      for (int64_t factor : dim) {
        int64_t left = rule.factors[factor].size;
        for (const SplitLevel &level : axesOf[factor]) {
          split.push_back({level.axis, blocks * level.blocks, level.isZigzag, level.dealt});
          left /= level.blocks * mesh.getSizes()[level.axis];
          blocks = 1;
        }
        blocks *= left;
      }
    }
    return layout;
  }

  bool isUsed(unsigned axis) const {
    return llvm::any_of(axesOf, [&](const Split &split) { return split.hasAxis(axis); });
  }

  /// What a result owes since it reduces factors that are split.
  dist::Partials reductionsOf(unsigned result) const {
    dist::Partials owed;
    for (const Reduction &reduction : rule.reductions[result])
      for (const SplitLevel &level : axesOf[reduction.factor])
        owed.push_back({level.axis, reduction.kind});
    llvm::sort(owed);
    return owed;
  }

  /// Whether `tensor` has a factor that some result reduces.
  bool hasReducedFactor(const TensorFactors &tensor) const {
    return llvm::any_of(rule.reductions, [&](const auto &reductions) {
      return llvm::any_of(reductions, [&](const Reduction &reduction) {
        return llvm::any_of(tensor, [&](const auto &dim) { return llvm::is_contained(dim, reduction.factor); });
      });
    });
  }

private:
  /// Gives the levels of a dimension to the factors that it is made of, as far as they divide these.
  void addEvidence(ArrayRef<int64_t> dim, const Split &split) {
    const auto *level = split.begin();
    int64_t blocks = split.empty() ? 1 : level->blocks; // of `level`, that no factor so far consists of
    for (int64_t factor : dim) {
      Split own;
      int64_t left = rule.factors[factor].size; // of the factor, behind its levels
      while (level != split.end() && blocks % left != 0) {
        const int64_t ranks = mesh.getSizes()[level->axis];
        own.push_back({level->axis, blocks, level->isZigzag, level->dealt});
        const int64_t ranges = own.rangesLeft(own.size() - 1, mesh);
        if (ranges == 0 || left % (blocks * ranks * ranges) != 0) {
          own.pop_back();
          return offer(factor, own);
        }
        left /= blocks * ranks;
        if (++level != split.end())
          blocks = level->blocks;
      }
      offer(factor, own);
      if (level == split.end())
        return;
      blocks /= left;
    }
  }

  void offer(int64_t factor, const Split &wanted) {
    if (rule.factors[factor].kind == FactorKind::NeedReplication ||
        (rule.factors[factor].isOrdered && !wanted.isRange()) || (rule.factors[factor].isRun && !wanted.isRun()))
      return;
    Split free;
    for (const SplitLevel &level : wanted) {
      if (isUsed(level.axis) && !axesOf[factor].hasAxis(level.axis))
        break;
      free.push_back(level);
    }
    if (axesOf[factor].isPrefixOf(free))
      axesOf[factor] = free;
  }

  const ShardingRule &rule;
  MeshAttr mesh;
  SmallVector<Split> axesOf;
};

bool passesThrough(const ShardingRule &rule, size_t operand, ReductionKind kind) {
  ArrayRef<bool> through = rule.passes(kind);
  return operand < through.size() && through[operand];
}

/// What the op may leave unreduced over `axis`; nothing where its operands owe nothing, or what it needs whole.
std::optional<ReductionKind> findInherited(const ShardingRule &rule, ArrayRef<OperandState> operands, unsigned axis) {
  std::optional<ReductionKind> kind;
  unsigned owing = 0;
  for (const OperandState &operand : operands)
    if (std::optional<ReductionKind> owed = operand.layout->owedOver(axis)) {
      if (kind && kind != owed)
        return std::nullopt;
      kind = owed;
      ++owing;
    }
  if (!kind || (*kind == ReductionKind::Sum && !rule.jointlyLinear && owing > 1))
    return std::nullopt;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    const bool owes = operand.layout->isUnreduced(axis), passes = passesThrough(rule, index, *kind);
    if (owes && !passes)
      return std::nullopt;
    // A whole term would be added once per rank. A whole value beside a partial maximum is a partial maximum itself.
    if (*kind == ReductionKind::Sum && rule.jointlyLinear && passes && !owes && !operand.isZero)
      return std::nullopt;
  }
  return kind;
}

/// What the results inherit from the operands: of the one kind that results owe anyway, or that comes first. What is of
/// another kind must be reduced before, since a maximum of sums is no sum of maxima.
dist::Partials findInherited(const ShardingRule &rule, ArrayRef<OperandState> operands, const Solver &solver,
                             unsigned numAxes) {
  std::optional<ReductionKind> common;
  bool isMixed = false;
  for (unsigned result = 0; result < rule.results.size(); ++result)
    for (const Partial &owed : solver.reductionsOf(result)) {
      isMixed |= common && *common != owed.kind;
      common = owed.kind;
    }
  dist::Partials inherited;
  for (unsigned axis = 0; axis < numAxes && !isMixed; ++axis) {
    if (solver.isUsed(axis))
      continue;
    std::optional<ReductionKind> kind = findInherited(rule, operands, axis);
    if (!kind || (common && common != kind))
      continue;
    common = kind;
    inherited.push_back({axis, *kind});
  }
  return inherited;
}

} // namespace

Solution solve(const ShardingRule &rule, ArrayRef<OperandState> operands, ArrayRef<const Layout *> results,
               MeshAttr mesh) {
  Solver solver(rule, mesh);
  for (auto [tensor, operand] : llvm::zip_equal(rule.operands, operands))
    if (!operand.isSplat)
      solver.addEvidence(tensor, *operand.layout);
  for (auto [tensor, layout] : llvm::zip_equal(rule.results, results))
    if (layout)
      solver.addEvidence(tensor, *layout);

  const dist::Partials inherited = findInherited(rule, operands, solver, mesh.getSizes().size());
  Solution solution;
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    Layout &need = solution.operands.emplace_back(solver.layoutOf(tensor));
    const bool isTerm = rule.jointlyLinear && passesThrough(rule, index, ReductionKind::Sum);
    for (const Partial &partial : inherited)
      if (operands[index].layout->isUnreduced(partial.axis) || (isTerm && partial.kind == ReductionKind::Sum))
        if (passesThrough(rule, index, partial.kind))
          need.unreduced.push_back(partial);
    // A term of a sum that does not take part in the reduction would be counted once per rank: it must be a partial
    // sum.
    if (isTerm && !solver.hasReducedFactor(tensor))
      llvm::copy_if(solver.reductionsOf(0), std::back_inserter(need.unreduced),
                    [](const Partial &partial) { return partial.kind == ReductionKind::Sum; });
    llvm::sort(need.unreduced);
  }
  for (auto [index, tensor] : llvm::enumerate(rule.results)) {
    Layout &gives = solution.results.emplace_back(solver.layoutOf(tensor));
    gives.unreduced = inherited;
    gives.unreduced.append(solver.reductionsOf(static_cast<unsigned>(index)));
    llvm::sort(gives.unreduced);
  }
  return solution;
}

} // namespace tessera::shard
