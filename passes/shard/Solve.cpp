#include "passes/shard/Solve.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using tessera::dist::Axes;
using tessera::dist::Layout;
using tessera::dist::MeshAttr;

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
/// axes divides the factor.
class Solver {
public:
  Solver(const ShardingRule &rule, MeshAttr mesh) : rule(rule), mesh(mesh), axesOf(rule.factors.size()) {}

  void addEvidence(const TensorFactors &tensor, const Layout &layout) {
    for (auto [dim, axes] : llvm::zip_equal(tensor, layout.dims)) {
      ArrayRef<unsigned> rest = axes;
      for (int64_t factor : dim) {
        Axes taken = takeDividing(rest, rule.factors[factor].size);
        rest = rest.drop_front(taken.size());
        offer(factor, taken);
        if (dist::groupSize(mesh, taken) != rule.factors[factor].size)
          break; // a minor factor is split only where the major one is split completely
      }
    }
  }

  /// Takes back axes of minor factors whose major factor, in some tensor, is not split completely.
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
      Axes &axes = layout.dims.emplace_back();
      for (int64_t factor : dim)
        axes.append(axesOf[factor]);
    }
    return layout;
  }

  bool isUsed(unsigned axis) const {
    return llvm::any_of(axesOf, [&](const Axes &axes) { return llvm::is_contained(axes, axis); });
  }

  Axes reductionAxes() const {
    Axes all;
    for (auto [factor, axes] : llvm::zip_equal(rule.factors, axesOf))
      if (factor.kind == FactorKind::Reduction)
        all.append(axes);
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

  void offer(int64_t factor, ArrayRef<unsigned> axes) {
    if (rule.factors[factor].kind == FactorKind::NeedReplication)
      return;
    Axes free;
    for (unsigned axis : axes) {
      if (isUsed(axis) && !llvm::is_contained(axesOf[factor], axis))
        break;
      free.push_back(axis);
    }
    if (dist::isPrefix(axesOf[factor], free))
      axesOf[factor] = free;
  }

  bool dropInDim(ArrayRef<int64_t> dim) {
    bool complete = true, changed = false;
    for (int64_t factor : dim) {
      if (!complete && !axesOf[factor].empty()) {
        axesOf[factor].clear();
        changed = true;
      }
      complete = complete && dist::groupSize(mesh, axesOf[factor]) == rule.factors[factor].size;
    }
    return changed;
  }

  const ShardingRule &rule;
  MeshAttr mesh;
  SmallVector<Axes> axesOf;
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
    gives.unreduced.append(reduced);
    llvm::sort(gives.unreduced);
  }
  return solution;
}

} // namespace tessera::shard
