//===- NameRules.h - rules for parameters, by their names -------*- C++ -*-===//
//
// What --init and --place take: "<regex>=<value>". Of the rules that match a
// name, the first one counts; one that counts for no name is an error.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_NAMERULES_H
#define TESSERA_PASSES_SIMPLIFY_NAMERULES_H

#include "compiler/dialect/train/NamePattern.h"
#include "passes/OptionTypes.h"

#include "llvm/ADT/SmallVector.h"

namespace tessera {

/// The regular expression before the last '=' of a rule, and what follows it. Emits an error if there is none.
llvm::FailureOr<std::pair<train::NamePattern, llvm::StringRef>>
splitNameRule(mlir::Location loc, llvm::StringRef flag, llvm::StringRef form, llvm::StringRef text);

/// The texts and names that it is given outlive it.
template <typename T> class NameRules {
public:
  /// `form` is what a rule should look like, for errors, which are at `loc`.
  NameRules(mlir::Location loc, llvm::StringRef flag, llvm::StringRef form) : loc(loc), flag(flag), form(form) {}

  /// Reads the rules; `readValue` gets each and what follows its '='. Emits errors, as `readValue` does.
  llvm::LogicalResult read(llvm::ArrayRef<OptionText> texts,
                           llvm::function_ref<llvm::FailureOr<T>(llvm::StringRef, llvm::StringRef)> readValue) {
    for (llvm::StringRef text : texts) {
      auto split = splitNameRule(loc, flag, form, text);
      if (failed(split))
        return llvm::failure();
      llvm::FailureOr<T> value = readValue(text, split->second);
      if (failed(value))
        return llvm::failure();
      rules.push_back({text, std::move(split->first), std::move(*value)});
    }
    return llvm::success();
  }

  /// The value of the first rule that matches; null if there is none.
  const T *find(llvm::StringRef name) {
    names.push_back(name);
    for (Rule &rule : rules)
      if (rule.pattern.match(name)) {
        rule.isUsed = true;
        return &rule.value;
      }
    return nullptr;
  }

  /// Emits an error if a rule was the first for none of the names that `find` was asked for. `what` they are of:
  /// "parameter".
  llvm::LogicalResult checkUsed(llvm::StringRef what) const {
    for (const Rule &rule : rules) {
      if (rule.isUsed)
        continue;
      if (failed(rule.pattern.expectMatch(loc, what, names)))
        return llvm::failure();
      return mlir::emitError(loc) << flag << ": rules before it match all that is matched by '" << rule.text << "'";
    }
    return llvm::success();
  }

private:
  struct Rule {
    llvm::StringRef text;
    train::NamePattern pattern;
    T value;
    bool isUsed = false; ///< it was the first that matched some name
  };

  mlir::Location loc;
  llvm::StringRef flag, form;
  std::vector<Rule> rules;
  llvm::SmallVector<llvm::StringRef> names;
};

} // namespace tessera

#endif // TESSERA_PASSES_SIMPLIFY_NAMERULES_H
