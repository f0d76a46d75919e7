//===- NameRegex.h - regular expressions of names ---------------*- C++ -*-===//
//
// Flags name parameters and units by regular expressions; a bad one is told in
// one way.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_NAMEREGEX_H
#define TESSERA_PASSES_NAMEREGEX_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Regex.h"

#include <optional>
#include <string>

namespace tessera {

/// The regular expression `pattern` that `flag` was given. Emits an error if it is none.
inline llvm::FailureOr<llvm::Regex> parseNameRegex(mlir::Location loc, llvm::StringRef flag, llvm::StringRef pattern) {
  llvm::Regex regex(pattern);
  std::string why;
  if (!regex.isValid(why))
    return mlir::emitError(loc) << flag << ": '" << pattern << "' is not a regular expression: " << why;
  return regex;
}

/// The same of a flag that may be left out: `regex` stays empty if `pattern` is.
inline llvm::LogicalResult readNameRegex(mlir::Location loc, llvm::StringRef flag, llvm::StringRef pattern,
                                         std::optional<llvm::Regex> &regex) {
  if (pattern.empty())
    return llvm::success();
  llvm::FailureOr<llvm::Regex> parsed = parseNameRegex(loc, flag, pattern);
  if (succeeded(parsed))
    regex.emplace(std::move(*parsed));
  return parsed;
}

} // namespace tessera

#endif // TESSERA_PASSES_NAMEREGEX_H
