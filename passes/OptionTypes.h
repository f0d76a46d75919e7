//===- OptionTypes.h - text and numbers that passes are told ----*- C++ -*-===//
//
// A printed pipeline is read again as it was. Text (a regular expression, a path,
// a name of the model) may hold commas and spaces: it is printed in braces, and
// braces inside must be balanced. Numbers are printed with all their digits.
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_PASSES_OPTIONTYPES_H
#define TESSERA_PASSES_OPTIONTYPES_H

#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>
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

struct OptionNumber {
  double value = 0;

  OptionNumber() = default;
  OptionNumber(double value) : value(value) {}
  operator double() const { return value; }
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const OptionNumber &number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), number.value);
  return os << llvm::StringRef(text, end - text);
}

} // namespace tessera

template <> class llvm::cl::parser<tessera::OptionNumber> : public llvm::cl::basic_parser<tessera::OptionNumber> {
public:
  using basic_parser::basic_parser;
  /// Returns whether it fails.
  bool parse(Option &option, StringRef, StringRef argument, tessera::OptionNumber &value) {
    return argument.getAsDouble(value.value) && option.error("expected a number, got '" + argument + "'");
  }
  StringRef getValueName() const override { return "number"; }
  void printOptionDiff(const Option &, const tessera::OptionNumber &, const OptVal &, size_t) const {}
};

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

#endif // TESSERA_PASSES_OPTIONTYPES_H
