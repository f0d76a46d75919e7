//===- TensorFiles.h - interpreter tensors in safetensors files -*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERA_INTERP_TENSORFILES_H
#define TESSERA_TOOLS_TESSERA_INTERP_TENSORFILES_H

#include "compiler/interp/Compare.h"
#include "compiler/interp/Inputs.h"

namespace tessera {

/// Adds the tensors of a file to `tensors`, under their names. Prints what is wrong with the file.
llvm::LogicalResult readTensors(const std::string &path, mlir::MLIRContext *context, interp::NamedTensors &tensors);

/// Writes results under their names.
llvm::LogicalResult writeTensors(const std::string &path, const std::vector<interp::NamedResult> &results);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERA_INTERP_TENSORFILES_H
