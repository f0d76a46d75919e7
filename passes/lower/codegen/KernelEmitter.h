//===- KernelEmitter.h - loops of one kernel --------------------*- C++ -*-===//
//
// Writes a planned kernel as a function of scf loops over scalars, `void(ptr buffers, i64 begin, i64 end)`.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_LOWER_CODEGEN_KERNELEMITTER_H
#define TESSERA_PASSES_LOWER_CODEGEN_KERNELEMITTER_H

#include "passes/lower/codegen/KernelPlan.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tessera::codegen {

/// Tables of a module, shared by its kernels.
class ConstantTables {
public:
  explicit ConstantTables(mlir::ModuleOp module) : module(module) {}
  mlir::LLVM::GlobalOp get(train::ConstantOp op);

private:
  mlir::ModuleOp module;
  llvm::DenseMap<mlir::Attribute, mlir::LLVM::GlobalOp> tables;
};

class KernelEmitter : public Emission {
public:
  KernelEmitter(const KernelBody &body, const KernelPlan &plan, ConstantTables &tables, mlir::Location loc);

  /// Adds function `symbol` at the end of `module`.
  mlir::LogicalResult emit(mlir::ModuleOp module, llvm::StringRef symbol, std::string &why);

  mlir::OpBuilder &at(unsigned level) override;
  mlir::Value constant(int64_t value, mlir::Type type) override;
  mlir::Value load(mlir::Value input, mlir::Value linear, unsigned level) override;
  std::optional<Scalar> held(mlir::Value, const Index &) override { return std::nullopt; }
  mlir::Value loadConstant(train::ConstantOp op, mlir::Value linear, unsigned level) override;
  Scalar reduced(mlir::Operation *op) override;
  std::optional<Scalar> kept(mlir::Value value, const Index &linear) override;
  void computed(mlir::Value value, const Index &linear, Scalar scalar) override;
  unsigned openBranch(mlir::Value condition, mlir::Type type) override;
  void otherwise(Scalar value) override;
  Scalar closeBranch(Scalar value) override;
  unsigned depth() const override { return levels.size() - 1; }

protected:
  /// One open loop or branch.
  struct Level {
    mlir::Block *block;
    /// What is open inside it: code of this level goes before.
    mlir::Operation *nested = nullptr;
    mlir::LLVM::AccessGroupAttr group;
    llvm::SmallVector<Scalar> branches;
  };
  /// What a reduction carries: the value, and the index for argmax.
  struct Accumulator {
    const Reduction *reduction;
    llvm::SmallVector<mlir::Type, 2> types;
    /// Row kernels: values after the pass. Column kernels: one array per type. Sums of columns in row-column kernels:
    /// those of the rows so far.
    llvm::SmallVector<mlir::Value, 2> values;
  };

  /// What a pass over a row stores once the whole vector is known: a result may share an operand's buffer.
  struct Pending {
    size_t output;
    Scalar value;
    Index position;
  };

  void emitRows();
  void emitColumns();
  void emitLanes(mlir::Value low, mlir::Value high);
  void emitScatter();
  using Values = llvm::SmallVector<mlir::Value>;
  Values emitPass(unsigned pass, size_t position, Values carried);
  void emitColumnPass(unsigned pass, size_t position, mlir::Value low, mlir::Value high);
  void setOuterDigits(mlir::Value linear);

  Values neutral(const Accumulator &accumulator);
  Values neutralOfPass(unsigned pass);
  Values combine(const Accumulator &accumulator, mlir::ValueRange carried);
  void storeOutputs(unsigned pass);
  void storePending();
  void storePerRow();
  void store(mlir::Value output, size_t number, Scalar value, const Index &linear);

  /// A loop [low, high) by `step`; `innermost` says that its iterations are independent.
  mlir::scf::ForOp openLoop(mlir::Value low, mlir::Value high, int64_t step, mlir::ValueRange carried, bool innermost);
  void closeLoop(mlir::ValueRange carried);
  mlir::Value i64(int64_t value) { return constant(value, builder.getI64Type()); }
  mlir::Value address(mlir::Value base, mlir::Type element, mlir::Value linear, unsigned level);
  mlir::Value loadFrom(mlir::Value base, mlir::Type element, mlir::Value linear, unsigned level);
  void storeTo(mlir::Value base, mlir::Type element, mlir::Value value, mlir::Value linear);
  mlir::Value stackArray(int64_t elements, mlir::Type type);
  Index innerIndex() const;

  const KernelBody &body;
  const KernelPlan &plan;
  ConstantTables &tables;
  mlir::Location loc;
  Space space;
  Evaluator evaluator;
  mlir::OpBuilder builder;
  llvm::SmallVector<Level> levels;
  llvm::DenseMap<mlir::Value, mlir::Value> inputPointers;
  Values outputPointers;
  mlir::Value begin, end;
  llvm::SmallVector<Accumulator> accumulators;
  unsigned pass = 0;
  /// Inside of unrolled digits that hold no loop: what is stored behind them.
  bool isUnrolling = false;
  llvm::SmallVector<Pending> pending;
  /// Column kernels: the first lane of the block.
  mlir::Value laneBase;
  struct Scratch {
    mlir::Value array;
    std::optional<unsigned> pass;
  };
  llvm::DenseMap<mlir::Value, Scratch> scratch;
};

/// One element of an accumulator and another: the steps of a reduction. For argmax the values come with their indices,
/// and of equal values the one with the smaller index wins.
llvm::SmallVector<mlir::Value> combinePartial(mlir::OpBuilder &builder, mlir::Location loc, mlir::Operation *reduction,
                                              mlir::ValueRange a, mlir::ValueRange b);

} // namespace tessera::codegen

#endif // TESSERA_PASSES_LOWER_CODEGEN_KERNELEMITTER_H
