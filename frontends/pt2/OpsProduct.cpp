//===- OpsProduct.cpp - matrix products ------------------------------------===//

#include "frontends/common/Axis.h"
#include "frontends/common/Einsum.h"
#include "frontends/pt2/OpTable.h"
#include "frontends/pt2/Promote.h"

using namespace mlir;
using namespace tessera::train;

namespace tessera::pt2 {

namespace {
LogicalResult checkTypes(Call &c, StringRef first, StringRef second) {
  if (c.element(first) != c.element(second) || c.element(first).isInteger(1))
    return c.fail("operands are boolean or have different element types");
  return success();
}

LogicalResult opLinear(Call &c) {
  if (failed(checkTypes(c, "input", "weight")))
    return failure();
  const int64_t rank = c.rank("input");
  if (rank < 1 || c.rank("weight") != 2 || c.shape("input").back() != c.shape("weight")[1])
    return c.fail("cannot multiply " + shapeText(c.shape("input")) + " by a weight of " + shapeText(c.shape("weight")));
  Value y = c.b.dot(c.value("input"), c.value("weight"), {}, {}, {rank - 1}, {1});
  if (c.isTensor("bias")) {
    auto shape = broadcastShape(shapeOf(y), c.shape("bias"));
    if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(y) || c.element("bias") != c.element("input"))
      return c.fail("the bias does not fit");
    y = c.b.add(y, c.b.broadcastTo(c.value("bias"), *shape));
  }
  return c.set(y);
}

/// As torch.matmul: vectors get a dimension, batches are broadcast.
LogicalResult opMatmul(Call &c, StringRef second) {
  if (failed(checkTypes(c, "self", second)))
    return failure();
  Build &b = c.b;
  if (c.rank("self") == 0 || c.rank(second) == 0)
    return c.fail("an operand is a scalar");
  const bool lhsVector = c.rank("self") == 1, rhsVector = c.rank(second) == 1;
  Value lhs = c.value("self"), rhs = c.value(second);
  if (lhsVector)
    lhs = b.reshape(lhs, {1, shapeOf(lhs)[0]});
  if (rhsVector)
    rhs = b.reshape(rhs, {shapeOf(rhs)[0], 1});
  const auto lhsRank = static_cast<int64_t>(shapeOf(lhs).size()), rhsRank = static_cast<int64_t>(shapeOf(rhs).size());
  if (shapeOf(lhs).back() != shapeOf(rhs)[rhsRank - 2])
    return c.fail("cannot multiply " + shapeText(c.shape("self")) + " by " + shapeText(c.shape(second)));
  Value result;
  if (rhsRank == 2) {
    result = b.dot(lhs, rhs, {}, {}, {lhsRank - 1}, {0});
  } else {
    auto batch = broadcastShape(shapeOf(lhs).drop_back(2), shapeOf(rhs).drop_back(2));
    if (!batch)
      return c.fail("batch dimensions do not broadcast");
    auto widen = [&](Value value) {
      SmallVector<int64_t> shape(*batch);
      llvm::append_range(shape, shapeOf(value).take_back(2));
      return b.broadcastTo(value, shape);
    };
    auto dims = llvm::to_vector(llvm::seq<int64_t>(0, static_cast<int64_t>(batch->size())));
    const auto count = static_cast<int64_t>(dims.size());
    lhs = widen(lhs);
    rhs = widen(rhs);
    result = b.dot(lhs, rhs, dims, dims, {count + 1}, {count});
  }
  SmallVector<int64_t> shape(shapeOf(result));
  if (rhsVector)
    shape.pop_back();
  if (lhsVector)
    shape.erase(shape.end() - (rhsVector ? 1 : 2));
  return c.set(b.reshape(result, shape));
}
LogicalResult opMatmulOther(Call &c) { return opMatmul(c, "other"); }
LogicalResult opMm(Call &c) { return opMatmul(c, c.isTensor("mat2") ? "mat2" : "vec"); }

/// beta * self + alpha * product; nothing of self if beta is 0, whatever it holds.
LogicalResult addTo(Call &c, Value product) {
  Build &b = c.b;
  Type element = tensorType(product).getElementType();
  if (c.element("self") != element || failed(c.splat(element, c.numberOr("alpha", 1))) ||
      failed(c.splat(element, c.numberOr("beta", 1))))
    return c.fail("what is added, alpha or beta have another type");
  if (double alpha = c.numberOr("alpha", 1); alpha != 1)
    product = b.scale(product, alpha);
  auto shape = broadcastShape(shapeOf(product), c.shape("self"));
  if (!shape || ArrayRef<int64_t>(*shape) != shapeOf(product))
    return c.fail("what is added does not fit");
  const double beta = c.numberOr("beta", 1);
  if (beta == 0)
    return c.set(product);
  Value added = b.broadcastTo(c.value("self"), *shape);
  return c.set(b.add(product, beta == 1 ? added : b.scale(added, beta)));
}

LogicalResult opAddmm(Call &c) {
  if (failed(checkTypes(c, "mat1", "mat2")) || c.rank("mat1") != 2 || c.rank("mat2") != 2 ||
      c.shape("mat1")[1] != c.shape("mat2")[0])
    return c.fail("operands are not matrices that fit");
  return addTo(c, c.b.dot(c.value("mat1"), c.value("mat2"), {}, {}, {1}, {0}));
}
LogicalResult opAddmv(Call &c) {
  if (failed(checkTypes(c, "mat", "vec")) || c.rank("mat") != 2 || c.rank("vec") != 1 ||
      c.shape("mat")[1] != c.shape("vec")[0])
    return c.fail("operands are not a matrix and a vector that fit");
  return addTo(c, c.b.dot(c.value("mat"), c.value("vec"), {}, {}, {1}, {0}));
}
/// Products of a batch, or their sum.
template <bool isSum> LogicalResult opAddBatches(Call &c) {
  if (failed(checkTypes(c, "batch1", "batch2")) || c.rank("batch1") != 3 || c.rank("batch2") != 3 ||
      c.shape("batch1")[2] != c.shape("batch2")[1] || c.shape("batch1")[0] != c.shape("batch2")[0])
    return c.fail("operands are not batches of matrices that fit");
  Value x = c.value("batch1"), y = c.value("batch2");
  return addTo(c, isSum ? c.b.dot(x, y, {}, {}, {0, 2}, {0, 1}) : c.b.dot(x, y, {0}, {0}, {2}, {1}));
}

/// Each element of one vector times each of the other.
FailureOr<Value> outerProduct(Call &c, StringRef first, StringRef second) {
  Type element = promoted(c, first, second);
  if (!element || element.isInteger(1) || c.rank(first) != 1 || c.rank(second) != 1)
    return c.fail("operands are not vectors of numbers");
  const SmallVector<int64_t> shape = {c.shape(first)[0], c.shape(second)[0]};
  if (!countElements(shape))
    return c.fail("the result is too large");
  Value x = c.b.convert(c.value(first), element), y = c.b.convert(c.value(second), element);
  return c.b.mul(c.b.broadcast(x, shape, {0}), c.b.broadcast(y, shape, {1}));
}
LogicalResult opOuter(Call &c) {
  auto product = outerProduct(c, "self", "vec2");
  return failed(product) ? failure() : c.set(*product);
}
LogicalResult opAddr(Call &c) {
  auto product = outerProduct(c, "vec1", "vec2");
  return failed(product) ? failure() : addTo(c, *product);
}
LogicalResult opDot(Call &c) { return opMatmul(c, c.isTensor("tensor") ? "tensor" : "other"); }

/// Products summed over dimensions of both, whose sizes are the same.
LogicalResult contract(Call &c, ArrayRef<int64_t> ofSelf, ArrayRef<int64_t> ofOther) {
  if (failed(checkTypes(c, "self", "other")))
    return failure();
  for (auto [first, second] : llvm::zip_equal(ofSelf, ofOther))
    if (c.shape("self")[first] != c.shape("other")[second])
      return c.fail("dimensions of different sizes are contracted");
  return c.set(c.b.dot(c.value("self"), c.value("other"), {}, {}, ofSelf, ofOther));
}
LogicalResult opInner(Call &c) {
  const int64_t first = c.rank("self"), second = c.rank("other");
  if (first > 0 && second > 0)
    return contract(c, {first - 1}, {second - 1});
  if (failed(checkTypes(c, "self", "other")))
    return failure();
  ArrayRef<int64_t> shape = first == 0 ? c.shape("other") : c.shape("self");
  return c.set(c.b.mul(c.inputTo(c.at("self"), shape), c.inputTo(c.at("other"), shape)));
}
LogicalResult opTensordot(Call &c) {
  auto first = c.ints("dims_self"), second = c.ints("dims_other");
  if (!first || !second || first->size() != second->size() || !frontend::axesOf(*first, c.rank("self")) ||
      !frontend::axesOf(*second, c.rank("other")))
    return c.fail("the dimensions do not fit");
  for (auto [dims, name] : {std::pair(&*first, "self"), std::pair(&*second, "other")})
    for (int64_t &dim : *dims)
      dim = *axisOf(dim, c.rank(name));
  return contract(c, *first, *second);
}

/// Products of a list of matrices from the left; the first and the last one may be vectors.
template <bool hasVectors> LogicalResult opChain(Call &c) {
  auto list = c.list(hasVectors ? "tensors" : "matrices");
  if (!list || list->size() < (hasVectors ? 2 : 1))
    return c.fail("expected a list of matrices");
  Value product;
  for (auto [at, i] : llvm::enumerate(*list)) {
    const bool isEnd = at == 0 || at + 1 == list->size();
    if (!c.has(i) || c.element(i) != c.element((*list)[0]) || c.element(i).isInteger(1) ||
        !(c.rank(i) == 2 || (hasVectors && isEnd && c.rank(i) == 1)))
      return c.fail("expected matrices of one type");
    if (!product) {
      product = c.input(i);
      continue;
    }
    const auto last = static_cast<int64_t>(shapeOf(product).size()) - 1;
    if (shapeOf(product)[last] != c.shape(i)[0])
      return c.fail("the matrices do not fit");
    product = c.b.dot(product, c.input(i), {}, {}, {last}, {0});
  }
  return c.set(product);
}

/// Each element of the first times all of the second.
LogicalResult opKron(Call &c) {
  if (failed(checkTypes(c, "self", "other")))
    return failure();
  Build &b = c.b;
  const size_t rank = std::max(c.rank("self"), c.rank("other"));
  auto wide = [&](StringRef name) {
    SmallVector<int64_t> shape(rank - c.rank(name), 1);
    llvm::append_range(shape, c.shape(name));
    return shape;
  };
  const SmallVector<int64_t> first = wide("self"), second = wide("other");
  SmallVector<int64_t> mixed, shape, left, right;
  for (auto [a, d] : llvm::zip_equal(first, second)) {
    left.push_back(static_cast<int64_t>(mixed.size()));
    right.push_back(static_cast<int64_t>(mixed.size()) + 1);
    mixed.append({a, d});
    shape.push_back(a * d);
  }
  if (!countElements(mixed))
    return c.fail("the result is too large");
  Value x = b.broadcast(b.reshape(c.value("self"), first), mixed, left),
        y = b.broadcast(b.reshape(c.value("other"), second), mixed, right);
  return c.set(b.reshape(b.mul(x, y), shape));
}

LogicalResult opVecdot(Call &c) {
  auto shape = broadcastShape(c.shape("x"), c.shape("y"));
  auto dim = shape ? axisOf(c.integerOr("dim", -1), static_cast<int64_t>(shape->size())) : std::nullopt;
  if (!dim || shape->empty() || failed(checkTypes(c, "x", "y")))
    return c.reason.empty() ? c.fail("the vectors do not fit") : failure();
  return c.set(c.b.sum(c.b.mul(c.inputTo(c.at("x"), *shape), c.inputTo(c.at("y"), *shape)), {*dim}));
}

/// The cross product of vectors of 3 elements; without `dim` along the first dimension of `self` that has this size.
LogicalResult opCross(Call &c) {
  auto shape = broadcastShape(c.shape("self"), c.shape("other"));
  if (!shape || c.rank("self") != c.rank("other"))
    return c.fail("the shapes do not broadcast, or have different ranks");
  if (failed(checkTypes(c, "self", "other")))
    return failure();
  const int64_t *three = llvm::find(c.shape("self"), 3);
  const bool isGiven = c.has("dim") || StringRef(c.node.target).ends_with("linalg_cross.default");
  auto dim = isGiven ? axisOf(c.integerOr("dim", -1), static_cast<int64_t>(shape->size()))
                     : std::optional(static_cast<int64_t>(three - c.shape("self").begin()));
  if (!dim || shape->empty() || *dim >= static_cast<int64_t>(shape->size()) || (*shape)[*dim] != 3)
    return c.fail("expected a dimension of 3 elements");
  Build &b = c.b;
  Value x = c.inputTo(c.at("self"), *shape), y = c.inputTo(c.at("other"), *shape);
  auto turned = [&](Value v, ArrayRef<int64_t> order) { return frontend::takeAlong(b, v, *dim, order); };
  return c.set(
      b.sub(b.mul(turned(x, {1, 2, 0}), turned(y, {2, 0, 1})), b.mul(turned(x, {2, 0, 1}), turned(y, {1, 2, 0}))));
}

LogicalResult opEinsum(Call &c) {
  auto list = c.list("tensors");
  if (!list || list->empty() || (*list)[0] != 0 || static_cast<int>(list->size()) != c.inputCount())
    return c.fail("expected a list of tensors");
  auto result = frontend::einsum(c, c.text("equation", ""));
  return failed(result) ? failure() : c.set(*result);
}

/// x W[o] y for each o, plus a bias.
LogicalResult opBilinear(Call &c) {
  ArrayRef<int64_t> w = c.shape("weight"), x = c.shape("input1"), y = c.shape("input2");
  if (w.size() != 3 || x.empty() || x.size() != y.size() || x.drop_back() != y.drop_back() || x.back() != w[1] ||
      y.back() != w[2] || failed(checkTypes(c, "input1", "weight")) || failed(checkTypes(c, "input2", "weight")))
    return c.reason.empty() ? c.fail("the weights do not fit the inputs") : failure();
  Build &b = c.b;
  SmallVector<int64_t> shape(x.drop_back());
  int64_t rows = 1;
  for (int64_t size : shape)
    rows *= size;
  shape.push_back(w[0]);
  if (!countElements({rows, w[0], w[2]}))
    return c.fail("the product is too large");
  Value left = b.dot(b.reshape(c.value("input1"), {rows, w[1]}), c.value("weight"), {}, {}, {1}, {1}); // [rows, O, J]
  Value result = b.dot(left, b.reshape(c.value("input2"), {rows, w[2]}), {0}, {0}, {2}, {1});
  result = b.reshape(result, shape);
  if (c.isTensor("bias")) {
    if (c.shape("bias") != ArrayRef<int64_t>{w[0]} || c.element("bias") != c.element("weight"))
      return c.fail("the bias does not fit");
    result = b.add(result, b.broadcastTo(c.value("bias"), shape));
  }
  return c.set(result);
}

const OpRow kProductOps[] = {
    {"aten.addbmm.default", opAddBatches<true>, "self,batch1,batch2"},
    {"aten.addmm.default", opAddmm, "self,mat1,mat2"},
    {"aten.addmv.default", opAddmv, "self,mat,vec"},
    {"aten.addr.default", opAddr, "self,vec1,vec2"},
    {"aten.baddbmm.default", opAddBatches<false>, "self,batch1,batch2"},
    {"aten.bilinear.default", opBilinear, "input1,input2,weight"},
    {"aten.bmm.default", opMm, "self,mat2"},
    {"aten.chain_matmul.default", opChain<false>, ""},
    {"aten.cross.default", opCross, "self,other"},
    {"aten.dot.default", opDot, "self,tensor"},
    {"aten.einsum.default", opEinsum, ""},
    {"aten.ger.default", opOuter, "self,vec2"},
    {"aten.inner.default", opInner, "self,other"},
    {"aten.kron.default", opKron, "self,other"},
    {"aten.linalg_cross.default", opCross, "self,other"},
    {"aten.linalg_matmul.default", opMatmulOther, "self,other"},
    {"aten.linalg_multi_dot.default", opChain<true>, ""},
    {"aten.linalg_vecdot.default", opVecdot, "x,y"},
    {"aten.linear.default", opLinear, "input,weight"},
    {"aten.matmul.default", opMatmulOther, "self,other"},
    {"aten.mm.default", opMm, "self,mat2"},
    {"aten.mv.default", opMm, "self,vec"},
    {"aten.outer.default", opOuter, "self,vec2"},
    {"aten.tensordot.default", opTensordot, "self,other"},
    {"aten.vdot.default", opDot, "self,other"},
};
} // namespace

llvm::ArrayRef<OpRow> productOps() { return kProductOps; }

} // namespace tessera::pt2
