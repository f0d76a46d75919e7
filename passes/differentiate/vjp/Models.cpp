//===- Models.cpp - registration of the gradient rules --------------------===//

#include "passes/differentiate/Models.h"

#include "passes/differentiate/vjp/Vjp.h"

using namespace mlir;

void tessera::registerDifferentiableModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, train::TrainDialect *) {
    vjp::attachElementwise(context);
    vjp::attachShape(context);
    vjp::attachReduce(context);
    vjp::attachContract(context);
    vjp::attachNeural(context);
  });
}
