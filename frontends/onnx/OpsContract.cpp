//===- OpsContract.cpp - products of matrices, and by subscripts ---------------===//

#include "frontends/common/Einsum.h"
#include "frontends/onnx/OpTable.h"

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
    return n.fail("cannot multiply " + shapeText(n.shape(0)) + " by " + shapeText(n.shape(1)));
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
    auto batch = broadcastShape(shapeOf(lhs).drop_back(2), shapeOf(rhs).drop_back(2));
    if (!batch)
      return n.fail("batch dimensions of " + shapeText(n.shape(0)) + " and " + shapeText(n.shape(1)) +
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
    return n.fail("cannot multiply " + shapeText(n.shape(0)) + " by " + shapeText(n.shape(1)) +
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
    auto common = broadcastShape(shape, n.shape(2));
    if (common != shape || n.element(2) != n.element(0))
      return n.fail("C of shape " + shapeText(n.shape(2)) + " does not broadcast to " + shapeText(shape));
    Value bias = n.inputTo(2, shape);
    result = b.add(result, beta == 1.0 ? bias : b.scale(bias, beta));
  }
  return n.set(result);
}

LogicalResult opEinsum(Node &n) {
  auto result = einsum(n, n.attrString("equation", ""));
  return failed(result) ? failure() : n.set(*result);
}

const OpRow kContractOps[] = {
    {"", "Einsum", 12, kMaxOpset, 1, opEinsum},
    {"", "Gemm", kMinOpset, kMaxOpset, 2, opGemm},
    {"", "MatMul", kMinOpset, kMaxOpset, 2, opMatMul},
};
} // namespace

ArrayRef<OpRow> contractOps() { return kContractOps; }

} // namespace tessera::onnx_import
