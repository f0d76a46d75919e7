//===- Register.h - everything a Tessera tool registers ---------*- C++ -*-===//

#ifndef TESSERA_PASSES_REGISTER_H
#define TESSERA_PASSES_REGISTER_H

#include "mlir/IR/DialectRegistry.h"

namespace tessera {

/// Dialects, interface models (gradient and sharding rules) and extensions.
void registerAllDialects(mlir::DialectRegistry &registry);
/// Passes and named pipelines, for tools that read them from the command line.
void registerAllPasses();

} // namespace tessera

#endif // TESSERA_PASSES_REGISTER_H
