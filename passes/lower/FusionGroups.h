//===- FusionGroups.h - which ops of a block become one kernel --*- C++ -*-===//
//
// The partition that the fuse pass makes: groups of ops with a place in the block's order.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_FUSIONGROUPS_H
#define TESSERA_PASSES_LOWER_FUSIONGROUPS_H

#include "passes/lower/FusionRole.h"
#include "passes/lower/codegen/KernelPlan.h"

#include "llvm/ADT/SetVector.h"

#include <memory>

namespace tessera {

struct FusionGroup {
  llvm::SmallVector<mlir::Operation *> members;
  /// The number of the op in whose place the kernel runs.
  unsigned position;
  /// Without outputs once everything that it computes is recomputed by its readers.
  codegen::KernelBody body;
  codegen::KernelPlan plan;
  /// For views that something outside fusions reads: the op itself.
  bool materialized = false;
  /// Members of other groups that this one computes again.
  llvm::SmallVector<mlir::Operation *> recomputed;
};

class FusionGroups {
public:
  /// `roles`: of the ops of the block.
  FusionGroups(const FusionRoles &roles, bool isGpu, bool keepsGradients)
      : roles(roles), isGpu(isGpu), keepsGradients(keepsGradients) {}
  /// Numbers the ops of `block` and gives each compute op a group of its own. Reports ops that no kernel can compute.
  mlir::LogicalResult initialize(mlir::Block &block);
  /// Merges groups along values, then groups that read the same values, until nothing changes.
  void merge();
  /// Lets groups recompute elementwise values from their other inputs instead of reading them; a value that nothing
  /// reads any more is not stored, in particular not from the forward to the backward pass.
  void recompute();

  llvm::ArrayRef<std::unique_ptr<FusionGroup>> get() const { return groups; }
  FusionGroup *groupOf(mlir::Operation *op) const { return owner.lookup(op); }
  unsigned numberOf(mlir::Operation *op) const { return numbers.lookup(op); }
  /// The place of the first reader of `value`, or what follows the block's last op; views have the place of their
  /// readers.
  unsigned firstReader(mlir::Value value, llvm::ArrayRef<const FusionGroup *> except = {}) const;
  /// The place of what computes `value`, looking through views; -1 outside the block.
  int64_t available(mlir::Value value, llvm::ArrayRef<const FusionGroup *> except = {}) const;
  /// Whether a fixed op (or an outside view) reads `value`.
  bool readOutside(mlir::Value value, llvm::ArrayRef<const FusionGroup *> members) const;

private:
  bool isStored(mlir::Value value) const;
  bool tryRecompute(FusionGroup *group, mlir::Value value, bool mayExpose);
  bool canExpose(const FusionGroup *group, mlir::Value narrow, mlir::Value value) const;
  bool expose(llvm::ArrayRef<mlir::Value> values);
  bool dropUnread();
  bool readByFixed(mlir::Value value) const;
  mlir::Value shapeless(mlir::Value value) const;
  void joinShapes(codegen::KernelBody &body) const;
  codegen::KernelBody bodyOf(llvm::ArrayRef<mlir::Operation *> members) const;
  void collect(mlir::Value value, const llvm::DenseSet<mlir::Operation *> &members,
               llvm::SetVector<mlir::Operation *> &ops, llvm::SetVector<mlir::Value> &inputs) const;
  bool isFreeView(mlir::Value value, const llvm::DenseSet<mlir::Operation *> &members) const;
  bool isMaterialized(mlir::Operation *op) const;
  bool connected(const FusionGroup *a, const FusionGroup *b) const;
  bool tryMerge(FusionGroup *first, FusionGroup *second);
  bool canSink(const FusionGroup *group, const FusionGroup *to) const;
  bool canHoist(const FusionGroup *group, const FusionGroup *to) const;
  bool worthwhile(const FusionGroup *a, const FusionGroup *b, const codegen::KernelBody &body,
                  const codegen::KernelPlan &plan) const;
  llvm::SmallVector<FusionGroup *> producers(const FusionGroup *group) const;
  llvm::SmallVector<FusionGroup *> onlyConsumer(const FusionGroup *group) const;
  bool collectReaders(mlir::Value value, const FusionGroup *except, llvm::SetVector<FusionGroup *> &readers) const;
  void collectSiblings(mlir::Value value, const FusionGroup *group, llvm::SmallVectorImpl<FusionGroup *> &result) const;
  llvm::SmallVector<FusionGroup *> siblings(const FusionGroup *group) const;
  llvm::SmallVector<FusionGroup *> secondSteps(const FusionGroup *group) const;
  bool isSecondStep(const FusionGroup *group, const FusionGroup *of = nullptr) const;
  FusionGroup *makerOf(mlir::Value value) const;

  const FusionRoles &roles;
  /// Whether the kernels are those of a GPU.
  bool isGpu;
  /// Whether no kernel computes ops of the backward pass and others.
  bool keepsGradients;
  mlir::Block *block = nullptr;
  llvm::DenseMap<mlir::Operation *, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, FusionGroup *> owner;
  std::vector<std::unique_ptr<FusionGroup>> groups;
};

} // namespace tessera

#endif // TESSERA_PASSES_LOWER_FUSIONGROUPS_H
