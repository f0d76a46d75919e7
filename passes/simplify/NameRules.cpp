//===- NameRules.cpp - rules for parameters, by their names ---------------===//

#include "passes/simplify/NameRules.h"

using namespace mlir;

namespace tessera {

FailureOr<std::pair<train::NamePattern, StringRef>> splitNameRule(Location loc, StringRef flag, StringRef form,
                                                                  StringRef text) {
  if (!text.contains('='))
    return emitError(loc) << flag << ": expected " << form << ", got '" << text << "'";
  auto [pattern, value] = text.rsplit('=');
  FailureOr<train::NamePattern> parsed = train::NamePattern::parse(loc, flag, pattern);
  if (failed(parsed))
    return failure();
  return std::pair(std::move(*parsed), value);
}

} // namespace tessera
