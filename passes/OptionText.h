//===- OptionText.h - text that an option of a pass takes -------*- C++ -*-===//
//
// A regular expression, a path, a name of the model: text that may hold commas
// and spaces. It is printed in braces, so that a printed pipeline can be read
// again; braces inside must be balanced.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_OPTIONTEXT_H
#define TESSERA_PASSES_OPTIONTEXT_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace tessera {

struct OptionText : std::string {
  using std::string::string;
  OptionText() = default;
  OptionText(std::string text) : std::string(std::move(text)) {}
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const OptionText &text) {
  return os << '{' << static_cast<const std::string &>(text) << '}';
}

} // namespace tessera

template <> class llvm::cl::parser<tessera::OptionText> : public llvm::cl::basic_parser<tessera::OptionText> {
public:
  using basic_parser::basic_parser;
  /// Returns whether it fails: never.
  bool parse(Option &, StringRef, StringRef argument, tessera::OptionText &value) {
    value.assign(argument.str());
    return false;
  }
  StringRef getValueName() const override { return "text"; }
  void printOptionDiff(const Option &, const tessera::OptionText &, const OptVal &, size_t) const {}
};

#endif // TESSERA_PASSES_OPTIONTEXT_H
