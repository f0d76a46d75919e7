//===- FusionRole.cpp - what ops are to fusion ----------------------------===//
//
// Computed by a kernel, an index map inside kernels, or left to memory planning and libraries.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Builders.h"
#include "passes/lower/FusionGroups.h"
#include "passes/lower/LibraryLayouts.h"

using namespace mlir;
using tessera::train::shapeOf;

namespace tessera {

/// Rows of the first operand one after the other: a view of its parts.
static bool isContiguousConcat(train::ConcatOp op) {
  return llvm::all_of(shapeOf(op.getResult()).take_front(op.getDim()), [](int64_t size) { return size == 1; });
}

/// Whether an op that is no kernel reads `value`, as it is or through views that memory planning can make.
static bool readByLibrary(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    if (isa<train::ReshapeOp, train::TransposeOp, train::SliceOp>(user))
      return readByLibrary(user->getResult(0));
    return fusionRole(user) == FusionRole::Fixed;
  });
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
  return isa_and_nonnull<train::DotGeneralOp, exec::AddProductOp, train::AttentionOp, train::AttentionGradOp>(op);
}

/// Whether the result is a strided view of its source's row-major order, given that the operand is.
static std::optional<lower::Layout> permutedLayout(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<train::ReshapeOp, train::TransposeOp>(op))
    return lower::Layout::contiguous(shapeOf(value));
  std::optional<lower::Layout> operand = permutedLayout(op->getOperand(0));
  return operand ? lower::layoutOfResult(op, *operand) : std::nullopt;
}

/// A reshape of a transposed value that a library call reads, and that is no view of the row-major value. It is in
/// memory in its own order then: a library call that computes the value writes it so, and else a kernel does.
static FusionRole reshapeRole(train::ReshapeOp op) {
  auto transpose = op.getOperand().getDefiningOp<train::TransposeOp>();
  if (!transpose || !readByLibrary(op.getResult()) || permutedLayout(op.getResult()) ||
      !permutedLayout(op.getOperand()))
    return FusionRole::View;
  Operation *source = permutedSource(op.getOperand());
  if (writesStrided(source))
    return FusionRole::Fixed;
  return source && source->getBlock() == op->getBlock() && fusionRole(source) == FusionRole::Compute
             ? FusionRole::Compute
             : FusionRole::View;
}

/// A product and the tail that makes its rows longer.
static bool isPaddedProduct(train::ConcatOp op) {
  auto tail = op.getOperands().size() == 2 ? op.getOperand(1).getDefiningOp<train::ConstantOp>() : nullptr;
  return tail && tail.getValue().isSplat() && op.getDim() + 1 == shapeOf(op.getResult()).size() &&
         isa_and_nonnull<train::DotGeneralOp, exec::AddProductOp>(op.getOperand(0).getDefiningOp());
}

/// A concatenation along an inner dimension is an index map for kernels. If a library call reads it, it is in memory
/// anyway: made part by part by library calls, else by one kernel.
static FusionRole concatRole(train::ConcatOp op) {
  if (isContiguousConcat(op) || isPaddedProduct(op))
    return FusionRole::Fixed;
  if (!readByLibrary(op.getResult()))
    return FusionRole::View;
  bool inPlace = llvm::all_of(op.getOperands(), [](Value part) { return writesStrided(permutedSource(part)); });
  return inPlace ? FusionRole::Fixed : FusionRole::Compute;
}

FusionRole fusionRole(Operation *op) {
  if (codegen::isElementwise(op) ||
      isa<train::ReduceOp, train::ArgmaxOp, train::ScatterAddRowsOp, train::RngUniformOp,
          train::StochasticRoundOp>(op))
    return FusionRole::Compute;
  if (auto concat = dyn_cast<train::ConcatOp>(op))
    return concatRole(concat);
  if (auto reshape = dyn_cast<train::ReshapeOp>(op))
    return reshapeRole(reshape);
  if (isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp, train::SliceOp, train::PadOp, train::DynamicSliceOp,
          train::DynamicUpdateSliceOp, train::GatherRowsOp, train::IotaOp, train::ConstantOp>(op))
    return FusionRole::View;
  return FusionRole::Fixed;
}

bool isLayoutView(Operation *op) {
  if (auto constant = dyn_cast<train::ConstantOp>(op))
    return constant.getValue().isSplat();
  return isa<train::ReshapeOp, train::TransposeOp, train::SliceOp>(op);
}

} // namespace tessera
