//===- FusionRole.cpp - what ops are to fusion ----------------------------===//
//
// See FusionRole.h. Roles depend on each other in one direction: a concatenation's on those of its readers, a reshape's
// on those of its readers and of what makes its operand, which is no reshape.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/FusionRole.h"

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Builders.h"
#include "passes/lower/LibraryLayouts.h"
#include "passes/lower/codegen/Evaluator.h"

using namespace mlir;
using tessera::train::shapeOf;

namespace tessera {

/// Rows of the first operand one after the other: a view of its parts.
static bool isContiguousConcat(train::ConcatOp op) {
  return llvm::all_of(shapeOf(op.getResult()).take_front(op.getDim()), [](int64_t size) { return size == 1; });
}

/// What computes the value of which `value` is a permutation.
static Operation *permutedSource(Value value) {
  Operation *source = value.getDefiningOp();
  while (source && isa<train::ReshapeOp, train::TransposeOp, train::BarrierOp>(source))
    source = source->getOperand(0).getDefiningOp();
  return source;
}

/// Library calls that write strided tensors, so that what they compute can be made in its place.
static bool writesStrided(Operation *op) {
  if (auto product = dyn_cast_or_null<exec::EpilogueProductOp>(op))
    return exec::sumsOperand(product.getEpilogue());
  return isa_and_nonnull<train::DotGeneralOp, exec::AddProductOp, exec::ScaledProductOp, train::AttentionOp,
                         train::AttentionGradOp>(op);
}

/// Whether the result is a strided view of its source's row-major order, given that the operand is.
static std::optional<lower::Layout> permutedLayout(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<train::ReshapeOp, train::TransposeOp>(op))
    return lower::Layout::contiguous(shapeOf(value));
  std::optional<lower::Layout> operand = permutedLayout(op->getOperand(0));
  return operand ? lower::layoutOfResult(op, *operand) : std::nullopt;
}

/// A product, or the parts of one, and the tail that makes its rows longer.
static bool isPaddedProduct(train::ConcatOp op) {
  auto tail = op.getOperands().back().getDefiningOp<train::ConstantOp>();
  return tail && tail.getValue().isSplat() && op.getDim() + 1 == shapeOf(op.getResult()).size() &&
         llvm::all_of(op.getOperands().drop_back(), [](Value part) {
           return isa_and_nonnull<train::DotGeneralOp, exec::AddProductOp>(permutedSource(part));
         });
}

/// Whether a product of 8-bit floats reads the value, which is in memory in its own order then. A reshape of what a
/// kernel or a call makes is that already.
static bool isScaledOperand(Operation *op) {
  if (auto reshape = dyn_cast<train::ReshapeOp>(op))
    if (!isa_and_nonnull<train::TransposeOp, train::BroadcastOp, train::PadOp>(reshape.getOperand().getDefiningOp()))
      return false;
  return llvm::any_of(op->getUsers(), [](Operation *user) { return isa<exec::ScaledProductOp>(user); });
}

FusionRoles::FusionRoles(Block &block) {
  SmallVector<Operation *> concats, reshapes;
  block.walk([&](Operation *op) {
    if (isa<train::TransposeOp, train::PadOp, train::BroadcastOp, train::ReshapeOp>(op) && isScaledOperand(op))
      decided[op] = FusionRole::Compute;
    else if (isa<train::ConcatOp>(op))
      concats.push_back(op);
    else if (isa<train::ReshapeOp>(op))
      reshapes.push_back(op);
  });
  for (Operation *op : llvm::reverse(concats))
    if (FusionRole role = concatRole(op); role != FusionRole::View)
      decided[op] = role;
  for (Operation *op : reshapes)
    if (FusionRole role = reshapeRole(op); role != FusionRole::View)
      decided[op] = role;
}

/// Whether an op that is no kernel reads `value`, as it is or through views that memory planning can make.
bool FusionRoles::readByLibrary(Value value) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp>(user))
      return readByLibrary(user->getResult(0));
    return of(user) == FusionRole::Fixed;
  });
}

/// A concatenation along an inner dimension is an index map for kernels. If a library call reads it, it is in memory
/// anyway: made part by part by library calls, else by one kernel.
FusionRole FusionRoles::concatRole(Operation *op) const {
  auto concat = cast<train::ConcatOp>(op);
  if (isContiguousConcat(concat) || isPaddedProduct(concat))
    return FusionRole::Fixed;
  if (!readByLibrary(concat.getResult()))
    return FusionRole::View;
  bool inPlace = llvm::all_of(concat.getOperands(), [](Value part) { return writesStrided(permutedSource(part)); });
  return inPlace ? FusionRole::Fixed : FusionRole::Compute;
}

/// A reshape of a transposed value that a library call reads, and that is no view of the row-major value. It is in
/// memory in its own order then: a library call that computes the value writes it so, and else a kernel does.
FusionRole FusionRoles::reshapeRole(Operation *op) const {
  auto reshape = cast<train::ReshapeOp>(op);
  auto transpose = reshape.getOperand().getDefiningOp<train::TransposeOp>();
  if (!transpose || !readByLibrary(reshape.getResult()) || permutedLayout(reshape.getResult()) ||
      !permutedLayout(reshape.getOperand()))
    return FusionRole::View;
  Operation *source = permutedSource(reshape.getOperand());
  if (writesStrided(source))
    return FusionRole::Fixed;
  return source && source->getBlock() == op->getBlock() && of(source) == FusionRole::Compute ? FusionRole::Compute
                                                                                             : FusionRole::View;
}

FusionRole FusionRoles::of(Operation *op) const {
  if (codegen::isElementwise(op) ||
      isa<train::ReduceOp, train::ArgmaxOp, train::ScatterAddRowsOp, train::RngUniformOp, train::StochasticRoundOp>(op))
    return FusionRole::Compute;
  if (auto it = decided.find(op); it != decided.end())
    return it->second;
  if (isa<train::ConcatOp, train::ReshapeOp, train::TransposeOp, train::BroadcastOp, train::SliceOp, train::PadOp,
          train::DynamicSliceOp, train::DynamicUpdateSliceOp, train::GatherRowsOp, train::IotaOp, train::ConstantOp>(
          op))
    return FusionRole::View;
  return FusionRole::Fixed;
}

bool isLayoutView(Operation *op) {
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    return constant.getValue().isSplat();
  return isa<train::ReshapeOp, train::TransposeOp, train::SliceOp>(op);
}

} // namespace tessera
