//===- Einsum.cpp - sums of products by subscripts ------------------------===//
//
// Operands are multiplied two at a time, the pair with the smallest product first; what no other operand and no output
// needs is summed as soon as it can be.
//
//===----------------------------------------------------------------------===//

#include "frontends/common/Einsum.h"

#include "llvm/ADT/StringExtras.h"

#include <map>

using namespace mlir;
using namespace tessera::train;

namespace tessera::frontend {

namespace {
/// A letter, or a dimension of the ellipsis counted from its end.
using Label = int64_t;
using Labels = SmallVector<Label>;
constexpr Label kEllipsis = 256;
constexpr StringLiteral kDots = "...";
/// Of one equation: choosing the order of the products takes the fourth power of their number.
constexpr size_t kMostOperands = 64;

/// One operand while labels are being eliminated.
struct Term {
  Value value;
  Labels labels;

  std::optional<int64_t> find(Label label) const {
    const auto *found = llvm::find(labels, label);
    return found == labels.end() ? std::nullopt : std::optional<int64_t>(found - labels.begin());
  }
};

/// The labels of a term whose ellipsis stands for so many dimensions; nullopt if it is not letters and one ellipsis.
std::optional<Labels> parseTerm(StringRef text, int64_t ellipsis) {
  if (text.count(kDots) > 1)
    return std::nullopt;
  Labels labels;
  while (!text.empty()) {
    if (text.consume_front(kDots)) {
      for (int64_t i = ellipsis - 1; i >= 0; --i)
        labels.push_back(kEllipsis + i);
      continue;
    }
    if (!llvm::isAlpha(text.front()))
      return std::nullopt;
    labels.push_back(text.front());
    text = text.drop_front();
  }
  return labels;
}

std::string nameOf(Label label) {
  return label < kEllipsis ? "letter '" + std::string(1, static_cast<char>(label)) + "'"
                           : "dimension " + std::to_string(label - kEllipsis) + " from the end of '...'";
}

/// Takes the diagonal of labels that occur twice: every (n + 1)-th element of the n x n pairs.
void takeDiagonals(Build &b, Term &term) {
  for (size_t first = 0; first < term.labels.size(); ++first)
    for (size_t second = first + 1; second < term.labels.size(); ++second) {
      if (term.labels[first] != term.labels[second])
        continue;
      SmallVector<int64_t> order, shape;
      Labels labels;
      for (size_t dim = 0; dim < term.labels.size(); ++dim)
        if (dim != first && dim != second) {
          order.push_back(static_cast<int64_t>(dim));
          shape.push_back(shapeOf(term.value)[dim]);
          labels.push_back(term.labels[dim]);
        }
      const int64_t size = shapeOf(term.value)[first];
      labels.push_back(term.labels[first]);
      order.append({static_cast<int64_t>(first), static_cast<int64_t>(second)});
      shape.push_back(size * size);
      SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
      strides.back() = size + 1;
      Value pairs = b.reshape(b.transpose(term.value, order), shape);
      term = {b.slice(pairs, starts, shape, strides), labels};
      return takeDiagonals(b, term);
    }
}

/// Removes dimensions of size 1 whose label is longer elsewhere: they are repeated there.
void dropRepeated(Build &b, Term &term, const std::map<Label, int64_t> &sizes) {
  SmallVector<int64_t> shape;
  Labels labels;
  for (auto [dim, label] : llvm::enumerate(term.labels)) {
    const int64_t size = shapeOf(term.value)[dim];
    if (size != sizes.at(label))
      continue;
    shape.push_back(size);
    labels.push_back(label);
  }
  term = {b.reshape(term.value, shape), labels};
}

/// Sums out the labels that are not wanted.
void sumOut(Build &b, Term &term, ArrayRef<Label> wanted) {
  SmallVector<int64_t> dims;
  Labels kept;
  for (auto [dim, label] : llvm::enumerate(term.labels)) {
    if (llvm::is_contained(wanted, label))
      kept.push_back(label);
    else
      dims.push_back(static_cast<int64_t>(dim));
  }
  if (!dims.empty())
    term = {b.sum(term.value, dims), kept};
}

Term multiply(Build &b, const Term &lhs, const Term &rhs, ArrayRef<Label> wanted) {
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  Labels batch, free;
  for (auto [dim, label] : llvm::enumerate(lhs.labels)) {
    std::optional<int64_t> other = rhs.find(label);
    if (!other) {
      free.push_back(label);
    } else if (llvm::is_contained(wanted, label)) {
      lhsBatch.push_back(static_cast<int64_t>(dim));
      rhsBatch.push_back(*other);
      batch.push_back(label);
    } else {
      lhsContract.push_back(static_cast<int64_t>(dim));
      rhsContract.push_back(*other);
    }
  }
  llvm::copy_if(rhs.labels, std::back_inserter(free), [&](Label label) { return !lhs.find(label); });
  if (!lhsContract.empty()) {
    batch.append(free);
    return {b.dot(lhs.value, rhs.value, lhsBatch, rhsBatch, lhsContract, rhsContract), batch};
  }
  // An outer or elementwise product.
  Term result{{}, lhs.labels};
  SmallVector<int64_t> shape(shapeOf(lhs.value));
  for (auto [dim, label] : llvm::enumerate(rhs.labels))
    if (!lhs.find(label)) {
      result.labels.push_back(label);
      shape.push_back(shapeOf(rhs.value)[dim]);
    }
  // Broadcast needs increasing dimensions: order the right operand's labels as the result's.
  Labels ordered = rhs.labels;
  llvm::sort(ordered, [&](Label a, Label c) { return *result.find(a) < *result.find(c); });
  SmallVector<int64_t> permutation, rhsDims;
  for (Label label : ordered) {
    permutation.push_back(*rhs.find(label));
    rhsDims.push_back(*result.find(label));
  }
  Value wideLhs = b.broadcast(lhs.value, shape, llvm::to_vector(llvm::seq<int64_t>(0, lhs.labels.size())));
  Value wideRhs = b.broadcast(b.transpose(rhs.value, permutation), shape, rhsDims);
  result.value = b.mul(wideLhs, wideRhs);
  return result;
}

/// Labels that the output or an operand other than these two has.
Labels wantedOutside(ArrayRef<Term> terms, size_t first, size_t second, ArrayRef<Label> output) {
  Labels wanted(output);
  for (auto [i, term] : llvm::enumerate(terms))
    if (i != first && i != second)
      wanted.append(term.labels);
  return wanted;
}

/// The pair of terms whose product is smallest.
std::pair<size_t, size_t> smallestPair(ArrayRef<Term> terms, ArrayRef<Label> output,
                                       const std::map<Label, int64_t> &sizes) {
  std::pair<size_t, size_t> best{0, 1};
  double least = -1;
  for (size_t first = 0; first < terms.size(); ++first)
    for (size_t second = first + 1; second < terms.size(); ++second) {
      const Labels wanted = wantedOutside(terms, first, second, output);
      double size = 1;
      for (const auto &[label, each] : sizes)
        if (llvm::is_contained(wanted, label) && (terms[first].find(label) || terms[second].find(label)))
          size *= static_cast<double>(each);
      if (least < 0 || size < least)
        std::tie(least, best) = std::pair(size, std::pair(first, second));
    }
  return best;
}

/// Reads the equation into terms and the labels of the output.
LogicalResult readEquation(Call &n, std::string equation, SmallVector<Term> &terms, Labels &output,
                           std::map<Label, int64_t> &sizes) {
  llvm::erase_if(equation, [](char c) { return c == ' '; });
  auto [inputs, result] = StringRef(equation).split("->");
  const bool isExplicit = inputs.size() != equation.size();
  SmallVector<StringRef> texts;
  inputs.split(texts, ',');
  if (static_cast<int>(texts.size()) != n.inputCount())
    return n.fail("equation '" + equation + "' needs one term per input");
  if (texts.size() > kMostOperands)
    return n.fail("more than " + Twine(kMostOperands) + " operands");
  int64_t ellipsis = 0;
  std::map<Label, int> counts;
  for (auto [i, text] : llvm::enumerate(texts)) {
    const int input = static_cast<int>(i);
    if (!n.has(input))
      return n.fail("input " + Twine(i) + " is missing");
    const auto letters = static_cast<int64_t>(llvm::count_if(text, llvm::isAlpha));
    const int64_t own = text.contains(kDots) ? n.rank(input) - letters : 0;
    auto labels = own < 0 ? std::nullopt : parseTerm(text, own);
    if (!labels || static_cast<int64_t>(labels->size()) != n.rank(input) || n.element(input) != n.element(0) ||
        n.element(input).isInteger(1))
      return n.fail("input " + Twine(i) + " does not fit term '" + text + "'");
    ellipsis = std::max(ellipsis, own);
    for (auto [dim, label] : llvm::enumerate(*labels)) {
      const int64_t size = n.shape(input)[dim];
      ++counts[label];
      int64_t &known = sizes.try_emplace(label, size).first->second;
      const auto *twice = llvm::find(*labels, label);
      if (n.shape(input)[twice - labels->begin()] != size || (size != known && size != 1 && known != 1))
        return n.fail(nameOf(label) + " stands for sizes " + Twine(known) + " and " + Twine(size));
      known = known == 1 ? size : known;
    }
    terms.push_back({n.input(input), *labels});
  }
  if (isExplicit) {
    auto labels = parseTerm(result, ellipsis);
    if (!labels)
      return n.fail("output '" + result + "' of the equation is not letters and at most one '...'");
    output = *labels;
  } else { // the ellipsis, then the letters that occur once, in the order of the alphabet
    output = *parseTerm(kDots, ellipsis);
    for (const auto &[label, count] : counts)
      if (label < kEllipsis && count == 1)
        output.push_back(label);
  }
  for (Label label : output)
    if (!sizes.count(label) || llvm::count(output, label) > 1)
      return n.fail(nameOf(label) + " of the output is unknown or occurs twice");
  return success();
}

} // namespace

LogicalResult einsum(Call &n, std::string equation) {
  SmallVector<Term> terms;
  Labels output;
  std::map<Label, int64_t> sizes;
  if (failed(readEquation(n, std::move(equation), terms, output, sizes)))
    return failure();
  for (Term &term : terms) {
    takeDiagonals(n.b, term);
    dropRepeated(n.b, term, sizes);
  }
  while (terms.size() > 1) {
    auto [first, second] = smallestPair(terms, output, sizes);
    const Labels wanted = wantedOutside(terms, first, second, output);
    Labels forLhs(wanted), forRhs(wanted);
    forLhs.append(terms[second].labels);
    sumOut(n.b, terms[first], forLhs);
    forRhs.append(terms[first].labels);
    sumOut(n.b, terms[second], forRhs);
    SmallVector<int64_t> shape;
    for (const auto &[label, size] : sizes)
      if (llvm::is_contained(wanted, label) && (terms[first].find(label) || terms[second].find(label)))
        shape.push_back(size);
    if (!countElements(shape))
      return n.fail("the product is too large");
    terms[first] = multiply(n.b, terms[first], terms[second], wanted);
    terms.erase(terms.begin() + second);
  }
  Term &result = terms.front();
  sumOut(n.b, result, output);
  SmallVector<int64_t> permutation;
  for (Label label : output)
    permutation.push_back(*result.find(label));
  return n.set(result.labels == output ? result.value : n.b.transpose(result.value, permutation));
}

} // namespace tessera::frontend
