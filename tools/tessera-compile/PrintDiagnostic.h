//===- PrintDiagnostic.h - diagnostics as lines of the terminal --*- C++ -*-===//

#ifndef TESSERA_TOOLS_TESSERACOMPILE_PRINTDIAGNOSTIC_H
#define TESSERA_TOOLS_TESSERACOMPILE_PRINTDIAGNOSTIC_H

#include "mlir/IR/Diagnostics.h"

namespace tessera {

/// Writes a diagnostic and its notes to standard error, one line each: severity, where it comes from in the model, what
/// it says. remarks: write remarks, too.
void printDiagnostic(mlir::Diagnostic &diagnostic, bool remarks);

} // namespace tessera

#endif // TESSERA_TOOLS_TESSERACOMPILE_PRINTDIAGNOSTIC_H
