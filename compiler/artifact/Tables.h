//===- Tables.h - an exec program as the artifact's tables ------*- C++ -*-===//
//
// Fills the FlatBuffers object of an artifact from the IR, table by table. Programs, instructions and memory are in
// InstructionTables.cpp, what programs exchange with their host is in InterfaceTables.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_COMPILER_ARTIFACT_TABLES_H
#define TESSERA_COMPILER_ARTIFACT_TABLES_H

#include "compiler/dialect/dist/Dist.h"
#include "compiler/dialect/exec/Exec.h"
#include "compiler/dialect/train/Segments.h"
#include "runtime/artifact/artifact_generated.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::artifact {

class Tables {
public:
  Tables(mlir::ModuleOp module, PackageT &table) : module(module), table(table) {}
  /// All programs of the module, the training first. Failure means that a diagnostic was emitted.
  llvm::LogicalResult fill();

private:
  using Instructions = std::vector<std::unique_ptr<InstructionT>>;

  llvm::LogicalResult fillProgram(exec::ProgramOp op);
  llvm::LogicalResult fillMemory();
  void fillStreams();
  llvm::LogicalResult fillInstructions(mlir::Block &block, Instructions &list);
  llvm::LogicalResult fillOperation(mlir::Operation *op, OperationUnion &operation);
  void hashCollective(exec::CollectiveOp op);

  llvm::LogicalResult fillArgument(exec::ArgumentOp op);
  llvm::LogicalResult fillState(exec::ArgumentOp op, train::ArgRole role);
  llvm::LogicalResult fillDerived(exec::ArgumentOp op);
  llvm::LogicalResult fillBatch(exec::ArgumentOp op, train::ArgRole role);
  void fillSegment(train::SegmentAttr segment, StateTensorT &state);
  llvm::LogicalResult fillResult(exec::ResultOp op);
  llvm::LogicalResult fillProbe(exec::ProbeOp op);
  void fillTensors();
  void fillAdapters();
  void fillWeightMap();
  void fillProducts();

  llvm::FailureOr<DataType> dataType(mlir::Operation *op, mlir::Type type);
  uint32_t buffer(mlir::Value value) { return buffers.lookup(value); }
  /// Index of the group over `axes`, -1 for none or an empty list.
  int32_t group(mlir::ArrayAttr axes);
  uint32_t location(mlir::Location loc);
  uint32_t kernel(llvm::StringRef symbol);

  /// Of a later program: the state of the training that an argument is, in the same place.
  llvm::LogicalResult findState(exec::ArgumentOp op, const StateTensorT &state);
  bool isTraining() const { return table.programs.size() == 1; }

  mlir::ModuleOp module;
  PackageT &table;
  llvm::StringMap<uint32_t> arenas, locations, kernels;
  llvm::DenseMap<mlir::ArrayAttr, int32_t> groups;
  uint32_t numStreams = 0;

  // Of the program that is being filled.
  exec::ProgramOp program;
  ProgramT *into = nullptr;
  llvm::DenseMap<mlir::Value, uint32_t> buffers;
  std::string collectives; ///< the sequence that the collective hash is taken of
  uint32_t numInstructions = 0;
  uint32_t lastCompute = 0; ///< the latest instruction of the compute stream
};

/// The name that a location stands for: that of its first NameLoc, `grad(x)` for the backward op of x.
std::string locationName(mlir::Location loc);

} // namespace tessera::artifact

#endif // TESSERA_COMPILER_ARTIFACT_TABLES_H
