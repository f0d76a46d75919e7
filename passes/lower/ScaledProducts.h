//===- ScaledProducts.h - which products a GPU has in 8 bits ----*- C++ -*-===//

#ifndef TESSERA_PASSES_LOWER_SCALEDPRODUCTS_H
#define TESSERA_PASSES_LOWER_SCALEDPRODUCTS_H

#include "compiler/dialect/train/Fp8Policy.h"

namespace tessera::lower {

/// The GPUs (sm_90, …) that multiply all that a recipe makes.
llvm::SmallVector<llvm::StringRef> architecturesOf(train::Fp8Recipe recipe);

} // namespace tessera::lower

#endif // TESSERA_PASSES_LOWER_SCALEDPRODUCTS_H
