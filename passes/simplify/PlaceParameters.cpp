//===- PlaceParameters.cpp - which parameters axes of the mesh split ----------===//

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

/// Axes of the mesh, the major one first, with the product of their sizes.
struct Axes {
  SmallVector<StringRef> names;
  int64_t ranks = 1;
};

struct Rule {
  StringRef text;
  llvm::Regex regex;
  int64_t dim = 0;
  Axes axes;
  bool matches = false, isUsed = false;
};

struct PlaceParameters : impl::PlaceParametersBase<PlaceParameters> {
  using PlaceParametersBase::PlaceParametersBase;

  void runOnOperation() override {
    if (isStepFunction(getOperation()) && failed(run(getOperation())))
      signalPassFailure();
  }

private:
  /// The axes that a rule may name, with their sizes.
  FailureOr<SmallVector<std::pair<StringRef, int64_t>>> parseAxes(func::FuncOp func) {
    SmallVector<std::pair<StringRef, int64_t>> parsed;
    for (StringRef text : axes) {
      auto [name, size] = text.rsplit('=');
      parsed.emplace_back(name, 0);
      if (name.empty() || size.getAsInteger(10, parsed.back().second) || parsed.back().second < 2)
        return func.emitError() << "axes: expected <axis>=<size> with a size of at least 2, got '" << text << "'";
    }
    return parsed;
  }

  /// Those that `text` names, as "a+b"; all if it is empty. In the order of the mesh.
  FailureOr<Axes> chooseAxes(func::FuncOp func, const Rule &rule, StringRef text,
                             ArrayRef<std::pair<StringRef, int64_t>> known) {
    SmallVector<StringRef> wanted;
    if (!text.empty())
      text.split(wanted, '+');
    for (auto [index, name] : llvm::enumerate(wanted))
      if (llvm::none_of(known, [&](const auto &axis) { return axis.first == name; }) ||
          llvm::is_contained(ArrayRef(wanted).take_front(index), name))
        return func.emitError() << "--place: '" << rule.text << "' names the axis '" << name
                                << "', which is no model axis larger than 1 of the mesh, or is named twice";
    Axes chosen;
    for (auto [name, size] : known)
      if (wanted.empty() || llvm::is_contained(wanted, name)) {
        chosen.names.push_back(name);
        chosen.ranks *= size;
      }
    if (chosen.names.empty())
      return func.emitError("--place needs a mesh with a model axis larger than 1, such as tp=2");
    return chosen;
  }

  FailureOr<SmallVector<Rule>> parseRules(func::FuncOp func) {
    auto known = parseAxes(func);
    if (failed(known))
      return failure();
    SmallVector<Rule> parsed;
    for (StringRef text : rules) {
      auto [pattern, place] = text.rsplit('=');
      auto [dim, names] = place.split(':');
      Rule &rule = parsed.emplace_back(Rule{text, llvm::Regex(pattern), 0, {}, false, false});
      std::string problem;
      if (dim.getAsInteger(10, rule.dim) || rule.dim < 0 || place.ends_with(":"))
        return func.emitError() << "--place: expected <regex>=<dimension> or <regex>=<dimension>:<axis>, got '" << text
                                << "'";
      if (!rule.regex.isValid(problem))
        return func.emitError() << "--place: '" << pattern << "' is not a regular expression: " << problem;
      FailureOr<Axes> chosen = chooseAxes(func, rule, names, *known);
      if (failed(chosen))
        return failure();
      rule.axes = *chosen;
    }
    return parsed;
  }

  LogicalResult place(func::FuncOp func, unsigned index, const Rule &rule) {
    BlockArgument arg = func.getArgument(index);
    StringRef name = getArgName(func, index);
    auto type = cast<RankedTensorType>(arg.getType());
    auto refuse = [&] { return emitError(arg.getLoc()) << "--place: '" << name << "' cannot be split: "; };
    if (!isFlattened(func, index))
      return refuse() << "it is a buffer of the model, which each rank has as a whole";
    if (rule.dim >= type.getRank())
      return refuse() << "it has rank " << type.getRank() << ", so it has no dimension " << rule.dim;
    if (type.getDimSize(rule.dim) % rule.axes.ranks != 0)
      return refuse() << "dimension " << rule.dim << " has size " << type.getDimSize(rule.dim) << ", which "
                      << rule.axes.ranks << " ranks do not divide";
    Builder builder(func.getContext());
    func.setArgAttr(
        index, kPlacement,
        PlacementAttr::get(func.getContext(), rule.dim, builder.getStrArrayAttr(rule.axes.names), rule.axes.ranks));
    return success();
  }

  LogicalResult run(func::FuncOp func) {
    FailureOr<SmallVector<Rule>> parsed = parseRules(func);
    if (failed(parsed))
      return failure();
    for (BlockArgument arg : func.getArguments()) {
      const unsigned index = arg.getArgNumber();
      if (!isParameter(getArgRole(func, index)))
        continue;
      Rule *first = nullptr;
      for (Rule &rule : *parsed)
        if (rule.regex.match(getArgName(func, index))) {
          rule.matches = true;
          first = first ? first : &rule;
        }
      if (!first)
        continue;
      first->isUsed = true;
      if (failed(place(func, index, *first)))
        return failure();
    }
    for (const Rule &rule : *parsed)
      if (!rule.isUsed)
        return func.emitError() << "--place: "
                                << (rule.matches ? "rules before it match all that is matched by '"
                                                 : "no parameter matches '")
                                << rule.text << "'";
    return success();
  }
};

} // namespace
} // namespace tessera
