//===- AssignInitializers.cpp - gives every parameter an initial value ----===//
//
// The artifact holds no weights: a parameter's value comes from a file or from
// its initialiser, which this pass writes on the function's arguments.
//
//===----------------------------------------------------------------------===//

#include "compiler/dialect/train/Initializer.h"
#include "compiler/dialect/train/Signature.h"
#include "compiler/dialect/train/Train.h"
#include "passes/simplify/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

#include <cmath>
#include <utility>

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

  using Rules = SmallVector<std::pair<llvm::Regex, std::string>>;

  LogicalResult parseRules(Rules &parsed) {
    for (StringRef rule : rules) {
      auto [pattern, initializer] = rule.rsplit('=');
      std::string why;
      llvm::Regex regex(pattern);
      if (!rule.contains('='))
        return getOperation().emitError() << "--init: expected <regex>=<initialiser>, got '" << rule << "'";
      if (!regex.isValid(why))
        return getOperation().emitError()
               << "--init: '" << pattern << "' in '" << rule << "' is not a regular expression: " << why;
      if (!train::parseInitializer(initializer))
        return getOperation().emitError() << "--init: expected <regex>=<initialiser>, an initialiser being "
                                          << train::kInitializerForms << ", got '" << rule << "'";
      parsed.emplace_back(std::move(regex), initializer.str());
    }
    return success();
  }

  void runOnOperation() override {
    Rules parsed;
    if (failed(parseRules(parsed)))
      return signalPassFailure();
    func::FuncOp func = getOperation();
    SmallVector<bool> matches(parsed.size());
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      auto name = func.getArgAttrOfType<StringAttr>(i, train::kName);
      if (!name || !train::isParameter(train::getArgRole(func, i)))
        continue;
      auto type = cast<RankedTensorType>(func.getArgument(i).getType());
      auto before = func.getArgAttrOfType<StringAttr>(i, train::kInit);
      std::string init = before && before.getValue() == "given" ? "given" : defaultInitializer(name, type.getShape());
      bool isAssigned = false;
      for (auto [rule, matched] : llvm::zip_equal(parsed, matches))
        if (rule.first.match(name)) {
          matched = true;
          if (!std::exchange(isAssigned, true))
            init = rule.second;
        }
      func.setArgAttr(i, train::kInit, StringAttr::get(&getContext(), init));
    }
    for (auto [rule, matched] : llvm::zip_equal(rules, matches))
      if (!matched) {
        func.emitError() << "--init: no parameter matches '" << rule << "'";
        return signalPassFailure();
      }
  }
};

} // namespace
} // namespace tessera
