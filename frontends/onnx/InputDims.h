//===- InputDims.h - sizes and roles of the inputs' dimensions --*- C++ -*-===//
//
// A model's inputs have symbolic dimensions. What binds one also says what it
// counts: samples (--batch), positions (--seq), or nothing (--dim).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_ONNX_INPUTDIMS_H
#define TESSERA_FRONTENDS_ONNX_INPUTDIMS_H

#include "compiler/dialect/train/Dims.h"
#include "frontends/onnx/Import.h"
#include "frontends/onnx/Proto.h"

#include "llvm/ADT/StringMap.h"

namespace tessera::onnx_import {

/// The size that the file gives. The dynamo exporter writes one that tracing fixed as a symbol whose name is a number.
std::optional<int64_t> fixedSize(const onnx::TensorShapeProto::Dimension &dim);

class InputDims {
public:
  struct Dim {
    const onnx::TensorShapeProto::Dimension *proto;
    int64_t size = 0;
    train::DimRole role = train::DimRole::None;
    bool isKnown = false; ///< the role was said, or follows from what bound the dimension
  };
  struct Input {
    llvm::StringRef name;
    llvm::SmallVector<Dim> dims;
    bool isGiven = false; ///< --dim-role names it: what it does not say of a dimension is nothing

    llvm::SmallVector<int64_t> shape() const;
    bool has(train::DimRole role) const;
  };

  InputDims(const OnnxImportOptions &options, mlir::Location loc) : options(options), loc(loc) {}

  /// An input of the model; its type is a tensor with a shape.
  void add(const onnx::ValueInfoProto &proto);
  /// Finds sizes and roles of all that were added. A size that nothing gives, and roles that contradict each other or
  /// the sizes, are errors.
  mlir::LogicalResult resolve();

  llvm::ArrayRef<Input> getInputs() const { return inputs; }
  /// `train.dims` of an input; null if nothing is known of any input, which leaves it to be assumed.
  train::DimsAttr getAttr(const Input &input) const;

private:
  mlir::InFlightDiagnostic error() { return mlir::emitError(loc); }
  mlir::LogicalResult readFlag(llvm::StringRef flag);
  mlir::LogicalResult assignByPlace(Input &input);
  mlir::LogicalResult addSymbol(const Input &input, size_t dim);
  mlir::LogicalResult assignSizes(Input &input);
  mlir::LogicalResult checkUnused();
  mlir::LogicalResult assumeSamples();
  bool isSymbolBound(const Dim &dim) const;
  int64_t wantedFor(train::DimRole role) const;

  const OnnxImportOptions &options;
  mlir::Location loc;
  llvm::SmallVector<Input> inputs;
  /// What the dimensions of a symbol count, and which one says so.
  struct Symbol {
    train::DimRole role;
    std::string where;
    bool isGiven; ///< by --dim-role: goes before what the place of a dimension says
  };
  llvm::StringMap<Symbol> symbols;
  bool isAnyKnown = false; ///< of any dimension of any input
};

} // namespace tessera::onnx_import

#endif // TESSERA_FRONTENDS_ONNX_INPUTDIMS_H
