//===- PlaceParameters.cpp - which parameters the model axes split --------===//

#include "compiler/dialect/train/Segments.h"
#include "compiler/dialect/train/Signature.h"
#include "passes/simplify/Passes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera {
#define GEN_PASS_DEF_PLACEPARAMETERS
#include "passes/simplify/Passes.h.inc"

namespace {

struct Rule {
  StringRef text;
  llvm::Regex regex;
  int64_t dim = 0;
  bool isUsed = false;
};

struct PlaceParameters : impl::PlaceParametersBase<PlaceParameters> {
  using PlaceParametersBase::PlaceParametersBase;

  void runOnOperation() override {
    if (isStepFunction(getOperation()) && failed(run(getOperation())))
      signalPassFailure();
  }

private:
  FailureOr<SmallVector<Rule>> parseRules(func::FuncOp func) {
    SmallVector<Rule> parsed;
    for (StringRef text : rules) {
      auto [pattern, dim] = text.rsplit('=');
      Rule &rule = parsed.emplace_back(Rule{text, llvm::Regex(pattern)});
      std::string problem;
      if (dim.getAsInteger(10, rule.dim) || rule.dim < 0)
        return func.emitError() << "--place: expected <regex>=<dimension>, got '" << text << "'";
      if (!rule.regex.isValid(problem))
        return func.emitError() << "--place: '" << pattern << "' is not a regular expression: " << problem;
    }
    return parsed;
  }

  LogicalResult place(func::FuncOp func, unsigned index, int64_t dim) {
    BlockArgument arg = func.getArgument(index);
    StringRef name = getArgName(func, index);
    auto type = cast<RankedTensorType>(arg.getType());
    auto init = func.getArgAttrOfType<StringAttr>(index, kInit);
    auto refuse = [&] { return emitError(arg.getLoc()) << "--place: '" << name << "' cannot be split: "; };
    if (!isa<FloatType>(type.getElementType()) || (init && init.getValue() == "given"))
      return refuse() << "it is a buffer of the model, which each rank has as a whole";
    if (dim >= type.getRank())
      return refuse() << "it has " << type.getRank() << " dimensions, none is number " << dim;
    if (type.getDimSize(dim) % parts != 0)
      return refuse() << "dimension " << dim << " has size " << type.getDimSize(dim) << ", which " << parts.getValue()
                      << " ranks along the model axes do not divide";
    func.setArgAttr(index, kPlacement, PlacementAttr::get(func.getContext(), dim, parts));
    return success();
  }

  LogicalResult run(func::FuncOp func) {
    if (parts < 2)
      return func.emitError() << "--place needs a mesh whose model axes have at least 2 ranks, got "
                              << parts.getValue();
    FailureOr<SmallVector<Rule>> parsed = parseRules(func);
    if (failed(parsed))
      return failure();
    for (BlockArgument arg : func.getArguments()) {
      const unsigned index = arg.getArgNumber();
      if (!isParameter(getArgRole(func, index)))
        continue;
      const Rule *first = nullptr;
      for (Rule &rule : *parsed)
        if (rule.regex.match(getArgName(func, index))) {
          rule.isUsed = true;
          first = first ? first : &rule;
        }
      if (first && failed(place(func, index, first->dim)))
        return failure();
    }
    for (const Rule &rule : *parsed)
      if (!rule.isUsed)
        return func.emitError() << "--place: no parameter matches '" << rule.text << "'";
    return success();
  }
};

} // namespace
} // namespace tessera
