//===- Guard.cpp - what a program assumes of its inputs' sizes -------------===//

#include "frontends/pt2/Guard.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace tessera::pt2 {

namespace {
constexpr int kDeepestExpression = 64;

/// Recursive descent by Python's precedence. Booleans are 0 and 1, as in Python; the first failure ends it.
class Parser {
public:
  Parser(llvm::StringRef text, SizeOf sizeOf) : text(text), sizeOf(sizeOf) {}

  std::optional<bool> run() {
    std::optional<int64_t> value = disjunction();
    skip();
    return value && text.empty() && !failed ? std::optional(*value != 0) : std::nullopt;
  }

private:
  using Number = std::optional<int64_t>;

  void skip() { text = text.ltrim(); }
  bool take(llvm::StringRef token) {
    skip();
    const bool isWord = llvm::isAlpha(token.front());
    if (!text.starts_with(token) || (isWord && text.size() > token.size() && llvm::isAlnum(text[token.size()])))
      return false;
    text = text.drop_front(token.size());
    return true;
  }
  Number fail() {
    failed = true;
    return std::nullopt;
  }

  Number disjunction() {
    Number left = conjunction();
    while (left && take("or")) {
      Number right = conjunction();
      left = right ? Number(*left != 0 || *right != 0) : fail();
    }
    return left;
  }
  Number conjunction() {
    Number left = negation();
    while (left && take("and")) {
      Number right = negation();
      left = right ? Number(*left != 0 && *right != 0) : fail();
    }
    return left;
  }
  Number negation() {
    if (!take("not"))
      return comparison();
    Number operand = ++depth > kDeepestExpression ? fail() : negation();
    return operand ? Number(*operand == 0) : fail();
  }
  /// Also chains, as 2 <= n <= 5.
  Number comparison() {
    Number left = sum();
    bool all = true, isAny = false;
    while (left) {
      int kind = 0;
      for (llvm::StringRef token : {"==", "!=", "<=", ">=", "<", ">"}) {
        ++kind;
        if (take(token))
          break;
        if (kind == 6)
          kind = 7;
      }
      if (kind == 7)
        return isAny ? Number(all) : left;
      Number right = sum();
      if (!right)
        return fail();
      const bool results[] = {*left == *right, *left != *right, *left <= *right, *left >= *right,
                              *left<*right, *left> * right};
      all &= results[kind - 1];
      isAny = true;
      left = right;
    }
    return fail();
  }
  Number sum() {
    Number left = product();
    while (left) {
      const bool isPlus = take("+");
      if (!isPlus && !take("-"))
        return left;
      Number right = product();
      int64_t result = 0;
      if (!right || (isPlus ? llvm::AddOverflow(*left, *right, result) : llvm::SubOverflow(*left, *right, result)))
        return fail();
      left = result;
    }
    return left;
  }
  Number product() {
    Number left = unary();
    while (left) {
      const bool isQuotient = take("//"), isRest = !isQuotient && take("%");
      if (!isQuotient && !isRest && !(text.ltrim().starts_with("**") ? false : take("*")))
        return left;
      Number right = unary();
      int64_t result = 0;
      if (!right)
        return fail();
      if (isQuotient || isRest) {
        if (*right <= 0)
          return fail();
        const int64_t quotient = llvm::divideFloorSigned(*left, *right);
        result = isQuotient ? quotient : *left - quotient * *right;
      } else if (llvm::MulOverflow(*left, *right, result)) {
        return fail();
      }
      left = result;
    }
    return left;
  }
  Number unary() {
    if (++depth > kDeepestExpression)
      return fail();
    if (take("-")) {
      Number operand = unary();
      int64_t result = 0;
      return operand && !llvm::SubOverflow(int64_t{0}, *operand, result) ? Number(result) : fail();
    }
    if (take("(")) {
      Number inner = disjunction();
      --depth;
      return inner && take(")") ? inner : fail();
    }
    const bool isMax = take("torch.sym_max");
    if (isMax || take("torch.sym_min")) {
      Number best = extreme(isMax);
      --depth;
      return best;
    }
    --depth;
    return take("L[") ? size() : number();
  }
  /// (a, b, ...)
  Number extreme(bool isMax) {
    Number best = take("(") ? disjunction() : fail();
    while (best && take(",")) {
      Number other = disjunction();
      best = other ? Number(isMax ? std::max(*best, *other) : std::min(*best, *other)) : fail();
    }
    return best && take(")") ? best : fail();
  }
  Number number() {
    skip();
    int64_t value = 0;
    return text.consumeInteger(10, value) ? fail() : Number(value);
  }
  /// 'name'].size()[dim]; one of *inputs is 'inputs'][1].size()[dim], and the input's name is inputs_1
  Number size() {
    skip();
    const char quote = text.empty() ? ' ' : text.front();
    if (quote != '\'' && quote != '"')
      return fail();
    const size_t end = text.find(quote, 1);
    if (end == llvm::StringRef::npos)
      return fail();
    std::string name = text.slice(1, end).str();
    text = text.drop_front(end + 1);
    if (!take("]"))
      return fail();
    if (take("[")) {
      const Number at = number();
      if (!at || !take("]"))
        return fail();
      name += "_" + std::to_string(*at);
    }
    if (!take(".") || !(take("size()") || take("shape")) || !take("["))
      return fail();
    Number dim = number();
    return dim && take("]") ? sizeOf(name, *dim) : fail();
  }

  llvm::StringRef text;
  SizeOf sizeOf;
  int depth = 0;
  bool failed = false;
};
} // namespace

std::optional<bool> holds(llvm::StringRef guard, SizeOf sizeOf) { return Parser(guard, sizeOf).run(); }

} // namespace tessera::pt2
