//===- Expression.h - sizes as expressions in symbols -----------*- C++ -*-===//
//
// What a symbolic size says, as a tree. Files have it as sympy's srepr: "Mul(Integer(2), Symbol('s0', integer=True))".
//
//===----------------------------------------------------------------------===//

#ifndef TESSERA_FRONTENDS_PT2_EXPRESSION_H
#define TESSERA_FRONTENDS_PT2_EXPRESSION_H

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::pt2 {

struct Expression {
  std::string function; // "Symbol", "Integer", or of operands: "Add", "Mul", "FloorDiv", "Mod", "Max"...
  std::string symbol;   // of a Symbol: "s0"
  int64_t value = 0;    // of an Integer
  std::vector<Expression> operands;

  /// Nothing if the text is not such an expression; its functions need not be known.
  static std::optional<Expression> parse(std::string_view text);
  /// As it is written in Python: "2*s0 + 1", "s0 // 2", "Max(s0, 5)".
  std::string text() const;
  /// Those in it, each once, in order.
  std::vector<std::string> symbols() const;
  /// Its value if symbols have these values; nothing if one is missing, a function is not known, or the value does not
  /// fit.
  std::optional<int64_t> evaluate(const std::map<std::string, int64_t> &symbols) const;
};

} // namespace tessera::pt2

#endif // TESSERA_FRONTENDS_PT2_EXPRESSION_H
