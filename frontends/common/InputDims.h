//===- InputDims.h - sizes and roles of the inputs' dimensions --*- C++ -*-===//
//
// A model's inputs have symbolic dimensions. What binds one also says what it
// counts: samples (--batch), positions (--seq), or nothing (--dim).
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_COMMON_INPUTDIMS_H
#define TESSERA_FRONTENDS_COMMON_INPUTDIMS_H

#include "compiler/dialect/train/Dims.h"
#include "frontends/Frontend.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tessera::frontend {

/// A dimension as the file has it.
struct FileDim {
  std::optional<int64_t> size; ///< if it is fixed
  std::string symbol;          ///< else its name; empty: it has none
};

class InputDims {
public:
  struct Dim {
    FileDim file;
    int64_t size = 0;
    train::DimRole role = train::DimRole::None;
    bool isKnown = false; ///< the role was said, or follows from what bound the dimension
    bool isGiven = false; ///< by --dim-role
  };
  struct Input {
    std::string name;
    llvm::SmallVector<Dim> dims;

    llvm::SmallVector<int64_t> shape() const;
    bool has(train::DimRole role) const;
    bool isGiven() const {
      return llvm::any_of(dims, [](const Dim &dim) { return dim.isGiven; });
    }
  };

  InputDims(const ImportOptions &options, mlir::Location loc) : options(options), loc(loc) {}

  /// An input of the model.
  void add(llvm::StringRef name, llvm::ArrayRef<FileDim> dims);
  /// Finds sizes and roles of all that were added. A size that nothing gives, one that binds nothing, and roles that
  /// contradict each other or the sizes, are errors.
  mlir::LogicalResult resolve();

  llvm::ArrayRef<Input> getInputs() const { return inputs; }
  /// `train.dims` of an input; null if nothing is known of any input, which leaves it to be assumed.
  train::DimsAttr getAttr(const Input &input) const;

private:
  mlir::InFlightDiagnostic error() { return mlir::emitError(loc); }
  mlir::LogicalResult checkSymbols();
  mlir::LogicalResult readFlag(llvm::StringRef flag);
  mlir::LogicalResult readFlags();
  mlir::LogicalResult assignByPlace(Input &input);
  mlir::LogicalResult addSymbol(const Input &input, size_t dim);
  mlir::LogicalResult assignSizes(Input &input);
  mlir::LogicalResult checkUnused();
  mlir::LogicalResult assumeSamples();
  bool isSymbolBound(const Dim &dim) const;
  int64_t wantedFor(train::DimRole role) const;

  const ImportOptions &options;
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

} // namespace tessera::frontend

#endif // TESSERA_FRONTENDS_COMMON_INPUTDIMS_H
