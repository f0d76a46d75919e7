#include "passes/shard/Solve.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using tessera::dist::Axes;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;
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

  /// The axes of reduction factors; with `but` those that this tensor does not have.
  Axes reductionAxes(const TensorFactors *but = nullptr) const {
    Axes all;
    for (auto [number, factor] : llvm::enumerate(rule.factors)) {
      auto has = [&, number = number](const auto &dim) {
        return llvm::is_contained(dim, static_cast<int64_t>(number));
      };
      if (factor.kind == FactorKind::Reduction && !(but && llvm::any_of(*but, has)))
        all.append(axesOf[number]);
    }
    llvm::sort(all);
    return all;
  }

  bool hasReductionFactor(const TensorFactors &tensor) const {
    return llvm::any_of(tensor, [&](const auto &dim) {
      return llvm::any_of(dim, [&](int64_t f) { return rule.factors[f].kind == FactorKind::Reduction; });
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

/// The op may leave a partial sum over `axis` unreduced.
bool mayStayUnreduced(const ShardingRule &rule, ArrayRef<OperandState> operands, unsigned axis) {
  unsigned owing = 0;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    bool owes = operand.layout->isUnreduced(axis);
    bool linear = index < rule.linear.size() && rule.linear[index];
    if (owes && !linear)
      return false;
    if (rule.jointlyLinear && linear && !owes && !operand.isZero)
      return false;
    owing += owes;
  }
  return rule.jointlyLinear ? owing > 0 : owing == 1;
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

  Axes inherited;
  for (unsigned axis = 0, end = mesh.getSizes().size(); axis < end; ++axis)
    if (!solver.isUsed(axis) && mayStayUnreduced(rule, operands, axis))
      inherited.push_back(axis);
  Axes reduced = solver.reductionAxes();

  Solution solution;
  for (auto [index, tensor] : llvm::enumerate(rule.operands)) {
    Layout &need = solution.operands.emplace_back(solver.layoutOf(tensor));
    bool linear = index < rule.linear.size() && rule.linear[index];
    if (!linear)
      continue;
    for (unsigned axis : inherited)
      if (rule.jointlyLinear || operands[index].layout->isUnreduced(axis))
        need.unreduced.push_back(axis);
    // A term of a sum that does not take part in the reduction would be counted once per rank: it must be a partial
    // sum.
    if (rule.jointlyLinear && !solver.hasReductionFactor(tensor))
      need.unreduced.append(reduced);
    llvm::sort(need.unreduced);
  }
  for (const TensorFactors &tensor : rule.results) {
    Layout &gives = solution.results.emplace_back(solver.layoutOf(tensor));
    gives.unreduced = inherited;
    gives.unreduced.append(solver.reductionAxes(&tensor));
    llvm::sort(gives.unreduced);
  }
  return solution;
}

} // namespace tessera::shard
