//===- Importer.h - walks an exported program and builds @step --*- C++ -*-===//
//
// One import: arguments from the program's signature, then every node in order.
// Nodes that cannot be imported are collected and reported together, with the
// lines of Python that they come from.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_IMPORTER_H
#define TESSERA_FRONTENDS_PT2_IMPORTER_H

#include "frontends/common/Roles.h"
#include "frontends/pt2/Call.h"
#include "frontends/pt2/Import.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tessera::pt2 {

/// The names that an argument or an output refers to; an empty one is None.
std::vector<std::string> namesOf(const Argument &argument);

class Importer {
public:
  Importer(const Program &program, const ImportOptions &options, mlir::MLIRContext &context);

  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  struct Unsupported {
    mlir::Location loc;
    std::string what;
  };

  mlir::InFlightDiagnostic error() { return mlir::emitError(fileLoc); }
  mlir::Location locOf(const Node &node);

  // Arguments and results (ImportArguments.cpp).
  void collectReaders();
  mlir::LogicalResult checkStorages();
  mlir::LogicalResult addTensors();
  mlir::LogicalResult addTensor(const InputSpec &spec);
  mlir::FailureOr<Constant> readConstant(llvm::StringRef name, mlir::RankedTensorType type);
  mlir::LogicalResult addInputs();
  bool isCounter(const Node &node) const;
  mlir::LogicalResult addResults();
  mlir::Value addArgument(llvm::StringRef name, mlir::RankedTensorType type, train::ArgRole role);
  void setArgumentAttr(llvm::StringRef name, mlir::Attribute value); ///< of the last argument
  void note(llvm::StringRef name, mlir::RankedTensorType type, train::TensorRole role, llvm::StringRef reason);
  mlir::Value seedArgument();

  // Nodes (Importer.cpp).
  mlir::LogicalResult importNodes();
  void importNode(const Node &node);
  bool fill(const Node &node, Call &call);
  void define(const Node &node, Call &call);
  void markBroken(const Node &node);
  void report(const Node &node, const llvm::Twine &reason);
  mlir::LogicalResult reportAll();
  bool evaluateCall(const OpRow &row, Call &call);
  mlir::LogicalResult checkResults(const Node &node, Call &call);

  const Program &program;
  const ImportOptions &options;
  mlir::MLIRContext &context;
  mlir::Location fileLoc;
  mlir::OpBuilder builder;
  mlir::func::FuncOp func;
  frontend::Roles roles;
  llvm::StringMap<Entry> names;
  llvm::StringMap<std::string> firstOf; ///< of names that share one tensor: the one that stands for all
  mlir::Value seed;
  std::vector<mlir::Attribute> argAttrs, tensors;
  std::vector<Unsupported> unsupported;
  llvm::StringMap<unsigned> uses; ///< of names of the graph, as arguments of nodes
  int64_t work = 0, randomStreams = 0, runningPairs = 0;
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_IMPORTER_H
