//===- ExpressionTest.cpp - symbolic sizes --------------------------------===//

#include "frontends/pt2/Expression.h"

#include <gtest/gtest.h>

using tessera::pt2::Expression;

namespace {
struct Result {
  std::string text;
  std::optional<int64_t> at7; // where s0 is 7

  bool operator==(const Result &) const = default;
};
void PrintTo(const Result &result, std::ostream *out) {
  *out << result.text << " = " << (result.at7 ? std::to_string(*result.at7) : "?");
}

/// Reads a text, `$` standing for the symbol.
Result of(std::string text) {
  const std::string symbol = "Symbol('s0', positive=True, integer=True)";
  for (size_t at = 0; (at = text.find("$", at)) != std::string::npos; at += symbol.size())
    text.replace(at, 1, symbol);
  auto expression = Expression::parse(text);
  if (!expression)
    return {"not an expression", std::nullopt};
  return {expression->text(), expression->evaluate({{"s0", 7}})};
}
} // namespace

TEST(Pt2Expression, TextAndValue) {
  EXPECT_EQ(of("$"), (Result{"s0", 7}));
  EXPECT_EQ(of("Integer(-3)"), (Result{"-3", -3}));
  EXPECT_EQ(of("Mul(Integer(2), $)"), (Result{"2*s0", 14}));
  EXPECT_EQ(of("Add(Mul(Integer(2), $), Integer(1))"), (Result{"2*s0 + 1", 15}));
  EXPECT_EQ(of("Mul(Integer(2), Add($, Integer(1)))"), (Result{"2*(s0 + 1)", 16}));
  EXPECT_EQ(of("Mul($, Integer(-1))"), (Result{"s0*(-1)", -7}));
  EXPECT_EQ(of("FloorDiv(Add(Mul(Integer(2), $), Integer(1)), Integer(4))"), (Result{"(2*s0 + 1) // 4", 3}));
  EXPECT_EQ(of("FloorDiv(Mul(Integer(-1), $), Integer(2))"), (Result{"((-1)*s0) // 2", -4}));
  EXPECT_EQ(of("CeilDiv($, Integer(2))"), (Result{"CeilDiv(s0, 2)", 4}));
  EXPECT_EQ(of("Mod($, Integer(4))"), (Result{"s0 % 4", 3}));
  EXPECT_EQ(of("Mod(Mul(Integer(-1), $), Integer(4))").at7, 1);
  EXPECT_EQ(of("Mul(Mod($, Integer(4)), Integer(2))"), (Result{"(s0 % 4)*2", 6}));
  EXPECT_EQ(of("Max(Integer(5), $, Integer(9))"), (Result{"Max(5, s0, 9)", 9}));
  EXPECT_EQ(of("Pow($, Integer(2))"), (Result{"s0**2", 49}));
}

TEST(Pt2Expression, NotKnown) {
  EXPECT_EQ(of("Symbol('u1', integer=True)"), (Result{"u1", std::nullopt}));
  EXPECT_EQ(of("TruncToInt(ToFloat($))"), (Result{"TruncToInt(ToFloat(s0))", std::nullopt}));
  EXPECT_EQ(of("FloorDiv($, Integer(0))").at7, std::nullopt);
  EXPECT_EQ(of("Mul(Integer(9223372036854775807), $)").at7, std::nullopt);
  EXPECT_EQ(of("Pow($, Integer(99))").at7, std::nullopt);
}

TEST(Pt2Expression, NotAnExpression) {
  for (const char *text : {"", "s0", "Symbol(s0)", "Symbol('s0'", "Add($, $", "Add($,)",
                           "Integer(99999999999999999999)", "Integer()", "$ + $", "Mul(2, $)"})
    EXPECT_EQ(of(text).text, "not an expression") << text;
  std::string deep = "$";
  for (int i = 0; i < 1000; ++i)
    deep = "Add(" + deep + ", $)";
  EXPECT_EQ(of(deep).text, "not an expression");
}
