//===- Import.h - exported programs of PyTorch to train IR ------*- C++ -*-===//
//
// The frontend of files of torch.export.save: its only public header.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_IMPORT_H
#define TESSERA_FRONTENDS_PT2_IMPORT_H

#include "frontends/Frontend.h"
#include "frontends/pt2/Archive.h"

namespace tessera {

/// Reads an exported program as a module with a function @step in the train dialect (see Frontend::import).
mlir::OwningOpRef<mlir::ModuleOp> importPt2(const std::string &path, const ImportOptions &options,
                                            mlir::MLIRContext &context);

/// The same of an archive that is open.
mlir::OwningOpRef<mlir::ModuleOp> importPt2Archive(const pt2::Archive &archive, const ImportOptions &options,
                                                   mlir::MLIRContext &context);

} // namespace tessera

#endif // TESSERA_FRONTENDS_PT2_IMPORT_H
