//===- Compare.cpp - results of two functions -----------------------------===//

#include "compiler/interp/Compare.h"

#include "compiler/dialect/train/Signature.h"
#include "compiler/interp/Check.h"
#include "compiler/interp/Inputs.h"
#include "compiler/interp/Interp.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"

#include <cmath>

using namespace mlir;

namespace tessera::interp {

// --- Names ---------------------------------------------------------------------

static StringRef resultString(func::FuncOp function, unsigned index, StringRef attr) {
  auto value = function.getResultAttrOfType<StringAttr>(index, attr);
  return value ? value.getValue() : "";
}

/// The argument called `name`, or -1.
static int64_t argCalled(func::FuncOp function, StringRef name) {
  for (unsigned index = 0; index < function.getNumArguments(); ++index)
    if (nameOfArg(function, index) == name)
      return index;
  return -1;
}

static bool isDerived(func::FuncOp function, unsigned argument) {
  return train::getArgRole(function, argument) == train::ArgRole::Derived;
}

std::vector<NamedResult> nameResults(func::FuncOp function, ArrayRef<Tensor> results) {
  std::vector<NamedResult> named;
  for (auto [index, value] : llvm::enumerate(results)) {
    const std::optional<train::ResultRole> role = train::getResultRole(function, index);
    StringRef name = resultString(function, index, train::kName);
    StringRef of = resultString(function, index, train::kOf);
    int64_t argument = -1;
    std::string own, prefix;
    if (auto alias = function.getResultAttrOfType<IntegerAttr>(index, train::kAlias)) {
      argument = alias.getInt();
      if (isDerived(function, argument))
        continue;
      own = nameOfArg(function, argument);
    } else if (role == train::ResultRole::Grad && !of.empty()) {
      argument = argCalled(function, of);
      own = of.str();
      prefix = "grad ";
    } else if (role == train::ResultRole::Loss) {
      own = "loss";
    } else {
      own = name.empty() ? "result " + std::to_string(index) : name.str();
    }
    SmallVector<Segment> segments;
    if (argument >= 0)
      segments = segmentsOf(function, argument);
    for (const Segment &segment : segments) {
      Tensor part(value.getType().clone(segment.shape()));
      segment.forEachElement(value.size(), [&](int64_t from, int64_t to) { part.copyFrom(to, value, from); });
      named.push_back({prefix + segment.name, std::move(part)});
    }
    if (segments.empty())
      named.push_back({prefix + own, value});
  }
  return named;
}

LogicalResult checkDerived(func::FuncOp function, ArrayRef<Tensor> results) {
  llvm::DenseMap<int64_t, const Tensor *> next; // by argument
  for (auto [index, value] : llvm::enumerate(results))
    if (auto alias = function.getResultAttrOfType<IntegerAttr>(index, train::kAlias))
      next[alias.getInt()] = &value;
  for (auto [argument, value] : next) {
    if (!isDerived(function, argument))
      continue;
    FailureOr<unsigned> source = sourceOfDerived(function, argument);
    if (failed(source))
      return failure();
    const Tensor *wide = next.lookup(*source);
    if (!wide)
      continue; // what is frozen keeps its copy
    const Tensor expected = derivedFrom(*wide, value->getType());
    for (int64_t i = 0, end = expected.size(); i < end; ++i)
      if (value->at(i) != expected.at(i) && (value->at(i) == value->at(i) || expected.at(i) == expected.at(i)))
        return function.emitError("the next value of '")
               << nameOfArg(function, argument) << "' is not that of '" << nameOfArg(function, *source)
               << "' at element " << i << ": " << value->at(i) << ", expected " << expected.at(i);
  }
  return success();
}

// --- Comparison ----------------------------------------------------------------

/// Reports the worst element of a result that is not close.
static LogicalResult compareOne(func::FuncOp function, const NamedResult &actual, const Tensor &expected,
                                Tolerance tolerance) {
  if (actual.value.size() != expected.size())
    return function.emitError("result '")
           << actual.name << "' has type " << actual.value.getType() << ", expected " << expected.getType();
  int64_t worst = -1, wrong = 0;
  double worstError = -1.0;
  for (int64_t i = 0, end = expected.size(); i < end; ++i) {
    if (check::isClose(actual.value.at(i), expected.at(i), tolerance.rtol, tolerance.atol))
      continue;
    ++wrong;
    double error = std::fabs(actual.value.at(i) - expected.at(i));
    if (worst < 0 || error > worstError) {
      worst = i;
      worstError = error;
    }
  }
  if (wrong == 0)
    return success();
  std::string got, want;
  llvm::raw_string_ostream(got) << llvm::format("%.9g", actual.value.at(worst));
  llvm::raw_string_ostream(want) << llvm::format("%.9g", expected.at(worst));
  return function.emitError("result '") << actual.name << "' differs: worst at "
                                        << printIndex(delinearize(worst, expected.getShape())) << ", got " << got
                                        << ", expected " << want << " (" << wrong << " of " << expected.size()
                                        << " elements differ)";
}

LogicalResult compareResults(func::FuncOp function, ArrayRef<NamedResult> actual, ArrayRef<NamedResult> expected,
                             Tolerance tolerance, bool commonOnly) {
  llvm::StringMap<const Tensor *> byName;
  for (const NamedResult &result : expected)
    byName[result.name] = &result.value;
  llvm::StringSet<> seen;
  LogicalResult status = success();
  for (const NamedResult &result : actual) {
    auto it = byName.find(result.name);
    if (it == byName.end()) {
      if (!commonOnly)
        status = function.emitError("result '") << result.name << "' is in one module only";
      continue;
    }
    seen.insert(result.name);
    if (failed(compareOne(function, result, *it->second, tolerance)))
      status = failure();
  }
  for (const NamedResult &result : expected)
    if (!commonOnly && !seen.contains(result.name))
      status = function.emitError("result '") << result.name << "' is in the other module only";
  if (seen.empty() && succeeded(status))
    return function.emitError("the modules have no result in common");
  return status;
}

} // namespace tessera::interp
