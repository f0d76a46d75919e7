//===- Importer.h - walks an exported program and builds @step --*- C++ -*-===//
//
// One import: arguments from the program's signature, then every node in order.
// Nodes that cannot be imported are collected and reported together, with the
// lines of Python that they come from.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_IMPORTER_H
#define TESSERA_FRONTENDS_PT2_IMPORTER_H

#include "frontends/common/CallBuilder.h"
#include "frontends/pt2/Import.h"
#include "frontends/pt2/Mutation.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Reader.h"

#include "llvm/ADT/StringSet.h"

namespace tessera::pt2 {

class Importer {
public:
  Importer(const Archive &archive, const Program &program, const ImportOptions &options, mlir::MLIRContext &context);

  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  mlir::InFlightDiagnostic error() { return mlir::emitError(fileLoc); }
  mlir::Location locOf(const Node &node);
  mlir::Type typeOf(ScalarType type) const;
  mlir::RankedTensorType typeOf(const TensorMeta &meta) const;

  // Arguments and results (ImportArguments.cpp).
  mlir::LogicalResult findShared();
  void findMutations();
  void collectReaders();
  mlir::LogicalResult addTensors();
  mlir::LogicalResult addTensor(const InputSpec &spec);
  Entry addBuffer(const InputSpec &spec, mlir::RankedTensorType type);
  mlir::LogicalResult addInputs();
  mlir::LogicalResult bindSize(llvm::StringRef input, size_t dim, const SymInt &size, int64_t chosen);
  mlir::LogicalResult addResults();
  /// Whether the node counts the batches of a training that is none: with --batch-norm inference it is not imported.
  bool isCounter(const Node &node) const;
  /// Whether a node normalises a batch by its own mean and variance.
  bool isNormalisedByBatch(const Node &node) const;
  /// The name that stands for all that share a tensor.
  const std::string &firstOf(const std::string &name) const;

  // Nodes (Importer.cpp).
  mlir::LogicalResult importNodes();
  void importNode(const Node &node);
  mlir::LogicalResult setNext(const Node &node, llvm::StringRef argument, Entry next, Call &call);
  /// Whether the program says that a node reads or gives complex numbers.
  bool meetsComplex(const Node &node) const;
  bool fill(const Node &node, std::vector<Entry> &inputs, llvm::StringMap<Given> &given);
  mlir::LogicalResult describeResults(llvm::ArrayRef<std::string> results, Call &call);
  mlir::LogicalResult checkResults(llvm::ArrayRef<std::string> results, Call &call);
  void report(const Node &node, const llvm::Twine &reason);

  const Archive &archive;
  const Program &program;
  const ImportOptions &options;
  mlir::MLIRContext &context;
  mlir::Location fileLoc;
  frontend::Step step;
  frontend::CallBuilder calls;
  frontend::Roles roles;
  Mutations mutations;
  llvm::StringMap<Entry> names, byTarget;       ///< of the graph; of parameters and buffers
  std::map<std::string, int64_t> symbols;       ///< the sizes that were chosen
  std::vector<std::string> batchSymbols;        ///< those that count samples
  llvm::StringMap<std::string> shared;          ///< names of a tensor that several names have -> the first of them
  llvm::StringMap<mlir::Value> buffers;         ///< those that change, by their names in the graph -> the argument
  llvm::StringMap<llvm::StringRef> bufferNames; ///< of the same: their names in the module
  llvm::StringSet<> isUsed, isOutput;           ///< names of the graph that nodes read, and those of results
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_IMPORTER_H
