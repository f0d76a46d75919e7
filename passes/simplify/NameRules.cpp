//===- NameRules.cpp - rules for parameters, by their names ---------------===//

#include "passes/simplify/NameRules.h"

#include "mlir/IR/Diagnostics.h"

using namespace mlir;

namespace tessera {

FailureOr<std::pair<llvm::Regex, StringRef>> splitNameRule(Location loc, StringRef flag, StringRef form,
                                                           StringRef text) {
  if (!text.contains('='))
    return emitError(loc) << flag << ": expected " << form << ", got '" << text << "'";
  auto [pattern, value] = text.rsplit('=');
  llvm::Regex regex(pattern);
  std::string why;
  if (!regex.isValid(why))
    return emitError(loc) << flag << ": '" << pattern << "' is not a regular expression: " << why;
  return std::pair(std::move(regex), value);
}

} // namespace tessera
