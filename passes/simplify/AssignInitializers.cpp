//===- AssignInitializers.cpp - gives every parameter an initial value ----===//
//
// The artifact holds no weights: a parameter's value comes from a file or from
// its initialiser, which this pass writes on the function's arguments.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/dialect/train/Train.h"
#include "passes/simplify/NameRules.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;

namespace tessera {
#define GEN_PASS_DEF_ASSIGNINITIALIZERS
#include "passes/simplify/Passes.h.inc"

namespace {

/// GPT-2's initialisation for embeddings and linear layers, PyTorch's for norms and convolutions.
std::string defaultInitializer(StringRef name, ArrayRef<int64_t> shape) {
  if (name.ends_with("bias") || name.ends_with("running_mean"))
    return "zeros";
  if (shape.empty()) // a temperature, a factor: nothing is a usual value
    return "given";
  if (shape.size() <= 1)
    return name.ends_with("weight") || name.ends_with("scale") || name.ends_with("gamma") ||
                   name.ends_with("running_var")
               ? "constant:1"
               : "zeros";
  if (shape.size() == 4) {
    const double bound = 1.0 / std::sqrt(static_cast<double>(shape[1] * shape[2] * shape[3]));
    return llvm::formatv("uniform:{0:f9}:{1:f9}", -bound, bound);
  }
  return "normal:0.02";
}

struct AssignInitializers : impl::AssignInitializersBase<AssignInitializers> {
  using AssignInitializersBase::AssignInitializersBase;

  void runOnOperation() override {
    if (failed(run(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult run(func::FuncOp func) {
    NameRules<StringRef> initializers(func.getLoc(), "--init", "<regex>=<initialiser>");
    auto readInitializer = [&](StringRef rule, StringRef initializer) -> FailureOr<StringRef> {
      if (!train::parseInitializer(initializer))
        return func.emitError() << "--init: expected <regex>=<initialiser>, an initialiser being "
                                << train::kInitializerForms << ", got '" << rule << "'";
      return initializer;
    };
    if (failed(initializers.read(*rules, readInitializer)))
      return failure();
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto name = func.getArgAttrOfType<StringAttr>(i, train::kName);
      const std::optional<train::ArgRole> role = train::getArgRole(func, i);
      if (!name || !(train::isParameter(role) || role == train::ArgRole::Buffer))
        continue;
      auto type = cast<RankedTensorType>(func.getArgument(i).getType());
      auto before = func.getArgAttrOfType<StringAttr>(i, train::kInit);
      // How a buffer begins is part of the model.
      const bool isSaid = before && (before.getValue() == "given" || role == train::ArgRole::Buffer);
      std::string init = isSaid                           ? before.str()
                         : role == train::ArgRole::Buffer ? "given"
                                                          : defaultInitializer(name, type.getShape());
      if (const StringRef *initializer = initializers.find(name))
        init = initializer->str();
      func.setArgAttr(i, train::kInit, StringAttr::get(&getContext(), init));
    }
    return initializers.checkUsed("parameter");
  }
};

} // namespace
} // namespace tessera
