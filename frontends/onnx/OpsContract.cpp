//===- OpsContract.cpp - matrix products ----------------------------------===//

#include "frontends/onnx/OpTable.h"

#include <map>

using namespace mlir;
using namespace tessera::train;

namespace tessera::onnx_import {

namespace {
/// If `value` swaps the last two dimensions of another value, that value.
Value swappedSource(Value value) {
  auto transpose = value.getDefiningOp<TransposeOp>();
  if (!transpose)
    return {};
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  const auto rank = static_cast<int64_t>(permutation.size());
  if (rank < 2 || permutation[rank - 1] != rank - 2 || permutation[rank - 2] != rank - 1)
    return {};
  for (int64_t dim = 0; dim < rank - 2; ++dim)
    if (permutation[dim] != dim)
      return {};
  return transpose.getOperand();
}

LogicalResult opMatMul(Node &n) {
  if (n.element(0) != n.element(1) || n.element(0).isInteger(1))
    return n.fail("inputs are boolean or have different element types");
  if (n.rank(0) == 0 || n.rank(1) == 0)
    return n.fail("an input is a scalar");
  Build &b = n.b;
  const bool lhsVector = n.rank(0) == 1, rhsVector = n.rank(1) == 1;
  Value lhs = lhsVector ? b.reshape(n.input(0), {1, n.shape(0)[0]}) : n.input(0);
  Value rhs = rhsVector ? b.reshape(n.input(1), {n.shape(1)[0], 1}) : n.input(1);
  const auto lhsRank = static_cast<int64_t>(shapeOf(lhs).size()), rhsRank = static_cast<int64_t>(shapeOf(rhs).size());
  if (shapeOf(lhs).back() != shapeOf(rhs)[rhsRank - 2])
    return n.fail("cannot multiply " + Node::shapeText(n.shape(0)) + " by " + Node::shapeText(n.shape(1)));
  Value result;
  // A transposed right operand is contracted where it is.
  auto source = [](Value value, int64_t &contract) {
    const auto rank = static_cast<int64_t>(shapeOf(value).size());
    contract = rank - 2;
    if (Value other = swappedSource(value)) {
      contract = rank - 1;
      return other;
    }
    return value;
  };
  int64_t contract = 0;
  if (rhsRank == 2) {
    rhs = source(rhs, contract);
    result = b.dot(lhs, rhs, {}, {}, {lhsRank - 1}, {contract});
  } else {
    auto batch = Node::broadcastShape(shapeOf(lhs).drop_back(2), shapeOf(rhs).drop_back(2));
    if (!batch)
      return n.fail("batch dimensions of " + Node::shapeText(n.shape(0)) + " and " + Node::shapeText(n.shape(1)) +
                    " do not broadcast");
    auto widen = [&](Value value) {
      SmallVector<int64_t> shape(*batch);
      llvm::append_range(shape, shapeOf(value).take_back(2));
      return b.broadcastTo(value, shape);
    };
    lhs = widen(lhs);
    rhs = source(widen(rhs), contract);
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(batch->size())));
    result = b.dot(lhs, rhs, dims, dims, {static_cast<int64_t>(dims.size()) + 1}, {contract});
  }
  SmallVector<int64_t> shape(shapeOf(result));
  if (rhsVector)
    shape.pop_back();
  if (lhsVector)
    shape.erase(shape.end() - (rhsVector ? 1 : 2));
  return n.set(b.reshape(result, shape));
}

LogicalResult opGemm(Node &n) {
  if (n.rank(0) != 2 || n.rank(1) != 2 || n.element(0) != n.element(1) || n.element(0).isInteger(1))
    return n.fail("inputs are not matrices of one numeric element type");
  const int64_t lhs = n.attr("transA", 0) ? 0 : 1, rhs = n.attr("transB", 0) ? 1 : 0;
  if (n.shape(0)[lhs] != n.shape(1)[rhs])
    return n.fail("cannot multiply " + Node::shapeText(n.shape(0)) + " by " + Node::shapeText(n.shape(1)) +
                  " with these transpositions");
  Build &b = n.b;
  Value result = b.dot(n.input(0), n.input(1), {}, {}, {lhs}, {rhs});
  const double alpha = n.attrFloat("alpha", 1.0), beta = n.attrFloat("beta", 1.0);
  if (!n.isFloat(0) && (alpha != 1.0 || beta != 1.0))
    return n.fail("alpha and beta must be 1 for integers");
  if (alpha != 1.0)
    result = b.scale(result, alpha);
  if (n.has(2)) {
    SmallVector<int64_t> shape(shapeOf(result));
    auto common = Node::broadcastShape(shape, n.shape(2));
    if (common != shape || n.element(2) != n.element(0))
      return n.fail("C of shape " + Node::shapeText(n.shape(2)) + " does not broadcast to " + Node::shapeText(shape));
    Value bias = n.inputTo(2, shape);
    result = b.add(result, beta == 1.0 ? bias : b.scale(bias, beta));
  }
  return n.set(result);
}

// --- Einsum ---

/// One operand while letters are being eliminated.
struct Term {
  Value value;
  std::string letters;
};

/// Sums out the letters that neither the other operand nor the result has.
void sumOut(Build &b, Term &term, StringRef wanted) {
  SmallVector<int64_t> dims;
  std::string kept;
  for (auto [dim, letter] : llvm::enumerate(term.letters)) {
    if (wanted.contains(letter))
      kept += letter;
    else
      dims.push_back(static_cast<int64_t>(dim));
  }
  if (dims.empty())
    return;
  term = {b.sum(term.value, dims), kept};
}

Term multiply(Build &b, const Term &lhs, const Term &rhs, StringRef wanted) {
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  std::string batch, free;
  for (auto [dim, letter] : llvm::enumerate(lhs.letters)) {
    const size_t other = rhs.letters.find(letter);
    if (other == std::string::npos) {
      free += letter;
    } else if (wanted.contains(letter)) {
      lhsBatch.push_back(static_cast<int64_t>(dim));
      rhsBatch.push_back(static_cast<int64_t>(other));
      batch += letter;
    } else {
      lhsContract.push_back(static_cast<int64_t>(dim));
      rhsContract.push_back(static_cast<int64_t>(other));
    }
  }
  for (char letter : rhs.letters)
    if (lhs.letters.find(letter) == std::string::npos)
      free += letter;
  if (!lhsContract.empty())
    return {b.dot(lhs.value, rhs.value, lhsBatch, rhsBatch, lhsContract, rhsContract), batch + free};
  // An outer or elementwise product.
  std::string letters = lhs.letters;
  SmallVector<int64_t> shape(shapeOf(lhs.value)), lhsDims;
  for (size_t dim = 0; dim < letters.size(); ++dim)
    lhsDims.push_back(static_cast<int64_t>(dim));
  for (auto [dim, letter] : llvm::enumerate(rhs.letters))
    if (letters.find(letter) == std::string::npos) {
      letters += letter;
      shape.push_back(shapeOf(rhs.value)[dim]);
    }
  // Broadcast needs increasing dimensions: order the right operand's letters as the result's.
  std::string ordered = rhs.letters;
  llvm::sort(ordered, [&](char a, char c) { return letters.find(a) < letters.find(c); });
  SmallVector<int64_t> permutation, rhsDims;
  for (char letter : ordered) {
    permutation.push_back(static_cast<int64_t>(rhs.letters.find(letter)));
    rhsDims.push_back(static_cast<int64_t>(letters.find(letter)));
  }
  Value wideLhs = b.broadcast(lhs.value, shape, lhsDims);
  Value wideRhs = b.broadcast(b.transpose(rhs.value, permutation), shape, rhsDims);
  return {b.mul(wideLhs, wideRhs), letters};
}

LogicalResult opEinsum(Node &n) {
  std::string equation = n.attrString("equation", "");
  llvm::erase_if(equation, [](char c) { return c == ' '; });
  auto [inputs, output] = StringRef(equation).split("->");
  if (inputs.size() == equation.size() || StringRef(equation).contains('.'))
    return n.fail("equation '" + equation + "' needs '->' and must not have '...'");
  SmallVector<StringRef> terms;
  inputs.split(terms, ',');
  if (static_cast<int>(terms.size()) != n.inputCount() || terms.size() > 2)
    return n.fail("equation '" + equation + "' needs one or two terms, one per input");
  std::map<char, int64_t> sizes;
  for (auto [i, letters] : llvm::enumerate(terms)) {
    const int input = static_cast<int>(i);
    if (static_cast<int64_t>(letters.size()) != n.rank(input) || n.element(input) != n.element(0) ||
        n.element(input).isInteger(1))
      return n.fail("input " + Twine(i) + " does not fit term '" + letters + "'");
    for (auto [dim, letter] : llvm::enumerate(letters)) {
      if (letters.count(letter) > 1)
        return n.fail("letter '" + Twine(letter) + "' occurs twice in one term");
      auto [known, added] = sizes.try_emplace(letter, n.shape(input)[dim]);
      if (known->second != n.shape(input)[dim])
        return n.fail("letter '" + Twine(letter) + "' stands for sizes " + Twine(known->second) + " and " +
                      Twine(n.shape(input)[dim]));
    }
  }
  for (char letter : output)
    if (!sizes.count(letter) || output.count(letter) > 1)
      return n.fail("letter '" + Twine(letter) + "' of the output is unknown or occurs twice");
  SmallVector<int64_t> all;
  for (const auto &[letter, size] : sizes)
    all.push_back(size);
  if (!countElements(all))
    return n.fail("the product is too large");
  Term result{n.input(0), terms[0].str()};
  if (terms.size() == 2) {
    Term rhs{n.input(1), terms[1].str()};
    sumOut(n.b, result, (terms[1] + output).str());
    sumOut(n.b, rhs, (result.letters + output).str());
    result = multiply(n.b, result, rhs, output);
  } else {
    sumOut(n.b, result, output);
  }
  SmallVector<int64_t> permutation;
  for (char letter : output)
    permutation.push_back(static_cast<int64_t>(result.letters.find(letter)));
  return n.set(StringRef(result.letters) == output ? result.value : n.b.transpose(result.value, permutation));
}

const OpRow kRows[] = {
    {"", "Einsum", 12, kMaxOpset, 1, opEinsum},
    {"", "Gemm", kMinOpset, kMaxOpset, 2, opGemm},
    {"", "MatMul", kMinOpset, kMaxOpset, 2, opMatMul},
};
} // namespace

ArrayRef<OpRow> contractOps() { return kRows; }

} // namespace tessera::onnx_import
