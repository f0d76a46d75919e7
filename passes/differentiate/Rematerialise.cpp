//===- Rematerialise.cpp - the backward pass computes again what it needs -===//
//
// Chooses what lives from the forward to the backward pass (remat/Policy.h) and writes the rest of what the backward
// pass reads once more, right before its first reader there. Recomputation reads what is kept through barriers, so that
// no later pass merges it with the forward pass or moves it there.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/PhaseAnalysis.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/differentiate/Passes.h"
#include "passes/differentiate/remat/Report.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
using namespace tessera::remat;

namespace tessera {
#define GEN_PASS_DEF_REMATERIALISE
#include "passes/differentiate/Passes.h.inc"

namespace {

class Recomputation {
public:
  Recomputation(const Boundary &boundary, const Plan &plan, bool twice)
      : boundary(boundary), plan(plan), twice(twice) {}

  void run(Block &block) {
    SmallVector<Operation *> readers;
    for (Operation &op : block.without_terminator())
      if (boundary.isBackward(&op))
        readers.push_back(&op);
    for (Operation *reader : readers)
      for (OpOperand &operand : reader->getOpOperands())
        if (int node = boundary.nodeOf(Boundary::rootOf(operand.get())); node >= 0 && isRecomputed(node)) {
          const int segment = boundary.getNodes()[node].segment;
          if (twice && isa<train::AttentionGradOp>(reader))
            begun.insert(segment);
          operand.set(get(operand.get(), segment, reader));
        }
  }

private:
  bool isRecomputed(unsigned node) const { return plan.test(node) && !boundary.getNodes()[node].fixed; }

  /// `value` for an op of the segment's recomputation, or for `before`, in front of which it is made if need be.
  Value get(Value value, int segment, Operation *before) {
    Operation *op = value.getDefiningOp();
    if (boundary.isInert(value) || boundary.isParameter(value))
      return value;
    if (op && Boundary::isView(op))
      return clone(op, segment, before)->getResult(0);
    if (int node = boundary.nodeOf(value); node >= 0 && isRecomputed(node))
      return clone(op, segment, before)->getResult(cast<OpResult>(value).getResultNumber());
    Value &barrier = barriers[{value, turn(segment)}];
    if (!barrier) {
      OpBuilder builder(before);
      StringAttr name =
          builder.getStringAttr(boundary.getSegments()[segment] + (begun.contains(segment) ? ", attention" : ""));
      barrier = train::BarrierOp::create(builder, recomputed(value.getLoc()), value.getType(), value, name);
      mark(barrier.getDefiningOp());
    }
    return barrier;
  }

  Operation *clone(Operation *op, int segment, Operation *before) {
    const auto key = std::make_pair(op, isa<train::AttentionOp>(op) ? 2 * segment : turn(segment));
    if (Operation *made = clones.lookup(key))
      return made;
    IRMapping mapping;
    for (Value operand : op->getOperands())
      mapping.map(operand, get(operand, segment, before));
    Operation *made = OpBuilder(before).clone(*op, mapping);
    made->setLoc(recomputed(op->getLoc()));
    mark(made);
    clones[key] = made;
    return made;
  }

  /// The first or the second recomputation of a segment, as a number among those of all.
  int turn(int segment) const { return 2 * segment + (begun.contains(segment) ? 1 : 0); }

  static Location recomputed(Location loc) { return NameLoc::get(StringAttr::get(loc.getContext(), "recompute"), loc); }
  static void mark(Operation *op) {
    train::markBackward(op);
    op->setAttr(train::kRecompute, UnitAttr::get(op->getContext()));
  }

  const Boundary &boundary;
  const Plan &plan;
  bool twice;
  llvm::DenseSet<int> begun; ///< segments whose gradients of attention have begun
  llvm::DenseMap<std::pair<Operation *, int>, Operation *> clones;
  llvm::DenseMap<std::pair<Value, int>, Value> barriers;
};

struct Rematerialise : impl::RematerialiseBase<Rematerialise> {
  using RematerialiseBase::RematerialiseBase;
  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (train::isStepFunction(func) && failed(run(func)))
      signalPassFailure();
  }

  LogicalResult run(func::FuncOp func);
  FailureOr<Plan> choose(func::FuncOp func, const Boundary &boundary, const BudgetSolver *solver);
  LogicalResult write(const Report &report, const Boundary &boundary, const BudgetSolver *solver);
};

FailureOr<Plan> Rematerialise::choose(func::FuncOp func, const Boundary &boundary, const BudgetSolver *solver) {
  const auto *info = llvm::find_if(policies(), [&](const PolicyInfo &row) { return row.name == policy; });
  if (info != policies().end()) {
    if (info->needsBlocks && !boundary.hasBlocks())
      func.emitRemark("nothing is recomputed: no name has an integer component (h.3, layers.0), so the model has no "
                      "blocks; selective and budget need none");
    return info->plan(boundary);
  }
  if (policy != "budget")
    return func.emitError() << "unknown policy '" << policy << "', expected " << policyNames();
  int64_t total = 0; // of all ranks; beyond 2^63 anything fits
  if (llvm::MulOverflow<int64_t>(budget, parts, total))
    total = budget > 0 ? std::numeric_limits<int64_t>::max() : -1;
  if (auto point = solver->solve(total))
    return point->plan;
  return func.emitError() << "a budget of " << budget.getValue()
                          << " bytes per rank for what the backward pass reads of the forward pass cannot be met: at "
                             "least "
                          << llvm::divideCeil(solver->getFront().back().cost.bytes, parts)
                          << " bytes are needed (inputs of blocks and what lies outside of them)";
}

LogicalResult Rematerialise::write(const Report &result, const Boundary &boundary, const BudgetSolver *solver) {
  if (report == "-") {
    result.printTable(boundary, llvm::errs());
    return success();
  }
  std::error_code code;
  llvm::ToolOutputFile file(report, code, llvm::sys::fs::OF_Text);
  if (!code) {
    result.printJson(boundary, *solver, file.os());
    file.os().close();
    code = file.os().error();
    file.os().clear_error();
  }
  if (code)
    return getOperation().emitError() << "report " << report << ": " << code.message();
  file.keep();
  return success();
}

LogicalResult Rematerialise::run(func::FuncOp func) {
  if (parts < 1)
    return func.emitError() << "parts must be at least 1, got " << parts.getValue();
  if (precision != "fp32" && precision != "bf16")
    return func.emitError() << "unknown precision '" << precision << "', expected fp32 or bf16";
  Boundary boundary(func, precision == "bf16" ? BFloat16Type::get(func.getContext()) : Type());
  std::optional<BudgetSolver> solver;
  if (policy == "budget" || (!report.empty() && report != "-"))
    solver.emplace(boundary);
  FailureOr<Plan> plan = choose(func, boundary, solver ? &*solver : nullptr);
  if (failed(plan))
    return failure();
  Report result{policy, parts, policy == "budget" ? std::optional<int64_t>(budget) : std::nullopt, *plan};
  if (!report.empty() && failed(write(result, boundary, solver ? &*solver : nullptr)))
    return failure();
  Boundary::Outcome before = boundary.follow(Plan(boundary.getNodes().size())), after = boundary.follow(*plan);
  func.emitRemark() << policy << ": the backward pass reads " << boundary.cost(after).bytes / parts << " of "
                    << boundary.cost(before).bytes / parts << " bytes of the forward pass and recomputes "
                    << after.recomputed.size() << " ops";
  Recomputation(boundary, *plan, twice).run(func.getBody().front());
  return success();
}

} // namespace
} // namespace tessera
