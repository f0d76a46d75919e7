//===- Models.h - registration of the gradient rules ------------*- C++ -*-===//

#ifndef TESSERA_PASSES_DIFFERENTIATE_MODELS_H
#define TESSERA_PASSES_DIFFERENTIATE_MODELS_H

namespace mlir {
class DialectRegistry;
}

namespace tessera {

/// Attaches DifferentiableOpInterface to the train dialect's ops (rules in vjp/).
void registerDifferentiableModels(mlir::DialectRegistry &registry);

} // namespace tessera

#endif // TESSERA_PASSES_DIFFERENTIATE_MODELS_H
