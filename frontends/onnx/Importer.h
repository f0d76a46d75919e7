//===- Importer.h - walks an ONNX graph and builds @step --------*- C++ -*-===//
//
// One import: arguments from initializers and inputs, then every node in
// order. Nodes that cannot be imported are collected and reported together.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_IMPORTER_H
#define TESSERA_FRONTENDS_ONNX_IMPORTER_H

#include "frontends/common/CallBuilder.h"
#include "frontends/common/Step.h"
#include "frontends/onnx/Import.h"
#include "frontends/onnx/OpTable.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tessera::onnx_import {

/// Names and what they stand for; an inner graph sees the outer names.
struct Scope {
  llvm::StringMap<Entry> names;
  Scope *outer = nullptr;

  Entry *find(llvm::StringRef name) {
    for (Scope *scope = this; scope; scope = scope->outer)
      if (auto found = scope->names.find(name); found != scope->names.end())
        return &found->second;
    return nullptr;
  }
};

/// Where a node stands: in the model's graph, or in the body of a function that is inlined.
struct Frame {
  std::string prefix;                         ///< of node names
  llvm::StringMap<int> opsets;                ///< by domain
  const onnx::NodeProto *call = nullptr;      ///< whose attributes the body refers to
  std::vector<onnx::AttributeProto> defaults; ///< of attributes that the call does not give
  int depth = 0;
};

/// Writes `node` into `resolved` with the attributes of the call in the place of those that refer to them, as nodes in
/// a function's body do. False if it refers to none.
bool resolveAttributes(const onnx::NodeProto &node, const Frame &frame, onnx::NodeProto &resolved);

class Importer {
public:
  Importer(const onnx::ModelProto &model, const ImportOptions &options, mlir::MLIRContext &context,
           const std::string &path, std::string folder);

  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  mlir::InFlightDiagnostic error() { return mlir::emitError(fileLoc); }
  mlir::Location locOf(const onnx::NodeProto &node, const Frame &frame);

  // Arguments (Arguments.cpp).
  mlir::LogicalResult readRoles();
  mlir::LogicalResult collectUses(const Nodes &nodes, int depth);
  mlir::LogicalResult addInitializers();
  mlir::LogicalResult checkPlaced();
  mlir::LogicalResult addInputs();
  mlir::LogicalResult addResults();

  // Nodes (Importer.cpp).
  mlir::LogicalResult readOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports,
                                 Frame &frame);
  mlir::LogicalResult importNodes(const Nodes &nodes, Scope &scope, const Frame &frame);
  mlir::LogicalResult importNode(const onnx::NodeProto &node, Scope &scope, const Frame &frame);
  mlir::LogicalResult inlineFunction(const onnx::FunctionProto &function, const onnx::NodeProto &call,
                                     std::vector<Entry> inputs, Scope &scope, const Frame &frame);
  mlir::LogicalResult inlineBranch(const onnx::NodeProto &node, bool taken, Scope &scope, const Frame &frame);
  void define(const onnx::NodeProto &node, std::vector<Entry> outputs, Scope &scope);
  void report(const onnx::NodeProto &node, const Frame &frame, const llvm::Twine &reason);

  const onnx::ModelProto &model;
  const ImportOptions &options;
  mlir::MLIRContext &context;
  const std::string folder; ///< where external data lies; empty: there is none
  mlir::Location fileLoc;
  Step step;
  Roles roles;
  Scope top;
  Frame root;
  llvm::StringMap<const onnx::FunctionProto *> functions;
  llvm::StringSet<> used; ///< names that some node or output reads
  CallBuilder calls;
  int64_t nodeCount = 0, activeDropouts = 0;
};

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_IMPORTER_H
