//===- BufferAssignment.h - which memory each tensor lives in ---*- C++ -*-===//
//
// Gives every tensor of a lowered step a strided view of a storage. Three things save copies and memory, in this order:
// a value made by a layout op is a view of its operand; a producer writes straight into the place that its consumer
// wants (its part of a concatenation, a transposed layout); an op whose operand dies overwrites it. What is left over
// are copies, which the emission makes and reports.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_BUFFERASSIGNMENT_H
#define TESSERA_PASSES_LOWER_BUFFERASSIGNMENT_H

#include "compiler/dialect/exec/Exec.h"
#include "passes/lower/Layout.h"
#include "passes/lower/SsaLiveness.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::lower {

/// An allocation to be: becomes one slot.
struct Storage {
  explicit Storage(mlir::Value root) : loc(root.getLoc()), root(root) {}

  std::string name;
  int64_t elements = 0;
  mlir::Type elementType;
  exec::ArenaKind arena = exec::ArenaKind::Activations;
  exec::MemoryClass memoryClass = exec::MemoryClass::Activations;
  mlir::Location loc;
  /// Lives across steps or is read by the host: never shared.
  bool fixed = false;
  /// Values other than those derived from one root are written into it.
  bool hasPlacements = false;
  /// Carries a value from one iteration of a loop to the next.
  bool carried = false;
  /// The value that the storage was made for, and all values that have a view of it.
  mlir::Value root;
  llvm::SmallVector<mlir::Value> members;
  /// Last position (SsaLiveness) at which any of its values is used.
  unsigned lastUse = 0;
  int64_t bytes() const { return elements * exec::elementBytes(elementType); }
};

struct View {
  unsigned storage;
  Layout layout;
};

class BufferAssignment {
public:
  explicit BufferAssignment(mlir::func::FuncOp func);

  /// The view of a tensor; null for constants that are only filled in where they are used.
  const View *lookup(mlir::Value value) const;
  llvm::ArrayRef<Storage> getStorages() const { return storages; }
  const Storage &getStorage(unsigned number) const { return storages[number]; }
  /// True if the producer of this operand of a concatenation writes into the result by itself.
  bool isPlaced(mlir::OpOperand &concatOperand) const { return placed.contains(&concatOperand); }
  /// True for the result of a layout op that is no view: it has a storage of its own, filled by a copy.
  bool isCopied(mlir::Value value) const { return copied.contains(value); }
  /// True if the view is all of its storage, in order, on every rank and in every iteration.
  bool isWhole(const View &view) const;

private:
  struct Node {
    mlir::Value value;
    int parent;     ///< index of the node that `op` reads, -1 for the root
    bool bijective; ///< every layout op from the root to here keeps all elements
  };
  using Tree = llvm::SmallVector<Node>;
  struct Candidate {
    std::optional<unsigned> storage; ///< that the root is placed in; none: one of its own
    Layout root;
    mlir::OpOperand *placement = nullptr;
  };

  void assignArguments();
  void assignCarried(exec::RepeatOp repeat);
  void assignMicroBatches(exec::RepeatOp repeat);
  void assignRoot(mlir::Value root);
  Tree collect(mlir::Value root) const;
  llvm::SmallVector<Candidate> candidates(const Tree &tree) const;
  /// Where `use`, of a value of the tree, would like to find the value: its part of a concatenation, what is
  /// overwritten with a result that has a place, the sum that a loop carries.
  std::optional<View> wantedPlace(const Tree &tree, mlir::OpOperand &use) const;
  bool mayPrecede(const Tree &tree, mlir::OpOperand &use, mlir::OpResult result) const;
  bool continuesSum(mlir::OpOperand &yielded) const;
  std::optional<Layout> rootLayout(const Tree &tree, int node, Layout layout) const;
  /// Bytes that have to be moved if the root has this layout.
  int64_t cost(const Tree &tree, const Candidate &candidate) const;
  void commit(const Tree &tree, unsigned storage, const Layout &rootLayout);
  void setView(mlir::Value value, unsigned storage, Layout layout);
  unsigned addStorage(mlir::Value root, exec::ArenaKind arena, exec::MemoryClass memoryClass);

  mlir::func::FuncOp func;
  SsaLiveness liveness;
  llvm::SmallVector<Storage> storages;
  llvm::DenseMap<mlir::Value, View> views;
  llvm::DenseSet<mlir::OpOperand *> placed;
  llvm::DenseSet<mlir::Value> copied;

  friend class InPlace;
  friend void classifyStorages(BufferAssignment &assignment);
};

/// The name that a location stands for: that of its first NameLoc, `grad(x)` for the backward op of x.
std::string nameOf(mlir::Location loc);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_BUFFERASSIGNMENT_H
