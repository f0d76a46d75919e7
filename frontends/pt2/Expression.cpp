//===- Expression.cpp - sizes as expressions in symbols -------------------===//

#include "frontends/pt2/Expression.h"

#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace tessera::pt2 {

namespace {
constexpr int kMaxDepth = 64;

/// A call of srepr: Function(operand, ..., 'text', keyword=value).
class Parser {
public:
  explicit Parser(StringRef text) : rest(text) {}

  std::optional<Expression> run() {
    Expression expression;
    if (!call(expression, 0) || !rest.trim().empty())
      return std::nullopt;
    return expression;
  }

private:
  StringRef rest;

  bool take(char c) {
    rest = rest.ltrim();
    return rest.consume_front(StringRef(&c, 1));
  }
  StringRef word() {
    rest = rest.ltrim();
    StringRef found = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; });
    rest = rest.drop_front(found.size());
    return found;
  }

  bool call(Expression &expression, int depth) {
    expression.function = word().str();
    if (depth > kMaxDepth || expression.function.empty() || llvm::isDigit(expression.function[0]) || !take('('))
      return false;
    if (expression.function == "Integer")
      return !rest.consumeInteger(10, expression.value) && take(')');
    if (expression.function == "Symbol")
      return symbol(expression);
    if (take(')'))
      return true;
    do {
      if (!call(expression.operands.emplace_back(), depth + 1))
        return false;
    } while (take(','));
    return take(')');
  }

  /// 's0', positive=True, integer=True)
  bool symbol(Expression &expression) {
    if (!take('\''))
      return false;
    expression.symbol = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }).str();
    rest = rest.drop_front(expression.symbol.size());
    if (expression.symbol.empty() || !take('\''))
      return false;
    while (take(','))
      if (word().empty() || !take('=') || word().empty())
        return false;
    return take(')');
  }
};

/// How tightly the operators of Python bind; of all else, as tightly as can be.
int binding(const Expression &expression) {
  const StringRef function = expression.function;
  if (function == "Add" || expression.value < 0)
    return 1;
  if (function == "Mul" || function == "FloorDiv" || function == "Mod" || function == "PythonMod")
    return 2;
  return function == "Pow" ? 3 : 4;
}

std::optional<int64_t> power(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64)
    return std::nullopt;
  int64_t result = 1;
  for (int64_t i = 0; i < exponent; ++i)
    if (__builtin_mul_overflow(result, base, &result))
      return std::nullopt;
  return result;
}

/// Rounded down, as Python does.
std::optional<int64_t> floorDivide(int64_t a, int64_t b) {
  if (b == 0 || (a == INT64_MIN && b == -1))
    return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

std::optional<int64_t> apply(StringRef function, int64_t a, int64_t b) {
  int64_t result = 0;
  if (function == "Add")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (function == "Mul")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
  if (function == "Max")
    return std::max(a, b);
  if (function == "Min")
    return std::min(a, b);
  return std::nullopt;
}
} // namespace

std::optional<Expression> Expression::parse(std::string_view text) { return Parser(StringRef(text)).run(); }

std::vector<std::string> Expression::symbols() const {
  std::vector<std::string> found;
  if (!symbol.empty())
    found.push_back(symbol);
  for (const Expression &operand : operands)
    for (const std::string &name : operand.symbols())
      if (!llvm::is_contained(found, name))
        found.push_back(name);
  return found;
}

std::string Expression::text() const {
  if (function == "Symbol")
    return symbol;
  if (function == "Integer")
    return std::to_string(value);
  const bool isSum = function == "Add";
  const char *sign = isSum                                            ? " + "
                     : function == "Mul"                              ? "*"
                     : function == "Pow"                              ? "**"
                     : function == "FloorDiv"                         ? " // "
                     : (function == "Mod" || function == "PythonMod") ? " % "
                                                                      : nullptr;
  if (!sign || operands.size() < 2) {
    std::string list;
    for (const Expression &operand : operands)
      list += (list.empty() ? "" : ", ") + operand.text();
    return function + "(" + list + ")";
  }
  std::string sum;
  for (size_t i = 0; i < operands.size(); ++i) {
    // Sums and products may be chained; the rest is written with brackets where an operand is not a single thing.
    const bool chained = isSum || function == "Mul";
    const int needed = chained ? binding(*this) + (isSum ? 0 : 1) : 4;
    const std::string operand = operands[i].text();
    sum += (i ? sign : "") + (binding(operands[i]) < needed ? "(" + operand + ")" : operand);
  }
  return sum;
}

std::optional<int64_t> Expression::evaluate(const std::map<std::string, int64_t> &symbols) const {
  if (function == "Integer")
    return value;
  if (function == "Symbol") {
    auto found = symbols.find(symbol);
    return found == symbols.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<int64_t> values;
  for (const Expression &operand : operands) {
    std::optional<int64_t> known = operand.evaluate(symbols);
    if (!known)
      return std::nullopt;
    values.push_back(*known);
  }
  if (values.size() == 2) {
    const int64_t a = values[0], b = values[1];
    if (function == "Pow")
      return power(a, b);
    if (function == "FloorDiv")
      return floorDivide(a, b);
    if (function == "CeilDiv") {
      std::optional<int64_t> down = floorDivide(a, b);
      return down && a % b != 0 ? *down + 1 : down;
    }
    if (function == "CleanDiv") // known to leave no rest
      return b != 0 && b != -1 && a % b == 0 ? std::optional(a / b) : std::nullopt;
    if (function == "Mod" || function == "PythonMod") {
      std::optional<int64_t> down = floorDivide(a, b);
      return down ? std::optional(a - *down * b) : std::nullopt;
    }
  }
  if (values.empty())
    return std::nullopt;
  std::optional<int64_t> result = values[0];
  if (values.size() == 1 && function != "Add" && function != "Mul" && function != "Max" && function != "Min")
    return std::nullopt;
  for (size_t i = 1; i < values.size() && result; ++i)
    result = apply(function, *result, values[i]);
  return result;
}

} // namespace tessera::pt2
