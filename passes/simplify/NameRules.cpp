//===- NameRules.cpp - rules for parameters, by their names ---------------===//

#include "passes/simplify/NameRules.h"

#include "passes/NameRegex.h"

using namespace mlir;

namespace tessera {

FailureOr<std::pair<llvm::Regex, StringRef>> splitNameRule(Location loc, StringRef flag, StringRef form,
                                                           StringRef text) {
  if (!text.contains('='))
    return emitError(loc) << flag << ": expected " << form << ", got '" << text << "'";
  auto [pattern, value] = text.rsplit('=');
  FailureOr<llvm::Regex> regex = parseNameRegex(loc, flag, pattern);
  if (failed(regex))
    return failure();
  return std::pair(std::move(*regex), value);
}

} // namespace tessera
