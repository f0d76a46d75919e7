//===- Index.cpp - arithmetic of positions --------------------------------===//

#include "passes/lower/codegen/Index.h"

#include <algorithm>

namespace tessera::codegen {

int64_t Index::coefficient(unsigned digit) const {
  auto *term = llvm::find_if(terms, [&](const Term &term) { return term.digit == digit; });
  return term == terms.end() ? 0 : term->coefficient;
}

Index Index::operator+(const Index &other) const {
  Index sum;
  sum.offset = offset + other.offset;
  auto a = terms.begin(), b = other.terms.begin();
  while (a != terms.end() || b != other.terms.end()) {
    if (b == other.terms.end() || (a != terms.end() && a->digit < b->digit)) {
      sum.terms.push_back(*a++);
    } else if (a == terms.end() || b->digit < a->digit) {
      sum.terms.push_back(*b++);
    } else {
      if (int64_t coefficient = a->coefficient + b->coefficient)
        sum.terms.push_back({a->digit, coefficient});
      ++a, ++b;
    }
  }
  return sum;
}

Index Index::operator+(int64_t value) const {
  Index sum = *this;
  sum.offset += value;
  return sum;
}

Index Index::operator*(int64_t factor) const {
  if (factor == 0)
    return constant(0);
  Index product = *this;
  product.offset *= factor;
  for (Term &term : product.terms)
    term.coefficient *= factor;
  return product;
}

bool Index::operator<(const Index &other) const {
  if (offset != other.offset)
    return offset < other.offset;
  return std::lexicographical_compare(terms.begin(), terms.end(), other.terms.begin(), other.terms.end());
}

int64_t Space::maximum(const Index &index) const {
  int64_t maximum = index.offset;
  for (const Index::Term &term : index.terms)
    if (term.coefficient > 0)
      maximum += term.coefficient * (digits[term.digit].size - 1);
  return maximum;
}

unsigned Space::level(const Index &index) const {
  unsigned level = 0;
  for (const Index::Term &term : index.terms)
    level = std::max(level, digits[term.digit].level);
  return level;
}

Index Space::substitute(const Index &index) const {
  Index result = Index::constant(index.offset);
  for (const Index::Term &term : index.terms) {
    if (const auto &known = digits[term.digit].known)
      result.offset += term.coefficient * *known;
    else
      result.terms.push_back(term);
  }
  return result;
}

unsigned Space::addOpaque(int64_t size, unsigned level, mlir::Value value) {
  Digit digit;
  digit.size = size;
  digit.opaque = true;
  digit.value = value;
  digit.level = level;
  digits.push_back(digit);
  return digits.size() - 1;
}

Index Space::inside(const Index &index, unsigned level) {
  Index made = Index::constant(index.offset);
  for (const Index::Term &term : index.terms) {
    Digit digit = digits[term.digit];
    digit.insideOf = digit.insideOf.value_or(term.digit);
    digit.opaque = true;
    digit.level = std::max(digit.level, level);
    digits.push_back(digit);
    made.terms.push_back({static_cast<unsigned>(digits.size() - 1), term.coefficient});
  }
  return made;
}

Index Space::outside(const Index &index) const {
  Index made = Index::constant(index.offset);
  for (const Index::Term &term : index.terms)
    made = made + Index::ofDigit(digits[term.digit].insideOf.value_or(term.digit), term.coefficient);
  return made;
}

std::optional<std::pair<Index, Index>> Space::divide(const Index &index, int64_t divisor,
                                                     std::optional<Cut> &wanted) const {
  const int64_t below = index.offset < 0 ? (-index.offset + divisor - 1) / divisor : 0; // inside of a branch
  Index quotient = Index::constant((index.offset + below * divisor) / divisor - below),
        remainder = Index::constant((index.offset + below * divisor) % divisor);
  for (const Index::Term &term : index.terms) {
    if (term.coefficient % divisor == 0)
      quotient.terms.push_back({term.digit, term.coefficient / divisor});
    else
      remainder.terms.push_back(term);
  }
  if (maximum(remainder) < divisor)
    return std::make_pair(quotient, remainder);
  for (const Index::Term &term : remainder.terms) {
    const Digit &digit = digits[term.digit];
    const unsigned own = digit.insideOf.value_or(term.digit); // of the space, or an opaque one, which cannot be cut
    if (digits[own].opaque || term.coefficient >= divisor || divisor % term.coefficient != 0)
      continue;
    int64_t factor = divisor / term.coefficient;
    if (digit.size > factor && digit.size % factor == 0) {
      wanted = Cut{own, factor};
      break;
    }
  }
  return std::nullopt;
}

Index cutLast(const Index &index, const Cut &cut) {
  Index result = index;
  if (!result.terms.empty() && result.terms.back().digit == cut.digit) {
    const int64_t coefficient = result.terms.back().coefficient;
    result.terms.back().coefficient *= cut.factor;
    result.terms.push_back({cut.digit + 1, coefficient});
  }
  return result;
}

Index linearize(llvm::ArrayRef<Index> indices, llvm::ArrayRef<int64_t> shape) {
  Index linear = Index::constant(0);
  for (auto [index, size] : llvm::zip_equal(indices, shape))
    linear = linear * size + index;
  return linear;
}

int64_t elementsOf(llvm::ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

} // namespace tessera::codegen
