//===- NameRules.h - rules for parameters, by their names -------*- C++ -*-===//
//
// What --init and --place take: "<regex>=<value>". Of the rules that match a
// name, the first one counts.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_SIMPLIFY_NAMERULES_H
#define TESSERA_PASSES_SIMPLIFY_NAMERULES_H

#include "passes/OptionTypes.h"

#include "mlir/IR/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Regex.h"

namespace tessera {

/// The regular expression before the last '=' of a rule, and what follows it. Emits an error if there is none.
llvm::FailureOr<std::pair<llvm::Regex, llvm::StringRef>> splitNameRule(mlir::Location loc, llvm::StringRef flag,
                                                                       llvm::StringRef form, llvm::StringRef text);

/// The texts that it is given outlive it.
template <typename T> class NameRules {
public:
  struct Rule {
    llvm::StringRef text;
    llvm::Regex regex;
    T value;
    bool isMatched = false; ///< by a name that was looked for
    bool isUsed = false;    ///< and no rule before it was
  };

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
    Rule *first = nullptr;
    for (Rule &rule : rules)
      if (rule.regex.match(name)) {
        rule.isMatched = true;
        first = first ? first : &rule;
      }
    if (!first)
      return nullptr;
    first->isUsed = true;
    return &first->value;
  }

  llvm::ArrayRef<Rule> getRules() const { return rules; }

private:
  mlir::Location loc;
  llvm::StringRef flag, form;
  llvm::SmallVector<Rule> rules;
};

} // namespace tessera

#endif // TESSERA_PASSES_SIMPLIFY_NAMERULES_H
