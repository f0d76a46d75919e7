#include "passes/shard/Solve.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using tessera::dist::Axes;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;
using tessera::dist::Partial;
using tessera::dist::ReductionKind;
using tessera::dist::Split;

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
    for (auto [dim, split] : llvm::zip_equal(tensor, layout.dims)) {
      ArrayRef<unsigned> rest = split;
      int64_t blocks = split.blocks;
      for (int64_t factor : dim) {
        const int64_t size = rule.factors[factor].size;
        if (blocks > 1 && blocks % size == 0) {
          blocks /= size; // a major factor that is whole
          continue;
        }
        if (size % blocks != 0)
          break;
        Axes taken = takeDividing(rest, size / blocks);
        rest = rest.drop_front(taken.size());
        offer(factor, Split(taken, blocks));
        if (blocks * dist::groupSize(mesh, taken) != size)
          break; // behind a factor that is split in part none is split
        blocks = 1;
      }
    }
  }

  /// Takes back axes of factors that cannot be split as they are in the dimensions that they share with others.
  void dropUnrepresentable() {
    bool changed = true;
    while (changed) {
      changed = false;
      for (const auto *tensors : {&rule.operands, &rule.results})
        for (const TensorFactors &tensor : *tensors)
          for (const auto &dim : tensor)
            changed |= dropInDim(dim);
    }
  }

  Layout layoutOf(const TensorFactors &tensor) const {
    Layout layout;
    for (const auto &dim : tensor) {
      Split &split = layout.dims.emplace_back();
      int64_t whole = 1;
      for (int64_t factor : dim) {
        const Split &part = axesOf[factor];
        if (split.empty() && !part.empty())
          split.blocks = whole * part.blocks;
        split.append(part);
        whole *= rule.factors[factor].size;
      }
    }
    return layout;
  }

  bool isUsed(unsigned axis) const {
    return llvm::any_of(axesOf, [&](const Split &split) { return llvm::is_contained(split, axis); });
  }

  /// What a result owes since it reduces factors that are split.
  dist::Partials reductionsOf(unsigned result) const {
    dist::Partials owed;
    for (const Reduction &reduction : rule.reductions[result])
      for (unsigned axis : axesOf[reduction.factor])
        owed.push_back({axis, reduction.kind});
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
  Axes takeDividing(ArrayRef<unsigned> axes, int64_t size) const {
    Axes taken;
    for (unsigned axis : axes) {
      taken.push_back(axis);
      if (size % dist::groupSize(mesh, taken) != 0) {
        taken.pop_back();
        break;
      }
    }
    return taken;
  }

  void offer(int64_t factor, const Split &wanted) {
    if (rule.factors[factor].kind == FactorKind::NeedReplication ||
        (rule.factors[factor].isOrdered && wanted.blocks != 1))
      return;
    Axes free;
    for (unsigned axis : wanted) {
      if (isUsed(axis) && !llvm::is_contained(axesOf[factor], axis))
        break;
      free.push_back(axis);
    }
    if (Split split(free, wanted.blocks); axesOf[factor].isPrefixOf(split))
      axesOf[factor] = split;
  }

  /// Factors that are whole come first: they count blocks. Then those that are split, completely but for the last.
  bool dropInDim(ArrayRef<int64_t> dim) {
    bool isSplit = false, isLast = false, changed = false;
    for (int64_t factor : dim) {
      Split &split = axesOf[factor];
      const int64_t size = rule.factors[factor].size;
      const bool fits = !isLast && (!isSplit || split.blocks == 1);
      if (!split.empty() && !fits) {
        split = Split();
        changed = true;
      }
      isSplit |= !split.empty();
      isLast |= isSplit && split.blocks * dist::groupSize(mesh, split) != size;
    }
    return changed;
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
  solver.dropUnrepresentable();

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
